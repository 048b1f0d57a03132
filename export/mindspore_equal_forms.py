"""What the ONNX exporter has no converter for, written with operators that it has.

A Cell here computes what the one whose place it takes computes, or stands in for an operator that ONNX has and the
exporter does not: it gives the right shape, and multiplies by a number by which stand_ins.py finds it in the ONNX graph
and puts the operator itself there. The exported file is run and compared in any case.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import mindspore
from mindspore import Parameter, Tensor, nn, ops

from .stand_ins import StandIn, StandIns


class HSwish(nn.Cell):
    """x · relu6(x + 3) / 6."""

    def construct(self, x: Tensor) -> Tensor:
        return x * ops.relu6(x + 3.0) / 6.0


class HSigmoid(nn.Cell):
    """relu6(x + 3) / 6."""

    def construct(self, x: Tensor) -> Tensor:
        return ops.relu6(x + 3.0) / 6.0


class AdaptiveMean(nn.Cell):
    """Means over the bins of AdaptiveAvgPool2d, first of rows, then of columns: every bin is a rectangle.

    size: of the output; None keeps the input's. Bin i of n over s elements is [floor(i·s/n), ceil((i+1)·s/n)).
    """

    def __init__(self, size: Sequence[int | None]) -> None:
        super().__init__()
        self.height, self.width = (-1 if side in (None, -1) else side for side in size)

    def construct(self, x: Tensor) -> Tensor:
        return adaptive_mean(x, self.height, self.width)


def adaptive_mean(x: Tensor, height: int, width: int) -> Tensor:
    """As AdaptiveMean; -1 keeps a side."""
    return _bins(_bins(x, -2, height), -1, width)


def _bins(x: Tensor, axis: int, bins: int) -> Tensor:
    size = x.shape[axis]
    if bins in (-1, size):
        return x
    if bins == 1:
        return ops.mean(x, axis, True)
    parts = []
    for i in range(bins):
        start, end = i * size // bins, ((i + 1) * size + bins - 1) // bins
        part = x[..., start:end, :] if axis == -2 else x[..., start:end]
        parts.append(ops.mean(part, axis, True))
    return ops.cat(parts, axis)


class GroupNorm(nn.Cell):
    """The norm over groups of channels by its formula; takes over the parameters of the one it replaces."""

    def __init__(self, groups: int, eps: float, gamma: Parameter, beta: Parameter) -> None:
        super().__init__()
        self.groups, self.eps, self.gamma, self.beta = groups, eps, gamma, beta

    def construct(self, x: Tensor) -> Tensor:
        shape = x.shape
        grouped = x.reshape((shape[0], self.groups, -1))
        centred = grouped - ops.mean(grouped, 2, True)
        normal = centred / ops.sqrt(ops.mean(centred * centred, 2, True) + self.eps)
        sides = (1, shape[1], *((1,) * (len(shape) - 2)))
        return normal.reshape(shape) * self.gamma.reshape(sides) + self.beta.reshape(sides)


class StandInFor(nn.Cell):
    """An operator of one input that keeps its shape, such as Erf."""

    def __init__(self, marks: StandIns, operator: str, **attributes: float) -> None:
        super().__init__()
        self.mark = Tensor(marks.add(StandIn(operator, attributes)), mindspore.float32)

    def construct(self, x: Tensor) -> Tensor:
        return x * self.mark


class ExactGelu(nn.Cell):
    """x / 2 · (1 + erf(x / √2)), the erf being ONNX's own."""

    def __init__(self, marks: StandIns) -> None:
        super().__init__()
        self.erf = StandInFor(marks, "Erf")

    def construct(self, x: Tensor) -> Tensor:
        return x * 0.5 * (self.erf(x * (1.0 / math.sqrt(2.0))) + 1.0)
