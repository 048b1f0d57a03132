"""Which sizes of batches a server compiles, and how so many waiting instances are run in them.

A compiled net takes batches of its own size only: what is missing is filled up, and costs as much as if it were asked
for. A small net runs eight images in hardly more time than one, so filling up is cheap; a ResNet on 224x224 pixels
takes eight times as long for eight. So the sizes are timed, and the split is the one that takes the least time.
"""

from __future__ import annotations

from collections.abc import Mapping

ROUNDING = 1e-9  # by which the same sum in another order is off: of equal splits, that with the largest batch first


def sizes_up_to(most: int) -> list[int]:
    """The powers of two below the most, and the most itself."""
    sizes = [2**i for i in range(most.bit_length()) if 2**i < most]
    return [*sizes, most]


class Split:
    """How many of the waiting instances the next batch takes.

    seconds: what a batch of each size takes.
    """

    def __init__(self, seconds: Mapping[int, float]) -> None:
        self.sizes = sorted(seconds)
        took, least = {}, float("inf")
        for size in reversed(self.sizes):  # a smaller one can be filled up, so it takes no longer
            took[size] = least = min(least, seconds[size])
        self._next, best = [0], [0.0]
        for count in range(1, self.sizes[-1] + 1):
            costs = {size: took[size] + best[max(0, count - size)] for size in self.sizes}
            best.append(min(costs.values()))
            equal = (size for size, cost in costs.items() if cost <= best[-1] * (1 + ROUNDING))
            self._next.append(min(max(equal), count))

    def __call__(self, waiting: int) -> int:
        """Of so many, at least one, those that run at once."""
        return self._next[min(waiting, self.sizes[-1])]

    def filled(self, count: int) -> int:
        """The smallest compiled size that holds so many."""
        return next(size for size in self.sizes if size >= count)
