"""Norms of values that MindSpore's CPU lacks or gets wrong, and of weights, weight_norm and spectral_norm."""

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


# Layers whose weight is computed from other parameters each time they run


def weight_norm(cell: nn.Cell, name: str = "weight", dim: int | None = 0) -> nn.Cell:
    """Replace a layer's weight by a direction and a length, `weight_v` and `weight_g`, and return the layer.

    cell: a Dense, a convolution (Conv3d of one group) or a transposed one of one or two dimensions. dim: the dimension,
    counted as in torch, whose slices have a length each; None for one length of all. Both parameters have torch's
    shapes.
    The weight is weight_g · weight_v / ‖weight_v‖ (Salimans and Kingma, 2016).
    Raises TypeError for another layer or name.
    """
    weight, path = _own_weight(cell, name, WeightNorm)
    whole = dim is None or dim == -1
    axes = tuple(axis for axis in range(weight.ndim) if whole or axis != (dim or 0) % weight.ndim)
    cell.axes, cell.each = axes, not whole
    cell.weight_g = Parameter(_length(weight, axes, not whole), name=f"{path}weight_g")
    cell.weight_v = Parameter(weight, name=f"{path}weight_v")
    return cell


def spectral_norm(
    cell: nn.Cell,
    name: str = "weight",
    n_power_iterations: int = 1,
    eps: float = 1e-12,
    dim: int | None = None,
    u_first: bool = False,
) -> nn.Cell:
    """Replace a layer's weight by `weight_orig` over its largest singular value, and return the layer.

    That value is found by power iteration, one step for each run in training, with the vectors `weight_u` and
    `weight_v`. cell, name: as in weight_norm. dim: the dimension that becomes the rows, by default 1 for a transposed
    convolution, else 0. u_first: a step updates `weight_u` before `weight_v`, as in torch.nn.utils.parametrizations,
    and not after it, as torch.nn.utils.spectral_norm does. The formula is that of Miyato and others, 2018. Raises
    TypeError for another layer or name.
    """
    rows = int(isinstance(cell, (nn.Conv1dTranspose, nn.Conv2dTranspose))) if dim is None else dim
    weight, path = _own_weight(cell, name, SpectralNorm)
    cell.order = (rows, *(axis for axis in range(weight.ndim) if axis != rows))
    cell.iterations, cell.small, cell.u_first = n_power_iterations, eps, u_first
    matrix = ops.transpose(weight, cell.order).reshape((weight.shape[rows], -1))
    u, v = (normalize(ops.standard_normal((size,)), 2.0, 0, eps) for size in matrix.shape)
    u, v = _moved(matrix, u, v, 15 if u_first else 0, eps, u_first)
    cell.weight_orig = Parameter(weight, name=f"{path}weight_orig")
    cell.weight_u = Parameter(u, name=f"{path}weight_u", requires_grad=False)
    cell.weight_v = Parameter(v, name=f"{path}weight_v", requires_grad=False)
    cell.weight_u.of_buffer = cell.weight_v.of_buffer = True
    return cell


def remove_norm(cell: nn.Cell, name: str = "weight") -> nn.Cell:
    """Make the weight that a layer of weight_norm or spectral_norm computes now its own again, and return the layer.

    Raises ValueError for a layer that computes none.
    """
    if name != "weight" or not isinstance(cell, ComputedWeight):
        raise ValueError(f"{type(cell).__name__} computes no {name}")
    value, parts = cell.kernel(), [each for each in vars(cell)["_params"] if each.startswith("weight_")]
    path = getattr(cell, parts[0]).name.removesuffix(parts[0])
    for part in parts:
        delattr(cell, part)
    object.__delattr__(cell, "weight")
    cell.__class__ = type(cell).of
    value = value if cell.weight_shape is None else value.reshape(cell.weight_shape)
    cell.weight = Parameter(value, name=f"{path}weight")
    return cell


class ComputedWeight:
    """The class of a layer whose weight is computed: a weight that is assigned to it is lost, as in torch."""

    of: type
    weight_shape: tuple[int, ...] | None
    kernel: Any

    def __setattr__(self, name: str, value: Any) -> None:
        if name != "weight":
            super().__setattr__(name, value)


class WeightNorm(ComputedWeight):
    """The class of a layer after weight_norm: its weight is `weight_v` scaled to the length `weight_g`."""

    weight_g: Parameter
    weight_v: Parameter
    axes: tuple[int, ...]
    each: bool

    def kernel(self) -> Tensor:
        """The weight, in torch's shape."""
        return self.weight_v * (self.weight_g / _length(self.weight_v, self.axes, self.each))


class SpectralNorm(ComputedWeight):
    """The class of a layer after spectral_norm."""

    weight_orig: Parameter
    weight_u: Parameter
    weight_v: Parameter
    order: tuple[int, ...]
    iterations: int
    small: float
    u_first: bool
    training: bool

    def kernel(self) -> Tensor:
        """The weight, in torch's shape; in training the vectors are updated first."""
        rows = ops.transpose(self.weight_orig, self.order)
        rows = rows.reshape((rows.shape[0], -1))
        u, v = self.weight_u, self.weight_v
        if self.training:
            u, v = _moved(ops.stop_gradient(rows), u, v, self.iterations, self.small, self.u_first)
            ops.assign(self.weight_u, u)
            ops.assign(self.weight_v, v)
        u, v = ops.stop_gradient(u), ops.stop_gradient(v)
        return self.weight_orig / ops.sum(u * ops.matmul(rows, v))


