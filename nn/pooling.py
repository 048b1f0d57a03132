"""Pools that MindSpore lacks, or computes otherwise than torch on the CPU, and the inverse of max pools."""

from __future__ import annotations

import math
from collections.abc import Sequence

from mindspore import Tensor, nn, ops


class AdaptiveAvgPool1d(nn.Cell):
    """The means of `output_size` sections of nearly equal length; MindSpore's own needs exactly equal lengths."""

    def __init__(self, output_size: int) -> None:
        super().__init__()
        self.output_size = output_size

    def construct(self, input: Tensor) -> Tensor:
        """input: (N, C, L) or (C, L)."""
        return adaptive_avg_pool1d(input, self.output_size)


class AdaptiveMaxPool1d(nn.Cell):
    """The maxima of `output_size` sections of nearly equal length; MindSpore's own needs exactly equal lengths."""

    def __init__(self, output_size: int, return_indices: bool = False) -> None:
        super().__init__()
        self.output_size, self.return_indices = output_size, return_indices

    def construct(self, input: Tensor) -> Tensor | tuple[Tensor, Tensor]:
        """input: (N, C, L) or (C, L)."""
        values, indices = ops.adaptive_max_pool2d(input.expand_dims(-2), (1, self.output_size), True)
        return (values.squeeze(-2), indices.squeeze(-2)) if self.return_indices else values.squeeze(-2)


class LPPool3d(nn.Cell):
    """The p-th root of the sum of p-th powers in a window; MindSpore has it in one and two dimensions only."""

    def __init__(
        self,
        norm_type: float,
        kernel_size: int | tuple[int, int, int],
        stride: int | tuple[int, int, int] | None = None,
        ceil_mode: bool = False,
    ) -> None:
        super().__init__()
        depth, height, width = (kernel_size,) * 3 if isinstance(kernel_size, int) else kernel_size
        self.norm_type, self.size = float(norm_type), depth * height * width
        step = kernel_size if stride is None else stride
        self.mean = nn.AvgPool3d(kernel_size, step, "pad" if ceil_mode else "valid", 0, ceil_mode)

    def construct(self, input: Tensor) -> Tensor:
        """input: (N, C, D, H, W)."""
        mean = self.mean(ops.pow(input, self.norm_type))
        return ops.pow(mean * self.size, 1.0 / self.norm_type)


