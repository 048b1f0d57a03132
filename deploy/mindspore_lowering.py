"""Layers and functions the exporter cannot write, lowered to those it can.

A Cell here computes what the Cell that it replaces computes, or stands in for an operator that ONNX has and the
exporter does not: it gives the right shape, and multiplies by a number by which onnx_graph.py finds it in the ONNX
graph, to put the operator itself there. The exported file is run and compared in any case.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import mindspore
import numpy as np
from mindspore import Parameter, Tensor, nn, ops

from ..errors import Unsupported
from ..nn.vision import interpolate
from .onnx_graph import StandIn, StandIns


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


class Mish(nn.Cell):
    """x · tanh(softplus(x)), the softplus being ONNX's own."""

    def __init__(self, marks: StandIns) -> None:
        super().__init__()
        self.softplus = StandInFor(marks, "Softplus")

    def construct(self, x: Tensor) -> Tensor:
        return x * ops.tanh(self.softplus(x))


def functions_for_onnx(marks: StandIns) -> None:
    """Let the functions of mindspore.ops that the exporter cannot write compute in other forms, in this process."""
    own_gelu, own_pad, own_max_pool2d, own_interpolate = ops.gelu, ops.pad, ops.max_pool2d, ops.interpolate
    mark = marks.add(StandIn("Erf", {}, certain=False))
    soft = marks.add(StandIn("Softplus", {}, certain=False))
    root = 1.0 / math.sqrt(2.0)

    def hardsigmoid(input: Tensor) -> Tensor:
        return ops.relu6(input + 3.0) / 6.0

    def hardswish(input: Tensor) -> Tensor:
        return input * ops.relu6(input + 3.0) / 6.0

    def erf(input: Tensor) -> Tensor:
        return input * mark

    def gelu(input: Tensor, approximate: str = "none") -> Tensor:
        if approximate == "none":
            return input * 0.5 * (input * root * mark + 1.0)
        return own_gelu(input, approximate)

    def mish(input: Tensor) -> Tensor:
        return input * ops.tanh(input * soft)

    def rsqrt(input: Tensor) -> Tensor:
        return 1.0 / ops.sqrt(input)

    def adaptive_avg_pool2d(input: Tensor, output_size: Any) -> Tensor:
        if isinstance(output_size, int):
            return adaptive_mean(input, output_size, output_size)
        height, width = output_size
        return adaptive_mean(input, -1 if height is None else height, -1 if width is None else width)

    def pad(input: Tensor, padding: Any, mode: str = "constant", value: Any = None) -> Tensor:
        if mode in CONTINUED and min(padding) >= 0:
            return continued(input, padding, mode)
        if mode != "constant" or (value is not None and value != 0) or min(padding) < 0:
            return own_pad(input, padding, mode, value)
        pairs = ((0, 0),) * (len(input.shape) - len(padding) // 2)
        for axis in range(len(padding) // 2 - 1, -1, -1):  # torch's order begins with the last axis
            pairs = (*pairs, (padding[2 * axis], padding[2 * axis + 1]))
        return ops.Pad(pairs)(input)

    def masked_fill(input: Tensor, mask: Tensor, value: Any) -> Tensor:
        filled = ops.maximum(ops.minimum(input, value), value)  # of the input's shape, which may be open
        return ops.select(mask, filled, input)

    def max_pool2d(
        x: Tensor,
        kernel_size: Any,
        stride: Any = None,
        padding: Any = 0,
        dilation: Any = 1,
        return_indices: bool = False,
        ceil_mode: bool = False,
    ) -> Tensor:
        if return_indices or two(dilation) != (1, 1):
            return own_max_pool2d(x, kernel_size, stride, padding, dilation, return_indices, ceil_mode)
        return max_over_edges(x, kernel_size, kernel_size if stride is None else stride, padding, ceil_mode)

    def avg_pool2d(
        input_x: Tensor,
        kernel_size: Any = 1,
        stride: Any = 1,
        padding: Any = 0,
        ceil_mode: bool = False,
        count_include_pad: bool = True,
        divisor_override: int = 0,
    ) -> Tensor:
        return mean_over_zeros(input_x, kernel_size, stride, padding, ceil_mode, count_include_pad, divisor_override)

    def resized(
        input: Tensor,
        size: Any = None,
        scale_factor: Any = None,
        mode: str = "nearest",
        align_corners: Any = None,
        recompute_scale_factor: Any = None,
    ) -> Tensor:
        factor = size is None and not recompute_scale_factor and mode != "nearest"
        if factor or mode not in ("nearest", "linear", "bilinear"):  # MindSpore's cubic weights are others than torch's
            return own_interpolate(input, size, scale_factor, mode, align_corners, recompute_scale_factor)
        return interpolate(input, size, scale_factor, mode, align_corners, recompute_scale_factor)

    ops.avg_pool2d, ops.max_pool2d, ops.interpolate = avg_pool2d, max_pool2d, resized
    ops.hardsigmoid, ops.hardswish, ops.erf, ops.gelu = hardsigmoid, hardswish, erf, gelu
    ops.rsqrt, ops.mish, ops.adaptive_avg_pool2d, ops.pad, ops.masked_fill = (
        rsqrt,
        mish,
        adaptive_avg_pool2d,
        pad,
        masked_fill,
    )


CONTINUED = ("reflect", "replicate", "circular")


def continued(x: Tensor, padding: Sequence[int], mode: str) -> Tensor:
    """A padding that goes on with the image's own values, which are taken by their numbers along each axis.

    padding: before and behind the last axis, then the one before it, and so on, as torch has it.
    """
    for index in range(len(padding) // 2):
        before, behind = padding[2 * index], padding[2 * index + 1]
        if before + behind > 0:
            axis = len(x.shape) - 1 - index
            x = ops.index_select(x, axis, Tensor(places_of(x.shape[axis], before, behind, mode), mindspore.int32))
    return x


def places_of(size: int, before: int, behind: int, mode: str) -> list[int]:
    """Which elements of an axis stand in its padded form, by their numbers."""
    if mode == "circular":
        return [place % size for place in range(-before, size + behind)]
    if mode == "replicate":
        return [min([max([place, 0]), size - 1]) for place in range(-before, size + behind)]
    return [size - 1 - abs(size - 1 - abs(place)) for place in range(-before, size + behind)]


class Continued(nn.Cell):
    """`continued` as a Cell."""

    def __init__(self, padding: Sequence[int], mode: str) -> None:
        super().__init__()
        self.padding, self.mode = tuple(padding), mode

    def construct(self, x: Tensor) -> Tensor:
        return continued(x, self.padding, self.mode)


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
        """How much padding goes behind an axis of this size, so that windows without padding give as many results."""
        reach = self.dilation[axis] * (self.kernel[axis] - 1) + 1
        return edge_behind(size, reach, self.stride[axis], self.pad[axis], self.ceil)


def edge_behind(size: int, reach: int, stride: int, pad: int, ceil: bool) -> int:
    """As Window.behind, of one axis; reach: how many elements a window spans.

    It must not have the method's name: where a method calls a function of its own name, MindSpore's compiler calls the
    method.
    """
    spare = (size + 2 * pad - reach) % stride
    count = (size + 2 * pad - reach) // stride + 1
    begins = count * stride < size + pad  # the last window has to begin inside
    if ceil and spare > 0 and begins:
        return pad + stride - spare
    return pad


def max_over_edges(x: Tensor, kernel: Any, stride: Any, padding: Any, ceil: bool) -> Tensor:
    """A padded max-pool by one without padding: edges of the lowest float32 are put around the image first.

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

    x: (N, C, H, W). padding: a number, or (top, bottom, left, right). with_padding: the zeros around count, too.
    divisor: what sums are divided by, or 0. The share of a window that counts is the mean of ones padded in the same
    way.
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
    """Ones of a tensor's shape, which may be open."""
    return ops.maximum(ops.minimum(x, 1.0), 1.0)


def two(value: Any) -> Any:
    """Rows and columns of a size: a number, or the last two of several."""
    return (value, value) if isinstance(value, int) else (value[-2], value[-1])


class PoolStandIn(nn.Cell):
    """A pool whose padding or rounding the exporter cannot write: it gives the shape, and ONNX's own replaces it."""

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


Form = Callable[[Any, StandIns], "nn.Cell | None"]


def rewrite(net: nn.Cell, forms: dict[type, Form], marks: StandIns) -> list[str]:
    """Replace the net's Cells in place by their equivalent forms; returns what was replaced, as `path: Class`.

    A Cell that is in several places gets one replacement for all of them.
    """
    made: dict[int, nn.Cell] = {}
    replaced = []
    for path, parent in list(net.cells_and_names()):
        for name, child in list(parent.name_cells().items()):
            form = forms.get(type(child))
            if form is None:
                continue
            if id(child) not in made:
                new = form(child, marks)
                if new is None:
                    continue
                made[id(child)] = new.set_train(False)
            _put(parent, name, made[id(child)])
            replaced.append(f"{path}.{name}: {type(child).__name__}".lstrip("."))
    return replaced


def _put(parent: nn.Cell, name: str, cell: nn.Cell) -> None:
    """Put a Cell in the place of a child; a SequentialCell keeps a list of its children, too."""
    parent._cells[name] = cell
    if isinstance(parent, nn.SequentialCell):
        parent.cell_list = list(parent._cells.values())


def _max_pool(cell: nn.MaxPool2d, marks: StandIns) -> nn.Cell | None:
    if not cell.use_pad:
        return None
    if cell.return_indices:
        raise Unsupported(f"{cell} returns indices, which its ONNX form has in another order: leave them out")
    window = _window(cell.max_pool.attrs, "ksize", "strides", "pads")
    return PoolStandIn(marks, "MaxPool", window)


def _max_pool_for_dynamic(cell: nn.MaxPool2d, marks: StandIns) -> nn.Cell | None:
    """MindSpore infers no shape of its padded pool where the batch is not known."""
    if not cell.use_pad or cell.return_indices:
        return None
    window = _window(cell.max_pool.attrs, "ksize", "strides", "pads")
    return MaxPoolOverEdges(window) if window.dilation == (1, 1) else None


def _average_pool(cell: nn.AvgPool2d, marks: StandIns) -> nn.Cell | None:
    if not cell.is_expand:
        return None
    attributes = cell.avg_pool.attrs
    if attributes["divisor_override"]:
        raise Unsupported(f"AvgPool2d with divisor_override={attributes['divisor_override']} has no form in ONNX")
    window = _window(attributes, "kernel_size", "strides", "pad")
    return PoolStandIn(marks, "AveragePool", window, count_include_pad=int(attributes["count_include_pad"]))


def _window(attributes: dict[str, Any], kernel: str, stride: str, pad: str) -> Window:
    pads: Sequence[int] = attributes[pad] if attributes.get("pad_mode", "PAD").upper() == "PAD" else (0, 0)
    both = (pads[2], pads[4]) if len(pads) == 6 else two(pads)
    dilation = two(attributes.get("dilation", 1))
    return Window(two(attributes[kernel]), two(attributes[stride]), both, dilation, bool(attributes["ceil_mode"]))


def _gelu(cell: nn.GELU, marks: StandIns) -> nn.Cell | None:
    return ExactGelu(marks) if cell.approximate == "none" else None


def _elu(cell: nn.ELU, marks: StandIns) -> nn.Cell:
    return StandInFor(marks, "Elu", alpha=float(cell.elu.attrs["alpha"]))


def _group_norm(cell: nn.GroupNorm, marks: StandIns) -> nn.Cell:
    return GroupNorm(cell.num_groups, cell.eps, cell.gamma, cell.beta)


def _reflection(cell: Any, marks: StandIns) -> nn.Cell:
    return Continued([side for pair in reversed(cell.padding) for side in pair], "reflect")  # its last axis is last


def _replication(cell: Any, marks: StandIns) -> nn.Cell:
    return Continued(cell.padding, "replicate")


# what the ONNX exporter of MindSpore 2.10 has no converter for
FOR_ONNX: dict[type, Form] = {
    **dict.fromkeys((nn.ReflectionPad1d, nn.ReflectionPad2d, nn.ReflectionPad3d), _reflection),
    **dict.fromkeys((nn.ReplicationPad1d, nn.ReplicationPad2d, nn.ReplicationPad3d), _replication),
    nn.MaxPool2d: _max_pool,
    nn.AvgPool2d: _average_pool,
    nn.AdaptiveAvgPool2d: lambda cell, marks: AdaptiveMean(cell.adaptive_avgpool2d.attrs["output_size"]),
    nn.HSwish: lambda cell, marks: HSwish(),
    nn.HSigmoid: lambda cell, marks: HSigmoid(),
    nn.GELU: _gelu,
    nn.Mish: lambda cell, marks: Mish(marks),
    nn.ELU: _elu,
    nn.GroupNorm: _group_norm,
}
# what MindSpore cannot run where the size of a batch is open
FOR_DYNAMIC: dict[type, Form] = {nn.MaxPool2d: _max_pool_for_dynamic}
