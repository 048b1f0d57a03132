"""Hypotheses: how well one explains a failure, those of the mapping tables, and the search for the one that does.

A hypothesis of the tables is one verb and its values. The search takes the first one that holds, tries chains of up to
three, or fits a number.
"""

from __future__ import annotations

import math
import time
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from typing import Any, Generic, Protocol, TypeVar

import numpy as np

from ...errors import BadInput, MsmigrateError
from ...mappings import table
from ...mappings.row_reader import Fields, read_yaml
from ..options import STAGES
from ..replay.module_calls import parse_label
from ..result import Cause, CellChange, Finding
from ..tensor_verdict import EPS32, FLOOR_ULPS, RATIO, Measure, Verdict, judge
from ..trace import ALONE, WIRING

C = TypeVar("C")
T = TypeVar("T")
LARGEST = 1e12  # ratios are capped here, so that they can be averaged
LEAST = 1e-2  # below a hundredth of the noise there is nothing to gain
FLOOR = 2 * FLOOR_ULPS * EPS32


@dataclass(frozen=True)
class Hypothesis(Generic[C]):
    """One thing that MindSpore's side may do differently.

    fault: the id of the known fault, None for a mistake that is only plausible. text: the mistake in words. change:
    what torch does under the hypothesis: a mutation of a module, another loss, pipeline or update rule. fix: what to
    do, where the fault's row does not say it. place: where, in that part of the step.
    """

    fault: str | None
    text: str
    change: C
    fix: str = ""
    place: str = ""


@dataclass(frozen=True)
class Prediction:
    """What torch computes under a hypothesis: the tensor in float64 and in float32, flat, in recorded elements."""

    exact: np.ndarray
    single: np.ndarray

    @classmethod
    def rounded(cls, exact: np.ndarray) -> Prediction:
        """A prediction that is only rounded to float32 at the end."""
        flat = exact.reshape(-1)
        return cls(flat, flat.astype(np.float32))


@dataclass(frozen=True)
class Outcome:
    """How a hypothesis did: the ratio of every tensor (infinite where the two cannot be compared), and the names of
    those that fail."""

    ratios: Mapping[str, float]
    failing: frozenset[str]

    @classmethod
    def of(cls, measures: Mapping[str, Measure]) -> Outcome:
        """The outcome of tensors that were judged."""
        failing = frozenset(name for name, measure in measures.items() if measure.verdict is Verdict.FAIL)
        return cls({name: measure.ratio for name, measure in measures.items()}, failing)

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
        """Mean decimal logarithm of the ratios, each at least RATIO: how far off the subject is overall."""
        logs = [math.log10(min(max(ratio, RATIO), LARGEST)) for ratio in self.ratios.values()]
        return sum(logs) / len(logs) if logs else 0.0

    @property
    def distance(self) -> float:
        """Sum of the ratios' decimal logarithms, smooth down to the noise and below, so that a value can be fitted."""
        return sum(math.log10(min(max(ratio, LEAST), LARGEST)) for ratio in self.ratios.values())

    @property
    def key(self) -> tuple[int, float]:
        """Orders outcomes: fewest failing tensors, then nearest."""
        return (len(self.failing), self.middle)


@dataclass(frozen=True)
class Trial(Generic[C]):
    """A chain of hypotheses, applied in turn (empty: torch as it is), and its outcome.

    before: the outcome of torch as it is; ties: single hypotheses that do as well as a chain of one.
    """

    chain: tuple[Hypothesis[C], ...]
    outcome: Outcome
    before: Outcome
    ties: tuple[Hypothesis[C], ...] = ()

    @property
    def reproduces(self) -> bool:
        """Whether every tensor agrees at noise."""
        return bool(self.chain) and self.outcome.reproduces

    def explained(self) -> frozenset[str]:
        """The tensors that failed and agree under the chain."""
        return self.before.failing - self.outcome.failing


