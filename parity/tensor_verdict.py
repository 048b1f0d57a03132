"""The verdict on one tensor: MindSpore's distance from torch float64, compared with torch float32's own distance.

The noise is measured, not guessed (PyTorch judges its compiler the same way: torch._dynamo.utils.same with fp64_ref).
What a tensor may be off is

    allowed = RATIO · uncertain · max(noise, floor)

noise: the largest L2 distance from float64 of the torch float32 runs. floor: for tensors on which torch happens to be
nearly exact, the rounding of float32 itself, and what the caller knows of rounding in the tensor's surroundings.
uncertain: from 1 for large tensors to 1 + SHORT for the smallest, whose noise is known less well. Of one element or two
all runs may be exact by luck, which BY_LUCK makes up for. Of what an optimizer made of a real step's gradients the few
elements that are farthest off do not count, on either side. What is zero in exact arithmetic, and so nothing but
rounding, is allowed CANCELLED times as much, and what an optimizer keeps of its square the square of that.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from enum import Enum

import numpy as np

RATIO = 4.0
PEAK_RATIO = 12.0
EPS32 = float(np.finfo(np.float32).eps)
FLOOR_ULPS = 4.0  # rounding of float32, in units of EPS32, that no implementation need avoid
# float64 rounds 2**-29 times as coarsely as float32. A reference this small next to float32's noise is float64's own
# rounding: in exact arithmetic the tensor is zero (the gradient of a bias before a BatchNorm), and such tensors pass
ZERO = 2.0**-24
# A tensor's noise is one draw, and its elements round together (a bias's gradient is a few sums): with few elements it
# says less. The share by which the noise of the smallest tensors may be too small, and how many elements these have.
SHORT, FEW = 0.5, 16
# With one element, as in a PReLU's weight, two draws are both a tenth of their usual size once in a hundred times. So
# the noise of one or two elements is multiplied by this; then one correct tensor in a thousand fails, if MindSpore
# rounds half as much again as torch (`python benchmarks/few_elements.py`). From three elements on SHORT suffices.
BY_LUCK = {1: 6.2, 2: 1.6}
# An optimizer that divides by the gradient's own size (Adam, RMSprop) turns rounding of the smallest gradients into
# whole steps. These few elements make up nearly all the noise, and two runs cannot measure it: they are left out, in
# torch's runs as in MindSpore's. (On given gradients every element counts.)
LEFT_OUT = 0.02
# A tensor that is zero in exact arithmetic is the rest of sums that cancel, in an order that every kernel chooses for
# itself: torch's runs say less about MindSpore's rounding there. One that is not zero in MindSpore is off by thousands.
CANCELLED = 4.0
# Storing a weight in float32 moves it by at most half a unit in its last place: twice what it does on average.
STORED_MOST = 2.0
BLIND = 0.5  # an allowance above this share of the tensor itself would let a missing tensor pass


class Verdict(str, Enum):
    """What is known of one tensor."""

    PASS = "pass"
    FAIL = "fail"
    NONE = "no verdict"


class Unjudged(str, Enum):
    """Why a tensor has no verdict. BY_NATURE has those that may stand beside parity; any other is unproven."""

    NOISE = "noise"  # torch's own noise is so large that a missing tensor would pass
    NOT_FINITE = "not finite"  # torch itself has values that are not finite
    NOT_COMPILED_ALIKE = "not compiled alike"  # in half precision the compiled step rounds otherwise
    KINKS = "kinks"  # each of two sides of one framework chose for itself where rounding decides
    DRAWS = "draws"  # random numbers that could not be fixed
    STORAGE = "storage"  # float32 cannot hold so small a change of so large a weight
    ZERO_GRADIENT = "zero gradient"  # the gradient, or a part of it, is zero in exact arithmetic: rounding alone
    FEW_VALUES = "few values"  # too few drawn values to tell one distribution from another
    NOT_ALONE = "not alone"  # torch itself cannot run the module by itself
    BUILT_OTHERWISE = "built otherwise"  # modules that are divided differently, in a net that agrees end to end


BY_NATURE = frozenset(
    {Unjudged.STORAGE, Unjudged.ZERO_GRADIENT, Unjudged.FEW_VALUES, Unjudged.NOT_ALONE, Unjudged.BUILT_OTHERWISE}
)


@dataclass(frozen=True)
class Measure:
    """L2 distances over the recorded elements: of MindSpore (error) and of torch float32 (noise) from float64, the
    floor, what was allowed, the tensor's own size; unjudged: why there is no verdict, where there is none."""

    verdict: Verdict
    error: float
    noise: float
    floor: float
    allowed: float
    size: float
    why: str
    unjudged: Unjudged | None = None

    @property
    def ratio(self) -> float:
        """The error in units of what rounding is taken to be, a RATIO-th of what is allowed; above RATIO it fails."""
        if self.allowed:
            return RATIO * self.error / self.allowed
        return 0.0 if self.error == 0.0 else float("inf")

    @property
    def relative(self) -> float:
        """The error as a share of the tensor itself."""
        return self.error / self.size if self.size else (0.0 if self.error == 0.0 else float("inf"))


