"""MindSpore layers that do what torch's own do: their arguments, their starting values, their gradients at ties."""

from __future__ import annotations

from typing import Any

import numpy as np
from mindspore import Parameter, Tensor, nn, ops
from mindspore.common.initializer import Normal


class Embedding(nn.Embedding):
    """torch's Embedding: drawn from N(0, 1), and the row padding_idx gets no gradient."""

    def __init__(self, count: int, size: int, padding: int | None = None) -> None:
        super().__init__(count, size, embedding_table=Normal(1.0, 0.0), padding_idx=padding)
        rows = np.arange(count).reshape(-1, 1)
        self.trains = None if padding is None else Tensor(rows != padding)

    def construct(self, ids: Tensor) -> Tensor:
        if self.trains is None:
            return super().construct(ids)
        table = ops.where(self.trains, self.embedding_table, ops.stop_gradient(self.embedding_table))
        return ops.gather(table, ids, 0)


class LeakyReLU(nn.Cell):
    """nn.LeakyReLU with torch's gradient at zero."""

    def __init__(self, alpha: float = 0.01) -> None:
        super().__init__()
        self.alpha = alpha

    def construct(self, x: Tensor) -> Tensor:
        return ops.where(x > 0, x, self.alpha * x)


class Softmax(nn.Softmax):
    """nn.Softmax under its own name, so that a fault can be planted in it."""


class InstanceNorm2d(nn.Cell):
    """nn.InstanceNorm2d, which the CPU lacks."""

    def __init__(self, channels: int, affine: bool = False) -> None:
        super().__init__()
        self.affine = affine
        if affine:
            self.gamma = Parameter(Tensor(np.ones((1, channels, 1, 1), np.float32)))
            self.beta = Parameter(Tensor(np.zeros((1, channels, 1, 1), np.float32)))

    def construct(self, x: Tensor) -> Tensor:
        centred = x - x.mean((2, 3), True)
        out = centred * ops.rsqrt((centred * centred).mean((2, 3), True) + 1e-5)
        return out * self.gamma + self.beta if self.affine else out


class Mish(nn.Cell):
    """x·tanh(softplus(x)) as a fraction: the gradient of MindSpore's tanh loses digits where it saturates."""

    def construct(self, x: Tensor) -> Tensor:
        power = ops.exp(ops.minimum(x, ops.full_like(x, 20.0)))
        part = power * (power + 2.0)
        return x * (part / (part + 2.0))


class LogSigmoid(nn.Cell):
    def construct(self, x: Tensor) -> Tensor:
        return ops.minimum(x, ops.zeros_like(x)) - ops.log1p(ops.exp(-ops.abs(x)))


class Clamp(nn.Cell):
    def __init__(self, low: float, high: float) -> None:
        super().__init__()
        self.low, self.high = low, high

    def construct(self, x: Tensor) -> Tensor:
        inside = ops.logical_and(x > self.low, x < self.high)
        return ops.where(inside, x, ops.stop_gradient(ops.clamp(x, self.low, self.high)))


class Hardtanh(Clamp):
    pass


class ReLU6(Clamp):
    def __init__(self) -> None:
        super().__init__(0.0, 6.0)


class Hardswish(nn.Cell):
    """nn.HSwish with torch's gradient at -3 and 3."""

    def construct(self, x: Tensor) -> Tensor:
        bent = ops.where(x > -3.0, x * (x + 3.0) / 6.0, 0.0 * x)
        return ops.where(x < 3.0, bent, x)


def conv(inputs: int, outputs: int, kernel: int, stride: int = 1, padding: int = 0, **more: Any) -> nn.Conv2d:
    """A convolution with every argument written that a fault may change."""
    mode = "pad" if padding else "valid"
    more = {"has_bias": True, **more}
    return nn.Conv2d(inputs, outputs, kernel, stride=stride, pad_mode=mode, padding=padding, **more)


def norm(channels: int, eps: float = 1e-5, momentum: float = 0.1, frozen: bool = False) -> nn.BatchNorm2d:
    """A BatchNorm2d by torch's arguments."""
    use = False if frozen else None
    return nn.BatchNorm2d(channels, eps=eps, momentum=1.0 - momentum, use_batch_statistics=use)


def max_pool() -> nn.MaxPool2d:
    return nn.MaxPool2d(3, 2, pad_mode="pad", padding=1)


def average_pool(kernel: int, stride: int, padding: int = 0) -> nn.AvgPool2d:
    """An average pool that remembers what it was given, which MindSpore's own forgets."""
    mode = "pad" if padding else "valid"
    given = {"kernel_size": kernel, "stride": stride, "pad_mode": mode, "padding": padding, "count_include_pad": True}
    pool = nn.AvgPool2d(**given)
    pool.given = given
    return pool


def transposed(inputs: int, outputs: int) -> nn.Conv2dTranspose:
    """torch's ConvTranspose2d(…, 3, 2, 1, output_padding=1)."""
    return nn.Conv2dTranspose(inputs, outputs, 3, 2, pad_mode="pad", padding=(1, 0, 1, 0), has_bias=True)


def buffer(values: np.ndarray) -> Parameter:
    return Parameter(Tensor(values.astype(np.float32)), requires_grad=False)