def judge_prediction(
    subject: np.ndarray, prediction: Prediction, relative_floor: float = FLOOR, absolute_floor: float = 0.0
) -> Measure:
    """Judge MindSpore's elements against a hypothesis; the noise is the hypothesis's own float32 run and the floors. A
    hypothesis does not explain a tensor that is infinite or NaN under it and not in MindSpore."""
    kept = finite_alike(prediction.exact, subject)
    if kept is None:
        return Measure(Verdict.FAIL, math.inf, 0.0, absolute_floor, 0.0, 0.0, "not finite as MindSpore's is")
    if not kept.all():
        prediction, subject = Prediction(prediction.exact[kept], prediction.single[kept]), subject[kept]
    size = float(np.linalg.norm(prediction.exact.astype(np.float64)))
    floor = max(relative_floor, absolute_floor / size if size else 0.0)
    if not size and absolute_floor:  # for a tensor that does not move, only the rounding of storage remains
        off = float(np.linalg.norm(subject.astype(np.float64)))
        verdict = Verdict.PASS if off <= RATIO * absolute_floor else Verdict.FAIL
        return Measure(verdict, off, 0.0, absolute_floor, RATIO * absolute_floor, size, "")
    return judge(prediction.exact, [prediction.single], subject, relative_floor=floor)


def finite_alike(exact: np.ndarray, subject: np.ndarray) -> np.ndarray | None:
    """Where both are finite, flat bool; None unless the two have the same infinities elsewhere (a NaN equals nothing).

    judge() gives no verdict on values that are not finite, and no verdict does not mean agreement.
    """
    finite = np.isfinite(exact)
    alike = bool(np.isfinite(subject[finite]).all()) and np.array_equal(exact[~finite], subject[~finite])
    return finite if alike else None


def cause(
    stage: str,
    place: str,
    fault: str | None,
    text: str,
    evidence: str = "",
    ratio: float | None = None,
    before: float | None = None,
    fix: str = "",
    change: CellChange | None = None,
) -> Cause:
    """A cause; without a fix of its own it gets that of the fault's row."""
    known = table.faults().get(fault) if fault else None
    return Cause(stage, place, fault, text, fix or (known.fix if known else ""), evidence, ratio, before, change)


def caused(stage: str, place: str, found: Trial[Any], evidence: str) -> Cause:
    """The cause for a chain of a single hypothesis."""
    (one,), after, before = found.chain, found.outcome.worst, found.before.worst
    return cause(stage, place, one.fault, one.text, evidence, after, before, one.fix)


def ranked(causes: Sequence[Cause], findings: Iterable[Finding]) -> list[Cause]:
    """The causes in order: first those before the net; then, among those in the net, the tested ones, and within a
    stage first the mistake that explains most failing tensors of modules alone, in all its places together."""
    failing = Counter(parse_label(f.name.rpartition(" ")[0])[0] for f in findings if f.part in (ALONE, WIRING))

    def weight(cause: Cause) -> int:
        return sum(failing[other.place] for other in causes if cause.same_mistake(other))

    def rank(cause: Cause) -> tuple[bool, bool, int, int]:
        stage = STAGES.index(cause.stage)
        return (cause.stage not in ("data", "init"), not tested(cause), stage, -weight(cause))

    return sorted(causes, key=rank)


def tested(cause: Cause) -> bool:
    """Whether a cause is a hypothesis that was tried out, not only a place."""
    return cause.ratio is not None or cause.fault is not None


def or_none(make: Callable[[], T]) -> T | None:
    """The result of `make()`, or None where it cannot run with this recipe: not every hypothesis fits every recipe."""
    try:
        return make()
    except (MsmigrateError, ArithmeticError, IndexError, KeyError, RuntimeError, TypeError, ValueError):
        return None


@dataclass(frozen=True)
class HypothesisRow:
    """A table's entry for one way in which a module may be computed otherwise.

    verb: a name among the mutations of mutations/; of: the torch classes it is tried on; values: the verb's arguments;
    fault: the id of the known fault, None for a mistake that is only plausible.
    """

    verb: str
    of: tuple[str, ...]
    values: Mapping[str, Any] = field(default_factory=dict)
    fault: str | None = None


