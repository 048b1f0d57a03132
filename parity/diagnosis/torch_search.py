"""The search for what explains a module: single hypotheses, chains of up to three, a number that is fitted."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field

from ..verdict import RATIO
from .evidence import LARGEST, Outcome, golden_section
from .hypotheses import Hypothesis
from .mutations.torch_layers import Mutation, Values, with_value
from .torch_subjects import SCREENED, CannotRun, ModuleSubject

LONGEST = 120.0  # seconds for one module
DEEPEST = 3  # faults in one module that are looked for at once
BEAM = 3  # partial explanations that are followed
CHECKED = 6  # of those that look near by a float64 run alone, so many get a float32 run
CLEARLY = 1.0  # decimal orders of magnitude that make a module clearly nearer
FAINT = 2.0  # by what factor a fault at the edge of noise has to bring torch nearer
ALIKE = 1.5  # a ratio up to so many times the best one is no worse: rounding decides between them
GRID = 25  # values tried first, over the whole range
REFINEMENTS = 40  # of the interval around the best of them, each to 0.618 of its length
ModuleHypothesis = Hypothesis[Mutation]
DIGITS = (1, 2, 3, 4, 6)  # a value is named with as few significant digits as still explain the tensors


def made_of(mutation: Mutation, fault: str | None = None) -> ModuleHypothesis:
    """The hypothesis that a module was mutated so. fault: the known fault that it stands for."""
    return Hypothesis(fault, mutation.what, mutation, mutation.fix)


@dataclass(frozen=True)
class Explanation:
    """What the search ended with.

    chain: the mutations one upon another that come nearest, empty where none is clearly nearer; outcome: under them;
    before: torch as it is; ties: single ones that do as well as a chain of one.
    """

    chain: tuple[ModuleHypothesis, ...]
    outcome: Outcome
    before: Outcome
    ties: tuple[ModuleHypothesis, ...] = field(default=())

    @property
    def reproduces(self) -> bool:
        """Whether every tensor agrees at noise."""
        return bool(self.chain) and not self.outcome.failing

    def explained(self) -> frozenset[str]:
        """The tensors that failed and agree under the chain."""
        return self.before.failing - self.outcome.failing


def search(
    subject: ModuleSubject,
    hypotheses: Sequence[ModuleHypothesis],
    before: Outcome,
    first: Sequence[ModuleHypothesis] = (),
) -> Explanation:
    """The shortest chain that reproduces MindSpore's tensors, or the one that comes clearly nearer.

    before: the outcome of torch as it is; first: tried before all others, and enough where one holds.
    """
    until = time.monotonic() + LONGEST
    for chain, outcome in _step(subject, (), first, before, until) if first else ():
        if not outcome.failing:
            return Explanation(chain, outcome, before)
    beam: list[tuple[tuple[ModuleHypothesis, ...], Outcome]] = [((), before)]
    best = beam[0]
    for _ in range(DEEPEST):
        steps = [step for chain, outcome in beam for step in _step(subject, chain, hypotheses, outcome, until)]
        if not steps:
            break
        steps.sort(key=lambda step: step[1].key)
        if not steps[0][1].failing:
            return _best_of(steps, before)
        beam = steps[:BEAM]
        best = min((best, steps[0]), key=lambda step: step[1].key)
    return Explanation(best[0], best[1], before)


def weak_match(subject: ModuleSubject, hypotheses: Sequence[ModuleHypothesis], before: Outcome) -> Explanation | None:
    """Of a difference at the edge of noise, the known fault under which torch comes clearly nearer, or None."""
    near: list[tuple[ModuleHypothesis, Outcome]] = []
    for each in hypotheses:
        if each.fault is None:
            continue
        try:
            quick = subject.quick([each.change])
        except CannotRun:
            continue
        if not quick.failing and quick.worst <= before.worst / FAINT:
            near.append((each, quick))
    near.sort(key=lambda pair: pair[1].worst)
    for each, _ in near[:CHECKED]:
        outcome = subject.look([each.change])
        if outcome is not None and outcome.worst <= before.worst / FAINT:
            return Explanation((each,), outcome, before)
    return None


def extend(
    subject: ModuleSubject,
    hypotheses: Sequence[ModuleHypothesis],
    one: ModuleHypothesis,
    outcome: Outcome,
    before: Outcome,
) -> Iterator[Explanation]:
    """What explains the rest where `one` explains a part: the chain, or nothing."""
    steps = _step(subject, (one,), hypotheses, outcome, time.monotonic() + LONGEST)
    good = [step for step in steps if not step[1].failing]
    if good:
        yield _best_of(good, before)


def _step(
    subject: ModuleSubject,
    chain: tuple[ModuleHypothesis, ...],
    hypotheses: Sequence[ModuleHypothesis],
    before: Outcome,
    until: float,
) -> list[tuple[tuple[ModuleHypothesis, ...], Outcome]]:
    """The chains with one mutation more that are clearly nearer: they explain a tensor and spoil none, or all come
    nearer."""
    mutations = [each.change for each in chain]
    near: list[tuple[ModuleHypothesis, Outcome]] = []
    for each in hypotheses:
        if each in chain or time.monotonic() > until:
            continue
        try:
            quick = subject.quick([*mutations, each.change])
        except CannotRun:
            continue
        if _nearer(quick, before, SCREENED):
            near.append((each, quick))
    # stable: of equals, what stands first in the tables
    near.sort(key=lambda pair: (sum(r > SCREENED * RATIO for r in pair[1].ratios.values()), round(pair[1].middle, 1)))
    found = []
    for each, _ in near[:CHECKED]:
        outcome = subject.look([*mutations, each.change])
        if outcome is not None and _nearer(outcome, before, 1.0):
            found.append(((*chain, each), outcome))
    return found


def _nearer(outcome: Outcome, before: Outcome, slack: float) -> bool:
    failing = {name for name, ratio in outcome.ratios.items() if name in outcome.failing and ratio > slack * RATIO}
    if slack == 1.0:
        failing = set(outcome.failing)
    return failing < before.failing or (failing <= before.failing and outcome.middle < before.middle - CLEARLY)


def _best_of(steps: list[tuple[tuple[ModuleHypothesis, ...], Outcome]], before: Outcome) -> Explanation:
    """Of the chains that reproduce everything, the first in the tables among those that rounding cannot tell apart."""
    good = [step for step in steps if not step[1].failing]
    best = min(step[1].worst for step in good)
    alike = [step for step in good if step[1].worst <= ALIKE * max(best, 1.0)]
    known = [step for step in alike if all(each.fault for each in step[0])] or alike
    chain, outcome = known[0]
    last = chain[-1]
    ties = (step[0][-1] for step in alike if len(chain) == 1)
    return Explanation(chain, outcome, before, tuple(tie for tie in ties if not _same(tie, last)))


def _same(tie: ModuleHypothesis, chosen: ModuleHypothesis) -> bool:
    """Whether two trials say the same in other words: another value of the same argument that means the same."""
    return tie is chosen or tie.change.arguments == chosen.change.arguments


def estimate(subject: ModuleSubject, values: Values, chain: Sequence[ModuleHypothesis] = ()) -> Iterator[Mutation]:
    """The value of `attribute` between `low` and `high` that brings outputs and buffers nearest, as trials with ever
    more digits; none where it makes no difference or the best lies at the end of the range."""
    name, logarithmic = values["attribute"], values["scale"] == "logarithmic"
    if not isinstance(getattr(subject.module, name, None), (int, float)):
        return
    forth: Callable[[float], float] = math.log if logarithmic else float
    back: Callable[[float], float] = math.exp if logarithmic else float
    mutations = [each.change for each in chain]

    def away(at: float) -> float:
        try:
            return _distance(subject.quick([*mutations, with_value(name, back(at))], gradients=False))
        except CannotRun:
            return math.inf

    low, high = forth(values["low"]), forth(values["high"])
    grid = [low + (high - low) * i / (GRID - 1) for i in range(GRID)]
    found = [away(at) for at in grid]
    best = min(range(GRID), key=found.__getitem__)
    if not math.isfinite(found[best]) or max(f for f in found if math.isfinite(f)) - found[best] < 1.0:
        return
    at = golden_section(away, grid[max(best - 1, 0)], grid[min(best + 1, GRID - 1)], REFINEMENTS)
    said: set[float] = set()
    for digits in DIGITS:
        value = float(f"{back(at):.{digits}g}")
        if value not in said and value != getattr(subject.module, name):
            said.add(value)
            yield with_value(name, value)


def _distance(outcome: Outcome) -> float:
    """Smooth down to the noise and below, so that the search has somewhere to go."""
    return sum(math.log(min(max(ratio, 1e-6), LARGEST)) for ratio in outcome.ratios.values())
