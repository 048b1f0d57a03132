"""Activations, and layers that drop values, where MindSpore lacks them or computes otherwise than torch."""

from __future__ import annotations

from mindspore import Tensor, nn, ops


class SELU(nn.Cell):
    """Scaled exponential linear units; MindSpore's own has another gradient for negative inputs on the CPU."""

    def __init__(self) -> None:
        super().__init__()

    def construct(self, input: Tensor) -> Tensor:
        """input: of any shape."""
        return selu(input)


class ELU(nn.ELU):
    """x where it is positive, else alpha (exp(x) - 1); MindSpore's own has an alpha of 1 alone."""

    def __init__(self, alpha: float = 1.0) -> None:
        super().__init__()
        self.alpha = alpha

    def construct(self, input: Tensor) -> Tensor:
        """input: of any shape."""
        return elu(input, self.alpha)


class Softplus(nn.Cell):
    """log(1 + exp(beta x)) / beta, and x itself where beta x is above the threshold."""

    def __init__(self, beta: float = 1.0, threshold: float = 20.0) -> None:
        super().__init__()
        self.beta, self.threshold = beta, threshold

    def construct(self, input: Tensor) -> Tensor:
        """input: of any shape."""
        scaled = self.beta * input
        soft = (ops.relu(scaled) + ops.log1p(ops.exp(-ops.abs(scaled)))) / self.beta
        return ops.where(scaled > self.threshold, input, soft)


class Tanhshrink(nn.Cell):
    """x - tanh(x), with a tanh made of exponentials, because the CPU's own is an approximation."""

    def __init__(self) -> None:
        super().__init__()

    def construct(self, input: Tensor) -> Tensor:
        """input: of any shape."""
        return tanhshrink(input)


def tanhshrink(input: Tensor) -> Tensor:
    """x - tanh(x), with a tanh made of exponentials, because the CPU's own is an approximation."""
    grown = ops.expm1(2 * ops.clamp(input, -15.0, 15.0))
    return input - grown / (grown + 2)


class RReLU(nn.Cell):
    """x where it is positive, else x times a slope: in training one drawn for each value, otherwise the mean one."""

    def __init__(self, lower: float = 0.125, upper: float = 0.3333333333333333) -> None:
        super().__init__()
        self.lower, self.upper = lower, upper

    def construct(self, input: Tensor) -> Tensor:
        """input: of any shape."""
        if self.training:
            slope = self.lower + (self.upper - self.lower) * ops.rand_like(input)
        else:
            slope = (self.lower + self.upper) / 2 * ops.ones_like(input)
        return ops.where(input >= 0, input, input * ops.stop_gradient(slope))


def elu(input: Tensor, alpha: float = 1.0) -> Tensor:
    """`input` where it is positive, else alpha (exp(input) - 1); MindSpore's own has an alpha of 1 alone."""
    negative = ops.where(input > 0, ops.zeros_like(input), input)
    return ops.where(input > 0, input, alpha * ops.expm1(negative))


def selu(input: Tensor) -> Tensor:
    """The scaled exponential linear unit; the gradient of MindSpore's own is wrong for negative inputs."""
    scale, alpha = 1.0507009873554805, 1.6732632423543772
    return scale * (ops.relu(input) + alpha * ops.expm1(ops.minimum(input, ops.zeros_like(input))))


def rrelu(input: Tensor, lower: float = 1.0 / 8, upper: float = 1.0 / 3) -> Tensor:
    """Negative values times the mean of the bounds, as outside training; ops.rrelu always draws the slopes."""
    return ops.leaky_relu(input, (lower + upper) / 2)


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


class ChannelDropout(nn.Cell):
    """Zeros whole channels with probability p in training, and scales the others by 1 / (1 - p)."""

    drops_by_cell = True

    def __init__(self, p: float = 0.5) -> None:
        super().__init__()
        self.p = p
        self.dropout = nn.Dropout(p=p)

    def construct(self, input: Tensor) -> Tensor:
        """input: (N, C, ...)."""
        one_each = ops.ones(input.shape[:2] + (1,) * (input.ndim - 2), input.dtype)
        return input * ops.stop_gradient(self.dropout(one_each))


class Dropout1d(ChannelDropout):
    """ChannelDropout for (N, C, L)."""


class Dropout2d(ChannelDropout):
    """ChannelDropout for (N, C, H, W)."""


class Dropout3d(ChannelDropout):
    """ChannelDropout for (N, C, D, H, W)."""


class AlphaDropout(nn.Cell):
    """Sets values to the lower limit of SELU with probability p in training, and restores mean 0 and variance 1."""

    def __init__(self, p: float = 0.5) -> None:
        super().__init__()
        self.p = p

    def construct(self, input: Tensor) -> Tensor:
        """input: of any shape."""
        return alpha_dropout(input, self.p, self.training)


class FeatureAlphaDropout(nn.Cell):
    """AlphaDropout of whole channels."""

    def __init__(self, p: float = 0.5) -> None:
        super().__init__()
        self.p = p

    def construct(self, input: Tensor) -> Tensor:
        """input: (N, C, ...)."""
        if not self.training or self.p == 0:
            return input
        return _alpha_dropped(input, self.p, input.shape[:2] + (1,) * (input.ndim - 2))


class StochasticDepth(nn.Cell):
    """In training zeros samples ('row'), or the whole batch ('batch'), with probability p, and scales the others."""

    drops_by_cell = True

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


class DropPath(nn.Cell):
    """In training zeros samples with probability drop_prob, and scales the others."""

    drops_by_cell = True

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


def alpha_dropout(input: Tensor, p: float = 0.5, training: bool = False) -> Tensor:
    """Set values to SELU's lowest with probability p, then scale and shift, so that mean and variance stay."""
    return _alpha_dropped(input, p, input.shape) if training and p != 0 else input


def _alpha_dropped(input: Tensor, p: float, drawn: tuple[int, ...]) -> Tensor:
    """alpha_dropout by values drawn in a shape that broadcasts to the input's."""
    lowest = -1.7580993408473766  # of SELU
    scale = ((lowest**2 * p + 1) * (1 - p)) ** -0.5
    kept = ops.stop_gradient((ops.rand(*drawn) >= p).astype(input.dtype))
    return (input * kept + lowest * (1 - kept)) * scale - lowest * p * scale


def stochastic_depth(input: Tensor, p: float, mode: str, training: bool = True) -> Tensor:
    """Drop whole samples (mode "row") or the whole batch ("batch") with probability p, and scale the rest."""
    if not training or p == 0.0:
        return input
    rows = input.shape[0] if mode == "row" else 1
    kept = (ops.rand(rows) >= p).astype(input.dtype).reshape((rows,) + (1,) * (input.ndim - 1))
    return input * kept / (1.0 - p) if p < 1.0 else input * kept
