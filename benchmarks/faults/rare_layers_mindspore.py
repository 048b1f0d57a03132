"""The MindSpore twin of rare_layers_torch.py, written as an engineer who knows the pitfalls writes it.

What differs between the frameworks at ties is spelled out with `ops.where`, and what interpolates is a multiplication
by the matrix of torch's own weights. Layers that torch has ready-made stand in layers_mindspore.py.
"""

from __future__ import annotations

import mindspore
import numpy as np
from layers_mindspore import (
    Clamp,
    Embedding,
    Hardswish,
    Hardtanh,
    InstanceNorm2d,
    LeakyReLU,
    LogSigmoid,
    Mish,
    ReLU6,
    Softmax,
    average_pool,
    buffer,
    conv,
    max_pool,
    norm,
    transposed,
)
from mindspore import Tensor, nn, ops


class Normalize(nn.Cell):
    def construct(self, x: Tensor) -> Tensor:
        x = x * 1e-3
        return x / ops.maximum(ops.sqrt((x * x).sum(1, keepdims=True)), Tensor(1e-12, mindspore.float32))


class Std(nn.Cell):
    """The unbiased deviation of each channel, with gradient 0 where it is 0."""

    def construct(self, x: Tensor) -> Tensor:
        centred = x - x.mean((2, 3), True)
        variance = (centred * centred).sum((2, 3)) / (x.shape[2] * x.shape[3] - 1)
        positive = variance > 0
        return ops.where(positive, ops.sqrt(ops.where(positive, variance, ops.ones_like(variance))), 0.0 * variance)


class Flat(nn.Cell):
    def construct(self, x: Tensor) -> Tensor:
        return ops.flatten(x, start_dim=0)


class Grid(nn.Cell):
    def construct(self, x: Tensor) -> Tensor:
        line = Tensor(np.linspace(-1.0, 1.0, 8, dtype=np.float32))
        rows, columns = ops.meshgrid(line, line, indexing="ij")
        return x + 0.3 * rows - 0.7 * columns


class Diagonal(nn.Cell):
    def construct(self, x: Tensor) -> Tensor:
        return ops.diagonal(x[0, 0])


class Gather(nn.Cell):
    def construct(self, x: Tensor) -> Tensor:
        rows = x.reshape(x.shape[0], x.shape[1], -1)
        return ops.gather_elements(rows, 2, self.index(rows))

    @staticmethod
    def index(rows: Tensor) -> Tensor:
        return Tensor((np.arange(rows.size) * 7 % 61).reshape(rows.shape).astype(np.int32))


class Repeat(nn.Cell):
    def construct(self, x: Tensor) -> Tensor:
        return ops.tile(x.mean((2, 3)), (1, 2))


class Swap(nn.Cell):
    def construct(self, x: Tensor) -> Tensor:
        return ops.swapaxes(x, 2, 3)


class Largest(nn.Cell):
    def construct(self, x: Tensor) -> Tensor:
        return x / ops.abs(x).max()


class InPlace(nn.Cell):
    def construct(self, x: Tensor) -> Tensor:
        return x * 2.0 + 1.0


class Slice(nn.Cell):
    def construct(self, x: Tensor) -> Tensor:
        out = x * 2.0
        return ops.cat((out[:, :2] + 1.0, out[:, 2:]), 1)


def cubic(size: int, count: int) -> np.ndarray:
    """torch's bicubic weights, float32 (count, size): a = -0.75, coordinates clamped to the border."""
    a = -0.75
    weights = np.zeros((count, size))
    for i in range(count):
        x = (i + 0.5) * size / count - 0.5
        left = int(np.floor(x))
        for tap in range(left - 1, left + 3):
            d = abs(x - tap)
            inner = (a + 2) * d**3 - (a + 3) * d**2 + 1
            outer = a * d**3 - 5 * a * d**2 + 8 * a * d - 4 * a
            weights[i, min(max(tap, 0), size - 1)] += inner if d <= 1 else outer
    return weights.astype(np.float32)


def linear(size: int, count: int, ratio: float) -> np.ndarray:
    """torch's bilinear weights, float32 (count, size), where an output pixel is `ratio` input pixels wide."""
    weights = np.zeros((count, size))
    for i in range(count):
        x = max((i + 0.5) * ratio - 0.5, 0.0)
        left = min(int(x), size - 1)
        share = x - left
        weights[i, left] += 1 - share
        weights[i, min(left + 1, size - 1)] += share
    return weights.astype(np.float32)


class Resample(nn.Cell):
    """Both image dimensions times one matrix of weights."""

    def __init__(self, weights: np.ndarray) -> None:
        super().__init__()
        self.weights = Tensor(weights)

    def construct(self, x: Tensor) -> Tensor:
        return ops.matmul(ops.matmul(self.weights, x), self.weights.T)


class Bicubic(Resample):
    def __init__(self) -> None:
        super().__init__(cubic(8, 12))


class Scaled(Resample):
    def __init__(self) -> None:
        super().__init__(linear(8, 13, 1 / 1.7))


class Resized(nn.Cell):
    def construct(self, x: Tensor) -> Tensor:
        return ops.interpolate(x, size=(16, 16), mode="bilinear", align_corners=False)


class Unfold(nn.Cell):
    def construct(self, x: Tensor) -> Tensor:
        return ops.swapaxes(ops.unfold(x, 3, padding=1), 1, 2)


class Share(nn.Cell):
    def construct(self, x: Tensor) -> Tensor:
        return (x > 0).astype(mindspore.float32).mean((2, 3))


