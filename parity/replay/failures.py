"""What a comparison says of modules that did not run alone in one of the frameworks."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from ..findings import Finding
from ..judge import Unjudged, Verdict
from ..start import MINDSPORE_REPLAY
from ..trace import ALONE, Entry, Trace
from .calls import WIRING
from .outcome import Outcome, failed


@dataclass(frozen=True)
class Failures:
    """By label of a call, what torch (in any precision) and MindSpore raised."""

    torch: dict[str, str] = field(default_factory=dict)
    mindspore: dict[str, str] = field(default_factory=dict)

    @classmethod
    def of(cls, torch: Sequence[Trace], mindspore: Trace) -> Failures:
        """What the traces of a replay say; nothing of any other trace. Raises BadTrace for nonsense."""
        if mindspore.folder.name != MINDSPORE_REPLAY:
            return cls()
        raised = {label: why for trace in torch for label, why in failed(trace).items()}
        return cls(raised, Outcome.of(mindspore).errors)

    def of_torch(self, entry: Entry) -> Finding | None:
        """No verdict on a tensor of a module that torch itself could not run alone."""
        why = self.torch.get(entry.name.rpartition(" ")[0]) if entry.part == ALONE else None
        if why is None:
            return None
        text = f"torch does not run it alone: {why}"
        place = (entry.stage, entry.part, entry.label, entry.order)
        return Finding(*place, Verdict.NONE, text, entry.module, entry.shape, unjudged=Unjudged.NOT_ALONE)

    def of_mindspore(self, entry: Entry) -> str:
        """Why MindSpore lacks a tensor of a module that it ran alone, or nothing."""
        why = self.mindspore.get(entry.name.rpartition(" ")[0]) if entry.part in (ALONE, WIRING) else None
        return why or ""
