"""torchvision's deformable convolution: values picked where the offsets say, then a product with the weight."""

from __future__ import annotations

from collections.abc import Sequence

from mindspore import Tensor, ops
from mindspore import dtype as mstype


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
    """A convolution of (N, C, H, W) whose taps stand where `offset` moves them, and count as `mask` says.

    offset: (N, 2 · offset groups · kh · kw, height, width), down before across for every tap. mask: half as many
    channels. weight: (out, C / groups, kh, kw). Outside the image there are zeros.
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
    """Where the windows, or the taps of one, stand along a side when nothing moves them."""
    return ops.arange(number).astype(mstype.float32) * step - before