class Length(nn.Cell):
    """The norm of each pixel's vector, with gradient 0 where it is 0."""

    def construct(self, x: Tensor) -> Tensor:
        square = (x * x).sum(1, keepdims=True)
        positive = square > 0
        return ops.where(positive, ops.sqrt(ops.where(positive, square, ops.ones_like(square))), 0.0 * square)


class Rare(nn.Cell):
    """See rare_layers_torch.Rare."""

    def __init__(self, drop: float = 0.0, frozen: bool = False, freeze: bool = False, unused: bool = False) -> None:
        super().__init__()
        self.stem = conv(3, 8, 3, 2, 1, has_bias=False)
        self.bn = norm(8)
        self.leaky = LeakyReLU(0.1)
        self.pool = max_pool()
        self.instance = InstanceNorm2d(8)
        self.lrn = nn.LRN(1, 1.0, 1e-2 / 3, 0.75)
        self.normalize = Normalize()
        self.mish, self.logsigmoid = Mish(), LogSigmoid()
        self.grid, self.swap, self.inplace, self.slice = Grid(), Swap(), InPlace(), Slice()
        self.bn1 = norm(8, frozen=frozen)
        self.relu6a, self.relu6b = ReLU6(), ReLU6()
        self.clampa, self.clampb = Clamp(-1.0, 1.0), Clamp(-1.0, 1.0)
        self.cut, self.hardswish = Hardtanh(-3.0, 3.0), Hardswish()
        self.relu, self.tied = nn.ReLU(), LeakyReLU(0.1)
        self.length, self.flatstd = Length(), Std()
        self.bn2 = norm(8)
        self.shuffle, self.gathered = nn.PixelShuffle(2), conv(2, 8, 3, 2, 1)
        self.up = transposed(8, 8)
        self.average = average_pool(3, 2, 1)
        self.bicubic, self.scaled, self.resized = Bicubic(), Scaled(), Resized()
        self.unfold, self.unfolded = Unfold(), nn.Dense(72, 8)
        self.std, self.share, self.repeat = Std(), Share(), Repeat()
        self.flat, self.diagonal, self.gather, self.largest = Flat(), Diagonal(), Gather(), Largest()
        self.table = Embedding(16, 8, 0)
        self.valid = conv(8, 16, 3)
        self.mask = buffer(np.linspace(0.5, 1.5, 16))
        self.norm, self.gelu = nn.LayerNorm((16,), epsilon=1e-5), nn.GELU(approximate=False)
        self.softmax = Softmax(1)
        self.neck, self.alphabeta = nn.Dense(16, 16), nn.Dense(16, 16)
        self.drop = nn.Dropout(p=drop)
        self.head = nn.Dense(16, 10)
        self.stop = ops.stop_gradient
        if freeze:
            for parameter in self.valid.get_parameters():
                parameter.requires_grad = False
        if unused:
            self.unused = nn.Dense(8, 8)

    def construct(self, x: Tensor) -> Tensor:
        images = x
        x = self.pool(self.leaky(self.bn(self.stem(x))))
        x = self.lrn(self.instance(x) + 0.5 * x) + self.normalize(x)
        x = x + 0.01 * self.mish(40.0 * x) + 0.01 * self.logsigmoid(60.0 * x)
        x = self.bn1(self.slice(self.inplace(self.swap(self.grid(x)))))
        x = x + 0.2 * self.ties(x)
        x = self.bn2(x)
        narrow = self.gathered(self.shuffle(x))
        x = x + narrow.repeat_interleave(2, 2).repeat_interleave(2, 3)[:, :, :8, :8]
        x = x + self.average(self.up(x)) + self.average(self.resized(x))
        x = x + self.bicubic(x)[:, :, 2:10, 2:10] + self.scaled(x)[:, :, 2:10, 2:10]
        x = x + self.unfolded(self.unfold(x)).swapaxes(1, 2).reshape(x.shape)
        x = x * (1.0 + 0.1 * ops.tanh(self.flat(x).mean() + self.diagonal(x).mean() + self.gather(x).mean()))
        return self.classify(self.largest(x), images)

    def ties(self, x: Tensor) -> Tensor:
        out = self.relu6b(self.relu6a(6.0 * x)) + self.clampb(self.clampa(x)) + self.hardswish(self.cut(2.0 * x))
        zeros = self.relu(x)
        out = out + self.tied(ops.pad(zeros, (0, 1))[:, :, :, 1:] - 0.0)
        out = out + self.length(zeros * (x.mean(1, True) > 0).astype(mindspore.float32))
        dead = Tensor(np.array([0, 0, 1, 1, 1, 1, 1, 1], np.float32).reshape(1, 8, 1, 1))
        return out + self.flatstd(zeros * dead).reshape(-1, 8, 1, 1)

    def classify(self, x: Tensor, images: Tensor) -> Tensor:
        token = (ops.floor(images[:, 0, 3, 4] * 4.0) + 8.0).clamp(0.0, 15.0).astype(mindspore.int32)
        wide = self.valid(x + self.table(token).reshape(-1, 8, 1, 1))
        out = wide.mean((2, 3)) * self.mask + self.repeat(x) + ops.cat((self.std(x), self.share(x)), 1)
        weights = self.softmax(wide.reshape(wide.shape[0], 16, -1).swapaxes(1, 2))
        out = out + ops.amax(weights, 1)
        out = self.gelu(self.norm(self.neck(out)))
        return self.head(self.drop(out + ops.tanh(self.alphabeta(self.stop(out)))))
