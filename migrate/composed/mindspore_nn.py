"""Functions of networks that MindSpore's CPU lacks, or gets wrong in value or gradient; with torch's argument names."""

from __future__ import annotations

from collections.abc import Sequence

from mindspore import Tensor, ops
from mindspore import dtype as mstype


def selu(input: Tensor) -> Tensor:
    """The scaled exponential linear unit; the gradient of MindSpore's own is wrong for negative inputs."""
    scale, alpha = 1.0507009873554805, 1.6732632423543772
    return scale * (ops.relu(input) + alpha * ops.expm1(ops.minimum(input, ops.zeros_like(input))))


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
    """Divided by the root of the mean square over the last dimensions, then scaled; without eps float32's own."""
    axes = tuple(range(-len(normalized_shape), 0))
    small = 1.1920928955078125e-07 if eps is None else eps
    x = input * ops.rsqrt(ops.mean(input * input, axes, True) + small)
    return x if weight is None else x * weight


def batch_norm(
    input: Tensor,
    running_mean: Tensor,
    running_var: Tensor,
    weight: Tensor | None = None,
    bias: Tensor | None = None,
    training: bool = False,
    momentum: float = 0.1,
    eps: float = 1e-5,
) -> Tensor:
    """Normalized by the running statistics, or in training by the batch's own.

    The running statistics are not moved, as torch does in training: nn.BatchNorm2d keeps them.
    """
    shape = (1, -1) + (1,) * (input.ndim - 2)
    if training:
        axes = (0, *range(2, input.ndim))
        mean = ops.mean(input, axes, True)
        centred = input - mean
        variance = ops.mean(centred * centred, axes, True)
    else:
        centred = input - running_mean.reshape(shape)
        variance = running_var.reshape(shape)
    x = centred / ops.sqrt(variance + eps)
    if weight is not None:
        x = x * weight.reshape(shape)
    return x if bias is None else x + bias.reshape(shape)


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
    """Every channel of every sample normalized by its own statistics, or by the running ones, which are not moved."""
    shape = (1, -1) + (1,) * (input.ndim - 2)
    if use_input_stats or running_mean is None or running_var is None:
        axes = tuple(range(2, input.ndim))
        centred = input - ops.mean(input, axes, True)
        variance = ops.mean(centred * centred, axes, True)
    else:
        centred = input - running_mean.reshape(shape)
        variance = running_var.reshape(shape)
    x = centred / ops.sqrt(variance + eps)
    if weight is not None:
        x = x * weight.reshape(shape)
    return x if bias is None else x + bias.reshape(shape)


def normalize(input: Tensor, p: float = 2.0, dim: int = 1, eps: float = 1e-12) -> Tensor:
    """Divided by its norm of order p along `dim`, which counts as eps at least."""
    if p == 2.0:
        square = (input * input).sum(dim, keepdims=True)
        # the root's gradient is infinite at 0; torch's is 0 below eps
        size = ops.where(square > eps * eps, ops.sqrt(ops.maximum(square, eps * eps)), eps * ops.ones_like(square))
        return input / size
    if p == 1.0:
        return input / ops.maximum(ops.abs(input).sum(dim, keepdims=True), eps)
    return input / ops.maximum(ops.pow(ops.pow(ops.abs(input), p).sum(dim, keepdims=True), 1.0 / p), eps)


def local_response_norm(input: Tensor, size: int, alpha: float = 1e-4, beta: float = 0.75, k: float = 1.0) -> Tensor:
    """Divided by (k + alpha · the mean square of `size` neighbouring channels) to the power of beta."""
    square = input * input
    before, behind = size // 2, (size - 1) // 2
    shape = tuple(input.shape)
    edge = (*shape[:1], 1, *shape[2:])
    parts = (*[ops.zeros(edge, input.dtype)] * before, square, *[ops.zeros(edge, input.dtype)] * behind)
    padded = ops.cat(parts, 1) if size > 1 else square
    total = ops.narrow(padded, 1, 0, shape[1])
    for start in range(1, size):
        total = total + ops.narrow(padded, 1, start, shape[1])
    return input / ops.pow(k + alpha * (total / size), beta)


