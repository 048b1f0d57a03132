"""The same random numbers in both frameworks, so that a step that draws can be compared at all.

The two frameworks' generators can be seeded but not made to agree, and MindSpore's dropout does not even repeat itself
within a process. So under parity whatever draws takes its numbers from here: uniform or normal ones, by the canonical
name of the module that draws, how often it has drawn such numbers in the step, and the step. What it makes of them,
with its own rate, its own scaling and its own code, remains the framework's. Two modules are equal then if and only if
they compute the same.

Every other distribution is made of these two, in one way in both frameworks: a Bernoulli trial succeeds where the
uniform number is below its probability, whole numbers are `floor(u · n)`, a permutation is the order of uniform
numbers. So `rand(n) < p` in one framework is `bernoulli(p)` in the other.
"""

from __future__ import annotations

import random
import re
import sys
import zlib
from collections import Counter
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from types import FrameType
from typing import Any, NamedTuple

import numpy as np

ROOT = "(model)"  # the name of the model itself, where it draws outside any submodule
OUTSIDE = "(step)"  # the name of the loss and of all else that is no part of the model
UNIFORM, NORMAL = "uniform", "normal"
# Beyond so many numbers two of them may be equal; below, none are: two that tie are sorted as each framework likes
DISTINCT = 1 << 18
LEVELS = 1 << 23  # uniform numbers lie between these, so that none is 0, whose logarithm is infinite
# Classes and functions that keep `x` where `floor(keep + rand)` is 1, or where `rand > rate`, as many a repository does
DROPS = re.compile(r"_*(drop_?path|stochastic_?depth|drop_?connect|drop_?out)_*", re.IGNORECASE)


class Draw(NamedTuple):
    """One draw: who drew, numbers of which kind and shape, the share that it drops where it is a mask, and whether
    uniform numbers were turned round."""

    name: str
    kind: str
    shape: tuple[int, ...]
    rate: float | None = None
    turned: bool = False


@dataclass
class Draws:
    """The numbers of one pass.

    taken: what was drawn, in order. outside: what drew and could not be fixed, as (who drew, by which function).
    states: of NumPy's and Python's own generators, a digest of where they stood in the end, where they were used.
    """

    step: int
    taken: list[Draw] = field(default_factory=list)
    outside: set[tuple[str, str]] = field(default_factory=set)
    states: dict[str, str] = field(default_factory=dict)
    calls: Counter[tuple[str, str]] = field(default_factory=Counter)

    def uniform(self, name: str, shape: tuple[int, ...], rate: float | None = None, turned: bool = False) -> np.ndarray:
        """Float32 numbers of `shape` between 0 and 1, neither included, for the next call of a module; turned: 1 less
        each."""
        drawn = uniform(name, self._next(Draw(name, UNIFORM, tuple(shape), rate, turned)), self.step, shape)
        return 1 - drawn if turned else drawn

    def normal(self, name: str, shape: tuple[int, ...]) -> np.ndarray:
        """Float32 numbers of `shape` from the standard normal distribution."""
        return normal(name, self._next(Draw(name, NORMAL, tuple(shape))), self.step, shape)

    def keep(self, name: str, shape: tuple[int, ...], rate: float) -> np.ndarray:
        """Which elements of `shape` the next call of a module keeps, bool: each with probability 1 - rate. Nothing is
        drawn where all or none are."""
        rate = round(rate, 12)  # 1 - (1 - 0.1) is not 0.1
        if not 0.0 < rate < 1.0:
            return np.full(shape, rate < 1.0)
        kept: np.ndarray = self.uniform(name, shape, rate) < round(1.0 - rate, 12)
        return kept

    def integers(self, name: str, shape: tuple[int, ...], low: int, high: int) -> np.ndarray:
        """Int64 whole numbers of `shape` from [low, high)."""
        drawn, count = self.uniform(name, shape), high - low
        # in float32, as who writes floor(rand · n) has them
        scaled = drawn * np.float32(count) if count <= LEVELS else drawn.astype(np.float64) * count
        return low + np.minimum(np.floor(scaled).astype(np.int64), count - 1)

    def permutation(self, name: str, count: int) -> np.ndarray:
        """Int64 numbers below `count` in a random order."""
        return np.argsort(self.uniform(name, (count,)), kind="stable")

    def exponential(self, name: str, shape: tuple[int, ...]) -> np.ndarray:
        """Float64 numbers of `shape` from the exponential distribution of rate 1."""
        found: np.ndarray = -np.log(self.uniform(name, shape).astype(np.float64))
        return found

    def choices(self, name: str, weights: np.ndarray, count: int, replacement: bool) -> np.ndarray:
        """Int64 indices (…, count) into the last dimension of `weights` (…, K), by their weights.

        One alone is drawn in the same way whether it would be put back or not.
        """
        weights = weights.astype(np.float64)
        if count == 1 or not replacement:
            raced = weights / self.exponential(name, weights.shape)
            return np.argsort(-raced, axis=-1, kind="stable")[..., :count]
        drawn = self.uniform(name, (*weights.shape[:-1], count)).astype(np.float64)
        ends = np.cumsum(weights, axis=-1)
        drawn *= ends[..., -1:]
        found = (drawn[..., None] >= ends[..., None, :]).sum(-1)
        return np.minimum(found, weights.shape[-1] - 1)

    def poisson(self, name: str, rates: np.ndarray) -> np.ndarray:
        """Float64 counts in the shape of `rates`, from the Poisson distribution."""
        rates = rates.astype(np.float64)
        left = self.uniform(name, rates.shape).astype(np.float64)
        chance, found = np.exp(-rates), np.zeros(rates.shape)
        while (over := (left >= chance) & (chance > 0.0)).any():
            left = np.where(over, left - chance, left)
            found += over
            chance = np.where(over, chance * rates / np.maximum(found, 1.0), chance)
        return found

    def restart(self) -> None:
        """Begin the pass anew: what draws next takes the numbers of the first call."""
        self.taken.clear()
        self.calls.clear()
        np.random.seed(self.step)
        random.seed(self.step)

    def _next(self, draw: Draw) -> int:
        call = self.calls[draw.name, draw.kind]
        self.calls[draw.name, draw.kind] += 1
        self.taken.append(draw)
        return call

    @contextmanager
    def libraries(self) -> Iterator[None]:
        """Within this block NumPy's and Python's own generators draw the same in both frameworks."""
        kept = np.random.get_state(), random.getstate()
        self.restart()
        before = _states()
        try:
            yield
            self.states |= {name: now for name, now in _states().items() if now != before[name]}
        finally:
            np.random.set_state(kept[0])
            random.setstate(kept[1])


