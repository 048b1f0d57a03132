"""Activations that MindSpore lacks, or computes otherwise than torch on the CPU: Cells and functions."""

from __future__ import annotations

from mindspore import Tensor, nn, ops


class SELU(nn.Cell):
    """Scaled exponential linear units; MindSpore's own has another gradient for negative inputs on the CPU."""

    def __init__(self) -> None:
        super().__init__()

    def construct(self, input: Tensor) -> Tensor:
        """input: of any shape."""
        return selu(input)


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
