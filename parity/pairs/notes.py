"""What a reader of a pair's report has to know of its alignment."""

from __future__ import annotations

from collections import Counter

from .alignment import LIKELY, Alignment

MOST = 5


def notes(alignment: Alignment) -> list[str]:
    """How the pair was aligned, what has no counterpart, and what is not compared because of it."""
    if alignment.identity:
        return []
    how = Counter(match.how for match in alignment.modules)
    likely = [match for match in alignment.modules if match.sure == LIKELY]
    found = [
        f"{len(alignment.modules)} modules and {len(alignment.parameters)} tensors were aligned: "
        + ", ".join(f"{count} by {name}" for name, count in how.most_common())
        + (f"; {len(likely)} of them likely rather than certain" if likely else "")
    ]
    for framework, name in (("torch", "torch's"), ("mindspore", "MindSpore's")):
        left = [left for left in alignment.left if left.framework == framework]
        if left:
            shown = ", ".join(f"{one.name} ({one.why})" for one in left[:MOST])
            more = f" and {len(left) - MOST} more" if len(left) > MOST else ""
            found.append(f"without a counterpart, and so not compared alone, of {name}: {shown}{more}")
    scope = alignment.scope
    without = {
        "the gradient of the input": scope.image_gradient,
        "optimizer state": scope.optimizer_state,
        "learning rates and weight decays": scope.rates,
        "the loss on given logits": scope.given_logits,
    }
    lacks = [name for name, there in without.items() if not there]
    if lacks:
        found.append(f"not recorded for this pair: {', '.join(lacks)}")
    return found
