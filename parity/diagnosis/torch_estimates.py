"""A number that no table lists: the value of one continuous argument under which torch comes nearest to MindSpore."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence

from torch import nn

from .torch_alone import CannotRun
from .torch_module_verbs import Trial, Values
from .torch_search import Tried
from .torch_specimen import LARGEST, Outcome, Specimen

GRID = 25  # values tried first, over the whole range
REFINEMENTS = 40  # of the interval around the best of them, each to 0.618 of its length
DIGITS = (1, 2, 3, 4, 6)  # a value is named with as few significant digits as still explain the tensors
GOLDEN = (math.sqrt(5.0) - 1.0) / 2.0


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


def _valued(name: str, value: float) -> Trial:
    def apply(module: nn.Module) -> None:
        setattr(module, name, value)

    return Trial(f"{name}={value:g}", apply, (name,))


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
