"""Convolutions that MindSpore lacks or gets wrong on the CPU, the windows that they slide over, and padding as torch
takes it: a number, or the sides with the last axis first.

Compiled, the gradient of MindSpore's constant padding is wrong from the second run on
(benchmarks/graph_padding_mindspore.py). Sequences of several lengths are padded ones with their lengths; torch packs
them.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from mindspore import Parameter, Tensor, nn, ops
from mindspore import dtype as mstype


class Unfold(nn.Cell):
    """The patches of an image as columns; MindSpore's own nn.Unfold is another layer."""

    def __init__(
        self,
        kernel_size: int | tuple[int, int],
        dilation: int | tuple[int, int] = 1,
        padding: int | tuple[int, int] = 0,
        stride: int | tuple[int, int] = 1,
    ) -> None:
        super().__init__()
        self.kernel_size, self.dilation, self.padding, self.stride = kernel_size, dilation, padding, stride

    def construct(self, input: Tensor) -> Tensor:
        """input: (N, C, H, W); the result is (N, C * patch, patches)."""
        columns = ops.unfold(input, self.kernel_size, self.dilation, self.padding, self.stride)
        return columns.reshape((columns.shape[0], -1, columns.shape[-1]))


class Fold(nn.Cell):
    """Patches given as columns, added up to an image."""

    def __init__(
        self,
        output_size: int | tuple[int, int],
        kernel_size: int | tuple[int, int],
        dilation: int | tuple[int, int] = 1,
        padding: int | tuple[int, int] = 0,
        stride: int | tuple[int, int] = 1,
    ) -> None:
        super().__init__()
        self.output_size = (output_size, output_size) if isinstance(output_size, int) else tuple(output_size)
        self.kernel_size = (kernel_size, kernel_size) if isinstance(kernel_size, int) else tuple(kernel_size)
        self.dilation, self.padding, self.stride = dilation, padding, stride

    def construct(self, input: Tensor) -> Tensor:
        """input: (N, C * patch, patches)."""
        patch = self.kernel_size[0] * self.kernel_size[1]
        columns = input.reshape((input.shape[0], input.shape[1] // patch, patch, input.shape[2]))
        size = Tensor(self.output_size)
        return ops.fold(columns, size, self.kernel_size, self.dilation, self.padding, self.stride)


def fold(
    input: Tensor,
    output_size: int | Sequence[int],
    kernel_size: int | Sequence[int],
    dilation: int | Sequence[int] = 1,
    padding: int | Sequence[int] = 0,
    stride: int | Sequence[int] = 1,
) -> Tensor:
    """Add overlapping patches up to an image; ops.fold takes the size of the image as a tensor."""
    height, width = (output_size, output_size) if isinstance(output_size, int) else tuple(output_size)
    size = Tensor([height, width], mstype.int32)
    return ops.fold(input, size, kernel_size, dilation, padding, stride)


class StdConv2d(nn.Conv2d):
    """A convolution whose weight is standardised for each output channel."""

    def __init__(
        self,
        in_channel: int,
        out_channels: int,
        kernel_size: int,
        stride: int = 1,
        padding: int | None = None,
        dilation: int = 1,
        groups: int = 1,
        bias: bool = False,
        eps: float = 1e-06,
    ) -> None:
        width = ((stride - 1) + dilation * (kernel_size - 1)) // 2 if padding is None else padding
        super().__init__(in_channel, out_channels, kernel_size, stride, "pad", width, dilation, groups, has_bias=bias)
        self.eps, self.width = eps, width

    def kernel(self) -> Tensor:
        """The standardised weight."""
        return _standardised(self.weight, self.eps)

    def construct(self, x: Tensor) -> Tensor:
        """x: (N, C, H, W)."""
        bias = self.bias if self.has_bias else None
        return ops.conv2d(x, self.kernel(), bias, self.stride, "pad", self.width, self.dilation, self.group)


class ScaledStdConv2d(StdConv2d):
    """A convolution whose weight is standardised, scaled by its fan-in and by a trained gain."""

    def __init__(
        self,
        in_channels: int,
        out_channels: int,
        kernel_size: int,
        stride: int = 1,
        padding: int | None = None,
        dilation: int = 1,
        groups: int = 1,
        bias: bool = True,
        gamma: float = 1.0,
        eps: float = 1e-06,
        gain_init: float = 1.0,
    ) -> None:
        super().__init__(in_channels, out_channels, kernel_size, stride, padding, dilation, groups, bias, eps)
        self.scale = gamma * (in_channels // groups * kernel_size * kernel_size) ** -0.5
        self.gain = Parameter(gain_init * ops.ones((out_channels, 1, 1, 1)), name="gain")

    def kernel(self) -> Tensor:
        """The standardised weight, scaled."""
        return _standardised(self.weight, self.eps) * (self.gain * self.scale)


def _standardised(weight: Tensor, eps: float) -> Tensor:
    """A weight (out, in, kh, kw) with mean 0 and variance 1 in each output channel."""
    centred = weight - ops.mean(weight, (1, 2, 3), True)
    return centred * ops.rsqrt(ops.mean(centred * centred, (1, 2, 3), True) + eps)


def conv_transpose1d(
    input: Tensor,
    weight: Tensor,
    bias: Tensor | None = None,
    stride: int | Sequence[int] = 1,
    padding: int | Sequence[int] = 0,
    output_padding: int | Sequence[int] = 0,
    groups: int = 1,
    dilation: int | Sequence[int] = 1,
) -> Tensor:
    """The transposed convolution along one dimension, as one over images of height 1."""
    steps, sides, more, apart = [
        value if isinstance(value, int) else value[0] for value in (stride, padding, output_padding, dilation)
    ]
    rows, kernel = ops.unsqueeze(input, -2), ops.unsqueeze(weight, -2)
    x = conv_transpose2d(rows, kernel, bias, (1, steps), (0, sides), (0, more), groups, (1, apart))
    return x.squeeze(-2)


def conv_transpose2d(
    input: Tensor,
    weight: Tensor,
    bias: Tensor | None = None,
    stride: int | Sequence[int] = 1,
    padding: int | Sequence[int] = 0,
    output_padding: int | Sequence[int] = 0,
    groups: int = 1,
    dilation: int | Sequence[int] = 1,
) -> Tensor:
    """The transposed convolution of images (N, C, H, W), or of volumes (N, C, D, H, W).

    Computed as a convolution with the flipped kernel over the values with zeros between them, because MindSpore's own
    fills what output_padding adds with other values. weight: (in, out / groups, kernel sizes).
    """
    rank = input.ndim - 2
    steps = (stride,) * rank if isinstance(stride, int) else tuple(stride)
    sides = (padding,) * rank if isinstance(padding, int) else tuple(padding)
    more = (output_padding,) * rank if isinstance(output_padding, int) else tuple(output_padding)
    apart = (dilation,) * rank if isinstance(dilation, int) else tuple(dilation)
    x = input
    for index in range(rank):
        axis = 2 + index
        size = x.shape[axis]
        if steps[index] > 1:
            x = ops.unsqueeze(x, axis + 1)
            zeros = ops.zeros_like(x)
            x = ops.cat((x,) + (zeros,) * (steps[index] - 1), axis + 1)
            shape = tuple(x.shape)
            x = x.reshape((*shape[:axis], size * steps[index], *shape[axis + 2 :]))
        # the zeros that the convolution needs on both sides; those behind the last value count
        whole = apart[index] * (weight.shape[axis] - 1)
        before = whole - sides[index]
        behind = whole - sides[index] + more[index] - (steps[index] - 1)
        x = _padded(x, axis, before, behind)
    shape = tuple(weight.shape)
    kernel = weight.reshape((groups, shape[0] // groups, *shape[1:])).swapaxes(1, 2)
    kernel = kernel.reshape((groups * shape[1], shape[0] // groups, *shape[2:]))
    kernel = ops.flip(kernel, tuple(range(2, 2 + rank)))
    convolve = ops.conv2d if rank == 2 else ops.conv3d
    return convolve(x, kernel, bias, 1, "valid", 0, apart, groups)


conv_transpose3d = conv_transpose2d  # which does both


def _padded(x: Tensor, axis: int, before: int, behind: int) -> Tensor:
    """x with zeros in front of and behind a dimension, or with values cut off where a number is negative."""
    if before < 0 or behind < 0:
        first, last = max(-before, 0), max(-behind, 0)
        x = ops.narrow(x, axis, first, x.shape[axis] - first - last)
    shape = tuple(x.shape)
    parts: tuple[Any, ...] = (x,)
    if before > 0:
        parts = (ops.zeros((*shape[:axis], before, *shape[axis + 1 :]), x.dtype), *parts)
    if behind > 0:
        parts = (*parts, ops.zeros((*shape[:axis], behind, *shape[axis + 1 :]), x.dtype))
    return ops.cat(parts, axis) if len(parts) > 1 else x


class ConvTranspose1d(nn.Conv1dTranspose):
    """MindSpore's with torch's `output_padding`, and with the `output_size` that a call may give.

    pad_mode: "pad". Raises ValueError for another one.
    """

    with_norm = True  # weight_norm and spectral_norm may compute its kernel

    def __init__(self, *args: Any, output_padding: int | Sequence[int] = 0, **more: Any) -> None:
        super().__init__(*args, **more)
        self.sides = _fronts(self, 2)
        self.added = (0, output_padding) if isinstance(output_padding, int) else (0, *output_padding)

    def construct(self, x: Tensor, output_size: Sequence[int] | None = None) -> Tensor:
        """x: (N, C, L). output_size: the length of the output, or all its sizes."""
        wanted = None if output_size is None else (1, *_last_sizes(output_size, 1))
        return _transposed(self, ops.expand_dims(x, 2), ops.expand_dims(self.kernel(), 2), wanted).squeeze(2)

    def kernel(self) -> Tensor:
        """The weight, in torch's shape."""
        return self.weight.squeeze(2)


class ConvTranspose2d(nn.Conv2dTranspose):
    """MindSpore's with torch's `output_padding`, and with the `output_size` that a call may give.

    pad_mode: "pad". Raises ValueError for another one.
    """

    with_norm = True  # weight_norm and spectral_norm may compute its kernel

    def __init__(self, *args: Any, output_padding: int | Sequence[int] = 0, **more: Any) -> None:
        super().__init__(*args, **more)
        self.sides = _fronts(self, 2)
        self.added = (output_padding,) * 2 if isinstance(output_padding, int) else tuple(output_padding)

    def construct(self, x: Tensor, output_size: Sequence[int] | None = None) -> Tensor:
        """x: (N, C, H, W). output_size: the height and width of the output, or all its sizes."""
        return _transposed(self, x, self.kernel(), None if output_size is None else _last_sizes(output_size, 2))

    def kernel(self) -> Tensor:
        """The weight, in torch's shape."""
        return self.weight


class ConvTranspose3d(nn.Conv3dTranspose):
    """MindSpore's with dilation along the depth, and with the `output_size` that a call may give.

    pad_mode: "pad". Raises ValueError for another one.
    """

    def __init__(
        self, *args: Any, output_padding: int | Sequence[int] = 0, dilation: int | Sequence[int] = 1, **more: Any
    ) -> None:
        super().__init__(*args, **more)
        self.sides = _fronts(self, 3)
        self.added = (output_padding,) * 3 if isinstance(output_padding, int) else tuple(output_padding)
        self.dilation = (dilation,) * 3 if isinstance(dilation, int) else tuple(dilation)

    def construct(self, x: Tensor, output_size: Sequence[int] | None = None) -> Tensor:
        """x: (N, C, D, H, W). output_size: depth, height and width of the output, or all its sizes."""
        return _transposed(self, x, self.weight, None if output_size is None else _last_sizes(output_size, 3))


def _fronts(cell: Any, rank: int) -> tuple[int, ...]:
    """The padding in front of each axis, which is the same behind."""
    if cell.pad_mode != "pad":
        raise ValueError(f"{type(cell).__name__} with pad_mode={cell.pad_mode!r}: give the padding as numbers")
    return (cell.padding,) * rank if isinstance(cell.padding, int) else tuple(cell.padding[::2])


def _last_sizes(output_size: Sequence[int], rank: int) -> tuple[int, ...]:
    """The sizes of an output's last `rank` axes."""
    if len(output_size) not in (rank, rank + 2):
        raise ValueError(f"output_size has {len(output_size)} numbers: give {rank}, or all {rank + 2}")
    return tuple(output_size)[-rank:]


def _transposed(cell: Any, x: Tensor, kernel: Tensor, wanted: tuple[int, ...] | None) -> Tensor:
    """The output of a transposed convolution, of these sizes; raises ValueError for sizes that it cannot have."""
    more = cell.added
    if wanted is not None:
        more = ()
        for axis in range(len(wanted)):
            least = (x.shape[axis + 2] - 1) * cell.stride[axis] - 2 * cell.sides[axis]
            least = least + cell.dilation[axis] * (cell.kernel_size[axis] - 1) + 1
            if wanted[axis] < least or wanted[axis] >= least + cell.stride[axis]:
                raise ValueError(f"output_size {wanted}: an input of {x.shape} gives {least} or a little more")
            more = (*more, wanted[axis] - least)
    if x.ndim != len(more) + 2:
        raise ValueError(f"an input of {x.ndim} axes: it needs {len(more) + 2}, with that of the batch")
    bias = cell.bias if cell.has_bias else None
    return conv_transpose2d(x, kernel, bias, cell.stride, cell.sides, more, cell.group, cell.dilation)


def deform_conv2d(
    input: Tensor,
    offset: Tensor,
    weight: Tensor,
    bias: Tensor | None = None,
    stride: int | Sequence[int] = (1, 1),
    padding: int | Sequence[int] = (0, 0),
    dilation: int | Sequence[int] = (1, 1),
    mask: Tensor | None = None,
) -> Tensor:
    """A convolution of (N, C, H, W) whose taps are moved by `offset` and weighted by `mask`.

    offset: (N, 2 · offset groups · kh · kw, height, width), vertical before horizontal for every tap. mask: half as
    many channels. weight: (out, C / groups, kh, kw). Outside the image there are zeros.
    """
    steps, sides, apart = [
        (value, value) if isinstance(value, int) else (value[0], value[1]) for value in (stride, padding, dilation)
    ]
    count, channels, height, width = input.shape
    out, each, kernel_high, kernel_wide = weight.shape
    high, wide = offset.shape[2], offset.shape[3]
    taps, places = kernel_high * kernel_wide, high * wide
    sets = offset.shape[1] // (2 * taps)
    moved = offset.reshape((count, sets, kernel_high, kernel_wide, 2, high, wide))
    down = _rest(high, steps[0], sides[0]).reshape((-1, 1)) + moved[:, :, :, :, 0]
    down = (down + _rest(kernel_high, apart[0], 0).reshape((-1, 1, 1, 1))).reshape((count, sets, -1))
    across = _rest(wide, steps[1], sides[1]) + moved[:, :, :, :, 1]
    across = (across + _rest(kernel_wide, apart[1], 0).reshape((-1, 1, 1))).reshape((count, sets, -1))
    image = input.reshape((count, sets, channels // sets, height * width))
    top, left = ops.stop_gradient(ops.floor(down)), ops.stop_gradient(ops.floor(across))
    low, right = down - top, across - left
    found = ops.zeros((count, sets, channels // sets, taps * places), input.dtype)
    for lower in (0, 1):
        row = top + lower
        by_row = low if lower else 1 - low
        for further in (0, 1):
            column = left + further
            share = by_row * (right if further else 1 - right)
            inside = ops.logical_and(
                ops.logical_and(row >= 0, row < height), ops.logical_and(column >= 0, column < width)
            )
            at = ops.clamp(row, 0, height - 1) * width + ops.clamp(column, 0, width - 1)
            at = ops.broadcast_to(ops.unsqueeze(at.astype(mstype.int32), 2), found.shape)
            share = share * inside.astype(share.dtype)
            found = found + ops.gather_elements(image, 3, at) * ops.unsqueeze(share, 2)
    if mask is not None:
        found = found * mask.reshape((count, sets, 1, taps * places))
    groups = channels // each
    columns = found.reshape((count, groups, each * taps, places))
    result = ops.matmul(weight.reshape((groups, out // groups, each * taps)), columns).reshape((count, out, high, wide))
    return result if bias is None else result + bias.reshape((1, -1, 1, 1))


def _rest(number: int, step: int, before: int) -> Tensor:
    """The positions of the windows, or of the taps of one, along a side, without an offset."""
    return ops.arange(number).astype(mstype.float32) * step - before


def pad(input: Tensor, pad: Sequence[int], mode: str = "constant", value: float | None = None) -> Tensor:
    """Add values at the sides, the last dimension's first, or cut off where `pad` is negative.

    With negative numbers ops.pad now and then gives other values on the CPU, and the gradient of its constant mode is
    wrong from a compiled step's second run on.
    """
    x = input
    sides: tuple[int, ...] = ()
    for place in range(len(pad) // 2):
        axis = input.ndim - 1 - place
        before, behind = pad[2 * place], pad[2 * place + 1]
        first, last = max(-before, 0), max(-behind, 0)
        if first + last > 0:
            x = ops.narrow(x, axis, first, x.shape[axis] - first - last)
        if mode == "circular" and max(before, behind) > x.shape[axis]:
            raise ValueError(f"circular padding {pad} of {input.shape}: a side has no more values than the axis")
        sides = (*sides, max(before, 0), max(behind, 0))
    if max(sides) == 0:
        return x
    if mode == "reflect" and len(sides) == 6:
        return _reflected_volume(x, sides)
    if mode != "constant":
        return ops.pad(x, sides, mode)  # its gradient is right in these modes
    sides = sides + (0, 0) * (input.ndim - len(sides) // 2)
    pairs = tuple([(sides[2 * place], sides[2 * place + 1]) for place in range(input.ndim - 1, -1, -1)])
    padded = ops.Pad(pairs)(x)
    if not value:
        return padded
    inside = ops.Pad(pairs)(ops.ones(x.shape, mstype.float32)) > 0
    return ops.where(inside, padded, ops.full_like(padded, value))


def _reflected_volume(x: Tensor, sides: tuple[int, ...]) -> Tensor:
    """The last three axes padded by reflection, which ops.pad does for two."""
    lead, (depth, height, width) = tuple(x.shape[:-3]), x.shape[-3:]
    images = ops.pad(x.reshape((-1, depth, height, width)), sides[:4], "reflect")
    height, width = images.shape[-2:]
    columns = ops.pad(images.reshape((-1, 1, depth, height * width)), (0, 0, *sides[4:]), "reflect")
    return columns.reshape((*lead, depth + sides[4] + sides[5], height, width))


class PaddedConv1d(nn.Conv1d):
    """A convolution whose input is padded by `padding_mode`: zeros, circular, reflect or replicate.

    padding: as for MindSpore's Conv1d, or one number for each end.
    """

    with_norm = True  # weight_norm and spectral_norm may compute its kernel

    def __init__(
        self, *args: Any, padding_mode: str = "zeros", pad_mode: str = "same", padding: Any = 0, **more: Any
    ) -> None:
        super().__init__(*args, pad_mode="valid", **more)
        self.sides = _sides(pad_mode, padding, 1)
        self.continued = _mode(padding_mode)

    def construct(self, x: Tensor) -> Tensor:
        """x: (N, C, L)."""
        rows, kernel = ops.expand_dims(pad(x, self.sides, self.continued), 2), ops.expand_dims(self.kernel(), 2)
        y = self.conv2d(rows, kernel)
        return ops.squeeze(self.bias_add(y, self.bias) if self.has_bias else y, 2)

    def kernel(self) -> Tensor:
        """The weight, in torch's shape."""
        return self.weight.squeeze(2)


class PaddedConv2d(nn.Conv2d):
    """A convolution whose input is padded by `padding_mode`: zeros, circular, reflect or replicate."""

    with_norm = True  # weight_norm and spectral_norm may compute its kernel

    def __init__(
        self, *args: Any, padding_mode: str = "zeros", pad_mode: str = "same", padding: Any = 0, **more: Any
    ) -> None:
        super().__init__(*args, pad_mode="valid", **more)
        self.sides = _sides(pad_mode, padding, 2)
        self.continued = _mode(padding_mode)

    def construct(self, x: Tensor) -> Tensor:
        """x: (N, C, H, W)."""
        y = self.conv2d(pad(x, self.sides, self.continued), self.kernel())
        return self.bias_add(y, self.bias) if self.has_bias else y

    def kernel(self) -> Tensor:
        """The weight."""
        return self.weight


class PaddedConv3d(nn.Conv3d):
    """A convolution whose input is padded by `padding_mode`: zeros, circular, reflect or replicate."""

    with_norm = True  # weight_norm and spectral_norm may compute its kernel

    def __init__(
        self, *args: Any, padding_mode: str = "zeros", pad_mode: str = "same", padding: Any = 0, **more: Any
    ) -> None:
        super().__init__(*args, pad_mode="valid", **more)
        self.sides = _sides(pad_mode, padding, 3)
        self.continued = _mode(padding_mode)

    def construct(self, x: Tensor) -> Tensor:
        """x: (N, C, D, H, W)."""
        y = self.conv3d(pad(x, self.sides, self.continued), self.kernel())
        return self.bias_add(y, self.bias) if self.has_bias else y

    def kernel(self) -> Tensor:
        """The weight."""
        return self.weight


def _mode(padding_mode: str) -> str:
    """The mode of `pad`; raises ValueError for what torch's convolutions do not have either."""
    if padding_mode not in ("zeros", "circular", "reflect", "replicate"):
        raise ValueError(f"padding_mode={padding_mode!r}: it is zeros, circular, reflect or replicate")
    return "constant" if padding_mode == "zeros" else padding_mode


def _sides(pad_mode: str, padding: Any, axes: int) -> tuple[int, ...]:
    """The padding of each side, the last axis first, from MindSpore's padding, which has the first axis first. Raises
    ValueError for a mode whose padding depends on the input's size."""
    if pad_mode not in ("pad", "valid"):
        raise ValueError(f"pad_mode={pad_mode!r} with a padding_mode: give the padding as numbers")
    sides = (0,) * 2 * axes if pad_mode == "valid" else padding
    sides = (sides,) * 2 * axes if isinstance(sides, int) else tuple(sides)
    if len(sides) == 1:
        sides = sides * 2 * axes
    return tuple(side for axis in range(axes - 1, -1, -1) for side in sides[2 * axis : 2 * axis + 2])


class ConstantPadNd(nn.Cell):
    """A value on both sides of the last axes; what the layers for one to three of them share, none of which is another
    one, as in torch."""

    axes = 1

    def __init__(self, padding: int | tuple[int, ...], value: float) -> None:
        super().__init__()
        self.padding = (padding,) * (2 * self.axes) if isinstance(padding, int) else tuple(padding)
        self.value = value

    def construct(self, input: Tensor) -> Tensor:
        """input: (N, C, sizes) or (C, sizes)."""
        return pad(input, self.padding, value=self.value)


class ConstantPad1d(ConstantPadNd):
    """A value on both sides of the last axis."""


class ConstantPad2d(ConstantPadNd):
    """A value on all sides of the last two axes."""

    axes = 2


class ConstantPad3d(ConstantPadNd):
    """A value on all sides of the last three axes."""

    axes = 3


class ZeroPad1d(ConstantPad1d):
    """Zeros on both sides of the last axis."""

    def __init__(self, padding: int | tuple[int, ...]) -> None:
        super().__init__(padding, 0.0)


class ZeroPad2d(ConstantPad2d):
    """Zeros on all sides of the last two axes."""

    def __init__(self, padding: int | tuple[int, ...]) -> None:
        super().__init__(padding, 0.0)


class ZeroPad3d(ConstantPad3d):
    """Zeros on all sides of the last three axes."""

    def __init__(self, padding: int | tuple[int, ...]) -> None:
        super().__init__(padding, 0.0)


class CircularPadNd(nn.Cell):
    """Pads each side of the last axes with values of the other end, at most as many as an axis has; what the layers for
    one to three of them share."""

    axes = 1

    def __init__(self, padding: int | tuple[int, ...]) -> None:
        super().__init__()
        self.padding = (padding,) * (2 * self.axes) if isinstance(padding, int) else tuple(padding)

    def construct(self, input: Tensor) -> Tensor:
        """input: (N, C, sizes) or (C, sizes)."""
        output = input
        for index in range(len(self.padding) // 2):
            axis, before, behind = -1 - index, self.padding[2 * index], self.padding[2 * index + 1]
            size = output.shape[axis]
            parts = (ops.narrow(output, axis, size - before, before),) if before else ()
            parts = (*parts, output)
            output = ops.cat((*parts, ops.narrow(output, axis, 0, behind)) if behind else parts, axis)
        return output


class CircularPad1d(CircularPadNd):
    """Pads each side of the last axis with values of its other end, at most as many as it has."""


class CircularPad2d(CircularPadNd):
    """Pads each side of the last two axes with values of the other end, at most as many as an axis has."""

    axes = 2


class CircularPad3d(CircularPadNd):
    """Pads each side of the last three axes with values of the other end, at most as many as an axis has."""

    axes = 3
