"""The findings as the page's script reads them: columns instead of rows, every text once.

A ResNet50 has some three thousand findings, whose names, parts and reasons repeat; as columns of indices into lists of
texts they take a sixth of what a list of objects would.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ...parity.findings import Finding
from ...parity.judge import Verdict
from ...parity.trace import STAGES
from .numbers import packed

LETTERS = {Verdict.PASS: "p", Verdict.FAIL: "f", Verdict.NONE: "n"}
LONGEST = 400  # characters of a name or a reason; longer ones are cut


class Texts:
    """Every text once, in the order of appearance."""

    def __init__(self) -> None:
        self.index: dict[str, int] = {}

    def add(self, text: str) -> int:
        """The text's place in the list."""
        return self.index.setdefault(clipped(text), len(self.index))

    def all(self) -> list[str]:
        """The list."""
        return list(self.index)


def clipped(text: str, most: int = LONGEST) -> str:
    """The text, or its beginning and an ellipsis."""
    return text if len(text) <= most else text[: most - 1] + "…"


def pack(findings: Sequence[Finding], stages: Sequence[str] = STAGES) -> dict[str, Any]:
    """Columns, one value a finding, all of one of `stages`.

    stage, part, name, module, shape and why are indices into the lists of texts; verdict is one letter each; error,
    noise, allowed and ratio are numbers, None or 'inf'.
    """
    parts, names, modules, shapes, reasons = (Texts() for _ in range(5))
    return {
        "stages": list(stages),
        "stage": [stages.index(f.stage) for f in findings],
        "part": [parts.add(f.part) for f in findings],
        "name": [names.add(f.name) for f in findings],
        "module": [modules.add(f.module or "") for f in findings],
        "shape": [shapes.add("×".join(map(str, f.shape)) or "scalar") for f in findings],
        "why": [reasons.add(f.why) for f in findings],
        "verdict": "".join(LETTERS[f.verdict] for f in findings),
        "error": [packed(f.error) for f in findings],
        "noise": [packed(f.noise) for f in findings],
        "allowed": [packed(f.allowed) for f in findings],
        "ratio": [packed(f.ratio) for f in findings],
        "parts": parts.all(),
        "names": names.all(),
        "modules": modules.all(),
        "shapes": shapes.all(),
        "whys": reasons.all(),
    }