@dataclass(frozen=True)
class Measured:
    """How far torch's float32 is known to be from float64: as an L2 distance, and at one element at most."""

    noise: float
    peak: float

    @classmethod
    def of(cls, distances: Sequence[np.ndarray]) -> Measured:
        """The largest of several runs' distances, each element by element."""
        return cls(max(float(np.linalg.norm(d)) for d in distances), max(float(d.max(initial=0.0)) for d in distances))


def uncertain(elements: int) -> float:
    """By what factor the noise of a tensor of so many elements may be larger than it was measured."""
    return 1.0 + SHORT * min(1.0, (FEW / elements) ** 0.25)


def judge(
    reference: np.ndarray,
    noisy: Sequence[np.ndarray],
    subject: np.ndarray,
    relative_floor: float = 0.0,
    floor_ulps: float = FLOOR_ULPS,
    of_a_step: bool = False,
    stored: float = 0.0,
    zero: bool = False,
    squared: bool = False,
    known: Measured | None = None,
) -> Measure:
    """Judge one tensor.

    reference: torch float64; noisy: the same elements of torch's float32 runs; subject: MindSpore's; all flat, of one
    length, not empty. relative_floor: share of the tensor's size that rounding is known to move here. floor_ulps:
    rounding that no implementation need avoid, in units of EPS32. of_a_step: whether an optimizer made it of a real
    step's gradients. stored: L2 distance by which storing the result in float32 moves it, of a change of weights.
    zero: the gradient that it is, or is made of, is zero in exact arithmetic. squared: it is made of the gradient's
    square. known: the noise, where it is known; `noisy` is not looked at then.
    """
    exact = reference.astype(np.float64, copy=False)
    difference = distance(subject, exact)
    size = float(np.linalg.norm(exact))
    distances = [distance(run, exact) for run in noisy] if known is None else []
    finite = [size, *(float(np.linalg.norm(each)) for each in distances)] if known is None else [size, known.noise]
    sound = bool(np.isfinite(finite).all())
    if of_a_step and np.isfinite(difference).all():
        difference, *distances = (without_farthest(d) for d in (difference, *distances))
    found = Measured.of(distances) if known is None else known
    error, noise = float(np.linalg.norm(difference)), found.noise
    relative_floor = max(relative_floor, floor_ulps * EPS32)
    # a weight that float64 does not move, since its gradient is rounding alone, is still rounded when stored
    floor = relative_floor * size if size else stored
    allowed = RATIO * uncertain(exact.size) * max(noise, floor)
    nothing = size <= ZERO * noise or (zero and not of_a_step and allowed > BLIND * size)
    cancels = (nothing and size > 0.0) or (zero and of_a_step and (squared or allowed > BLIND * size))
    cancelled = CANCELLED ** (2 if squared else 1) if cancels else 1.0
    allowed *= cancelled
    peak = float(difference.max())
    peak_floor = relative_floor * float(np.abs(exact).max()) if size else stored
    peak_allowed = PEAK_RATIO * cancelled * max(found.peak, peak_floor)
    why, unjudged = "", None
    blind = allowed > BLIND * size and not nothing
    by_storing = STORED_MOST * stored > BLIND * size
    if blind and stored and not by_storing:
        # what storing does is known: the rest of the noise decides
        rest = float(np.sqrt(max(noise**2 - stored**2, 0.0)))
        of_the_rest = RATIO * uncertain(exact.size) * max(rest, floor_ulps * EPS32 * size)
        allowed = STORED_MOST * stored + of_the_rest
        blind, by_storing = allowed > BLIND * size, of_the_rest <= BLIND * size
    if exact.size in BY_LUCK and not blind:
        least = min(BY_LUCK[exact.size] * RATIO * uncertain(exact.size) * noise, BLIND * size)
        allowed, peak_allowed = max(allowed, least), max(peak_allowed, least)
    if not sound:
        verdict, why, unjudged = Verdict.NONE, "torch itself has values that are not finite", Unjudged.NOT_FINITE
    elif not np.isfinite(error):  # NaN is above no limit, and would pass below
        verdict, why = Verdict.FAIL, "values that are not finite, torch none"
    elif error > allowed:
        verdict = Verdict.FAIL
        scale = size or 1.0  # a tensor that should be zero: distances as they are
        why = f"off by {error / scale:.2g} of its size; rounding explains {allowed / scale:.2g}"
    elif peak > peak_allowed:
        verdict = Verdict.FAIL
        where = int(distance(subject, exact).argmax())
        why = (
            f"one element is off by {peak:.3g} where rounding explains {peak_allowed:.3g}: "
            f"expected {exact[where]:.6g}, got {float(subject[where]):.6g}"
        )
    elif error > 0.0 and blind:
        verdict = Verdict.NONE
        away = noise / size if size else float("inf")
        why = f"torch float32 itself is {away:.2g} of the tensor's size away from float64"
        if zero:
            unjudged, why = Unjudged.ZERO_GRADIENT, f"its gradient is zero but for rounding: {why}"
        elif by_storing:
            unjudged, why = Unjudged.STORAGE, f"float32 cannot hold so small a change of so large a weight: {why}"
        else:
            unjudged = Unjudged.NOISE
    else:
        verdict = Verdict.PASS
    return Measure(verdict, error, noise, floor, allowed, size, why, unjudged)