def max_pool1d(
    input: Tensor,
    kernel_size: int | Sequence[int],
    stride: int | Sequence[int] | None = None,
    padding: int | Sequence[int] = 0,
    dilation: int | Sequence[int] = 1,
    ceil_mode: bool = False,
) -> Tensor:
    """The largest value of every window along the last dimension, as a pooling of images of height 1."""
    kernel = kernel_size if isinstance(kernel_size, int) else kernel_size[0]
    step = kernel if stride is None else (stride if isinstance(stride, int) else stride[0])
    side = padding if isinstance(padding, int) else padding[0]
    apart = dilation if isinstance(dilation, int) else dilation[0]
    x = ops.max_pool2d(ops.unsqueeze(input, -2), (1, kernel), (1, step), (0, side), (1, apart), ceil_mode=ceil_mode)
    return x.squeeze(-2)


def adaptive_avg_pool1d(input: Tensor, output_size: int | Sequence[int]) -> Tensor:
    """The mean of each of `output_size` parts of the last dimension, a number that need not divide its size."""
    wanted = output_size if isinstance(output_size, int) else output_size[0]
    return ops.adaptive_avg_pool2d(ops.unsqueeze(input, -2), (1, wanted)).squeeze(-2)


def adaptive_max_pool1d(input: Tensor, output_size: int | Sequence[int]) -> Tensor:
    """The largest of each of `output_size` parts of the last dimension, a number that need not divide its size."""
    wanted = output_size if isinstance(output_size, int) else output_size[0]
    return ops.adaptive_max_pool2d(ops.unsqueeze(input, -2), (1, wanted)).squeeze(-2)


def fold(
    input: Tensor,
    output_size: int | Sequence[int],
    kernel_size: int | Sequence[int],
    dilation: int | Sequence[int] = 1,
    padding: int | Sequence[int] = 0,
    stride: int | Sequence[int] = 1,
) -> Tensor:
    """Add overlapping patches up to an image; ops.fold wants the size of the image as a tensor."""
    height, width = (output_size, output_size) if isinstance(output_size, int) else tuple(output_size)
    size = Tensor([height, width], mstype.int32)
    return ops.fold(input, size, kernel_size, dilation, padding, stride)


def rrelu(input: Tensor, lower: float = 1.0 / 8, upper: float = 1.0 / 3) -> Tensor:
    """Negative values times the mean of the bounds, as outside training; ops.rrelu always draws the slopes."""
    return ops.leaky_relu(input, (lower + upper) / 2)


def channel_shuffle(input: Tensor, groups: int) -> Tensor:
    """The channels of all groups in turns."""
    shape = tuple(input.shape)
    x = input.reshape((shape[0], groups, shape[1] // groups, *shape[2:]))
    return x.swapaxes(1, 2).reshape(shape)


def pairwise_distance(x1: Tensor, x2: Tensor, p: float = 2.0, eps: float = 1e-6, keepdim: bool = False) -> Tensor:
    """The norm of order p of the differences plus eps, along the last dimension."""
    difference = ops.abs(x1 - x2 + eps)
    if p == 1.0:
        return difference.sum(-1, keepdims=keepdim)
    if p == 2.0:
        return ops.sqrt((difference * difference).sum(-1, keepdims=keepdim))
    return ops.pow(ops.pow(difference, p).sum(-1, keepdims=keepdim), 1.0 / p)


def alpha_dropout(input: Tensor, p: float = 0.5, training: bool = False) -> Tensor:
    """Set values to SELU's lowest with probability p, then scale and shift, so that mean and variance stay."""
    if not training or p == 0.0:
        return input
    lowest = -1.7580993408473766  # of SELU
    scale = 1.0 / ((lowest * lowest * p + 1.0) * (1.0 - p)) ** 0.5
    kept = (ops.rand(*input.shape) >= p).astype(input.dtype)
    return scale * (input * kept + lowest * (1.0 - kept) - lowest * p)


def stochastic_depth(input: Tensor, p: float, mode: str, training: bool = True) -> Tensor:
    """Drop whole samples (mode "row") or the whole batch ("batch") with probability p, and scale the rest."""
    if not training or p == 0.0:
        return input
    rows = input.shape[0] if mode == "row" else 1
    kept = (ops.rand(rows) >= p).astype(input.dtype).reshape((rows,) + (1,) * (input.ndim - 1))
    return input * kept / (1.0 - p) if p < 1.0 else input * kept
