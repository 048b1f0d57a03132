"""Norms of values that MindSpore's CPU lacks or gets wrong."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from mindspore import Parameter, Tensor, nn, ops

from .containers import drop_parameters


class RMSNorm(nn.Cell):
    """Divides by the root of the mean square over the last axes, those of `normalized_shape`, and scales.

    eps: None is float32's own, as in torch.
    """

    def __init__(
        self, normalized_shape: int | Sequence[int], eps: float | None = None, elementwise_affine: bool = True
    ) -> None:
        super().__init__()
        shape = (normalized_shape,) if isinstance(normalized_shape, int) else tuple(normalized_shape)
        self.shape, self.eps = shape, eps
        self.weight = Parameter(ops.ones(shape), name="weight") if elementwise_affine else None

    def construct(self, input: Tensor) -> Tensor:
        """input: (..., *normalized_shape)."""
        return rms_norm(input, self.shape, self.weight, self.eps)


class PartialLayerNorm(nn.LayerNorm):
    """A LayerNorm over the last axes, those of `normalized_shape`, without a shift or without both of its weights."""

    def __init__(
        self,
        normalized_shape: Sequence[int],
        epsilon: float = 1e-5,
        elementwise_affine: bool = True,
        bias: bool = True,
    ) -> None:
        super().__init__(normalized_shape, -len(normalized_shape), -len(normalized_shape), epsilon=epsilon)
        self.elementwise_affine = elementwise_affine
        if not elementwise_affine:
            drop_parameters(self, "gamma")
        if not (elementwise_affine and bias):
            drop_parameters(self, "beta")

    def construct(self, input: Tensor) -> Tensor:
        """input: (..., *normalized_shape)."""
        return layer_norm(input, self.normalized_shape, self.gamma, self.beta, self.epsilon)


class NormWithoutWeights(nn.Cell):
    """Of a BatchNorm: without weights where affine is False; MindSpore's own has ones and zeros in their place."""

    weighs_old = True

    def __init__(self, num_features: int, eps: float = 1e-5, momentum: float = 0.9, affine: bool = True) -> None:
        super().__init__(num_features, eps, momentum, affine)
        self.affine = affine
        if not affine:
            drop_parameters(self, "gamma", "beta")
            self.ones, self.zeros = ops.ones((num_features,)), ops.zeros((num_features,))

    def construct(self, x: Tensor) -> Tensor:
        """x: as the BatchNorm's."""
        if self.affine:
            return super().construct(x)
        self._check_input_dim(x.shape, self.cls_name)
        image = x if x.ndim == 4 else x.reshape((*x.shape, 1, 1)[:4])
        of_batch = self.training if self.use_batch_statistics is None else self.use_batch_statistics
        run = self.bn_train if of_batch else self.bn_infer
        return run(image, self.ones, self.zeros, self.moving_mean, self.moving_variance)[0].reshape(x.shape)


class PartialBatchNorm1d(NormWithoutWeights, nn.BatchNorm1d):
    """A BatchNorm1d with affine as torch's."""


class PartialBatchNorm2d(NormWithoutWeights, nn.BatchNorm2d):
    """A BatchNorm2d with affine as torch's."""


class PartialBatchNorm3d(nn.BatchNorm3d):
    """A BatchNorm3d with affine as torch's."""

    weighs_old = True

    def __init__(self, num_features: int, eps: float = 1e-5, momentum: float = 0.9, affine: bool = True) -> None:
        super().__init__(num_features, eps, momentum, affine)
        self.affine, self.bn2d = affine, PartialBatchNorm2d(num_features, eps, momentum, affine)


def momentum_of(norm: Any, momentum: float) -> float:
    """torch's momentum, the weight of the new statistics, as this class takes it: MindSpore's BatchNorms take that of
    the old ones."""
    cls = getattr(norm, "func", norm)
    makes = next((one for one in getattr(cls, "__mro__", ()) if "__init__" in vars(one)), object)
    own = makes.__module__.startswith("mindspore.") or "weighs_old" in vars(makes)
    of_batches = (nn.BatchNorm1d, nn.BatchNorm2d, nn.BatchNorm3d, nn.SyncBatchNorm)
    return 1 - momentum if own and issubclass(cls, of_batches) else momentum


