"""Padding that MindSpore lacks or gets wrong, as torch takes it: a number, or the sides with the last axis first.

Compiled, the gradient of its constant padding is wrong from the second run on (benchmarks/graph_padding_mindspore.py).
Sequences of several lengths are padded ones with their lengths; torch packs them.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from mindspore import Tensor, nn, ops
from mindspore import dtype as mstype


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


class ConstantPad1d(nn.Cell):
    """A value on both sides of the last axis."""

    axes = 1

    def __init__(self, padding: int | tuple[int, ...], value: float) -> None:
        super().__init__()
        self.padding = (padding,) * (2 * self.axes) if isinstance(padding, int) else tuple(padding)
        self.value = value

    def construct(self, input: Tensor) -> Tensor:
        """input: (N, C, sizes) or (C, sizes)."""
        return pad(input, self.padding, value=self.value)


class ConstantPad2d(ConstantPad1d):
    """A value on all sides of the last two axes."""

    axes = 2


class ConstantPad3d(ConstantPad1d):
    """A value on all sides of the last three axes."""

    axes = 3


class ZeroPad1d(ConstantPad1d):
    """Zeros on both sides of the last axis."""

    def __init__(self, padding: int | tuple[int, ...]) -> None:
        super().__init__(padding, 0.0)


class ZeroPad2d(ZeroPad1d):
    """Zeros on all sides of the last two axes."""

    axes = 2


class ZeroPad3d(ZeroPad1d):
    """Zeros on all sides of the last three axes."""

    axes = 3


class CircularPad1d(nn.Cell):
    """Pads each side of the last axis with values of its other end, at most as many as it has."""

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


class CircularPad2d(CircularPad1d):
    """Pads each side of the last two axes with values of the other end, at most as many as an axis has."""

    axes = 2


class CircularPad3d(CircularPad1d):
    """Pads each side of the last three axes with values of the other end, at most as many as an axis has."""

    axes = 3
