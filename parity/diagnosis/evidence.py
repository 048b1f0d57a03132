"""What a hypothesis is worth: MindSpore's recorded elements judged against what torch computes under it."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TypeVar

import numpy as np

from ...errors import MsmigrateError
from ...mappings import table
from ..compare import Traces
from ..result import Cause, Finding
from ..trace import Entry, Key, Trace
from ..verdict import EPS32, RATIO, Measure, Verdict, judge

T = TypeVar("T")
STORED = 0.25  # rounding of a stored float32 weight, root mean square, in EPS32 of the value (noise.py)


@dataclass(frozen=True)
class Trial:
    """What torch computes under a hypothesis: the tensor in float64 and in float32, flat, in recorded elements."""

    exact: np.ndarray
    single: np.ndarray


@dataclass(frozen=True)
class Outcome:
    """How a hypothesis did: whether every tensor came out at noise, and the largest and the median ratio."""

    reproduces: bool
    worst: float
    failing: tuple[str, ...] = ()


def key_of(finding: Finding) -> Key:
    """The trace key of a finding, whose name is an entry's label."""
    name, mark, call = finding.name.rpartition("#")
    if mark and call.isdigit() and int(call):
        return (finding.stage, finding.part, name, int(call))
    return (finding.stage, finding.part, finding.name, 0)


def failed(findings: Iterable[Finding], stage: str, part: str | None = None) -> list[Finding]:
    """The failed findings of a stage (and part)."""
    return [f for f in findings if f.stage == stage and part in (None, f.part) and f.verdict is Verdict.FAIL]


def family(traces: Traces, key: Key) -> Sequence[Trace]:
    """The torch traces that a tensor is judged by: those with MindSpore's choices at kinks where they have it."""
    return traces.matched if any(key in trace.entries for trace in traces.matched) else traces.alone


def comparable(traces: Traces, key: Key) -> bool:
    """Whether MindSpore's tensor and torch's float64 one are both there, of one shape and finite."""
    theirs, ours = traces.mindspore.entries.get(key), family(traces, key)[0].entries.get(key)
    return (
        theirs is not None
        and ours is not None
        and theirs.shape == ours.shape
        and not (theirs.nonfinite or ours.nonfinite or 0 in ours.shape)
    )


def theirs(traces: Traces, key: Key) -> np.ndarray:
    """MindSpore's recorded elements, flat."""
    return traces.mindspore.array(key)


def ours(traces: Traces, key: Key) -> np.ndarray:
    """torch's recorded elements in float64, flat."""
    return family(traces, key)[0].array(key)


def as_recorded(traces: Traces, key: Key) -> Trial:
    """torch as it is: no hypothesis."""
    runs = [t for t in family(traces, key)[1:] if key in t.entries]
    exact = ours(traces, key)
    return Trial(exact, runs[0].array(key) if runs else exact)


def weigh(subject: np.ndarray, trial: Trial, relative_floor: float = 0.0, absolute_floor: float = 0.0) -> Measure:
    """Judge MindSpore's elements against a hypothesis; the noise is the hypothesis's own float32 run and the floors."""
    size = float(np.linalg.norm(trial.exact.astype(np.float64)))
    floor = max(relative_floor, absolute_floor / size if size else 0.0)
    if not size and absolute_floor:  # a tensor that does not move: the rounding of what it is stored in is left
        off = float(np.linalg.norm(subject.astype(np.float64)))
        verdict = Verdict.PASS if off <= RATIO * absolute_floor else Verdict.FAIL
        return Measure(verdict, off, 0.0, absolute_floor, RATIO * absolute_floor, size, "")
    return judge(trial.exact, [trial.single], subject, relative_floor=floor)


def recorded_floor(finding: Finding | None) -> float:
    """The share of a tensor's size that the run measured as noise or floor for it."""
    return (finding.allowed or 0.0) / RATIO if finding is not None else 0.0


def storing(start: Entry | None) -> float:
    """How far storing weights in float32 moves their change, as an L2 distance."""
    return STORED * EPS32 * start.norm if start is not None and start.norm > 0.0 else 0.0


def outcome(measures: Mapping[str, Measure]) -> Outcome:
    """All tensors of a hypothesis together."""
    bad = tuple(name for name, measure in measures.items() if measure.verdict is Verdict.FAIL)
    return Outcome(not bad and bool(measures), max((m.ratio for m in measures.values()), default=0.0), bad)


def cause(
    stage: str,
    place: str,
    fault: str | None,
    text: str,
    evidence: str = "",
    ratio: float | None = None,
    before: float | None = None,
    fix: str = "",
) -> Cause:
    """A cause; without a fix of its own it gets that of the fault's row."""
    known = table.faults().get(fault) if fault else None
    return Cause(stage, place, fault, text, fix or (known.fix if known else ""), evidence, ratio, before)


def attempt(make: Callable[[], T]) -> T | None:
    """What `make()` gives, or None where this recipe cannot be run so: not every hypothesis fits every recipe."""
    try:
        return make()
    except (MsmigrateError, ArithmeticError, KeyError, TypeError, ValueError):
        return None
