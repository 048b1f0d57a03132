"""Layers of timm that MindSpore has no counterpart of; with timm's argument names."""

from __future__ import annotations

import math

from mindspore import Parameter, Tensor, nn, ops


class DropPath(nn.Cell):
    """In training zeros samples with probability drop_prob, and scales the others."""

    def __init__(self, drop_prob: float = 0.0, scale_by_keep: bool = True) -> None:
        super().__init__()
        self.drop_prob, self.scale_by_keep = drop_prob, scale_by_keep
        if drop_prob < 1.0:
            self.dropout = nn.Dropout(p=drop_prob)

    def construct(self, x: Tensor) -> Tensor:
        """x: (N, ...)."""
        if not self.training or self.drop_prob == 0.0:
            return x
        if self.drop_prob == 1.0:
            return ops.zeros_like(x)
        kept = self.dropout(ops.ones((x.shape[0],) + (1,) * (len(x.shape) - 1), x.dtype))
        if not self.scale_by_keep:
            kept = (kept > 0).astype(x.dtype)
        return x * kept


class LayerScale(nn.Cell):
    """A trained factor for each value of the last axis."""

    def __init__(self, dim: int, init_values: float = 1e-05) -> None:
        super().__init__()
        self.gamma = Parameter(init_values * ops.ones((dim,)), name="gamma")

    def construct(self, x: Tensor) -> Tensor:
        """x: (..., dim)."""
        return x * self.gamma


class LayerScale2d(nn.Cell):
    """A trained factor for each channel."""

    def __init__(self, dim: int, init_values: float = 1e-05) -> None:
        super().__init__()
        self.gamma = Parameter(init_values * ops.ones((dim,)), name="gamma")

    def construct(self, x: Tensor) -> Tensor:
        """x: (N, dim, H, W)."""
        return x * self.gamma.reshape((1, -1, 1, 1))


class QuickGELU(nn.Cell):
    """x * sigmoid(1.702 x)."""

    def __init__(self) -> None:
        super().__init__()

    def construct(self, input: Tensor) -> Tensor:
        """input: of any shape."""
        return input * ops.sigmoid(1.702 * input)


class HardMish(nn.Cell):
    """x / 2 times x + 2, the latter between 0 and 2."""

    def __init__(self) -> None:
        super().__init__()

    def construct(self, x: Tensor) -> Tensor:
        """x: of any shape."""
        return 0.5 * x * ops.clamp(x + 2, 0, 2)


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

    def construct(self, x: Tensor) -> Tensor:
        """x: (N, C, H, W)."""
        centred = self.weight - ops.mean(self.weight, (1, 2, 3), True)
        weight = centred * ops.rsqrt(ops.mean(centred * centred, (1, 2, 3), True) + self.eps)
        bias = self.bias if self.has_bias else None
        return ops.conv2d(x, weight, bias, self.stride, "pad", self.width, self.dilation, self.group)


class ScaledStdConv2d(nn.Conv2d):
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
        width = ((stride - 1) + dilation * (kernel_size - 1)) // 2 if padding is None else padding
        super().__init__(in_channels, out_channels, kernel_size, stride, "pad", width, dilation, groups, has_bias=bias)
        self.eps, self.width = eps, width
        self.scale = gamma * (in_channels // groups * kernel_size * kernel_size) ** -0.5
        self.gain = Parameter(gain_init * ops.ones((out_channels, 1, 1, 1)), name="gain")

    def construct(self, x: Tensor) -> Tensor:
        """x: (N, C, H, W)."""
        centred = self.weight - ops.mean(self.weight, (1, 2, 3), True)
        unit = centred * ops.rsqrt(ops.mean(centred * centred, (1, 2, 3), True) + self.eps)
        weight = unit * (self.gain * self.scale)
        bias = self.bias if self.has_bias else None
        return ops.conv2d(x, weight, bias, self.stride, "pad", self.width, self.dilation, self.group)


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


class SpaceToDepth(nn.Cell):
    """Squares of block_size pixels become channels, the place in the square before the channel."""

    def __init__(self, block_size: int = 4) -> None:
        super().__init__()
        self.block_size = block_size

    def construct(self, x: Tensor) -> Tensor:
        """x: (N, C, H, W)."""
        count, channels, height, width = x.shape
        block = self.block_size
        split = x.reshape((count, channels, height // block, block, width // block, block))
        return split.permute((0, 3, 5, 1, 2, 4)).reshape(
            (count, channels * block * block, height // block, width // block)
        )


class DepthToSpace(nn.Cell):
    """Channels become squares of block_size pixels, the place in the square before the channel."""

    def __init__(self, block_size: int) -> None:
        super().__init__()
        self.block_size = block_size

    def construct(self, x: Tensor) -> Tensor:
        """x: (N, C, H, W)."""
        count, channels, height, width = x.shape
        block = self.block_size
        inner = channels // (block * block)
        split = x.reshape((count, block, block, inner, height, width))
        return split.permute((0, 3, 4, 1, 5, 2)).reshape((count, inner, height * block, width * block))


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
