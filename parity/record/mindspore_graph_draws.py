"""The numbers that a compiled net draws, held in parameters: arrays of one shape, taken one after the other."""
# ruff: noqa: F821 (names of MindSpore's modules, see below)

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from inspect import unwrap
from typing import Any

import numpy as np
from mindspore import Parameter, Tensor, mint, nn, ops
from mindspore import dtype as mstype
from mindspore.ops.function import nn_func

from .randomness import NORMAL, Draw, Kind, kept, numbers

PLAIN = -1.0  # in the place of a rate, where no mask is drawn
BANK = "_msmigrate_draws"  # the name under which MindSpore's functions find the Bank while they are replaced
NEAR = 1e-7  # rates that differ by no more count as equal: 0.1 as float32 is not 0.1


@dataclass(frozen=True)
class Drawn:
    """One draw of a pass, and which of its module's draws of that kind in the pass it is."""

    draw: Draw
    call: int

    def array(self, step: int, before: int) -> np.ndarray:
        """Float32: 0 where an element is dropped, and what the others are scaled with; without a rate the numbers
        themselves. before: the module's draws of that kind in the micro-batches before."""
        drawn, rate = numbers(self.draw, before + self.call, step), self.draw.rate
        return drawn if rate is None else (kept(drawn, rate) / (1.0 - rate)).astype(np.float32)


def numbered(draws: Sequence[Draw]) -> list[Drawn]:
    """The draws of one micro-batch."""
    calls: Counter[tuple[str, str]] = Counter()
    found = []
    for draw in draws:
        found.append(Drawn(draw, calls[draw.name, draw.kind]))
        calls[draw.name, draw.kind] += 1
    return found


class Stack(nn.Cell):
    """Hands out arrays of one shape, the next one each time it runs: in compiled code, too, parameters are written in
    the order of the program."""

    def __init__(self, name: str, drawn: Sequence[Drawn], each: Counter[tuple[str, Kind]]) -> None:
        super().__init__(auto_prefix=False)
        self.drawn = tuple(drawn)
        self.each = each
        ones = Tensor(np.ones((len(drawn), *drawn[0].draw.shape), np.float32))
        self.arrays = Parameter(ones, name=f"draws {name}", requires_grad=False)
        self.place = Parameter(Tensor(0, mstype.int32), name=f"place in the draws {name}", requires_grad=False)
        self.one = Tensor(1, mstype.int32)

    def construct(self) -> Any:
        """The next array."""
        # without stop_gradient the backward pass scatters to the place after the last one, outside of the array
        found = ops.stop_gradient(ops.gather(self.arrays, self.place, 0))
        ops.assign_add(self.place, self.one)
        return found

    def fill(self, step: int, part: int) -> None:
        """Take the draws of a micro-batch (from 0) of a step, and begin with the first."""
        arrays = [one.array(step, part * self.each[one.draw.name, one.draw.kind]) for one in self.drawn]
        self.arrays.copy_(Tensor(np.stack(arrays)))
        self.place.copy_(Tensor(0, mstype.int32))

    def missed(self) -> bool:
        """Whether the last pass took fewer or more than there were."""
        return int(self.place.asnumpy()) != len(self.drawn)


