"""The same random numbers in both frameworks, so that a step that draws can be compared at all, and made-up inputs.

The two frameworks' generators can be seeded but not made to agree, and MindSpore's dropout does not even repeat itself
within a process. So under parity every draw takes its numbers from here: uniform or normal ones, that depend on the
canonical name of the module that draws, on how often it has drawn such numbers in the step, and on the step. What the
module computes from them, with its own rate, scaling and code, remains the framework's. Two modules are equal then if
and only if they compute the same.

Every other distribution is computed from these two, alike in both frameworks: a Bernoulli trial succeeds where the
uniform number is below its probability, whole numbers are `floor(u · n)`, a permutation is the order of uniform
numbers. So `rand(n) < p` in one framework is `bernoulli(p)` in the other.
"""

from __future__ import annotations

import math
import random
import re
import sys
import zlib
from collections import Counter
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from types import FrameType
from typing import Any, Literal, NamedTuple

import numpy as np

from ..align.model_structure import Values

ROOT = "(model)"  # the name of the model itself, where it draws outside any submodule
OUTSIDE = "(step)"  # the name of the loss and of everything else outside the model
Kind = Literal["uniform", "normal"]
UNIFORM: Kind = "uniform"
NORMAL: Kind = "normal"
# Up to this many numbers no two are equal; beyond, two may be, and each framework sorts equal ones in its own way
DISTINCT = 1 << 15
FEW = 500.0  # the rate up to which a Poisson distribution is computed exactly
# Monte Carlo arithmetic moves a number by up to this many epsilons of it; one is one or two units in its last place
MOVED = 1.0
LEVELS = 1 << 23  # uniform numbers lie between these, so that none is 0, whose logarithm is infinite
# Classes and functions that keep `x` where `floor(keep + rand)` is 1, or where `rand > rate`, as in many repositories
DROPS = re.compile(r"_*(drop_?path|stochastic_?depth|drop_?connect|drop_?out)_*", re.IGNORECASE)
# Files whose lines are not the user's
HERE = Path(__file__).parent.parent
NOT_THEIRS = ("<", str(Path(re.__file__).parent.parent), str(HERE), str(HERE.parent / "training"))
LIBRARIES = "site-packages"


class Place(NamedTuple):
    """Who draws: the canonical name of the innermost module at work; whether it keeps elements where its uniform
    numbers are large, so that these are inverted (a trial succeeds where they are small); the user's file and line."""

    name: str
    turned: bool = False
    line: str = ""


class Draw(NamedTuple):
    """One draw: who drew, numbers of which kind and shape, and the share that it drops where it is a mask."""

    who: Place
    kind: Kind
    shape: tuple[int, ...]
    rate: float | None = None

    @property
    def name(self) -> str:
        """The module that drew."""
        return self.who.name