def module_hypotheses(verbs: Collection[str]) -> list[HypothesisRow]:
    """Every hypothesis whose verb is among `verbs`, those of known faults first."""
    return [row for row in everything() if row.verb in verbs]


@cache
def everything() -> tuple[HypothesisRow, ...]:
    """All hypotheses of the tables. Raises BadInput for an entry without a verb."""
    found = []
    for fault in table.faults().values():
        classes = tuple(row.short for row in table.rows("layer") if fault.id in row.pitfalls)
        entries = fault.hypothesis.get("any", [fault.hypothesis]) if fault.hypothesis else []
        found += [_read(entry, fault.id, classes) for entry in entries]
    return (*found, *(_read(entry, None, ()) for entry in read_yaml(table.HERE / "hypotheses.yaml")))


def _read(entry: Any, fault: str | None, classes: tuple[str, ...]) -> HypothesisRow:
    fields = Fields(entry, f"hypothesis of {fault or entry!r}")
    verb = fields.take("verb", str)
    of = fields.take("of", list, default=list(classes))
    if not all(isinstance(name, str) for name in of):
        raise BadInput(f"{fields.where}: `of` names torch classes")
    return HypothesisRow(verb, tuple(of), fields.content, fault)


LONGEST = 120.0  # seconds for one subject: for the search, and again for values that are fitted
DEEPEST = 3  # faults at once that are looked for
CHECKED = 6  # how many of those that a quick look finds near are computed in full
SCREENED = 10.0  # a quick look lets ratios up to this many times RATIO through
CLEARLY = 1.0  # decimal orders of magnitude that make a subject clearly nearer
ALIKE = 1.5  # a ratio up to this many times the best one is no worse: rounding decides between them
GRID = 25  # values tried first, over the whole range
REFINEMENTS = 45  # of the interval around the best of them, each to 0.618 of its length
G = TypeVar("G", contravariant=True)


class Subject(Protocol[G]):
    """What hypotheses are tried on, by changes applied in turn; no change is torch as it is."""

    def quick(self, changes: Sequence[G]) -> Outcome | None:
        """A cheap look; None where torch cannot run it."""

    def outcome(self, changes: Sequence[G]) -> Outcome | None:
        """The outcome; None where torch cannot run it."""


Steps = Callable[[Trial[C]], Iterable[Trial[C]]]


def first(
    hypotheses: Iterable[Hypothesis[C]], outcome: Callable[[C], Outcome | None], before: Outcome
) -> Trial[C] | None:
    """The first hypothesis under which every tensor agrees."""
    for each in hypotheses:
        found = outcome(each.change)
        if found is not None and found.reproduces:
            return Trial((each,), found, before)
    return None


def search(
    steps: Steps[C],
    before: Outcome,
    beam: int,
    otherwise: Callable[[Sequence[Trial[C]], Sequence[Trial[C]]], Trial[C] | None] = lambda followed, found: None,
) -> Trial[C]:
    """The shortest chain that reproduces MindSpore's tensors, or the one that comes nearest.

    steps: returns a chain's extensions by one hypothesis that are worth following; beam: how many of them are followed;
    before: the outcome of torch as it is; otherwise: another attempt to explain everything, from the chains that were
    followed and the next ones.
    """
    followed = [Trial[C]((), before, before)]
    best = followed[0]
    for _ in range(DEEPEST):
        found = sorted((step for each in followed for step in steps(each)), key=lambda step: step.outcome.key)
        known = best_of([step for step in found if step.reproduces]) or otherwise(followed, found)
        if known is not None:
            return known
        if not found:
            break
        followed = found[:beam]
        best = min((best, followed[0]), key=lambda step: step.outcome.key)
    return best


def best_of(good: Sequence[Trial[C]]) -> Trial[C] | None:
    """The best chain that reproduces everything; among those that rounding cannot tell apart, the tables' first."""
    best = min((step.outcome.worst for step in good), default=0.0)
    alike = [step for step in good if step.outcome.worst <= ALIKE * max(best, 1.0)]
    known = [step for step in alike if all(each.fault for each in step.chain)] or alike
    if not known:
        return None
    chosen = known[0]
    ties = tuple(step.chain[0] for step in alike if len(chosen.chain) == 1 and step is not chosen)
    return Trial(chosen.chain, chosen.outcome, chosen.before, ties)