class Bank(nn.Cell):
    """What a micro-batch draws: a Stack for each kind, shape and drop rate, for a function does not know who calls it.

    A draw that the PyNative run did not make shows in the Stacks' counts. The methods are compiled: they keep to what
    the compiler understands.
    """

    def __init__(self, drawn: Sequence[Drawn]) -> None:
        super().__init__(auto_prefix=False)
        each = Counter((one.draw.name, one.draw.kind) for one in drawn)
        kinds: dict[tuple[bool, tuple[int, ...], float], list[Drawn]] = {}
        for one in drawn:
            draw = one.draw
            key = draw.kind == NORMAL, draw.shape, PLAIN if draw.rate is None else draw.rate
            kinds.setdefault(key, []).append(one)
        self.normals = tuple(normals for normals, _, _ in kinds)
        self.shapes, self.rates = tuple(shape for _, shape, _ in kinds), tuple(rate for _, _, rate in kinds)
        self.stacks = nn.CellList([Stack(str(i), found, each) for i, found in enumerate(kinds.values())])

    def next(self, normals: bool, shape: tuple[int, ...], rate: float) -> Any:
        """The next numbers, or the next mask."""
        for i, known in enumerate(self.shapes):
            if known == shape and self.normals[i] == normals and abs(self.rates[i] - rate) < NEAR:
                return self.stacks[i]()
        return ops.ones(shape, mstype.float32) / 2.0

    def uniform(self, shape: tuple[int, ...]) -> Any:
        """The next uniform numbers of this shape."""
        return self.next(False, shape, PLAIN)

    def normal(self, shape: tuple[int, ...]) -> Any:
        """The next normal numbers of this shape."""
        return self.next(True, shape, PLAIN)

    def dropped(self, x: Any, shape: tuple[int, ...], rate: float) -> Any:
        """x, multiplied with the next mask of `shape`."""
        if rate <= 0.0:
            return x
        return x * ops.cast(self.next(False, shape, rate), x.dtype)

    def channels(self, x: Any, rate: float) -> Any:
        """x, of which whole channels are dropped."""
        shape = x.shape[:2]
        for _ in range(len(x.shape) - 2):
            shape = (*shape, 1)
        return self.dropped(x, shape, rate)

    def rows(self, x: Any, rate: float) -> Any:
        """x (N, C, L) or (C, L), of which whole channels are dropped."""
        if len(x.shape) == 2:
            return x * self.dropped(ops.ones((1, x.shape[0], 1, 1), x.dtype), (1, x.shape[0], 1, 1), rate)[0, :, :, 0]
        shape = (*x.shape[:2], 1, 1)
        return x * self.dropped(ops.ones(shape, x.dtype), shape, rate)[..., 0]

    def laplace(self, shape: tuple[int, ...]) -> Any:
        """The next numbers from the standard Laplace distribution."""
        drawn = 2.0 * self.uniform(shape) - 1.0
        return -ops.sign(drawn) * ops.log1p(-ops.abs(drawn))

    def trials(self, shape: tuple[int, ...], p: Any) -> Any:
        """Whether each trial succeeds, with probability p, a number or a tensor; float32."""
        if isinstance(p, Tensor):
            return ops.cast(self.uniform(shape) < p, mstype.float32)
        if p >= 1.0:
            return ops.ones(shape, mstype.float32)
        if p <= 0.0:
            return ops.zeros(shape, mstype.float32)
        return ops.cast(self.next(False, shape, 1.0 - p) > 0.0, mstype.float32)

    def integers(self, shape: tuple[int, ...], low: Any, high: Any) -> Any:
        """Whole numbers from [low, high), as float32."""
        count = high - low
        return low + ops.minimum(ops.floor(self.uniform(shape) * count), ops.ones(shape, mstype.float32) * (count - 1))

    def permutation(self, count: int) -> Any:
        """The numbers below `count` in a random order, int32."""
        _, order = ops.sort(self.uniform((count,)))
        return order

    def choices(self, weights: Any, count: int, replacement: bool) -> Any:
        """Indices into the last dimension of `weights`, int32."""
        if count == 1 or not replacement:
            raced = weights / -ops.log(self.uniform(weights.shape))
            _, found = ops.topk(raced, count)
            return found
        drawn = self.uniform((*weights.shape[:-1], count))
        ends = ops.cumsum(weights, -1)
        total = ends[..., -1:]
        above = ops.expand_dims(drawn * total, -1) >= ops.expand_dims(ends, -2)
        found = ops.sum(ops.cast(above, mstype.int32), -1)
        return ops.minimum(found, ops.ones_like(found) * (weights.shape[-1] - 1))

    @contextmanager
    def installed(self) -> Iterator[None]:
        """Within this block MindSpore's functions that draw take their numbers here, however a module imported them.

        Their code is replaced, not their names: the compiler reads a function's source where its code says.
        """
        put: list[tuple[Any, Any]] = []
        try:
            for theirs, ours in REPLACED.items():
                function = unwrap(theirs)
                put.append((function, function.__code__))
                function.__code__ = ours.__code__
                function.__globals__[BANK] = self
            yield
        finally:
            for function, code in put:
                function.__code__ = code
                function.__globals__.pop(BANK, None)


class Mask(nn.Cell):
    """Stands in for a Cell's dropout primitive, and returns what that does: the output and the mask."""

    def __init__(self, bank: Bank, primitive: Any, channels: bool) -> None:
        super().__init__(auto_prefix=False)
        self.bank, self.by_channel, self.rate = bank, channels, round(1.0 - float(primitive.keep_prob), 12)

    def construct(self, x: Any) -> Any:
        """The output and the mask."""
        ones = ops.ones_like(x)
        mask = self.bank.channels(ones, self.rate) if self.by_channel else self.bank.dropped(ones, x.shape, self.rate)
        return x * mask, ops.cast(mask, mstype.bool_)


class Numbers(nn.Cell):
    """Stands in for a Cell's primitive that draws numbers of a shape."""

    def __init__(self, bank: Bank, normals: bool) -> None:
        super().__init__(auto_prefix=False)
        self.bank, self.normals = bank, normals

    def construct(self, shape: Any) -> Any:
        """The numbers."""
        return self.bank.next(self.normals, shape, PLAIN)