def distance(values: np.ndarray, exact: np.ndarray) -> np.ndarray:
    """|values - exact|, float64, without widening float32 values to a copy first."""
    found: np.ndarray = np.subtract(values, exact, dtype=np.float64)
    return np.abs(found, out=found)


def without_farthest(distances: np.ndarray) -> np.ndarray:
    """The distances with the LEFT_OUT largest share of them at zero; of few elements one."""
    count = int(np.ceil(LEFT_OUT * distances.size)) if distances.size > 1 else 0
    if not count:
        return distances
    kept = distances.copy()
    kept[np.argpartition(distances, -count)[-count:]] = 0.0
    return kept


def without_zeros(whole: Measure, rest: Measure, only: np.ndarray) -> Measure:
    """What is said of a tensor some of whose gradient is zero but for rounding, which an optimizer that divides by the
    gradient's size makes steps of. rest: what is known of the elements `only`, whose gradient is not."""
    if rest.verdict is Verdict.NONE:
        return whole
    zeros = f"{only.size - int(only.sum())} of {only.size} of its numbers"
    if rest.verdict is Verdict.FAIL:
        return replace(rest, why=f"{rest.why} (without {zeros}, whose gradient is zero but for rounding)")
    why = f"the gradient of {zeros} is zero but for rounding; the others agree"
    return replace(rest, verdict=Verdict.NONE, why=why, unjudged=Unjudged.ZERO_GRADIENT)
