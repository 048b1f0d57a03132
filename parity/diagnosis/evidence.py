"""What a hypothesis is worth: MindSpore's recorded elements judged against what torch computes under it."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from math import log10, sqrt
from typing import TypeVar

import numpy as np

from ...errors import MsmigrateError
from ...mappings import table
from ..compare import Traces
from ..result import Cause, Finding
from ..trace import Entry, Key, Trace
from ..verdict import EPS32, RATIO, Measure, Verdict, judge

T = TypeVar("T")
LARGEST = 1e12  # ratios are capped here, so that they can be averaged
STORED = 0.25  # rounding of a stored float32 weight, root mean square, in EPS32 of the value (noise.py)


@dataclass(frozen=True)
class Prediction:
    """What torch computes under a hypothesis: the tensor in float64 and in float32, flat, in recorded elements."""

    exact: np.ndarray
    single: np.ndarray


@dataclass(frozen=True)
class Outcome:
    """How a hypothesis did: the ratio of every tensor (infinite where the two cannot be compared), and the names of
    those that fail."""

    ratios: Mapping[str, float]
    failing: frozenset[str]

    @property
    def reproduces(self) -> bool:
        """Whether all of them agree at noise."""
        return not self.failing

    @property
    def worst(self) -> float:
        """The largest ratio."""
        return max(self.ratios.values(), default=0.0)

    @property
    def middle(self) -> float:
        """Mean decimal logarithm of the ratios, each at least RATIO: how far off the module is altogether."""
        logs = [log10(min(max(ratio, RATIO), LARGEST)) for ratio in self.ratios.values()]
        return sum(logs) / len(logs) if logs else 0.0

    @property
    def key(self) -> tuple[int, float]:
        """Orders outcomes: fewest failing tensors, then nearest."""
        return (len(self.failing), self.middle)


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
    of_mindspore, of_torch = traces.mindspore.entries.get(key), family(traces, key)[0].entries.get(key)
    return (
        of_mindspore is not None
        and of_torch is not None
        and of_mindspore.shape == of_torch.shape
        and not (of_mindspore.nonfinite or of_torch.nonfinite or 0 in of_torch.shape)
    )


def mindspore_values(traces: Traces, key: Key) -> np.ndarray:
    """MindSpore's recorded elements, flat."""
    return traces.mindspore.array(key)


def torch_values(traces: Traces, key: Key) -> np.ndarray:
    """torch's recorded elements in float64, flat."""
    return family(traces, key)[0].array(key)


def unchanged(traces: Traces, key: Key) -> Prediction:
    """torch as it is: no hypothesis."""
    runs = [t for t in family(traces, key)[1:] if key in t.entries]
    exact = torch_values(traces, key)
    return Prediction(exact, runs[0].array(key) if runs else exact)


def judge_prediction(
    subject: np.ndarray, prediction: Prediction, relative_floor: float = 0.0, absolute_floor: float = 0.0
) -> Measure:
    """Judge MindSpore's elements against a hypothesis; the noise is the hypothesis's own float32 run and the floors."""
    size = float(np.linalg.norm(prediction.exact.astype(np.float64)))
    floor = max(relative_floor, absolute_floor / size if size else 0.0)
    if not size and absolute_floor:  # a tensor that does not move: the rounding of what it is stored in is left
        off = float(np.linalg.norm(subject.astype(np.float64)))
        verdict = Verdict.PASS if off <= RATIO * absolute_floor else Verdict.FAIL
        return Measure(verdict, off, 0.0, absolute_floor, RATIO * absolute_floor, size, "")
    return judge(prediction.exact, [prediction.single], subject, relative_floor=floor)


def storing(start: Entry | None) -> float:
    """How far storing weights in float32 moves their change, as an L2 distance."""
    return STORED * EPS32 * start.norm if start is not None and start.norm > 0.0 else 0.0


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


def or_none(make: Callable[[], T]) -> T | None:
    """What `make()` gives, or None where this recipe cannot be run so: not every hypothesis fits every recipe."""
    try:
        return make()
    except (MsmigrateError, ArithmeticError, KeyError, TypeError, ValueError):
        return None


def golden_section(distance: Callable[[float], float], low: float, high: float, steps: int) -> float:
    """Where `distance` is least between two numbers, of which it falls to one side and rises to the other.

    Each step leaves 0.618 of the interval. (Kiefer, Sequential minimax search for a maximum, 1953.)
    """
    share = (sqrt(5.0) - 1.0) / 2.0
    one, other = high - share * (high - low), low + share * (high - low)
    at_one, at_other = distance(one), distance(other)
    for _ in range(steps):
        if at_one < at_other:
            high, other, at_other = other, one, at_one
            one = high - share * (high - low)
            at_one = distance(one)
        else:
            low, one, at_one = one, other, at_other
            other = low + share * (high - low)
            at_other = distance(other)
    return (low + high) / 2.0