# MindSpore's functions that draw, as a compiled step under parity has them: they ask the Bank. Only their code is used,
# in MindSpore's modules, which have these names; nothing calls them here. The compiler reads their source, so they keep
# to what it understands. Their arguments are MindSpore's, in its order.
_msmigrate_draws: Bank
F: Any
log_: Any
real_div_: Any
reshape_: Any
top_k_: Any


def dropout(input: Any, p: float = 0.5, training: bool = True, seed: Any = None) -> Any:
    """mindspore.ops.dropout."""
    if training is False:
        return input
    return _msmigrate_draws.dropped(input, input.shape, p)


def dropout_ext(input: Any, p: float = 0.5, training: bool = True, inplace: bool = False) -> Any:
    """mindspore.mint.nn.functional.dropout."""
    if training is False:
        return input
    return _msmigrate_draws.dropped(input, input.shape, p)


def dropout1d(input: Any, p: float = 0.5, training: bool = True) -> Any:
    """mindspore.ops.dropout1d."""
    if training is False:
        return input
    return _msmigrate_draws.rows(input, p)


def dropout2d(input: Any, p: float = 0.5, training: bool = True) -> Any:
    """mindspore.ops.dropout2d and dropout3d."""
    if training is False:
        return input
    return _msmigrate_draws.channels(input, p)


def dropout2d_ext(input: Any, p: float = 0.5, training: bool = True, inplace: bool = False) -> Any:
    """mindspore.mint.nn.functional.dropout2d."""
    if training is False:
        return input
    return _msmigrate_draws.channels(input, p)


def rand(*size: Any, dtype: Any = None, seed: Any = None) -> Any:
    """mindspore.ops.rand."""
    shape = size
    if isinstance(size[0], (tuple, list)):
        shape = tuple(size[0])
    found = _msmigrate_draws.uniform(shape)
    return found if dtype is None else found.astype(dtype)


def randn(*size: Any, dtype: Any = None, seed: Any = None) -> Any:
    """mindspore.ops.randn."""
    shape = size
    if isinstance(size[0], (tuple, list)):
        shape = tuple(size[0])
    found = _msmigrate_draws.normal(shape)
    return found if dtype is None else found.astype(dtype)


def rand_ext(*size: Any, generator: Any = None, dtype: Any = None, device: Any = None) -> Any:
    """mindspore.mint.rand."""
    shape = size
    if isinstance(size[0], (tuple, list)):
        shape = tuple(size[0])
    found = _msmigrate_draws.uniform(shape)
    return found if dtype is None else found.astype(dtype)


def randn_ext(*size: Any, generator: Any = None, dtype: Any = None, device: Any = None) -> Any:
    """mindspore.mint.randn."""
    shape = size
    if isinstance(size[0], (tuple, list)):
        shape = tuple(size[0])
    found = _msmigrate_draws.normal(shape)
    return found if dtype is None else found.astype(dtype)


def rand_like(input: Any, seed: Any = None, *, dtype: Any = None) -> Any:
    """mindspore.ops.rand_like."""
    return _msmigrate_draws.uniform(input.shape).astype(input.dtype if dtype is None else dtype)


def randn_like(input: Any, seed: Any = None, *, dtype: Any = None) -> Any:
    """mindspore.ops.randn_like."""
    found = _msmigrate_draws.normal(input.shape)
    return found if dtype is None else found.astype(dtype)


def rand_like_ext(input: Any, *, dtype: Any = None, device: Any = None) -> Any:
    """mindspore.mint.rand_like."""
    return _msmigrate_draws.uniform(input.shape).astype(input.dtype if dtype is None else dtype)


def randn_like_ext(input: Any, *, dtype: Any = None, device: Any = None) -> Any:
    """mindspore.mint.randn_like."""
    return _msmigrate_draws.normal(input.shape).astype(input.dtype if dtype is None else dtype)


def standard_normal(shape: Any, seed: Any = None) -> Any:
    """mindspore.ops.standard_normal."""
    return _msmigrate_draws.normal(shape)


def normal(shape: Any, mean: Any, stddev: Any, seed: Any = None) -> Any:
    """mindspore.ops.normal."""
    return _msmigrate_draws.normal(shape) * stddev + mean


def standard_laplace(shape: Any, seed: Any = None) -> Any:
    """mindspore.ops.standard_laplace."""
    return _msmigrate_draws.laplace(shape)


def laplace(shape: Any, mean: Any, lambda_param: Any, seed: Any = None) -> Any:
    """mindspore.ops.laplace."""
    return _msmigrate_draws.laplace(shape) * lambda_param + mean


