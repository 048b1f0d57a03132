"""Padding that MindSpore lacks; with torch's argument names, a number or the sides of the last axis first."""

from __future__ import annotations

from mindspore import Tensor, nn, ops


class ZeroPad1d(nn.Cell):
    """Zeros on both sides of the last axis."""

    def __init__(self, padding: int | tuple[int, int]) -> None:
        super().__init__()
        self.pad = nn.ConstantPad1d(padding, 0.0)

    def construct(self, input: Tensor) -> Tensor:
        """input: (N, C, L) or (C, L)."""
        return self.pad(input)


class ZeroPad3d(nn.Cell):
    """Zeros on all sides of the last three axes."""

    def __init__(self, padding: int | tuple[int, ...]) -> None:
        super().__init__()
        self.pad = nn.ConstantPad3d(padding, 0.0)

    def construct(self, input: Tensor) -> Tensor:
        """input: (N, C, D, H, W) or (C, D, H, W)."""
        return self.pad(input)


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
