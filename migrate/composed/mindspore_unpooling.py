"""Max-unpooling over one to three dimensions, each value put back to where it was the largest."""

from __future__ import annotations

from collections.abc import Sequence

from mindspore import Tensor, ops


def max_unpool(
    input: Tensor,
    indices: Tensor,
    kernel_size: int | Sequence[int],
    stride: int | Sequence[int] | None = None,
    padding: int | Sequence[int] = 0,
    output_size: Sequence[int] | None = None,
    rank: int = 2,
) -> Tensor:
    """Zeros in `output_size` (its last `rank` numbers), or in the smallest size that pools to this one, with the values
    of `input` (..., sizes) at `indices`, which count within each channel."""
    sizes = tuple(input.shape[-rank:])
    if output_size is not None:
        wanted = tuple(output_size)[-rank:]
    else:
        kernel = (kernel_size,) * rank if isinstance(kernel_size, int) else tuple(kernel_size)
        steps = kernel if stride is None else ((stride,) * rank if isinstance(stride, int) else tuple(stride))
        sides = (padding,) * rank if isinstance(padding, int) else tuple(padding)
        wanted = ()
        for index in range(rank):
            wanted = (*wanted, (sizes[index] - 1) * steps[index] - 2 * sides[index] + kernel[index])
    places, whole = 1, 1
    for index in range(rank):
        places, whole = places * sizes[index], whole * wanted[index]
    values = input.reshape((-1, places))
    zeros = ops.zeros((values.shape[0], whole), input.dtype)
    filled = ops.tensor_scatter_elements(zeros, indices.reshape((-1, places)), values, 1)
    return filled.reshape(tuple(input.shape[:-rank]) + wanted)


def max_unpool1d(
    input: Tensor,
    indices: Tensor,
    kernel_size: int | Sequence[int],
    stride: int | Sequence[int] | None = None,
    padding: int | Sequence[int] = 0,
    output_size: Sequence[int] | None = None,
) -> Tensor:
    """max_unpool over the last dimension."""
    return max_unpool(input, indices, kernel_size, stride, padding, output_size, 1)


def max_unpool2d(
    input: Tensor,
    indices: Tensor,
    kernel_size: int | Sequence[int],
    stride: int | Sequence[int] | None = None,
    padding: int | Sequence[int] = 0,
    output_size: Sequence[int] | None = None,
) -> Tensor:
    """max_unpool over the last two dimensions."""
    return max_unpool(input, indices, kernel_size, stride, padding, output_size, 2)


def max_unpool3d(
    input: Tensor,
    indices: Tensor,
    kernel_size: int | Sequence[int],
    stride: int | Sequence[int] | None = None,
    padding: int | Sequence[int] = 0,
    output_size: Sequence[int] | None = None,
) -> Tensor:
    """max_unpool over the last three dimensions."""
    return max_unpool(input, indices, kernel_size, stride, padding, output_size, 3)