@dataclass
class Draws:
    """The numbers of one pass.

    taken: what was drawn, in order. outside: the functions whose draws could not be fixed -> the modules that called
    them. states: digests of the final states of NumPy's and Python's own generators, where they were used.
    """

    step: int
    taken: list[Draw] = field(default_factory=list)
    outside: dict[str, list[Place]] = field(default_factory=dict)
    states: dict[str, str] = field(default_factory=dict)
    calls: Counter[tuple[str, str]] = field(default_factory=Counter)

    def uniform(self, who: Place, shape: tuple[int, ...]) -> np.ndarray:
        """Float32 numbers of `shape` between 0 and 1, neither included, for the next call of a module."""
        return self._next(Draw(who, UNIFORM, tuple(shape)))

    def normal(self, who: Place, shape: tuple[int, ...]) -> np.ndarray:
        """Float32 numbers of `shape` from the standard normal distribution."""
        return self._next(Draw(who, NORMAL, tuple(shape)))

    def trials(self, who: Place, chances: np.ndarray) -> np.ndarray:
        """Whether each trial succeeds, bool, in the shape of its chances."""
        found: np.ndarray = self.base(who, chances.shape) < chances
        return found

    def keep(self, who: Place, shape: tuple[int, ...], rate: float) -> np.ndarray:
        """Which elements of `shape` the next call of a module keeps, bool: each with probability 1 - rate. Nothing is
        drawn where all or none are."""
        rate = round(rate, 12)  # 1 - (1 - 0.1) is not 0.1
        if not 0.0 < rate < 1.0:
            return np.full(shape, rate < 1.0)
        return kept(self.base(who, shape, rate), rate)

    def integers(self, who: Place, shape: tuple[int, ...], low: int, high: int) -> np.ndarray:
        """Int64 whole numbers of `shape` from [low, high)."""
        drawn, count = self.base(who, shape), high - low
        # in float32, as in code that writes floor(rand · n)
        scaled = drawn * np.float32(count) if count <= LEVELS else drawn.astype(np.float64) * count
        return low + np.minimum(np.floor(scaled).astype(np.int64), count - 1)

    def permutation(self, who: Place, count: int) -> np.ndarray:
        """Int64 numbers below `count` in a random order."""
        return np.argsort(self.base(who, (count,)), kind="stable")

    def exponential(self, who: Place, shape: tuple[int, ...]) -> np.ndarray:
        """Float64 numbers of `shape` from the exponential distribution of rate 1."""
        found: np.ndarray = -np.log(self.base(who, shape).astype(np.float64))
        return found

    def choices(self, who: Place, weights: np.ndarray, count: int, replacement: bool) -> np.ndarray:
        """Int64 indices (…, count) into the last dimension of `weights` (…, K), by their weights.

        With count 1 the draw is the same with replacement and without.
        """
        weights = weights.astype(np.float64)
        if count == 1 or not replacement:
            raced = weights / self.exponential(who, weights.shape)
            return np.argsort(-raced, axis=-1, kind="stable")[..., :count]
        drawn = self.base(who, (*weights.shape[:-1], count)).astype(np.float64)
        ends = np.cumsum(weights, axis=-1)
        drawn *= ends[..., -1:]
        found = (drawn[..., None] >= ends[..., None, :]).sum(-1)
        return np.minimum(found, weights.shape[-1] - 1)

    def poisson(self, who: Place, rates: np.ndarray) -> np.ndarray:
        """Float64 counts in the shape of `rates`, from the Poisson distribution."""
        rates = rates.astype(np.float64)
        drawn = self.base(who, rates.shape).astype(np.float64)
        # for a large rate it is nearly normal, and a normal distribution is nearly logistic
        found = np.maximum(np.round(rates + np.sqrt(rates) * np.log(drawn / (1.0 - drawn)) / 1.702), 0.0)
        few = rates < FEW
        left, chance, count = drawn, np.where(few, np.exp(-rates), 1.0), np.zeros(rates.shape)
        while (over := left >= chance).any():
            left = np.where(over, left - chance, left)
            count += over
            chance = np.where(over, chance * rates / np.maximum(count, 1.0), chance)
            if (chance[over] == 0.0).any():  # what remains is rounding
                break
        return np.where(few, count, found)

    def not_fixed(self, function: str, who: Place) -> None:
        """Note that a module draws by a function that could not be fixed."""
        places = self.outside.setdefault(function, [])
        if who.name not in [place.name for place in places]:
            places.append(who)

    def restart(self) -> None:
        """Begin the pass anew: the next draw takes the numbers of the first call."""
        self.taken.clear()
        self.calls.clear()
        np.random.seed(self.step)
        random.seed(self.step)

    def base(self, who: Place, shape: tuple[int, ...], rate: float | None = None) -> np.ndarray:
        """Uniform numbers from which another distribution is computed."""
        return self._next(Draw(who._replace(turned=False), UNIFORM, tuple(shape), rate))

    def _next(self, draw: Draw) -> np.ndarray:
        call = self.calls[draw.name, draw.kind]
        self.calls[draw.name, draw.kind] += 1
        self.taken.append(draw)
        return numbers(draw, call, self.step)

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


@contextmanager
def unseeded(framework: Any, *names: str) -> Iterator[None]:
    """Within this block these functions of a framework, which seed its generators, do nothing: a model that seeds as it
    is made would be drawn the same each time."""
    before = {name: getattr(framework, name) for name in names}
    try:
        for name in names:
            setattr(framework, name, lambda *args, **kwargs: None)
        yield
    finally:
        for name, function in before.items():
            setattr(framework, name, function)


