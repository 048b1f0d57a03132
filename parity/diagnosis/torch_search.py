"""The search for what explains a module: single hypotheses, chains of up to three, a number that is fitted."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field

from ..verdict import RATIO
from .mutations.torch_layers import Trial, Values, _valued
from .torch_subjects import LARGEST, SCREENED, CannotRun, Outcome, Specimen

LONGEST = 120.0  # seconds for one module
DEEPEST = 3  # faults in one module that are looked for at once
BEAM = 3  # partial explanations that are followed
CHECKED = 6  # of those that look near by a float64 run alone, so many get a float32 run
CLEARLY = 1.0  # decimal orders of magnitude that make a module clearly nearer
FAINT = 2.0  # by what factor a fault at the edge of noise has to bring torch nearer
ALIKE = 1.5  # a ratio up to so many times the best one is no worse: rounding decides between them
GRID = 25  # values tried first, over the whole range
REFINEMENTS = 40  # of the interval around the best of them, each to 0.618 of its length
DIGITS = (1, 2, 3, 4, 6)  # a value is named with as few significant digits as still explain the tensors
GOLDEN = (math.sqrt(5.0) - 1.0) / 2.0


@dataclass(frozen=True)
class Tried:
    """A trial and the fault it stands for: None for a mistake that is only plausible."""

    trial: Trial
    fault: str | None = None


@dataclass(frozen=True)
class Found:
    """What the search ended with.

    chain: the trials one upon another that come nearest, empty where none is clearly nearer; outcome: under them;
    before: torch as it is; ties: single trials that do as well as a chain of one.
    """

    chain: tuple[Tried, ...]
    outcome: Outcome
    before: Outcome
    ties: tuple[Tried, ...] = field(default=())

    @property
    def reproduces(self) -> bool:
        """Whether every tensor agrees at noise."""
        return bool(self.chain) and not self.outcome.failing

    def explained(self) -> frozenset[str]:
        """The tensors that failed and agree under the chain."""
        return self.before.failing - self.outcome.failing


def search(specimen: Specimen, tried: Sequence[Tried], before: Outcome, first: Sequence[Tried] = ()) -> Found:
    """The shortest chain that reproduces MindSpore's tensors, or the one that comes clearly nearer.

    before: the outcome of torch as it is; first: tried before all others, and enough where one holds.
    """
    until = time.monotonic() + LONGEST
    for chain, outcome in _step(specimen, (), first, before, until) if first else ():
        if not outcome.failing:
            return Found(chain, outcome, before)
    beam: list[tuple[tuple[Tried, ...], Outcome]] = [((), before)]
    best = beam[0]
    for _ in range(DEEPEST):
        steps = [step for chain, outcome in beam for step in _step(specimen, chain, tried, outcome, until)]
        if not steps:
            break
        steps.sort(key=lambda step: step[1].key)
        if not steps[0][1].failing:
            return _settled(steps, before)
        beam = steps[:BEAM]
        best = min((best, steps[0]), key=lambda step: step[1].key)
    return Found(best[0], best[1], before)


def faint(specimen: Specimen, tried: Sequence[Tried], before: Outcome) -> Found | None:
    """Of a difference at the edge of noise, the known fault under which torch comes clearly nearer, or None."""
    near: list[tuple[Tried, Outcome]] = []
    for each in tried:
        if each.fault is None:
            continue
        try:
            quick = specimen.quick([each.trial])
        except CannotRun:
            continue
        if not quick.failing and quick.worst <= before.worst / FAINT:
            near.append((each, quick))
    near.sort(key=lambda pair: pair[1].worst)
    for each, _ in near[:CHECKED]:
        outcome = specimen.look([each.trial])
        if outcome is not None and outcome.worst <= before.worst / FAINT:
            return Found((each,), outcome, before)
    return None


def search_on(
    specimen: Specimen, tried: Sequence[Tried], one: Tried, outcome: Outcome, before: Outcome
) -> Iterator[Found]:
    """What explains the rest where `one` explains a part: the chain, or nothing."""
    steps = _step(specimen, (one,), tried, outcome, time.monotonic() + LONGEST)
    good = [step for step in steps if not step[1].failing]
    if good:
        yield _settled(good, before)


def _step(
    specimen: Specimen, chain: tuple[Tried, ...], tried: Sequence[Tried], before: Outcome, until: float
) -> list[tuple[tuple[Tried, ...], Outcome]]:
    """The chains with one trial more that are clearly nearer: they explain a tensor and spoil none, or all come
    nearer."""
    trials = [each.trial for each in chain]
    near: list[tuple[Tried, Outcome]] = []
    for each in tried:
        if each in chain or time.monotonic() > until:
            continue
        try:
            quick = specimen.quick([*trials, each.trial])
        except CannotRun:
            continue
        if _nearer(quick, before, SCREENED):
            near.append((each, quick))
    # stable: of equals, what stands first in the tables
    near.sort(key=lambda pair: (sum(r > SCREENED * RATIO for r in pair[1].ratios.values()), round(pair[1].middle, 1)))
    found = []
    for each, _ in near[:CHECKED]:
        outcome = specimen.look([*trials, each.trial])
        if outcome is not None and _nearer(outcome, before, 1.0):
            found.append(((*chain, each), outcome))
    return found


def _nearer(outcome: Outcome, before: Outcome, slack: float) -> bool:
    failing = {name for name, ratio in outcome.ratios.items() if name in outcome.failing and ratio > slack * RATIO}
    if slack == 1.0:
        failing = set(outcome.failing)
    return failing < before.failing or (failing <= before.failing and outcome.middle < before.middle - CLEARLY)


def _settled(steps: list[tuple[tuple[Tried, ...], Outcome]], before: Outcome) -> Found:
    """Of the chains that reproduce everything, the first in the tables among those that rounding cannot tell apart."""
    good = [step for step in steps if not step[1].failing]
    best = min(step[1].worst for step in good)
    alike = [step for step in good if step[1].worst <= ALIKE * max(best, 1.0)]
    known = [step for step in alike if all(each.fault for each in step[0])] or alike
    chain, outcome = known[0]
    last = chain[-1]
    ties = (step[0][-1] for step in alike if len(chain) == 1)
    return Found(chain, outcome, before, tuple(tie for tie in ties if not _same(tie, last)))


def _same(tie: Tried, chosen: Tried) -> bool:
    """Whether two trials say the same in other words: another value of the same argument that means the same."""
    return tie is chosen or tie.trial.arguments == chosen.trial.arguments


def estimate(specimen: Specimen, values: Values, chain: Sequence[Tried] = ()) -> Iterator[Trial]:
    """The value of `attribute` between `low` and `high` that brings outputs and buffers nearest, as trials with ever
    more digits; none where it makes no difference or the best lies at the end of the range."""
    name, logarithmic = values["attribute"], values["scale"] == "logarithmic"
    if not isinstance(getattr(specimen.module, name, None), (int, float)):
        return
    forth: Callable[[float], float] = math.log if logarithmic else float
    back: Callable[[float], float] = math.exp if logarithmic else float
    trials = [each.trial for each in chain]

    def away(at: float) -> float:
        try:
            return _distance(specimen.quick([*trials, _valued(name, back(at))], gradients=False))
        except CannotRun:
            return math.inf

    low, high = forth(values["low"]), forth(values["high"])
    grid = [low + (high - low) * i / (GRID - 1) for i in range(GRID)]
    found = [away(at) for at in grid]
    best = min(range(GRID), key=found.__getitem__)
    if not math.isfinite(found[best]) or max(f for f in found if math.isfinite(f)) - found[best] < 1.0:
        return
    at = _narrowed(away, grid[max(best - 1, 0)], grid[min(best + 1, GRID - 1)])
    said: set[float] = set()
    for digits in DIGITS:
        value = float(f"{back(at):.{digits}g}")
        if value not in said and value != getattr(specimen.module, name):
            said.add(value)
            yield _valued(name, value)


def _narrowed(away: Callable[[float], float], low: float, high: float) -> float:
    """Golden-section search."""
    a, b = high - GOLDEN * (high - low), low + GOLDEN * (high - low)
    at_a, at_b = away(a), away(b)
    for _ in range(REFINEMENTS):
        if at_a < at_b:
            high, b, at_b = b, a, at_a
            a = high - GOLDEN * (high - low)
            at_a = away(a)
        else:
            low, a, at_a = a, b, at_b
            b = low + GOLDEN * (high - low)
            at_b = away(b)
    return (low + high) / 2.0


def _distance(outcome: Outcome) -> float:
    """Smooth down to the noise and below, so that the search has somewhere to go."""
    return sum(math.log(min(max(ratio, 1e-6), LARGEST)) for ratio in outcome.ratios.values())
