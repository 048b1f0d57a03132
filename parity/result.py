"""What a comparison found: one finding a tensor, one summary a stage, one report a run."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass, field, replace
from enum import Enum
from statistics import median
from typing import Any

from .align.alignment import Lack
from .options import STAGES, WHOLE, Narrowing, Stage
from .tensor_verdict import BY_NATURE, Unjudged, Verdict
from .trace import SIDES_STAGE, Device, Entry, Part


class Outcome(str, Enum):
    """The verdict of a whole run."""

    PARITY = "parity"
    MISMATCH = "mismatch"
    UNPROVEN = "unproven"  # nothing failed, but something that should have been judged was not


NARROWED = "narrowed"  # the word for programs where all passed that was judged, and that was not the whole step


@dataclass(frozen=True)
class Finding:
    """One compared tensor.

    error, noise and allowed are L2 distances from torch float64 as shares of the tensor's own size (for the initial
    distributions: Kolmogorov-Smirnov distance, 0, and its critical value); ratio is error over noise or floor; `why`
    explains every verdict that is not a pass, and `unjudged` is its kind where there is no verdict; `unlike` is set
    where it fails because one net has the tensor in another form, or not at all.
    """

    stage: Stage
    part: Part
    name: str
    order: int
    verdict: Verdict
    why: str = ""
    module: str | None = None
    shape: tuple[int, ...] = ()
    error: float | None = None
    noise: float | None = None
    allowed: float | None = None
    ratio: float | None = None
    unjudged: Unjudged | None = None
    unlike: Lack | None = None

    def __post_init__(self) -> None:
        object.__setattr__(self, "part", Part(self.part))

    @classmethod
    def of(
        cls, entry: Entry, verdict: Verdict, why: str = "", unjudged: Unjudged | None = None, **numbers: Any
    ) -> Finding:
        """The finding on a recorded tensor; numbers: error, noise, allowed and ratio."""
        assert entry.stage != SIDES_STAGE
        place = (entry.stage, entry.part, entry.label, entry.order)
        return cls(*place, verdict, why, entry.module, entry.shape, **numbers, unjudged=unjudged)

    @property
    def place(self) -> str:
        """Where a reader finds it: stage, part and tensor."""
        return f"{self.stage} ({self.part}) {self.name}"


@dataclass(frozen=True)
class CellChange:
    """What a fix writes in MindSpore, so that a program can write it.

    cells: attribute paths of the Cells, "" for the net itself; target: dotted name of the class that they are of, empty
    where the class stays; arguments: argument -> its value as Python code; whole: whether these are all arguments, or
    those at fault; now: the values of the same arguments that MindSpore's numbers show, where they do.
    """

    cells: tuple[str, ...]
    target: str
    arguments: dict[str, str] = field(hash=False)
    whole: bool = False
    now: dict[str, str] = field(default_factory=dict, hash=False)


@dataclass(frozen=True)
class Cause:
    """What explains failed tensors: a hypothesis that was tested, or the place alone where none holds.

    place: a module's dotted name, a parameter group or a stage. fault: the id of the known fault, None where nothing
    known reproduces what MindSpore computed. text: what is wrong. fix: what to write in MindSpore; change: the same for
    a program, where it is an argument of a Cell. evidence: how the hypothesis was tested, with its numbers. ratio:
    MindSpore's distance from torch under this fault, over the noise; before: the same from torch as it is. kind: torch
    class of the module; hypothesis: what was tried on it, in the same words wherever the same was.
    """

    stage: str
    place: str
    fault: str | None
    text: str
    fix: str = ""
    evidence: str = ""
    ratio: float | None = None
    before: float | None = None
    change: CellChange | None = None
    kind: str = ""
    hypothesis: str = ""

    def same_mistake(self, other: Cause) -> bool:
        """Whether both are one mistake in two places: the same was tried on modules of one class, and the same is to be
        written."""
        if not self.hypothesis:
            return self is other
        tried = (self.fault, self.stage, self.kind, self.hypothesis) == (
            other.fault,
            other.stage,
            other.kind,
            other.hypothesis,
        )
        if self.change is None or other.change is None:
            return tried and self.change is other.change
        return tried and self.change == replace(other.change, cells=self.change.cells)


@dataclass(frozen=True)
class ModuleVerdict:
    """One module that ran alone on torch's inputs and upstream gradients, or a container of such.

    name: dotted torch name ("" is the whole model); kind: torch class; mindspore: the Cell's path and class; verdict:
    of its own tensors alone; own: whether the fault is in this module itself rather than in a module inside it; depth:
    0 for the whole model; order: of execution; ratio: the largest over its tensors; note: what was made deterministic,
    or why it could not run alone; by_parts: whether it is a container that did not run alone, because everything that
    it calls did, and what it computes itself was compared.
    """

    name: str
    kind: str
    mindspore: str
    verdict: Verdict
    own: bool
    depth: int
    order: int
    ratio: float | None = None
    why: str = ""
    note: str = ""
    by_parts: bool = False


@dataclass(frozen=True)
class StageSummary:
    """The findings of one stage, counted; unproven: those of `undecided` that should have been judged; median and
    largest ratio over the tensors that were judged by noise."""

    stage: Stage
    verdict: Verdict
    passed: int
    failed: int
    undecided: int
    unproven: int
    median_ratio: float | None
    max_ratio: float | None
    max_error: float | None
    max_error_name: str | None


@dataclass(frozen=True)
class MadeWith:
    """What a verdict holds for besides its recipe: digests of msmigrate's code and of the starting checkpoint's file
    (None: no checkpoint), and how many steps of how many images were compared."""

    code_digest: str
    checkpoint_digest: str | None
    steps: int
    batch: int


@dataclass(frozen=True)
class Report:
    """The verdict of a run: what was compared, stage by stage, and where the two first differ. narrowing: what was
    judged, where that is less than the whole step; the findings are of that alone. sides: the reference, and what is
    judged against it. devices: what each of the two was computed on; empty where that is not known."""

    recipe: str
    recipe_digest: str
    versions: dict[str, str]
    findings: list[Finding]
    notes: list[str] = field(default_factory=list)
    hints: list[str] = field(default_factory=list)
    seconds: float | None = None
    made_with: MadeWith | None = None
    causes: list[Cause] = field(default_factory=list)
    modules: list[ModuleVerdict] = field(default_factory=list)
    narrowing: Narrowing = WHOLE
    sides: tuple[str, str] = ("torch", "MindSpore")
    devices: Sequence[Device] = ()  # of the two sides, where the traces were at hand

    @property
    def computed_on(self) -> dict[str, str]:
        """What each side was computed on, in words, where the traces were at hand."""
        return {side: device.said() for side, device in zip(self.sides, self.devices, strict=False)}

    @property
    def stages(self) -> list[StageSummary]:
        """One summary for each stage that is judged, in their order."""
        return [summarise(stage, [f for f in self.findings if f.stage == stage]) for stage in self.narrowing.stages]

    @property
    def parity(self) -> bool:
        """Whether every stage passed; a stage in which something was not judged that should have been has not."""
        return all(stage.verdict is Verdict.PASS for stage in self.stages)

    @property
    def mistakes(self) -> list[tuple[Cause, list[str]]]:
        """The causes, each once, with the further places of the same mistake."""
        found: list[tuple[Cause, list[str]]] = []
        for cause in self.causes:
            same = next((places for first, places in found if first.same_mistake(cause)), None)
            if same is None:
                found.append((cause, []))
            else:
                same.append(cause.place)
        return found

    @property
    def unproven(self) -> list[Finding]:
        """The tensors without a verdict that keep the run from parity, in the order of execution."""
        return unproven(self.findings)

    @property
    def outcome(self) -> Outcome:
        """The verdict of the whole run."""
        if self.parity:
            return Outcome.PARITY
        failed = any(stage.verdict is Verdict.FAIL for stage in self.stages)
        return Outcome.MISMATCH if failed else Outcome.UNPROVEN

    @property
    def first_divergence(self) -> Finding | None:
        """The failed tensor that comes first: by stage, then in the order in which the step computes them."""
        failed = [f for f in self.findings if f.verdict is Verdict.FAIL]
        return min(failed, key=lambda f: (STAGES.index(f.stage), f.order), default=None)

    def as_json(self) -> dict[str, Any]:
        """The whole report for programs, JSON-serialisable; infinities and NaN become null.

        Of a narrowed run in which all passed, `parity` is null and the outcome NARROWED: nobody is to take a part of
        the step for the whole.
        """
        first, narrowing = self.first_divergence, self.narrowing
        narrowed = None if narrowing.whole else {**asdict(narrowing), "parity": self.parity}
        return {
            "parity": None if narrowed and self.parity else self.parity,
            "outcome": NARROWED if narrowed and self.parity else self.outcome.value,
            "narrowed": narrowed,
            "sides": list(self.sides),
            "recipe": self.recipe,
            "recipe_digest": self.recipe_digest,
            **(asdict(self.made_with) if self.made_with else {}),
            "versions": self.versions,
            "devices": [asdict(device) for device in self.devices],
            "seconds": self.seconds,
            "stages": [_finite(asdict(stage)) for stage in self.stages],
            "first_divergence": _finite(asdict(first)) if first else None,
            "causes": [_finite(asdict(cause)) for cause in self.causes],
            "hints": self.hints,
            "notes": self.notes,
            "modules": [_finite(asdict(module)) for module in self.modules],
            "findings": [_finite(asdict(finding)) for finding in self.findings],
        }


def unproven(findings: Iterable[Finding]) -> list[Finding]:
    """The findings without a verdict that should have one: those whose kind is not in BY_NATURE, and, whatever their
    kind, all of a part in which nothing passed: it was not judged at all. (What is built otherwise is judged end to
    end.)
    """
    found = list(findings)
    passed = {(f.stage, f.part) for f in found if f.verdict is Verdict.PASS}
    open_ = [f for f in found if f.verdict is Verdict.NONE and f.unjudged is not Unjudged.BUILT_OTHERWISE]
    return [f for f in open_ if f.unjudged not in BY_NATURE or (f.stage, f.part) not in passed]


def summarise(stage: Stage, findings: Iterable[Finding]) -> StageSummary:
    """Count a stage's findings. One failure fails it; nothing compared at all fails it too; a tensor that should have
    been judged and was not leaves it without a verdict."""
    found = list(findings)
    counts = {verdict: sum(f.verdict is verdict for f in found) for verdict in Verdict}
    missing = len(unproven(found))
    if counts[Verdict.FAIL] or not found:
        verdict = Verdict.FAIL
    else:
        verdict = Verdict.NONE if missing or not counts[Verdict.PASS] else Verdict.PASS
    ratios = [f.ratio for f in found if f.ratio is not None]
    # where a tensor is rounding alone, as the gradient of a bias before a norm is, the share of its size says nothing
    sized = [
        f
        for f in found
        if f.error is not None and (f.verdict is Verdict.FAIL or (math.isfinite(f.error) and (f.noise or 0.0) < 1.0))
    ]
    worst = max(sized, key=lambda f: f.error or 0.0, default=None)
    return StageSummary(
        stage,
        verdict,
        counts[Verdict.PASS],
        counts[Verdict.FAIL],
        counts[Verdict.NONE],
        missing,
        median(ratios) if ratios else None,
        max(ratios, default=None),
        worst.error if worst else None,
        f"{worst.part} {worst.name}" if worst else None,
    )


def _finite(fields: dict[str, Any]) -> dict[str, Any]:
    """JSON has neither infinity nor NaN."""
    return {k: None if isinstance(v, float) and not math.isfinite(v) else v for k, v in fields.items()}