class PartialGroupNorm(nn.GroupNorm):
    """A GroupNorm without weights where affine is False; MindSpore's own has ones and zeros in their place."""

    def __init__(self, num_groups: int, num_channels: int, eps: float = 1e-5, affine: bool = True) -> None:
        super().__init__(num_groups, num_channels, eps, affine)
        if not affine:
            drop_parameters(self, "gamma", "beta")

    def construct(self, x: Tensor) -> Tensor:
        """x: (N, C, ...)."""
        return ops.group_norm(x, self.num_groups, self.gamma, self.beta, self.eps)


class LocalResponseNorm(nn.Cell):
    """Divides by (k + alpha * the mean square of `size` neighbouring channels) to the power beta."""

    def __init__(self, size: int, alpha: float = 0.0001, beta: float = 0.75, k: float = 1.0) -> None:
        super().__init__()
        self.size, self.alpha, self.beta, self.k = size, alpha, beta, k

    def construct(self, input: Tensor) -> Tensor:
        """input: (N, C, ...)."""
        return local_response_norm(input, self.size, self.alpha, self.beta, self.k)


class InstanceNormNd(nn.Cell):
    """What torch's InstanceNorm1d, 2d and 3d share, with their arguments; track_running_stats: whether it keeps running
    statistics, by which it normalizes in evaluation; momentum: the weight of new ones, with None they never change."""

    axes = 1

    def __init__(
        self,
        num_features: int,
        eps: float = 1e-5,
        momentum: float | None = 0.1,
        affine: bool = False,
        track_running_stats: bool = False,
    ) -> None:
        super().__init__()
        self.num_channels, self.eps = num_features, eps
        self.gamma = Parameter(ops.ones((num_features,)), name="gamma") if affine else None
        self.beta = Parameter(ops.zeros((num_features,)), name="beta") if affine else None
        self.momentum, self.tracked = momentum or 0.0, track_running_stats
        if track_running_stats:
            self.moving_mean = Parameter(ops.zeros((num_features,)), name="moving_mean", requires_grad=False)
            self.moving_variance = Parameter(ops.ones((num_features,)), name="moving_variance", requires_grad=False)

    def construct(self, x: Tensor) -> Tensor:
        """x: (N, C, L). Raises ValueError for another number of axes."""
        if x.ndim != self.axes + 2:
            raise ValueError(f"an input of {x.ndim} axes: it needs {self.axes + 2}, with that of the batch")
        if not self.tracked:
            return instance_norm(x, None, None, self.gamma, self.beta, True, 0.0, self.eps)
        mean, variance = self.moving_mean, self.moving_variance
        return instance_norm(x, mean, variance, self.gamma, self.beta, self.training, self.momentum, self.eps)


class InstanceNorm1d(InstanceNormNd):
    """InstanceNormNd for sequences (N, C, L)."""


class InstanceNorm2d(InstanceNormNd):
    """InstanceNormNd for images (N, C, H, W)."""

    axes = 2


class InstanceNorm3d(InstanceNormNd):
    """InstanceNormNd for volumes (N, C, D, H, W)."""

    axes = 3


class FrozenBatchNorm2d(nn.Cell):
    """Batch normalisation by fixed statistics and a fixed affine map; none of its tensors is trained."""

    def __init__(self, num_features: int, eps: float = 1e-5) -> None:
        super().__init__()
        self.eps = eps
        self.weight = Parameter(ops.ones((num_features,)), name="weight", requires_grad=False)
        self.bias = Parameter(ops.zeros((num_features,)), name="bias", requires_grad=False)
        self.running_mean = Parameter(ops.zeros((num_features,)), name="running_mean", requires_grad=False)
        self.running_var = Parameter(ops.ones((num_features,)), name="running_var", requires_grad=False)
        for tensor in (self.weight, self.bias, self.running_mean, self.running_var):
            tensor.of_buffer = True  # see containers.py: named_parameters

    def construct(self, x: Tensor) -> Tensor:
        """x: (N, C, H, W)."""
        scale = self.weight * ops.rsqrt(self.running_var + self.eps)
        bias = self.bias - self.running_mean * scale
        return x * scale.reshape((1, -1, 1, 1)) + bias.reshape((1, -1, 1, 1))