def uniform(name: str, call: int, step: int, shape: tuple[int, ...]) -> np.ndarray:
    """Float32 numbers of `shape` between 0 and 1, that depend on nothing but the arguments.

    The numbers fill the shape row by row, so a mask of shape (N, 1, 1) is one of (N, 1, 1, 1), and attention weights
    of (N·heads, L, S) are those of (N, heads, L, S).
    """
    generator = _generator(name, call, step, 0)
    size = int(np.prod(shape, dtype=np.int64))
    levels = _levels(generator, size)
    while 1 < size <= DISTINCT:
        _, first = np.unique(levels, return_index=True)
        if first.size == size:
            break
        again = np.delete(np.arange(size), first)
        levels[again] = _levels(generator, again.size)
    levels += np.float32(0.5)
    levels /= np.float32(LEVELS)
    return levels.reshape(shape)


def _levels(generator: np.random.Generator, size: int) -> np.ndarray:
    levels = generator.random(size, dtype=np.float32)
    levels *= np.float32(LEVELS)
    return np.floor(levels, out=levels)


def normal(name: str, call: int, step: int, shape: tuple[int, ...]) -> np.ndarray:
    """Float32 numbers of `shape` from the standard normal distribution, that depend on nothing but the arguments."""
    return _generator(name, call, step, 1).standard_normal(shape, dtype=np.float32)


def numbers(draw: Draw, call: int, step: int) -> np.ndarray:
    """The numbers of a module's draw, float32; call: how often it has drawn numbers of that kind before."""
    found = (normal if draw.kind == NORMAL else uniform)(draw.name, call, step, draw.shape)
    return 1 - found if draw.who.turned else found


def kept(drawn: np.ndarray, rate: float) -> np.ndarray:
    """Which elements a mask of this drop rate keeps, bool."""
    found: np.ndarray = drawn < round(1.0 - rate, 12)
    return found


def _generator(name: str, call: int, step: int, kind: int) -> np.random.Generator:
    return np.random.Generator(np.random.Philox(key=[zlib.crc32(name.encode()), step], counter=[0, 0, call, kind]))


def _states() -> dict[str, str]:
    numpy: Any = np.random.get_state()
    said = {"numpy.random": repr((numpy[1].tobytes(), numpy[2:])), "random": repr(random.getstate())}
    return {name: f"{zlib.crc32(text.encode()):08x}" for name, text in said.items()}


def place(names: Mapping[int, str]) -> Place:
    """Who is drawing, by the Python stack; names: id of a module -> its canonical name."""
    frame: FrameType | None = sys._getframe(1)
    drops: bool | None = None
    name, line = OUTSIDE, ""
    while frame is not None:
        code, module = frame.f_code, frame.f_locals.get("self")
        owner = type(module).__name__
        if not line and not code.co_filename.startswith(NOT_THEIRS) and LIBRARIES not in code.co_filename:
            line = f"{Path(code.co_filename).name}, line {frame.f_lineno}"
        if drops is None and "bernoulli" in f"{code.co_name} {owner}".lower():
            drops = False  # its comparison is the usual one of a trial
        if drops is None and (DROPS.fullmatch(code.co_name) or DROPS.fullmatch(owner)):
            drops = True
        if id(module) in names:
            name = names[id(module)]
            break
        frame = frame.f_back
    return Place(name, bool(drops), line)


# Made-up inputs that both recorders compute for themselves: gradients for the optimizer, weights for the moving
# average, logits for the loss. On these the loss and the optimizer are compared at the arithmetic's own noise, whatever
# the network before them did: in a net with ReLU the real gradients stand percents away from their exact values, and a
# forgotten weight decay of 1e-4 would drown in that.
GIVEN_STEPS = 5


class GivenGradients(Mapping[str, np.ndarray]):
    """A gradient for each parameter, drawn when it is asked for: all of them at once are as large as the model.

    shapes: name -> shape.
    """

    def __init__(self, shapes: Mapping[str, tuple[int, ...]], step: int) -> None:
        self._shapes, self._step = shapes, step

    def __getitem__(self, name: str) -> np.ndarray:
        return given_gradient(name, self._shapes[name], self._step)

    def __iter__(self) -> Iterator[str]:
        return iter(self._shapes)

    def __len__(self) -> int:
        return len(self._shapes)