def uniform(shape: Any, minval: Any, maxval: Any, seed: Any = None, dtype: Any = mstype.float32) -> Any:
    """mindspore.ops.uniform."""
    if dtype == mstype.int32:
        return _msmigrate_draws.integers(shape, minval, maxval).astype(dtype)
    return _msmigrate_draws.uniform(shape) * (maxval - minval) + minval


def randint(low: Any, high: Any, size: Any, seed: Any = None, *, dtype: Any = None) -> Any:
    """mindspore.ops.randint."""
    return _msmigrate_draws.integers(size, low, high).astype(mstype.int64 if dtype is None else dtype)


def randint_like(input: Any, low: Any, high: Any, seed: Any = None, *, dtype: Any = None) -> Any:
    """mindspore.ops.randint_like."""
    return _msmigrate_draws.integers(input.shape, low, high).astype(input.dtype if dtype is None else dtype)


def randint_ext(*args: Any, generator: Any = None, dtype: Any = None, device: Any = None) -> Any:
    """mindspore.mint.randint: ([low,] high, size)."""
    low = 0 if len(args) == 2 else args[0]
    return _msmigrate_draws.integers(args[-1], low, args[-2]).astype(mstype.int64 if dtype is None else dtype)


def randint_like_ext(*args: Any, dtype: Any = None, device: Any = None) -> Any:
    """mindspore.mint.randint_like: (input, [low,] high)."""
    low = 0 if len(args) == 2 else args[1]
    found = _msmigrate_draws.integers(args[0].shape, low, args[-1])
    return found.astype(args[0].dtype if dtype is None else dtype)


def normal_ext(mean: Any = 0.0, std: Any = 1.0, size: Any = None, generator: Any = None) -> Any:
    """mindspore.mint.normal."""
    shape = (mean + std).shape if size is None else size
    return F.stop_gradient(mean + std * _msmigrate_draws.normal(shape))


def randperm_ext(n: Any, *, generator: Any = None, dtype: Any = mstype.int64) -> Any:
    """mindspore.mint.randperm."""
    return _msmigrate_draws.permutation(n).astype(dtype)


def shuffle(x: Any, seed: Any = None) -> Any:
    """mindspore.ops.shuffle."""
    return F.gather(x, _msmigrate_draws.permutation(x.shape[0]), 0)


def bernoulli(input: Any, p: Any = 0.5, seed: Any = None) -> Any:
    """mindspore.ops.bernoulli."""
    return _msmigrate_draws.trials(input.shape, p).astype(input.dtype)


def bernoulli_ext(input: Any, *, generator: Any = None) -> Any:
    """mindspore.mint.bernoulli."""
    return _msmigrate_draws.trials(input.shape, input).astype(input.dtype)


def multinomial(input: Any, num_samples: Any, replacement: bool = True, seed: Any = None) -> Any:
    """mindspore.ops.multinomial."""
    if replacement:
        return _msmigrate_draws.choices(input, num_samples, True)
    shape = input.shape
    count = shape[0] * shape[1] if len(shape) > 1 else shape[0]
    drawn = reshape_(_msmigrate_draws.uniform((count,)), shape)
    _, found = top_k_(real_div_(log_(drawn), input + 1e-6), num_samples)
    return found


def multinomial_ext(input: Any, num_samples: Any, replacement: bool = False, *, generator: Any = None) -> Any:
    """mindspore.mint.multinomial."""
    return _msmigrate_draws.choices(input, num_samples, replacement).astype(mstype.int64)


REPLACED = {
    ops.dropout: dropout,
    ops.dropout1d: dropout1d,
    ops.dropout2d: dropout2d,
    ops.dropout3d: dropout2d,
    nn_func.dropout_ext: dropout_ext,
    nn_func.dropout2d_ext: dropout2d_ext,
    ops.rand: rand,
    ops.rand_like: rand_like,
    ops.randn: randn,
    ops.randn_like: randn_like,
    ops.standard_normal: standard_normal,
    ops.normal: normal,
    ops.standard_laplace: standard_laplace,
    ops.laplace: laplace,
    ops.uniform: uniform,
    ops.randint: randint,
    ops.randint_like: randint_like,
    ops.shuffle: shuffle,
    ops.bernoulli: bernoulli,
    ops.multinomial: multinomial,
    mint.rand: rand_ext,
    mint.rand_like: rand_like_ext,
    mint.randn: randn_ext,
    mint.randn_like: randn_like_ext,
    mint.randint: randint_ext,
    mint.randint_like: randint_like_ext,
    mint.normal: normal_ext,
    mint.randperm: randperm_ext,
    mint.bernoulli: bernoulli_ext,
    mint.multinomial: multinomial_ext,
}
