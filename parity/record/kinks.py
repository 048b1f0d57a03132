"""Where layers have kinks, and which side of them a recorded run took.

At a kink a gradient jumps: a ReLU's at zero, a Hardswish's at -3 and at 3, a max-pool's where another element becomes
the largest. The side that a run took is recorded, and the torch reference takes the same one where rounding decides.
Where both are exactly at the kink nothing was rounded: then a gradient that differs is due to the framework or the
code, and stays.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np


class Top(float):
    """A kink that is above itself: an input equal to it gets the gradient above, as at a clamp's upper bound."""


# torch class -> the inputs at which its gradient jumps
KINKS: dict[str, tuple[float, ...]] = {
    "ReLU": (0.0,),
    "ReLU6": (0.0, Top(6.0)),
    "LeakyReLU": (0.0,),
    "PReLU": (0.0,),
    "Hardswish": (-3.0, Top(3.0)),
    "Hardsigmoid": (-3.0, Top(3.0)),
}
KINKED = tuple(KINKS)
POOLED = ("MaxPool2d",)
BY_INPUT = (*(kind for kind in KINKED if kind != "ReLU"), *POOLED)  # the output does not show their choice
EVENLY = "_evenly"  # suffix of a kind whose gradient equal elements share: a maximum over several axes


def choice(kind: str | None, output: np.ndarray, source: np.ndarray | None) -> np.ndarray | None:
    """The record of the choice that a layer of torch class `kind` made: for kinks what `packed` returns, for a max-pool
    its input, from which the choice follows; None for other layers.

    source: the input, which the classes in BY_INPUT need.
    """
    if kind in POOLED:
        return source
    if kind not in KINKS:
        return None
    if kind in BY_INPUT:
        return None if source is None else of_input(source, KINKS[kind])
    return of_output(output)


def of_input(x: np.ndarray, kinks: Sequence[float]) -> np.ndarray:
    """The record of an input's sides at kinks; an element exactly at a kink counts as below it."""
    return packed([x > kink for kink in kinks], [x == kink for kink in kinks])


def of_output(output: np.ndarray) -> np.ndarray:
    """The record of a ReLU's sides, from its output; without ties, since both frameworks' gradient at zero is zero."""
    return packed([output > 0], [np.zeros_like(output, bool)])


def packed(above: Sequence[np.ndarray], at: Sequence[np.ndarray]) -> np.ndarray:
    """As packed bits: for each kink in turn which elements were above it, then for each which were exactly at it."""
    return np.packbits(np.stack([*above, *at]))


@dataclass(frozen=True)
class Choice:
    """One call's choices: the name that it was recorded under, which call of that name, and what was kept."""

    name: str
    call: int
    kept: np.ndarray

    def kinks(self, count: int) -> int:
        """For how many kinks this holds the sides of `count` elements; 0 where it was recorded for another count, or is
        the input of a maximum (as that may have as many numbers as the sides have bytes)."""
        there = [kinks for kinks in (1, 2) if self.kept.size == (2 * kinks * count + 7) // 8]
        return there[0] if there and self.kept.dtype == np.uint8 else 0

    def sides(self, count: int) -> Iterator[tuple[np.ndarray, np.ndarray]]:
        """For each kink, which of `count` elements were above it, and which exactly at it; flat."""
        kinks = self.kinks(count)
        bits = np.unpackbits(self.kept, count=2 * kinks * count) if kinks else np.empty(0, np.uint8)
        yield from zip(*bits.view(bool).reshape(2, kinks, count), strict=True)

    def others(self, number: int, above: np.ndarray) -> np.ndarray:
        """The positions, in the flattened array, of the elements that were on the other side of a kink than in `above`.

        They are few: compared as packed bits, most elements are looked at eight at a time.
        """
        start, end = number * above.size, (number + 1) * above.size
        if above.size % 8:
            bits = np.unpackbits(self.kept[start // 8 : (end + 7) // 8])[start % 8 :][: above.size]
            return np.flatnonzero(bits != above.reshape(-1))
        unlike = self.kept[start // 8 : end // 8] ^ np.packbits(above.reshape(-1))
        at = np.flatnonzero(unlike)
        byte, bit = np.nonzero(np.unpackbits(unlike[at, None], axis=1))
        found: np.ndarray = 8 * at[byte] + bit
        return found

    def was_at(self, number: int, count: int, positions: np.ndarray) -> np.ndarray:
        """Which of `count` elements, by their positions, were exactly at a kink."""
        bits = (self.kinks(count) + number) * count + positions
        found: np.ndarray = (self.kept[bits // 8] >> (7 - bits % 8) & 1).astype(bool)
        return found


def function_name(path: str, kind: str) -> str:
    """The name under which a module's own calls of a function are recorded: `layer1.0.relu()`."""
    return f"{path}.{kind.lower()}()" if path else f"{kind.lower()}()"


def is_function(name: str) -> bool:
    """Whether a name is one that `function_name` gave."""
    return name.endswith("()")