def given_gradient(name: str, shape: tuple[int, ...], step: int) -> np.ndarray:
    """Float32 values of `shape`, uniform within ±0.02, fixed by the parameter's name and the step.

    All are parts of one vector, over and over where they are longer: drawing 25 million in each step of a ResNet50
    would take twenty times as long.
    """
    begin, size = zlib.crc32(f"{name}@{step}".encode()) % GRADIENT_BEGINS, math.prod(shape)
    found = np.empty(size, np.float32)
    for at in range(0, size, GRADIENT_LENGTH):
        length = min(GRADIENT_LENGTH, size - at)
        found[at : at + length] = _gradients()[begin : begin + length]
    return found.reshape(shape)


GRADIENT_BEGINS, GRADIENT_LENGTH = 65_521, 1 << 22


@cache
def _gradients() -> np.ndarray:
    values = _given("gradients").random(GRADIENT_LENGTH + GRADIENT_BEGINS, dtype=np.float32)
    values = (values - np.float32(0.5)) * np.float32(0.04)
    values.flags.writeable = False
    return values


def given_weights(name: str, shape: tuple[int, ...], step: int) -> np.ndarray:
    """Float32 values of `shape`, uniform within ±1, fixed by the parameter's name and the step."""
    return np.asarray(_given(f"{name}#{step}").random(shape, dtype=np.float32) * np.float32(2) - np.float32(1))


def given_upstream(name: str, shape: tuple[int, ...]) -> np.ndarray:
    """Float32 values of `shape`, uniform within ±1, for the gradient that comes back to the tensor `name`; read-only.

    The code between two modules is differentiated with these, which are equally large everywhere, so that neither of a
    residual's two gradients hides in the other's rounding. All are parts of one vector, for a net has hundreds of them.
    """
    size, begin = math.prod(shape), zlib.crc32(name.encode()) % UPSTREAM_BEGINS
    return _upstream(1 << (size + UPSTREAM_BEGINS).bit_length())[begin : begin + size].reshape(shape)


UPSTREAM_BEGINS = 4093


@cache
def _upstream(size: int) -> np.ndarray:
    values = _given("upstream").random(size, dtype=np.float32) * np.float32(2) - np.float32(1)
    values.flags.writeable = False
    return values


def given_logits(shape: tuple[int, ...], values: Values = Values.ANY) -> np.ndarray:
    """Normal float32 logits, (batch, classes, …), standard deviation 3: confident here, undecided there.

    values: what the model's own are: of shares they are the logistic function, of what is not negative the size.
    """
    logits = _given("logits").standard_normal(shape, dtype=np.float32) * np.float32(3.0)
    if values is Values.SHARES:
        return np.asarray(1.0 / (1.0 + np.exp(-logits.astype(np.float64))), np.float32)
    return np.abs(logits) if values is Values.POSITIVE else logits


def _given(key: str) -> np.random.Generator:
    return np.random.Generator(np.random.Philox(zlib.crc32(key.encode())))


def moved(array: np.ndarray, run: int) -> np.ndarray:
    """Numbers, each moved by up to MOVED of itself, in their own dtype; arrays of no real numbers stay as they are."""
    return array * factors(array, run) if array.dtype.kind == "f" else array


@np.errstate(over="ignore")  # for a single number NumPy would warn
def factors(array: np.ndarray, run: int) -> np.ndarray:
    """The factors, near 1, by which numbers are moved.

    They depend on a number's bits and on the run: equal numbers are moved alike, as kernels round them, and stay equal,
    such as the even background of an image, where a max-pool would otherwise choose anew.
    """
    bits = array.astype(np.float64).view(np.uint64) + np.uint64((run * 0x9E3779B97F4A7C15) % 2**64)
    for shift, factor in ((30, 0xBF58476D1CE4E5B9), (27, 0x94D049BB133111EB)):  # SplitMix64, which stirs all bits
        bits = (bits ^ (bits >> np.uint64(shift))) * np.uint64(factor)
    shares = (bits >> np.uint64(11)) * 2.0**-52 - 1.0
    found: np.ndarray = (1.0 + shares * MOVED * np.finfo(array.dtype).eps).astype(array.dtype)
    return found
