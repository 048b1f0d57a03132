"""The search for what explains a subject: the first hypothesis that holds, chains of up to three, a number fitted."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Iterable, Sequence
from typing import Protocol, TypeVar

from ..verdict import RATIO
from .hypotheses import C, Hypothesis, Outcome, Trial

LONGEST = 120.0  # seconds for one subject
DEEPEST = 3  # faults at once that are looked for
CHECKED = 6  # of those that look near at a quick look, so many are looked at wholly
SCREENED = 10.0  # a quick look lets ratios up to this many times RATIO through
CLEARLY = 1.0  # decimal orders of magnitude that make a subject clearly nearer
ALIKE = 1.5  # a ratio up to so many times the best one is no worse: rounding decides between them
GRID = 25  # values tried first, over the whole range
REFINEMENTS = 45  # of the interval around the best of them, each to 0.618 of its length
G = TypeVar("G", contravariant=True)


class Subject(Protocol[G]):
    """What hypotheses are tried on: changes made one upon another, none for torch as it is."""

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

    steps: the chains with one hypothesis more that are worth following; beam: so many of them are; before: the outcome
    of torch as it is; otherwise: what else may explain all, of the chains that were followed and the next ones.
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
    """Of the chains that reproduce everything, the first in the tables among those that rounding cannot tell apart."""
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
    """The chains with one hypothesis more that are clearly nearer: they explain a tensor and spoil none, or all come
    nearer. until: when to stop, by time.monotonic()."""
    changes = [each.change for each in trial.chain]
    near: list[tuple[Hypothesis[C], Outcome]] = []
    for each in hypotheses:
        if each in trial.chain or time.monotonic() > until:
            continue
        quick = subject.quick([*changes, each.change])
        if quick is not None and _nearer(quick, trial.outcome, SCREENED):
            near.append((each, quick))
    # stable: of equals, what comes first in the tables
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
    """Of a difference at the edge of noise, the known faults under which a quick look finds torch nearer, nearest
    first."""
    found = [(each, subject.quick([each.change])) for each in hypotheses if each.fault]
    near = [(quick.distance, each) for each, quick in found if quick is not None and nearer(quick)]
    return [each for _, each in sorted(near, key=lambda pair: pair[0])]


def fit(distance: Callable[[float], float], low: float, high: float, logarithmic: bool) -> tuple[float, float] | None:
    """The value between `low` and `high` at which `distance` (infinite where it is unknown) is least, and by how
    much a grid over the whole range showed it to be less than elsewhere; None where it is known nowhere.

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
    """Where `distance` is least between two numbers, of which it falls to one side and rises to the other.

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