class LayerNorm2d(nn.Cell):
    """Layer normalisation over the channels of (N, C, H, W)."""

    is_norm = True

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


class SimpleNorm(nn.Cell):
    """Divides by the root of the last axis' variance, without subtracting the mean, and scales."""

    def __init__(self, channels: int, eps: float = 1e-6, affine: bool = True) -> None:
        super().__init__()
        self.eps, self.channels = eps, channels
        self.weight = Parameter(ops.ones((channels,)), name="weight") if affine else None

    def construct(self, x: Tensor) -> Tensor:
        """x: (..., channels)."""
        output = self.divided(x, -1)
        return output if self.weight is None else output * self.weight

    def divided(self, x: Tensor, axis: int) -> Tensor:
        """x over the root of an axis' variance."""
        centred = x - ops.mean(x, axis, True)
        variance = ops.sum(centred * centred, axis, True) / (self.channels - 1)
        return x * ops.rsqrt(variance + self.eps)


class SimpleNorm2d(SimpleNorm):
    """Divides by the root of the channels' variance, without subtracting the mean, and scales."""

    def construct(self, x: Tensor) -> Tensor:
        """x: (N, C, H, W)."""
        output = self.divided(x, 1)
        return output if self.weight is None else output * self.weight.reshape((1, -1, 1, 1))


class RmsNorm2d(SimpleNorm2d):
    """Divides by the root of the channels' mean square, and scales."""

    def divided(self, x: Tensor, axis: int) -> Tensor:
        """x over the root of an axis' mean square."""
        return x * ops.rsqrt(ops.mean(x * x, axis, True) + self.eps)


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


def layer_norm(
    input: Tensor,
    normalized_shape: Sequence[int],
    weight: Tensor | None = None,
    bias: Tensor | None = None,
    eps: float = 1e-5,
) -> Tensor:
    """Mean 0 and variance 1 over the last dimensions, then scaled and shifted; ops.layer_norm has no CPU kernel."""
    shape = tuple(normalized_shape)
    first = -1 if len(shape) == 1 else input.ndim - len(shape)  # -1 is what ONNX's exporter takes
    scale = ops.ones(shape, input.dtype) if weight is None else weight
    shift = ops.zeros(shape, input.dtype) if bias is None else bias
    return ops.LayerNorm(first, first, eps)(input, scale, shift)[0]


def rms_norm(
    input: Tensor, normalized_shape: Sequence[int], weight: Tensor | None = None, eps: float | None = None
) -> Tensor:
    """`input` divided by the root of the mean square over the last dimensions, then scaled; eps: None is float32's."""
    axes = tuple(range(-len(normalized_shape), 0))
    small = 1.1920928955078125e-07 if eps is None else eps
    x = input * ops.rsqrt(ops.mean(input * input, axes, True) + small)
    return x if weight is None else x * weight


def batch_norm(
    input: Tensor,
    running_mean: Tensor | None,
    running_var: Tensor | None,
    weight: Tensor | None = None,
    bias: Tensor | None = None,
    training: bool = False,
    momentum: float = 0.1,
    eps: float = 1e-5,
) -> Tensor:
    """`input` normalized by the running statistics, or in training by the batch's, which update them."""
    if not training:
        return _normalized(input, (), running_mean, running_var, weight, bias, eps)
    axes = (0, *range(2, input.ndim))
    if running_mean is not None and running_var is not None:
        values = ops.stop_gradient(input)
        mean = ops.mean(values, axes, True)
        count = input.size // input.shape[1]
        variance = ops.mean((values - mean) * (values - mean), axes) * (count / (count - 1))
        ops.assign(running_mean, running_mean * (1 - momentum) + mean.reshape(-1) * momentum)
        ops.assign(running_var, running_var * (1 - momentum) + variance * momentum)
    return _normalized(input, axes, None, None, weight, bias, eps)