class AvgPool2dSame(nn.Cell):
    """Mean pooling as TensorFlow's SAME, with the padding's zeros counted, which MindSpore's 'same' leaves out."""

    def __init__(self, kernel_size: int | tuple[int, int], stride: int | tuple[int, int]) -> None:
        super().__init__()
        self.kernel_size = (kernel_size, kernel_size) if isinstance(kernel_size, int) else tuple(kernel_size)
        self.stride = (stride, stride) if isinstance(stride, int) else tuple(stride)
        self.pool = nn.AvgPool2d(self.kernel_size, self.stride, "valid")

    def construct(self, x: Tensor) -> Tensor:
        """x: (N, C, H, W)."""
        (rows, columns), (down, right) = self.kernel_size, self.stride
        height = max((-(-x.shape[2] // down) - 1) * down + rows - x.shape[2], 0)
        width = max((-(-x.shape[3] // right) - 1) * right + columns - x.shape[3], 0)
        pairs = ((0, 0), (0, 0), (height // 2, height - height // 2), (width // 2, width - width // 2))
        return self.pool(ops.Pad(pairs)(x))  # compiled, the gradient of ops.pad is wrong from the second run on


class BlurPool2d(nn.Cell):
    """A binomial filter over each channel, and every stride-th value of it."""

    def __init__(
        self, channels: int | None = None, filt_size: int = 3, stride: int = 2, pad_mode: str = "reflect"
    ) -> None:
        super().__init__()
        line = [math.comb(filt_size - 1, place) / 2 ** (filt_size - 1) for place in range(filt_size)]
        self.filt = Tensor([[[[row * column for column in line] for row in line]]]).astype("float32")
        self.filt_size, self.stride, self.pad_mode = filt_size, stride, pad_mode
        self.width = ((stride - 1) + (filt_size - 1)) // 2

    def construct(self, x: Tensor) -> Tensor:
        """x: (N, C, H, W)."""
        channels = x.shape[1]
        padded = ops.pad(x, (self.width,) * 4, self.pad_mode)
        weight = ops.tile(self.filt, (channels, 1, 1, 1))
        return ops.conv2d(padded, weight, None, self.stride, "valid", 0, 1, channels)


class AdaptiveAvgMaxPool2d(nn.Cell):
    """Half the mean and half the largest value of each section."""

    def __init__(self, output_size: int | tuple[int, int] = 1) -> None:
        super().__init__()
        self.output_size = (output_size, output_size) if isinstance(output_size, int) else tuple(output_size)

    def construct(self, x: Tensor) -> Tensor:
        """x: (N, C, H, W)."""
        means = ops.adaptive_avg_pool2d(x, self.output_size)
        return 0.5 * (means + ops.adaptive_max_pool2d(x, self.output_size))


class SelectAdaptivePool2d(nn.Cell):
    """Global pooling: 'fast' or 'avg' the mean, 'max', 'avgmax' half of each, 'catavgmax' both, '' nothing."""

    def __init__(self, output_size: int = 1, pool_type: str = "fast", flatten: bool = False) -> None:
        super().__init__()
        self.pool_type, self.flatten = pool_type.lower().replace("fast", ""), flatten
        self.identity = not pool_type

    def construct(self, x: Tensor) -> Tensor:
        """x: (N, C, H, W)."""
        if self.identity:
            pooled = x
        elif self.pool_type in ("", "avg"):
            pooled = ops.mean(x, (2, 3), True)
        elif self.pool_type == "max":
            pooled = ops.amax(x, (2, 3), True)
        elif self.pool_type == "avgmax":
            pooled = 0.5 * (ops.mean(x, (2, 3), True) + ops.amax(x, (2, 3), True))
        else:
            pooled = ops.cat((ops.mean(x, (2, 3), True), ops.amax(x, (2, 3), True)), 1)
        return pooled.reshape((pooled.shape[0], -1)) if self.flatten else pooled


def max_pool1d(
    input: Tensor,
    kernel_size: int | Sequence[int],
    stride: int | Sequence[int] | None = None,
    padding: int | Sequence[int] = 0,
    dilation: int | Sequence[int] = 1,
    ceil_mode: bool = False,
) -> Tensor:
    """The largest value of every window along the last dimension, as a pooling of images of height 1."""
    kernel, side, apart = _one(kernel_size), _one(padding), _one(dilation)
    step = kernel if stride is None else _one(stride)
    x = ops.max_pool2d(ops.unsqueeze(input, -2), (1, kernel), (1, step), (0, side), (1, apart), ceil_mode=ceil_mode)
    return x.squeeze(-2)


def _one(size: int | Sequence[int]) -> int:
    """The number, or the first one of several."""
    return size if isinstance(size, int) else size[0]


def adaptive_avg_pool1d(input: Tensor, output_size: int | Sequence[int]) -> Tensor:
    """The mean of each of `output_size` parts of the last dimension, a number that need not divide its size."""
    return ops.adaptive_avg_pool2d(ops.unsqueeze(input, -2), (1, _one(output_size))).squeeze(-2)


def adaptive_max_pool1d(input: Tensor, output_size: int | Sequence[int]) -> Tensor:
    """The largest of each of `output_size` parts of the last dimension, a number that need not divide its size."""
    return ops.adaptive_max_pool2d(ops.unsqueeze(input, -2), (1, _one(output_size))).squeeze(-2)


def max_unpool(
    input: Tensor,
    indices: Tensor,
    kernel_size: int | Sequence[int],
    stride: int | Sequence[int] | None = None,
    padding: int | Sequence[int] = 0,
    output_size: Sequence[int] | None = None,
    rank: int = 2,
) -> Tensor:
    """Zeros of `output_size` (its last `rank` numbers), or of the smallest size that pools to the input's, with the
    values of `input` (..., sizes) at `indices`, which count within each channel."""
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


class MaxUnpool1d(nn.MaxUnpool1d):
    """MindSpore's own with an output_size that may also give all sizes, which MindSpore's does not take."""

    def construct(self, x: Tensor, indices: Tensor, output_size: Sequence[int] | None = None) -> Tensor:
        """x, indices: (N, C, L). output_size: the length of the output, or all its sizes."""
        return max_unpool(x, indices, self.kernel_size, self.stride, self.padding, output_size, 1)


class MaxUnpool2d(nn.MaxUnpool2d):
    """MindSpore's own with an output_size that may also give all sizes, which MindSpore's does not take."""

    def construct(self, x: Tensor, indices: Tensor, output_size: Sequence[int] | None = None) -> Tensor:
        """x, indices: (N, C, H, W). output_size: the height and width of the output, or all its sizes."""
        return max_unpool(x, indices, self.kernel_size, self.stride, self.padding, output_size, 2)


class MaxUnpool3d(nn.MaxUnpool3d):
    """MindSpore's own with an output_size that may also give all sizes, which MindSpore's does not take."""

    def construct(self, x: Tensor, indices: Tensor, output_size: Sequence[int] | None = None) -> Tensor:
        """x, indices: (N, C, D, H, W). output_size: depth, height and width of the output, or all its sizes."""
        return max_unpool(x, indices, self.kernel_size, self.stride, self.padding, output_size, 3)


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
