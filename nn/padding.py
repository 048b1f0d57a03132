"""Padding that MindSpore lacks or gets wrong; with torch's names, a number or the sides of the last axis first.

Compiled, the gradient of its constant padding is wrong from the second run on (benchmarks/graph_padding_mindspore.py).
"""

from __future__ import annotations

from collections.abc import Sequence

from mindspore import Tensor, nn, ops
from mindspore import dtype as mstype


def pad(input: Tensor, pad: Sequence[int], mode: str = "constant", value: float | None = None) -> Tensor:
    """Add to the sides of the last dimensions first, or cut off where `pad` is negative.

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
        sides = (*sides, max(before, 0), max(behind, 0))
    if max(sides) == 0:
        return x
    if mode != "constant":
        return ops.pad(x, sides, mode)  # whose gradient is right there
    sides = sides + (0, 0) * (input.ndim - len(sides) // 2)
    pairs = tuple([(sides[2 * place], sides[2 * place + 1]) for place in range(input.ndim - 1, -1, -1)])
    padded = ops.Pad(pairs)(x)
    if not value:
        return padded
    inside = ops.Pad(pairs)(ops.ones(x.shape, mstype.float32)) > 0
    return ops.where(inside, padded, ops.full_like(padded, value))


class ConstantPad1d(nn.Cell):
    """A value on both sides of the last axis."""

    def __init__(self, padding: int | tuple[int, int], value: float) -> None:
        super().__init__()
        self.padding = (padding,) * 2 if isinstance(padding, int) else tuple(padding)
        self.value = value

    def construct(self, input: Tensor) -> Tensor:
        """input: (N, C, L) or (C, L)."""
        return pad(input, self.padding, value=self.value)


class ZeroPad1d(ConstantPad1d):
    """Zeros on both sides of the last axis."""

    def __init__(self, padding: int | tuple[int, int]) -> None:
        super().__init__(padding, 0.0)


class ConstantPad2d(nn.Cell):
    """A value on all sides of the last two axes."""

    def __init__(self, padding: int | tuple[int, int, int, int], value: float) -> None:
        super().__init__()
        self.padding = (padding,) * 4 if isinstance(padding, int) else tuple(padding)
        self.value = value

    def construct(self, input: Tensor) -> Tensor:
        """input: (N, C, H, W) or (C, H, W)."""
        return pad(input, self.padding, value=self.value)


class ZeroPad2d(ConstantPad2d):
    """Zeros on all sides of the last two axes."""

    def __init__(self, padding: int | tuple[int, int, int, int]) -> None:
        super().__init__(padding, 0.0)


class ConstantPad3d(nn.Cell):
    """A value on all sides of the last three axes."""

    def __init__(self, padding: int | tuple[int, ...], value: float) -> None:
        super().__init__()
        self.padding = (padding,) * 6 if isinstance(padding, int) else tuple(padding)
        self.value = value

    def construct(self, input: Tensor) -> Tensor:
        """input: (N, C, D, H, W) or (C, D, H, W)."""
        return pad(input, self.padding, value=self.value)


class ZeroPad3d(ConstantPad3d):
    """Zeros on all sides of the last three axes."""

    def __init__(self, padding: int | tuple[int, ...]) -> None:
        super().__init__(padding, 0.0)


class CircularPad1d(nn.Cell):
    """On each side of the last axis the values of its other end, no more than it has."""

    def __init__(self, padding: int | tuple[int, int]) -> None:
        super().__init__()
        self.padding = (padding,) * 2 if isinstance(padding, int) else tuple(padding)

    def construct(self, input: Tensor) -> Tensor:
        """input: (N, C, L) or (C, L)."""
        before, behind = self.padding
        size = input.shape[-1]
        parts = (ops.narrow(input, -1, size - before, before),) if before else ()
        parts = (*parts, input)
        return ops.cat((*parts, ops.narrow(input, -1, 0, behind)) if behind else parts, -1)


class CircularPad2d(nn.Cell):
    """On each side of the last two axes the values of its other end, no more than it has."""

    def __init__(self, padding: int | tuple[int, int, int, int]) -> None:
        super().__init__()
        self.padding = (padding,) * 4 if isinstance(padding, int) else tuple(padding)

    def construct(self, input: Tensor) -> Tensor:
        """input: (N, C, H, W) or (C, H, W)."""
        output = input
        for index in range(2):
            axis, before, behind = -1 - index, self.padding[2 * index], self.padding[2 * index + 1]
            size = output.shape[axis]
            parts = (ops.narrow(output, axis, size - before, before),) if before else ()
            parts = (*parts, output)
            output = ops.cat((*parts, ops.narrow(output, axis, 0, behind)) if behind else parts, axis)
        return output


class CircularPad3d(nn.Cell):
    """On each side of the last three axes the values of its other end, no more than it has."""

    def __init__(self, padding: int | tuple[int, ...]) -> None:
        super().__init__()
        self.padding = (padding,) * 6 if isinstance(padding, int) else tuple(padding)

    def construct(self, input: Tensor) -> Tensor:
        """input: (N, C, D, H, W) or (C, D, H, W)."""
        output = input
        for index in range(3):
            axis, before, behind = -1 - index, self.padding[2 * index], self.padding[2 * index + 1]
            size = output.shape[axis]
            parts = (ops.narrow(output, axis, size - before, before),) if before else ()
            parts = (*parts, output)
            output = ops.cat((*parts, ops.narrow(output, axis, 0, behind)) if behind else parts, axis)
        return output
