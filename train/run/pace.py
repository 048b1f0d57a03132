"""How fast training goes: images a second without compilation, the share of waiting for data, the seconds left."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass


@dataclass
class _Sums:
    seconds: float = 0.0
    waited: float = 0.0
    images: int = 0
    steps: int = 0


@dataclass(frozen=True)
class Speed:
    """images_per_second: of all processes. waited: the share of the time spent waiting for data, 0 to 1."""

    images_per_second: float | None
    waited: float | None


class Pace:
    """Takes the time from one step's end to the next one's; validation and saving are left out by `resume()`.

    world: processes that each do as many images. clock: seconds.
    """

    def __init__(self, world: int = 1, clock: Callable[[], float] = time.perf_counter) -> None:
        self._clock, self._world = clock, world
        self._mark, self._waited = clock(), 0.0
        self._recent, self._all = _Sums(), _Sums()
        self.compiling = 0.0  # seconds of the steps that do not count

    def resume(self) -> None:
        """What has passed since the last step does not belong to the next one."""
        self._mark = self._clock()

    def step(self, images: int, waited: float, compiled: bool = False) -> None:
        """A step on so many images of this process has ended; one that compiled does not count.

        waited: seconds that this process has waited for data so far, in all.
        """
        now = self._clock()
        seconds, self._mark = now - self._mark, now
        idle, self._waited = waited - self._waited, waited
        if compiled:
            self.compiling += seconds
            return
        for sums in (self._recent, self._all):
            sums.seconds += seconds
            sums.waited += idle
            sums.images += images
            sums.steps += 1

    def recent(self) -> Speed:
        """Since this was last asked; nothing when no counted step lies between."""
        sums, self._recent = self._recent, _Sums()
        return self._speed(sums)

    @property
    def overall(self) -> Speed:
        """Over the whole time; nothing before a step was counted."""
        return self._speed(self._all)

    @property
    def waited(self) -> float:
        """Seconds of waiting for data in the steps that count."""
        return self._all.waited

    def seconds_left(self, steps: int, validations: int = 0, validation: float = 0.0) -> float | None:
        """What so many more steps and validations of `validation` seconds each will take; None if nobody knows yet."""
        if not self._all.steps:
            return None
        return steps * self._all.seconds / self._all.steps + validations * validation

    def _speed(self, sums: _Sums) -> Speed:
        if not sums.seconds:
            return Speed(None, None)
        return Speed(sums.images * self._world / sums.seconds, sums.waited / sums.seconds)
