"""What the ONNX exporter has no converter for, written with operators that it has.

A Cell here computes what the one whose place it takes computes, or stands in for an operator that ONNX has and the
exporter does not: it gives the right shape, and multiplies by a number by which stand_ins.py finds it in the ONNX graph
and puts the operator itself there. The exported file is run and compared in any case.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import mindspore
import numpy as np
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


class MaxPoolOverEdges(nn.Cell):
    """A padded max-pool without padding: edges of the lowest float32 are laid around the image first."""

    def __init__(self, window: Window) -> None:
        super().__init__()
        self.pool = nn.MaxPool2d(window.kernel, window.stride, pad_mode="valid")
        self.window = window
        self.lowest = Tensor(np.finfo(np.float32).min, mindspore.float32)

    def construct(self, x: Tensor) -> Tensor:
        before, behind = self.window.pad[0], self.window.behind(x.shape[2], 0)
        if before:
            x = ops.cat((ops.minimum(x[:, :, :before, :], self.lowest), x), 2)
        if behind:
            x = ops.cat((x, ops.minimum(x[:, :, :behind, :], self.lowest)), 2)
        before, behind = self.window.pad[1], self.window.behind(x.shape[3], 1)
        if before:
            x = ops.cat((ops.minimum(x[:, :, :, :before], self.lowest), x), 3)
        if behind:
            x = ops.cat((x, ops.minimum(x[:, :, :, :behind], self.lowest)), 3)
        return self.pool(x)


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


class PoolStandIn(nn.Cell):
    """A pool whose padding or rounding the exporter cannot write: it has the shape, ONNX's own takes its place."""

    def __init__(self, marks: StandIns, operator: str, pool: Window, **attributes: int) -> None:
        super().__init__()
        written = {
            "kernel_shape": list(pool.kernel),
            "strides": list(pool.stride),
            "pads": [*pool.pad, *pool.pad],
            "ceil_mode": int(pool.ceil),
            **({"dilations": list(pool.dilation)} if operator == "MaxPool" else {}),
            **attributes,
        }
        self.mark = Tensor(marks.add(StandIn(operator, written)), mindspore.float32)
        self.window = pool
        reach = tuple(d * (k - 1) + 1 for d, k in zip(pool.dilation, pool.kernel, strict=True))
        self.pool = nn.MaxPool2d(reach, pool.stride, pad_mode="valid")

    def construct(self, x: Tensor) -> Tensor:
        return self.pool(self._padded(x) * self.mark)

    def _padded(self, x: Tensor) -> Tensor:
        rows, columns = self.window.behind(x.shape[2], 0), self.window.behind(x.shape[3], 1)
        before = self.window.pad
        return ops.Pad(((0, 0), (0, 0), (before[0], rows), (before[1], columns)))(x)


class Window:
    """The window of a pool over an image: sizes as (rows, columns)."""

    def __init__(
        self,
        kernel: tuple[int, int],
        stride: tuple[int, int],
        pad: tuple[int, int] = (0, 0),
        dilation: tuple[int, int] = (1, 1),
        ceil: bool = False,
    ) -> None:
        self.kernel, self.stride, self.pad, self.dilation, self.ceil = kernel, stride, pad, dilation, ceil

    def behind(self, size: int, axis: int) -> int:
        """How much is laid behind an axis of this size, so that plain windows give as many results."""
        reach = self.dilation[axis] * (self.kernel[axis] - 1) + 1
        spare = (size + 2 * self.pad[axis] - reach) % self.stride[axis]
        count = (size + 2 * self.pad[axis] - reach) // self.stride[axis] + 1
        begins = count * self.stride[axis] < size + self.pad[axis]  # the last window has to begin inside
        return self.pad[axis] + (self.stride[axis] - spare if self.ceil and spare and begins else 0)