def uniform(name: str, call: int, step: int, shape: tuple[int, ...]) -> np.ndarray:
    """Float32 numbers of `shape` between 0 and 1, that depend on nothing but the arguments.

    The numbers fill the shape row by row, so a mask of shape (N, 1, 1) is one of (N, 1, 1, 1), and attention weights
    of (N·heads, L, S) are those of (N, heads, L, S).
    """
    generator = _generator(name, call, step, 0)
    size = int(np.prod(shape, dtype=np.int64))
    numbers = generator.integers(LEVELS, size=size, dtype=np.uint32)
    while 1 < size <= DISTINCT:
        _, first = np.unique(numbers, return_index=True)
        if first.size == size:
            break
        again = np.delete(np.arange(size), first)
        numbers[again] = generator.integers(LEVELS, size=again.size, dtype=np.uint32)
    found: np.ndarray = (numbers.astype(np.float32) + np.float32(0.5)) / np.float32(LEVELS)
    return found.reshape(shape)


def normal(name: str, call: int, step: int, shape: tuple[int, ...]) -> np.ndarray:
    """Float32 numbers of `shape` from the standard normal distribution, that depend on nothing but the arguments."""
    return _generator(name, call, step, 1).standard_normal(shape, dtype=np.float32)


def _generator(name: str, call: int, step: int, kind: int) -> np.random.Generator:
    return np.random.Generator(np.random.Philox(key=[zlib.crc32(name.encode()), step], counter=[0, 0, call, kind]))


def _states() -> dict[str, str]:
    numpy: Any = np.random.get_state()
    said = {"numpy.random": repr((numpy[1].tobytes(), numpy[2:])), "random": repr(random.getstate())}
    return {name: f"{zlib.crc32(text.encode()):08x}" for name, text in said.items()}


class Place(NamedTuple):
    """Who draws: the canonical name of the innermost module at work, and whether what it keeps is where plain uniform
    numbers are large, which turns them round: a trial succeeds where they are small."""

    name: str
    turned: bool


def place(names: Mapping[int, str]) -> Place:
    """Who is drawing, by the Python stack; names: id of a module -> its canonical name."""
    frame: FrameType | None = sys._getframe(1)
    drops: bool | None = None
    while frame is not None:
        function, module = frame.f_code.co_name, frame.f_locals.get("self")
        owner = type(module).__name__
        if drops is None and "bernoulli" in f"{function} {owner}".lower():
            drops = False  # it compares as every trial does
        if drops is None and (DROPS.fullmatch(function) or DROPS.fullmatch(owner)):
            drops = True
        name = names.get(id(module)) if module is not None else None
        if name is not None:
            return Place(name, bool(drops))
        frame = frame.f_back
    return Place(OUTSIDE, bool(drops))
