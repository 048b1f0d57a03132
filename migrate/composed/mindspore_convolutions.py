"""Transposed convolutions with all of torch's arguments, which MindSpore's CPU gets wrong or refuses."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from mindspore import Tensor, ops


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
        (value, value) if isinstance(value, int) else (value[0], value[0])
        for value in (stride, padding, output_padding, dilation)
    ]
    x = conv_transpose2d(
        ops.unsqueeze(input, -2),
        ops.unsqueeze(weight, -2),
        bias,
        (1, steps[1]),
        (0, sides[1]),
        (0, more[1]),
        groups,
        (1, apart[1]),
    )
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
    """The transposed convolution of images: zeros between the values, then a convolution with the turned kernel.

    MindSpore's own fills what output_padding adds with other values. weight: (in, out / groups, kh, kw).
    """
    return _conv_transpose(input, weight, bias, stride, padding, output_padding, groups, dilation, 2)


def conv_transpose3d(
    input: Tensor,
    weight: Tensor,
    bias: Tensor | None = None,
    stride: int | Sequence[int] = 1,
    padding: int | Sequence[int] = 0,
    output_padding: int | Sequence[int] = 0,
    groups: int = 1,
    dilation: int | Sequence[int] = 1,
) -> Tensor:
    """The transposed convolution of volumes: zeros between the values, then a convolution with the turned kernel."""
    return _conv_transpose(input, weight, bias, stride, padding, output_padding, groups, dilation, 3)


def _conv_transpose(
    input: Tensor,
    weight: Tensor,
    bias: Tensor | None,
    stride: int | Sequence[int],
    padding: int | Sequence[int],
    output_padding: int | Sequence[int],
    groups: int,
    dilation: int | Sequence[int],
    rank: int,
) -> Tensor:
    """A transposed convolution over `rank` dimensions."""
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
        # what the convolution wants on both sides; the zeros behind the last value count
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


def _padded(x: Tensor, axis: int, before: int, behind: int) -> Tensor:
    """Zeros in front of and behind a dimension, or so many values less."""
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
