"""The sections of a recipe that say what is minimised: loss and mixup."""

from __future__ import annotations

import re
from typing import Any

from ...mappings import table
from ...mappings.rows import Row
from . import names, recipe_keys
from .loops import BATCHES
from .reading import Reader
from .recipe_keys import calls, surely
from .recipe_optimizing import part_section
from .recipe_values import Entry, number, place, sources
from .values import Constant, Seen, known

# timm's own defaults
MIXUP = {"mixup_alpha": 1.0, "cutmix_alpha": 0.0, "prob": 1.0, "switch_prob": 0.5, "label_smoothing": 0.1}


AS_CROSS_ENTROPY = ("timm.loss.LabelSmoothingCrossEntropy", "timm.loss.SoftTargetCrossEntropy")


def loss(reader: Reader) -> tuple[Entry | None, float]:
    """The section `loss`, and the label smoothing that it has."""
    found = surely(calls(reader, "loss"))
    chosen = found[0] if found else _loss_function(reader)
    if chosen is None:
        return None, 0.0
    row = _loss_row(chosen.name)
    if row is None or row.torch in AS_CROSS_ENTROPY:  # CrossEntropyLoss, its smoothing under another name
        smoothing = chosen.get("smoothing", 0) or Constant(0.1)
        amount = number(smoothing) or 0.0
        soft = chosen.name.endswith("SoftTargetCrossEntropy")
        value: dict[str, Any] = {"name": "CrossEntropyLoss"}
        if not soft and amount:
            value["args"] = {"label_smoothing": amount}
        return Entry("loss", value, [place(chosen), *sources(smoothing)]), 0.0 if soft else amount
    if row.short == "NLLLoss" and any(seen.name.endswith(("log_softmax", "LogSoftmax")) for seen in reader.seen):
        said = [place(chosen), "on log_softmax: the same as CrossEntropyLoss on what the log_softmax takes"]
        return Entry("loss", {"name": "CrossEntropyLoss"}, said), 0.0
    section = part_section("loss", chosen, row)
    return section, number(chosen.get("label_smoothing")) or 0.0


def _loss_function(reader: Reader) -> Seen | None:
    """A functional loss inside the loop over batches."""
    found = [
        seen
        for seen in reader.seen
        if seen.arguments is not None and "functional." in seen.name and BATCHES in seen.loops
    ]
    return next((seen for seen in surely(recipe_keys.by_sureness(found)) if _loss_row(seen.name) is not None), None)


def _loss_row(name: str) -> Row | None:
    row = names.row_of(name)
    if row is not None and row.kind == "loss":
        return row
    bare = name.rpartition(".")[2].replace("_", "").removesuffix("loss")
    if "functional." not in name:
        return None
    return next((row for row in table.rows("loss") if row.short.lower() == f"{bare}loss"), None)


def mixup(reader: Reader, smoothing: float) -> Entry | None:
    """The section `mixup`; smoothing: of the loss, which a recipe that mixes does itself."""
    found = surely(calls(reader, recipe_keys.MIXUP))
    if not found:
        return _by_hand(reader)
    first = found[0]
    if first.name.startswith("timm."):
        told: dict[str, Any] = dict(MIXUP)
        for position, name in enumerate(
            ("mixup_alpha", "cutmix_alpha", "cutmix_minmax", "prob", "switch_prob", "mode")
        ):
            if name in told and (value := number(first.get(name, position))) is not None:
                told[name] = float(value)
        value = number(first.get("label_smoothing", 7))
        told["label_smoothing"] = float(value) if value is not None else told["label_smoothing"]
        comments = [place(first)]
        if known(first.get("mode", 5), "batch") != "batch":
            comments.append("a recipe mixes in batch mode only")
        return Entry("mixup", told, comments)
    told = {
        "mixup_alpha": 0.0,
        "cutmix_alpha": 0.0,
        "prob": 1.0,
        "switch_prob": 0.5,
        "label_smoothing": float(smoothing),
    }
    comments = []
    for seen in found:
        alpha = seen.get("alpha")
        value = number(alpha) if alpha is not None else 1.0
        told["mixup_alpha" if seen.name.endswith("MixUp") else "cutmix_alpha"] = float(value or 0.0)
        comments += [place(seen), *sources(alpha)]
        if value is None:
            comments.append("its alpha cannot be told")
    if not told["mixup_alpha"] and not told["cutmix_alpha"]:
        return Entry("mixup", {**told, "mixup_alpha": 0.2}, comments, out=True)
    return Entry("mixup", told, list(dict.fromkeys(comments)))


def _by_hand(reader: Reader) -> Entry | None:
    for function in reader.functions.values():
        name = getattr(function.node, "name", "")
        if re.search(r"mix_?up|cut_?mix", name.lower()) and function.owner is None:
            where = (
                f"{function.scope.source.shown} line {function.node.lineno}: {name}() is written by hand; say it here"
            )
            return Entry("mixup", {"mixup_alpha": 0.2, "cutmix_alpha": 0.0, "label_smoothing": 0.0}, [where], out=True)
    return None