class Lost:
    """The `weight` of a layer that computes its weight: what is written into it is lost, as in torch."""

    def __init__(self, weight: Tensor) -> None:
        self.shape, self.dtype = weight.shape, weight.dtype

    def set_data(self, data: Tensor) -> None:
        """Do nothing."""


def _own_weight(cell: nn.Cell, name: str, computes: type) -> tuple[Tensor, str]:
    """Make a layer compute its weight; returns the one that it had, in torch's shape, and what its name began with."""
    own = type(cell)
    runs = [own] if getattr(own, "with_norm", False) else [RUNS[each] for each in own.__mro__ if each in RUNS][:1]
    other = getattr(cell, "activation_flag", False) or (isinstance(cell, nn.Conv3d) and cell.group > 1)
    if name != "weight" or not runs or other:
        raise TypeError(f"{computes.__name__} of {name} of {type(cell).__name__} is not known")
    if isinstance(cell, (nn.Conv1dTranspose, nn.Conv2dTranspose)) and cell.pad_mode != "pad":
        raise TypeError(f"{computes.__name__} of {type(cell).__name__} with pad_mode={cell.pad_mode!r} is not known")
    cell.weight_shape = cell.weight.shape if isinstance(cell, (nn.Conv1d, nn.Conv1dTranspose)) else None
    value, path = Tensor(cell.weight.asnumpy()), cell.weight.name.removesuffix("weight")
    del cell.weight
    bases = (computes, *runs) if own in (*RUNS, *runs) else (computes, own, *runs)
    cell.__class__ = type(f"{computes.__name__}{own.__name__}", bases, {"of": own})
    found = value if cell.weight_shape is None else value.squeeze(2)
    object.__setattr__(cell, "weight", Lost(value))
    return found, path


def _moved(rows: Tensor, u: Tensor, v: Tensor, steps: int, eps: float, u_first: bool) -> tuple[Tensor, Tensor]:
    """Both vectors of a matrix after this many steps of power iteration."""
    for _ in range(steps):
        if u_first:
            u = normalize(ops.matmul(rows, v), 2.0, 0, eps)
        v = normalize(ops.matmul(u, rows), 2.0, 0, eps)
        if not u_first:
            u = normalize(ops.matmul(rows, v), 2.0, 0, eps)
    return u, v


def _length(x: Tensor, axes: tuple[int, ...], keep: bool) -> Tensor:
    """The root of the sum of squares over some axes."""
    return ops.sqrt((x * x).sum(axes, keepdims=keep))


class _Dense(nn.Dense):
    def construct(self, x: Tensor) -> Tensor:
        return ops.dense(x, self.kernel(), self.bias if self.has_bias else None)


class _Conv1d(nn.Conv1d):
    def construct(self, x: Tensor) -> Tensor:
        y = self.conv2d(ops.expand_dims(x, 2), ops.expand_dims(self.kernel(), 2))
        return ops.squeeze(self.bias_add(y, self.bias) if self.has_bias else y, 2)


class _Conv2d(nn.Conv2d):
    def construct(self, x: Tensor) -> Tensor:
        y = self.conv2d(x, self.kernel())
        return self.bias_add(y, self.bias) if self.has_bias else y


class _Conv3d(nn.Conv3d):
    def construct(self, x: Tensor) -> Tensor:
        y = self.conv3d(x, self.kernel())
        return self.bias_add(y, self.bias) if self.has_bias else y


class _Conv1dTranspose(nn.Conv1dTranspose):
    def construct(self, x: Tensor) -> Tensor:
        sides = self.padding[2] + self.padding[3]
        wide = (x.shape[2] - 1) * self.stride[1] + self.dilation[1] * (self.kernel_size[1] - 1) + 1 - sides
        size = (x.shape[0], self.out_channels, 1, wide)
        y = self.conv2d_transpose(ops.expand_dims(x, 2), ops.expand_dims(self.kernel(), 2), size)
        return ops.squeeze(self.bias_add(y, self.bias) if self.has_bias else y, 2)


class _Conv2dTranspose(nn.Conv2dTranspose):
    def construct(self, x: Tensor) -> Tensor:
        high = (x.shape[2] - 1) * self.stride[0] + self.dilation[0] * (self.kernel_size[0] - 1) + 1
        wide = (x.shape[3] - 1) * self.stride[1] + self.dilation[1] * (self.kernel_size[1] - 1) + 1
        high, wide = high - self.padding_top - self.padding_bottom, wide - self.padding_left - self.padding_right
        y = self.conv2d_transpose(x, self.kernel(), (x.shape[0], self.out_channels, high, wide))
        return self.bias_add(y, self.bias) if self.has_bias else y


RUNS = {runs.__bases__[0]: runs for runs in (_Dense, _Conv1d, _Conv2d, _Conv3d, _Conv1dTranspose, _Conv2dTranspose)}
