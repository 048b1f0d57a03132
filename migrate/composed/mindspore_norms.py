"""Normalisation that MindSpore lacks, or has no kernel for on the CPU; with torch's argument names."""

from __future__ import annotations

from collections.abc import Sequence

from mindspore import Parameter, Tensor, nn, ops


class RMSNorm(nn.Cell):
    """Divides by the root of the mean square over the last axes, those of `normalized_shape`, and scales.

    eps: torch's None is that of float32.
    """

    def __init__(
        self, normalized_shape: int | Sequence[int], eps: float | None = None, elementwise_affine: bool = True
    ) -> None:
        super().__init__()
        shape = (normalized_shape,) if isinstance(normalized_shape, int) else tuple(normalized_shape)
        self.axes = tuple(range(-len(shape), 0))
        self.eps = 1.1920928955078125e-07 if eps is None else eps
        self.weight = Parameter(ops.ones(shape), name="weight") if elementwise_affine else None

    def construct(self, input: Tensor) -> Tensor:
        """input: (..., *normalized_shape)."""
        output = input * ops.rsqrt(ops.mean(input * input, self.axes, True) + self.eps)
        return output if self.weight is None else output * self.weight


class PartialLayerNorm(nn.Cell):
    """A LayerNorm over the last axes, those of `normalized_shape`, without a shift or without both of its weights."""

    def __init__(
        self,
        normalized_shape: Sequence[int],
        epsilon: float = 1e-5,
        elementwise_affine: bool = True,
        bias: bool = True,
    ) -> None:
        super().__init__()
        self.shape = tuple(normalized_shape)
        self.epsilon = epsilon
        self.gamma = Parameter(ops.ones(self.shape), name="gamma") if elementwise_affine else None
        self.beta = Parameter(ops.zeros(self.shape), name="beta") if elementwise_affine and bias else None

    def construct(self, input: Tensor) -> Tensor:
        """input: (..., *normalized_shape)."""
        gamma = ops.ones(self.shape, input.dtype) if self.gamma is None else self.gamma
        beta = ops.zeros(self.shape, input.dtype) if self.beta is None else self.beta
        first = -1 if len(self.shape) == 1 else input.ndim - len(self.shape)  # -1 is what ONNX's exporter takes
        return ops.LayerNorm(first, first, self.epsilon)(input, gamma, beta)[0]


