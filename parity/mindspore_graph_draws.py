"""What a compiled net draws, in parameters: arrays of one shape that it takes one after the other."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from inspect import unwrap
from typing import Any

import numpy as np
from mindspore import Parameter, Tensor, nn, ops
from mindspore import dtype as mstype

from . import mindspore_graph_functions
from .fixed_randomness import Draws

UNIFORM = -1.0  # in the place of a rate, where plain uniform numbers are asked for
BANK = "_msmigrate_draws"  # the name under which MindSpore's functions find the Bank while they are replaced


@dataclass(frozen=True)
class Drawn:
    """One draw of a pass: the layer's name, which of its calls in the pass, the shape and the drop rate, or None."""

    name: str
    call: int
    shape: tuple[int, ...]
    rate: float | None

    def array(self, step: int, before: int) -> np.ndarray:
        """Float32: 0 where an element is dropped, and what the others are scaled with; without a rate the numbers
        themselves. before: the layer's calls in the micro-batches before."""
        draws = Draws(step, before + self.call)
        if self.rate is None:
            return draws.uniform(self.name, self.shape)
        scale = 1.0 / (1.0 - self.rate) if self.rate < 1.0 else 0.0
        return (draws.keep(self.name, self.shape, self.rate) * scale).astype(np.float32)


class Stack(nn.Cell):
    """Hands out arrays of one shape, the next one each time it runs: in compiled code, too, parameters are written in
    the order of the program."""

    def __init__(self, name: str, drawn: Sequence[Drawn]) -> None:
        super().__init__(auto_prefix=False)
        self.drawn = tuple(drawn)
        ones = Tensor(np.ones((len(drawn), *drawn[0].shape), np.float32))
        self.arrays = Parameter(ones, name=f"draws of {name}", requires_grad=False)
        self.place = Parameter(Tensor(0, mstype.int32), name=f"place in the draws of {name}", requires_grad=False)
        self.one = Tensor(1, mstype.int32)

    def construct(self) -> Any:
        """The next array."""
        # without stop_gradient the backward pass scatters to the place after the last one, outside of the array
        found = ops.stop_gradient(ops.gather(self.arrays, self.place, 0))
        ops.assign_add(self.place, self.one)
        return found

    def fill(self, step: int, part: int) -> None:
        """Take the draws of a micro-batch (from 0) of a step, and begin with the first."""
        each = {one.name: sum(other.name == one.name for other in self.drawn) for one in self.drawn}
        self.arrays.copy_(Tensor(np.stack([one.array(step, part * each[one.name]) for one in self.drawn])))
        self.place.copy_(Tensor(0, mstype.int32))

    def missed(self) -> bool:
        """Whether the last pass took fewer or more than there were."""
        return int(self.place.asnumpy()) != len(self.drawn)


class Mask(nn.Cell):
    """In the place of a dropout primitive: multiplies with the next draw of a layer."""

    def __init__(self, stack: Stack) -> None:
        super().__init__(auto_prefix=False)
        self.stack = stack

    def construct(self, x: Any) -> Any:
        """What the primitive gives: the output, and what was kept."""
        mask = self.stack()
        return x * ops.cast(mask, x.dtype), ops.cast(mask, mstype.bool_)


class Bank(nn.Cell):
    """What functions draw: a Stack for each shape and drop rate, for a function does not know who calls it."""

    def __init__(self, drawn: Sequence[Drawn]) -> None:
        super().__init__(auto_prefix=False)
        kinds: dict[tuple[tuple[int, ...], float], list[Drawn]] = {}
        for one in drawn:
            kinds.setdefault((one.shape, UNIFORM if one.rate is None else one.rate), []).append(one)
        self.shapes, self.rates = tuple(shape for shape, _ in kinds), tuple(rate for _, rate in kinds)
        self.stacks = nn.CellList([Stack(f"functions {i}", found) for i, found in enumerate(kinds.values())])

    def dropped(self, x: Any, rate: float) -> Any:
        """x, multiplied with the next draw of its shape at this rate."""
        for i, shape in enumerate(self.shapes):
            if shape == x.shape and abs(self.rates[i] - rate) < 1e-9:
                return x * ops.cast(self.stacks[i](), x.dtype)
        return x  # nothing was drawn for it, and the Stacks' counts tell

    def uniform(self, shape: tuple[int, ...]) -> Any:
        """The next uniform numbers of this shape."""
        for i, known in enumerate(self.shapes):
            if known == shape and self.rates[i] < 0.0:
                return self.stacks[i]()
        return ops.ones(shape, mstype.float32)

    @contextmanager
    def installed(self) -> Iterator[None]:
        """Within this block MindSpore's functions that draw ask here, however a module has got hold of them.

        Their code is exchanged, and not their names: the compiler reads a function's source where its code says.
        """
        put: list[tuple[Any, Any]] = []
        try:
            for theirs, ours in mindspore_graph_functions.REPLACED.items():
                function = unwrap(theirs)
                put.append((function, function.__code__))
                function.__code__ = ours.__code__
                function.__globals__[BANK] = self
            yield
        finally:
            for function, code in put:
                function.__code__ = code
                function.__globals__.pop(BANK, None)