def instance_norm(
    input: Tensor,
    running_mean: Tensor | None = None,
    running_var: Tensor | None = None,
    weight: Tensor | None = None,
    bias: Tensor | None = None,
    use_input_stats: bool = True,
    momentum: float = 0.1,
    eps: float = 1e-5,
) -> Tensor:
    """Every channel of every sample normalized by its own statistics, which update the running ones, or by the latter.

    The running statistics are updated by the means over the samples, of unbiased variances.
    """
    if running_mean is None or running_var is None:
        return _normalized(input, tuple(range(2, input.ndim)), None, None, weight, bias, eps)
    if not use_input_stats:
        return _normalized(input, (), running_mean, running_var, weight, bias, eps)
    axes = tuple(range(2, input.ndim))
    values = ops.stop_gradient(input)
    mean = ops.mean(values, axes, True)
    count = input.size // (input.shape[0] * input.shape[1])
    variance = ops.mean((values - mean) * (values - mean), (0, *axes)) * (count / (count - 1))
    ops.assign(running_mean, running_mean * (1 - momentum) + ops.mean(mean, 0).reshape(-1) * momentum)
    ops.assign(running_var, running_var * (1 - momentum) + variance * momentum)
    return _normalized(input, axes, None, None, weight, bias, eps)


def _normalized(
    input: Tensor,
    axes: tuple[int, ...],
    mean: Tensor | None,
    variance: Tensor | None,
    weight: Tensor | None,
    bias: Tensor | None,
    eps: float,
) -> Tensor:
    """(N, C, ...) by these means and variances of the channels, or by its own over some axes; scaled and shifted."""
    shape = (1, -1) + (1,) * (input.ndim - 2)
    if mean is None or variance is None:
        centred = input - ops.mean(input, axes, True)
        square = ops.mean(centred * centred, axes, True)
    else:
        centred = input - mean.reshape(shape)
        square = variance.reshape(shape)
    x = centred / ops.sqrt(square + eps)
    if weight is not None:
        x = x * weight.reshape(shape)
    return x if bias is None else x + bias.reshape(shape)


def normalize(input: Tensor, p: float = 2.0, dim: int = 1, eps: float = 1e-12) -> Tensor:
    """`input` divided by its norm of order p along `dim`, which is taken as eps if it is less."""
    if p == 2.0:
        square = (input * input).sum(dim, keepdims=True)
        # the root's gradient is infinite at 0; torch's is 0 below eps
        size = ops.where(square > eps * eps, ops.sqrt(ops.maximum(square, eps * eps)), eps * ops.ones_like(square))
        return input / size
    if p == 1.0:
        return input / ops.maximum(ops.abs(input).sum(dim, keepdims=True), eps)
    return input / ops.maximum(ops.pow(ops.pow(ops.abs(input), p).sum(dim, keepdims=True), 1.0 / p), eps)


def local_response_norm(input: Tensor, size: int, alpha: float = 1e-4, beta: float = 0.75, k: float = 1.0) -> Tensor:
    """`input` divided by (k + alpha · the mean square of `size` neighbouring channels) to the power of beta."""
    square, channels = input * input, input.shape[1]
    before = ops.zeros_like(ops.narrow(square, 1, 0, 1))
    padded = ops.cat((before,) * (size // 2) + (square,) + (before,) * ((size - 1) // 2), 1)
    total = ops.narrow(padded, 1, 0, channels)
    for shift in range(1, size):
        total = total + ops.narrow(padded, 1, shift, channels)
    return input / ops.pow(total * (alpha / size) + k, beta)
