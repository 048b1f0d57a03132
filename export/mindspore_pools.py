"""Pools over images that an exporter cannot write, with operators that it can: padding, rounding up, and means."""

from __future__ import annotations

from typing import Any

import mindspore
import numpy as np
from mindspore import Tensor, nn, ops

from .stand_ins import StandIn, StandIns

LOWEST = float(np.finfo(np.float32).min)


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
        return edge_behind(size, reach, self.stride[axis], self.pad[axis], self.ceil)


def edge_behind(size: int, reach: int, stride: int, pad: int, ceil: bool) -> int:
    """As Window.behind, of one axis; reach: how many elements a window spans.

    Not of the method's name: MindSpore's compiler takes the method where that calls a function of its own name.
    """
    spare = (size + 2 * pad - reach) % stride
    count = (size + 2 * pad - reach) // stride + 1
    begins = count * stride < size + pad  # the last window has to begin inside
    if ceil and spare > 0 and begins:
        return pad + stride - spare
    return pad


def max_over_edges(x: Tensor, kernel: Any, stride: Any, padding: Any, ceil: bool) -> Tensor:
    """A padded max-pool without padding: edges of the lowest float32 are laid around the image first.

    x: (N, C, H, W). Sizes are numbers or (rows, columns).
    """
    kernel, stride, padding = two(kernel), two(stride), two(padding)
    before, after = padding[0], edge_behind(x.shape[2], kernel[0], stride[0], padding[0], ceil)
    if before > 0:
        x = ops.cat((ops.minimum(x[:, :, :before, :], LOWEST), x), 2)
    if after > 0:
        x = ops.cat((x, ops.minimum(x[:, :, :after, :], LOWEST)), 2)
    before, after = padding[1], edge_behind(x.shape[3], kernel[1], stride[1], padding[1], ceil)
    if before > 0:
        x = ops.cat((ops.minimum(x[:, :, :, :before], LOWEST), x), 3)
    if after > 0:
        x = ops.cat((x, ops.minimum(x[:, :, :, :after], LOWEST)), 3)
    return ops.MaxPool(kernel, stride, "valid")(x)


class MaxPoolOverEdges(nn.Cell):
    """max_over_edges as a Cell."""

    def __init__(self, window: Window) -> None:
        super().__init__()
        self.kernel, self.stride, self.pad, self.ceil = window.kernel, window.stride, window.pad, window.ceil

    def construct(self, x: Tensor) -> Tensor:
        return max_over_edges(x, self.kernel, self.stride, self.pad, self.ceil)


def mean_over_zeros(
    x: Tensor, kernel: Any, stride: Any, padding: Any, ceil: bool, with_padding: bool, divisor: int
) -> Tensor:
    """An average pool without padding, over an image with zeros around it.

    x: (N, C, H, W). padding: a number, or (top, bottom, left, right). What a window counts is the mean of ones that
    are laid out in the same way; with_padding: the zeros around count, too; divisor: what sums are divided by, or 0.
    """
    kernel, stride = two(kernel), two(stride)
    sides = (padding,) * 4 if isinstance(padding, int) else padding
    rows = edge_behind(x.shape[2], kernel[0], stride[0], sides[0], ceil) - sides[0]
    columns = edge_behind(x.shape[3], kernel[1], stride[1], sides[2], ceil) - sides[2]
    pool = ops.AvgPool(kernel, stride, "valid")
    inner = ((0, 0), (0, 0), (sides[0], sides[1]), (sides[2], sides[3]))
    outer = ((0, 0), (0, 0), (0, rows), (0, columns))
    mean = pool(_laid(_laid(x, inner), outer))
    if divisor > 0:
        return mean * (kernel[0] * kernel[1] / divisor)
    if rows + columns == 0 and (with_padding or sum(sides) == 0):
        return mean
    counted = _laid(_ones(x), inner)
    return mean / pool(_laid(_ones(counted) if with_padding else counted, outer))


def _laid(x: Tensor, widths: Any) -> Tensor:
    """Zeros around an image."""
    return x if sum([sum(pair) for pair in widths]) == 0 else ops.Pad(widths)(x)


def _ones(x: Tensor) -> Tensor:
    """Of a tensor's shape, which may be open."""
    return ops.maximum(ops.minimum(x, 1.0), 1.0)


def two(value: Any) -> Any:
    """Rows and columns of a size: a number, or the last two of several."""
    return (value, value) if isinstance(value, int) else (value[-2], value[-1])


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