class LocalResponseNorm(nn.Cell):
    """Divides by (k + alpha * the mean square of `size` neighbouring channels) to the power beta."""

    def __init__(self, size: int, alpha: float = 0.0001, beta: float = 0.75, k: float = 1.0) -> None:
        super().__init__()
        self.size, self.alpha, self.beta, self.k = size, alpha, beta, k

    def construct(self, input: Tensor) -> Tensor:
        """input: (N, C, ...)."""
        square, channels = input * input, input.shape[1]
        before = ops.zeros_like(ops.narrow(square, 1, 0, 1))
        padded = ops.cat((before,) * (self.size // 2) + (square,) + (before,) * ((self.size - 1) // 2), 1)
        total = ops.narrow(padded, 1, 0, channels)
        for shift in range(1, self.size):
            total = total + ops.narrow(padded, 1, shift, channels)
        return input / ops.pow(total * (self.alpha / self.size) + self.k, self.beta)


class FrozenBatchNorm2d(nn.Cell):
    """Batch normalisation by statistics and an affine map that stay; none of its tensors is trained."""

    def __init__(self, num_features: int, eps: float = 1e-5) -> None:
        super().__init__()
        self.eps = eps
        self.weight = Parameter(ops.ones((num_features,)), name="weight", requires_grad=False)
        self.bias = Parameter(ops.zeros((num_features,)), name="bias", requires_grad=False)
        self.running_mean = Parameter(ops.zeros((num_features,)), name="running_mean", requires_grad=False)
        self.running_var = Parameter(ops.ones((num_features,)), name="running_var", requires_grad=False)

    def construct(self, x: Tensor) -> Tensor:
        """x: (N, C, H, W)."""
        scale = self.weight * ops.rsqrt(self.running_var + self.eps)
        bias = self.bias - self.running_mean * scale
        return x * scale.reshape((1, -1, 1, 1)) + bias.reshape((1, -1, 1, 1))


class LayerNorm2d(nn.Cell):
    """Layer normalisation over the channels of (N, C, H, W)."""

    def __init__(self, num_channels: int, eps: float = 1e-6) -> None:
        super().__init__()
        self.eps = eps
        self.gamma = Parameter(ops.ones((num_channels,)), name="gamma")
        self.beta = Parameter(ops.zeros((num_channels,)), name="beta")

    def construct(self, x: Tensor) -> Tensor:
        """x: (N, C, H, W)."""
        centred = x - ops.mean(x, 1, True)
        scaled = centred * ops.rsqrt(ops.mean(centred * centred, 1, True) + self.eps)
        return scaled * self.gamma.reshape((1, -1, 1, 1)) + self.beta.reshape((1, -1, 1, 1))


class RmsNorm2d(nn.Cell):
    """Divides by the root of the channels' mean square, and scales."""

    def __init__(self, channels: int, eps: float = 1e-6, affine: bool = True) -> None:
        super().__init__()
        self.eps = eps
        self.weight = Parameter(ops.ones((channels,)), name="weight") if affine else None

    def construct(self, x: Tensor) -> Tensor:
        """x: (N, C, H, W)."""
        output = x * ops.rsqrt(ops.mean(x * x, 1, True) + self.eps)
        return output if self.weight is None else output * self.weight.reshape((1, -1, 1, 1))


class SimpleNorm(nn.Cell):
    """Divides by the root of the last axis' variance, without taking the mean away, and scales."""

    def __init__(self, channels: int, eps: float = 1e-6, affine: bool = True) -> None:
        super().__init__()
        self.eps, self.channels = eps, channels
        self.weight = Parameter(ops.ones((channels,)), name="weight") if affine else None

    def construct(self, x: Tensor) -> Tensor:
        """x: (..., channels)."""
        centred = x - ops.mean(x, -1, True)
        variance = ops.sum(centred * centred, -1, True) / (self.channels - 1)
        output = x * ops.rsqrt(variance + self.eps)
        return output if self.weight is None else output * self.weight


class SimpleNorm2d(nn.Cell):
    """Divides by the root of the channels' variance, without taking the mean away, and scales."""

    def __init__(self, channels: int, eps: float = 1e-6, affine: bool = True) -> None:
        super().__init__()
        self.eps, self.channels = eps, channels
        self.weight = Parameter(ops.ones((channels,)), name="weight") if affine else None

    def construct(self, x: Tensor) -> Tensor:
        """x: (N, C, H, W)."""
        centred = x - ops.mean(x, 1, True)
        variance = ops.sum(centred * centred, 1, True) / (self.channels - 1)
        output = x * ops.rsqrt(variance + self.eps)
        return output if self.weight is None else output * self.weight.reshape((1, -1, 1, 1))


class GlobalResponseNorm(nn.Cell):
    """ConvNeXt V2's: scales by each channel's norm over the image, divided by the channels' mean norm."""

    def __init__(self, dim: int, eps: float = 1e-6, channels_last: bool = True) -> None:
        super().__init__()
        self.eps = eps
        self.image, self.channel = ((1, 2), -1) if channels_last else ((2, 3), 1)
        self.shape = (1, 1, 1, -1) if channels_last else (1, -1, 1, 1)
        self.weight = Parameter(ops.zeros((dim,)), name="weight")
        self.bias = Parameter(ops.zeros((dim,)), name="bias")

    def construct(self, x: Tensor) -> Tensor:
        """x: (N, H, W, C) with channels_last, else (N, C, H, W)."""
        norm = ops.sqrt(ops.sum(x * x, self.image, True))
        relative = norm / (ops.mean(norm, self.channel, True) + self.eps)
        return x + self.bias.reshape(self.shape) + self.weight.reshape(self.shape) * (x * relative)