def clearly_nearer(
    subject: Subject[C], trial: Trial[C], hypotheses: Iterable[Hypothesis[C]], until: float
) -> list[Trial[C]]:
    """The chain's extensions by one hypothesis that are clearly nearer: they explain a tensor and spoil none, or all
    tensors come nearer. until: when to stop, by time.monotonic()."""
    changes = [each.change for each in trial.chain]
    near: list[tuple[Hypothesis[C], Outcome]] = []
    for each in hypotheses:
        if each in trial.chain or time.monotonic() > until:
            continue
        quick = subject.quick([*changes, each.change])
        if quick is not None and _nearer(quick, trial.outcome, SCREENED):
            near.append((each, quick))
    # a stable sort: equal ones stay in the tables' order
    near.sort(key=lambda pair: (sum(r > SCREENED * RATIO for r in pair[1].ratios.values()), round(pair[1].middle, 1)))
    found = []
    for each, _ in near[:CHECKED]:
        outcome = subject.outcome([*changes, each.change])
        if outcome is not None and _nearer(outcome, trial.outcome, 0.0):
            found.append(Trial((*trial.chain, each), outcome, trial.before))
    return found


def _nearer(outcome: Outcome, before: Outcome, slack: float) -> bool:
    failing = {name for name in outcome.failing if outcome.ratios[name] > slack * RATIO}
    return failing < before.failing or (failing <= before.failing and outcome.middle < before.middle - CLEARLY)


def slightly_nearer(
    subject: Subject[C], hypotheses: Iterable[Hypothesis[C]], nearer: Callable[[Outcome], bool]
) -> list[Hypothesis[C]]:
    """For a difference at the edge of noise, the known faults that a quick look finds nearer, nearest first."""
    found = [(each, subject.quick([each.change])) for each in hypotheses if each.fault]
    near = [(quick.distance, each) for each, quick in found if quick is not None and nearer(quick)]
    return [each for _, each in sorted(near, key=lambda pair: pair[0])]


def fit(distance: Callable[[float], float], low: float, high: float, logarithmic: bool) -> tuple[float, float] | None:
    """The value between `low` and `high` at which `distance` (infinite where unknown) is least, and by how much it is
    less there than elsewhere on a grid over the whole range; None where it is unknown everywhere.

    A first scan finds the valley, for the distance is flat far from it; golden section then goes down it.
    """
    forth: Callable[[float], float] = math.log if logarithmic else float
    back: Callable[[float], float] = math.exp if logarithmic else float
    start, width = forth(low), forth(high) - forth(low)
    grid = [start + width * i / (GRID - 1) for i in range(GRID)]
    found = [distance(back(at)) for at in grid]
    best = min(range(GRID), key=found.__getitem__)
    if not math.isfinite(found[best]):
        return None
    around = grid[max(best - 1, 0)], grid[min(best + 1, GRID - 1)]
    depth = max(value for value in found if math.isfinite(value)) - found[best]
    return back(golden_section(lambda at: distance(back(at)), *around)), depth


def golden_section(distance: Callable[[float], float], low: float, high: float) -> float:
    """Where `distance` is least between two numbers; it has to fall up to that place and rise after it.

    Each step leaves 0.618 of the interval. (Kiefer, Sequential minimax search for a maximum, 1953.)
    """
    share = (math.sqrt(5.0) - 1.0) / 2.0
    one, other = high - share * (high - low), low + share * (high - low)
    at_one, at_other = distance(one), distance(other)
    for _ in range(REFINEMENTS):
        if at_one < at_other:
            high, other, at_other = other, one, at_one
            one = high - share * (high - low)
            at_one = distance(one)
        else:
            low, one, at_one = one, other, at_other
            other = low + share * (high - low)
            at_other = distance(other)
    return (low + high) / 2.0
