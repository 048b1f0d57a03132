"""Layers that MindSpore lacks, or computes otherwise than torch on the CPU; with torch's argument names."""

from __future__ import annotations

from collections.abc import Sequence

from mindspore import Parameter, Tensor, nn, ops
from mindspore.common.initializer import Normal, initializer


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


class CosineSimilarity(nn.Cell):
    """The cosine of the angle between two vectors along `dim`; each norm is at least eps."""

    def __init__(self, dim: int = 1, eps: float = 1e-08) -> None:
        super().__init__()
        self.dim, self.eps = dim, eps

    def construct(self, x1: Tensor, x2: Tensor) -> Tensor:
        """x1, x2: of shapes that broadcast."""
        one = ops.sqrt(ops.sum(x1 * x1, self.dim, True))
        other = ops.sqrt(ops.sum(x2 * x2, self.dim, True))
        floor = self.eps * ops.ones_like(one)
        return ops.sum((x1 / ops.maximum(one, floor)) * (x2 / ops.maximum(other, floor)), self.dim)


class PairwiseDistance(nn.Cell):
    """The norm of order p of x1 - x2 + eps over the last axis."""

    def __init__(self, p: float = 2.0, eps: float = 1e-06, keepdim: bool = False) -> None:
        super().__init__()
        self.p, self.eps, self.keepdim = p, eps, keepdim

    def construct(self, x1: Tensor, x2: Tensor) -> Tensor:
        """x1, x2: (..., features)."""
        difference = ops.abs(x1 - x2 + self.eps)
        if self.p == 1.0:
            return ops.sum(difference, -1, self.keepdim)
        if self.p == 2.0:
            return ops.sqrt(ops.sum(difference * difference, -1, self.keepdim))
        return ops.pow(ops.sum(ops.pow(difference, self.p), -1, self.keepdim), 1.0 / self.p)


class EmbeddingBag(nn.Cell):
    """The sum, mean or maximum of the embeddings of each bag."""

    def __init__(self, num_embeddings: int, embedding_dim: int, mode: str = "mean") -> None:
        super().__init__()
        self.mode = mode
        self.weight = Parameter(initializer(Normal(1.0, 0.0), (num_embeddings, embedding_dim)), name="weight")

    def construct(self, input: Tensor, offsets: Tensor | None = None) -> Tensor:
        """input: (bags, size) of integers, or (values,) with where each bag begins in `offsets` (bags,)."""
        found = ops.gather(self.weight, input, 0)
        if offsets is None:
            if self.mode == "max":
                return ops.amax(found, 1)
            return ops.sum(found, 1) if self.mode == "sum" else ops.mean(found, 1)
        places = ops.expand_dims(ops.arange(input.shape[0]), 0)
        begun = (ops.expand_dims(offsets, 1) <= places).astype(found.dtype)  # (bags, values)
        following = ops.cat((begun[1:], ops.zeros_like(begun[:1])), 0)
        inside = begun - following
        count = ops.maximum(ops.sum(inside, 1, True), ops.ones_like(inside[:, :1]))
        if self.mode == "max":
            shifted = ops.expand_dims(found, 0) + ops.expand_dims((inside - 1) * 1e30, 2)
            return ops.where(ops.sum(inside, 1, True) > 0, ops.amax(shifted, 1), ops.zeros_like(found[:1]))
        total = ops.matmul(inside, found)
        return total if self.mode == "sum" else total / count


class UpsamplingNearest2d(nn.Cell):
    """Repeats pixels up to a size, or a whole number of times."""

    def __init__(
        self, size: int | tuple[int, int] | None = None, scale_factor: int | tuple[int, int] | None = None
    ) -> None:
        super().__init__()
        self.size = (size, size) if isinstance(size, int) else size
        self.factors = (scale_factor, scale_factor) if isinstance(scale_factor, (int, float)) else scale_factor

    def construct(self, input: Tensor) -> Tensor:
        """input: (N, C, H, W)."""
        size = self.size
        if self.factors is not None:
            size = (int(input.shape[2] * self.factors[0]), int(input.shape[3] * self.factors[1]))
        return ops.interpolate(input, size=size, mode="nearest")


class UpsamplingBilinear2d(nn.Cell):
    """Bilinear up to a size, or by a factor, with the corners aligned."""

    def __init__(
        self, size: int | tuple[int, int] | None = None, scale_factor: float | tuple[float, float] | None = None
    ) -> None:
        super().__init__()
        self.size = (size, size) if isinstance(size, int) else size
        self.factors = (scale_factor, scale_factor) if isinstance(scale_factor, (int, float)) else scale_factor

    def construct(self, input: Tensor) -> Tensor:
        """input: (N, C, H, W)."""
        size = self.size
        if self.factors is not None:
            size = (int(input.shape[2] * self.factors[0]), int(input.shape[3] * self.factors[1]))
        return ops.interpolate(input, size=size, mode="bilinear", align_corners=True)


class Permute(nn.Cell):
    """The axes in another order."""

    def __init__(self, dims: Sequence[int]) -> None:
        super().__init__()
        self.dims = tuple(dims)

    def construct(self, x: Tensor) -> Tensor:
        """x: of as many axes as `dims` names."""
        return ops.permute(x, self.dims)


class StochasticDepth(nn.Cell):
    """In training zeros samples ('row'), or the whole batch ('batch'), with probability p, and scales the others."""

    def __init__(self, p: float, mode: str) -> None:
        super().__init__()
        self.p, self.mode = p, mode
        if p < 1.0:
            self.dropout = nn.Dropout(p=p)

    def construct(self, input: Tensor) -> Tensor:
        """input: (N, ...)."""
        if not self.training or self.p == 0.0:
            return input
        if self.p == 1.0:
            return ops.zeros_like(input)
        count = input.shape[0] if self.mode == "row" else 1
        kept = self.dropout(ops.ones((count,) + (1,) * (len(input.shape) - 1), input.dtype))
        return input * kept


class DropBlock2d(nn.Cell):
    """In training zeros square blocks of an image, a share p of it, and scales the rest."""

    def __init__(self, p: float, block_size: int, eps: float = 1e-06) -> None:
        super().__init__()
        self.p, self.block_size, self.eps = p, block_size, eps

    def construct(self, input: Tensor) -> Tensor:
        """input: (N, C, H, W)."""
        if not self.training or self.p == 0.0:
            return input
        count, channels, height, width = input.shape
        block = min(self.block_size, height, width)
        rows, columns = height - block + 1, width - block + 1
        gamma = self.p * height * width / (block**2 * rows * columns)
        drawn = (ops.rand(count, channels, rows, columns) < gamma).astype(input.dtype)
        half = block // 2
        drawn = ops.pad(drawn, (half, half, half, half))
        if block > 1:
            drawn = ops.max_pool2d(drawn, block, 1, half)
        kept = ops.stop_gradient(1 - drawn)
        return input * kept * (kept.size / (self.eps + kept.sum()))


class SqueezeExcitation(nn.Cell):
    """Scales channels by a ReLU and a sigmoid over their means."""

    def __init__(self, input_channels: int, squeeze_channels: int) -> None:
        super().__init__()
        self.fc1 = nn.Conv2d(input_channels, squeeze_channels, 1, pad_mode="valid", has_bias=True)
        self.fc2 = nn.Conv2d(squeeze_channels, input_channels, 1, pad_mode="valid", has_bias=True)

    def construct(self, input: Tensor) -> Tensor:
        """input: (N, C, H, W)."""
        means = ops.mean(input, (2, 3), True)
        return input * ops.sigmoid(self.fc2(ops.relu(self.fc1(means))))
