"""Activations and dropout that MindSpore lacks, or computes otherwise than torch on the CPU; with torch's arguments."""

from __future__ import annotations

from mindspore import Tensor, nn, ops


class SELU(nn.Cell):
    """Scaled exponential linear units; MindSpore's own has another gradient for negative inputs on the CPU."""

    def __init__(self) -> None:
        super().__init__()

    def construct(self, input: Tensor) -> Tensor:
        """input: of any shape."""
        negative = ops.expm1(ops.minimum(input, ops.zeros_like(input)))
        return 1.0507009873554805 * (ops.relu(input) + 1.6732632423543772 * negative)


class Softplus(nn.Cell):
    """log(1 + exp(beta x)) / beta, and x itself from where beta x is above the threshold."""

    def __init__(self, beta: float = 1.0, threshold: float = 20.0) -> None:
        super().__init__()
        self.beta, self.threshold = beta, threshold

    def construct(self, input: Tensor) -> Tensor:
        """input: of any shape."""
        scaled = self.beta * input
        soft = (ops.relu(scaled) + ops.log1p(ops.exp(-ops.abs(scaled)))) / self.beta
        return ops.where(scaled > self.threshold, input, soft)


class Tanhshrink(nn.Cell):
    """x - tanh(x), with a tanh of exponentials, for the CPU's own is an approximation."""

    def __init__(self) -> None:
        super().__init__()

    def construct(self, input: Tensor) -> Tensor:
        """input: of any shape."""
        return tanhshrink(input)


def tanhshrink(input: Tensor) -> Tensor:
    """x - tanh(x), with a tanh of exponentials, for the CPU's own is an approximation."""
    grown = ops.expm1(2 * ops.clamp(input, -15.0, 15.0))
    return input - grown / (grown + 2)


class RReLU(nn.Cell):
    """x where it is positive, else x times a slope, drawn for each value in training and the mean one otherwise."""

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


class Dropout1d(nn.Cell):
    """Zeros whole channels of (N, C, L) with probability p in training, and scales the others by 1 / (1 - p)."""

    def __init__(self, p: float = 0.5) -> None:
        super().__init__()
        self.p = p
        self.dropout = nn.Dropout(p=p)

    def construct(self, input: Tensor) -> Tensor:
        """input: (N, C, L)."""
        return input * ops.stop_gradient(self.dropout(ops.ones_like(input[:, :, :1])))


class Dropout2d(nn.Cell):
    """Zeros whole channels of (N, C, H, W) with probability p in training, and scales the others by 1 / (1 - p)."""

    def __init__(self, p: float = 0.5) -> None:
        super().__init__()
        self.p = p
        self.dropout = nn.Dropout(p=p)

    def construct(self, input: Tensor) -> Tensor:
        """input: (N, C, H, W)."""
        return input * ops.stop_gradient(self.dropout(ops.ones_like(input[:, :, :1, :1])))


class Dropout3d(nn.Cell):
    """Zeros whole channels of (N, C, D, H, W) with probability p in training, and scales the others by 1 / (1 - p)."""

    def __init__(self, p: float = 0.5) -> None:
        super().__init__()
        self.p = p
        self.dropout = nn.Dropout(p=p)

    def construct(self, input: Tensor) -> Tensor:
        """input: (N, C, D, H, W)."""
        return input * ops.stop_gradient(self.dropout(ops.ones_like(input[:, :, :1, :1, :1])))


class AlphaDropout(nn.Cell):
    """Sets values to the lower limit of SELU with probability p in training, and restores mean 0 and variance 1."""

    def __init__(self, p: float = 0.5) -> None:
        super().__init__()
        self.p = p

    def construct(self, input: Tensor) -> Tensor:
        """input: of any shape."""
        if not self.training or self.p == 0:
            return input
        limit = -1.7580993408473766
        scale = ((limit**2 * self.p + 1) * (1 - self.p)) ** -0.5
        kept = ops.stop_gradient((ops.rand_like(input) >= self.p).astype(input.dtype))
        return (input * kept + limit * (1 - kept)) * scale - limit * self.p * scale


class FeatureAlphaDropout(nn.Cell):
    """AlphaDropout of whole channels."""

    def __init__(self, p: float = 0.5) -> None:
        super().__init__()
        self.p = p

    def construct(self, input: Tensor) -> Tensor:
        """input: (N, C, ...)."""
        if not self.training or self.p == 0:
            return input
        limit = -1.7580993408473766
        scale = ((limit**2 * self.p + 1) * (1 - self.p)) ** -0.5
        shape = input.shape[:2] + (1,) * (len(input.shape) - 2)
        kept = ops.stop_gradient((ops.rand(*shape) >= self.p).astype(input.dtype))
        return (input * kept + limit * (1 - kept)) * scale - limit * self.p * scale
