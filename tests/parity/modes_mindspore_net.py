"""The MindSpore twin of modes_torch_net.py, right or with one thing wrong."""

from __future__ import annotations

from typing import Any

import mindspore
from mindspore import Tensor, nn, ops


class DropPath(nn.Cell):
    """The model zoo's: a dropout of ones."""

    def __init__(self, drop_prob: float, scaled: bool) -> None:
        super().__init__()
        self.keep = 1.0 - drop_prob
        self.scaled = scaled
        self.dropout = nn.Dropout(p=drop_prob)

    def construct(self, x: Tensor) -> Tensor:
        if not self.training:
            return x
        mask = self.dropout(ops.ones((x.shape[0], 1, 1, 1), mindspore.float32))
        return x * mask if self.scaled else x * mask * self.keep


class Head(nn.Cell):
    def __init__(self, rate: float) -> None:
        super().__init__()
        self.fc = nn.Dense(8, 10)
        self.rate = rate

    def construct(self, x: Tensor) -> Tensor:
        x = ops.dropout(x, p=0.0, training=self.training)  # draws nothing, and so does not count
        return self.fc(ops.dropout(x, p=self.rate, training=self.training))


DRAW = ops.Dropout(keep_prob=0.8)


class PrimitiveHead(nn.Cell):
    """A head that draws by a primitive that no Cell holds, so that nothing can be put in its place."""

    def __init__(self, rate: float) -> None:
        super().__init__()
        self.fc = nn.Dense(8, 10)

    def construct(self, x: Tensor) -> Tensor:
        return self.fc(DRAW(x)[0] if self.training else x)


class Net(nn.Cell):
    def __init__(self, wrong: str = "none") -> None:
        super().__init__()
        self.conv1 = nn.Conv2d(1, 8, 3, stride=2, pad_mode="pad", padding=1, has_bias=False)
        self.bn1 = nn.BatchNorm2d(8, eps=1e-3 if wrong == "eps" else 1e-5, momentum=0.9)
        self.relu = nn.ReLU()
        self.channels = nn.Dropout(p=0.3) if wrong == "elements for channels" else nn.Dropout2d(0.3)
        same = "same" if wrong == "pad" else "pad"
        padding = {} if wrong == "pad" else {"padding": 1}
        self.conv2 = nn.Conv2d(8, 8, 3, pad_mode=same, has_bias=True, **padding)
        self.path = DropPath(0.25, wrong != "path unscaled")
        self.elements = nn.Dropout(0.4) if wrong == "rate is what is kept" else nn.Dropout(p=0.4)
        head = PrimitiveHead if wrong == "draws by a primitive" else Head
        self.head = head(0.21 if wrong == "functional rate" else 0.2)
        self.wrong = wrong

    def construct(self, x: Tensor) -> Tensor:
        x = self.channels(self.relu(self.bn1(self.conv1(x))))
        x = self.relu(x + self.path(self.conv2(x)))
        x = x + self.path(x)  # a layer may run twice
        return self.head(self.elements(x.mean((2, 3))))


class Plain(nn.Cell):
    """The same without what draws, its products of shortened operands."""

    def __init__(self, wrong: str, computed: str) -> None:
        super().__init__()
        self.conv1 = ShortConv2d(computed, 1, 8, 3, stride=2, pad_mode="pad", padding=1, has_bias=False)
        self.bn1 = nn.BatchNorm2d(8, eps=1e-3 if wrong == "eps" else 1e-5, momentum=0.9)
        self.relu = nn.ReLU()
        self.conv2 = ShortConv2d(
            computed, 8, 8, 3, pad_mode="pad", padding=(0, 2, 0, 2) if wrong == "pad" else 1, has_bias=True
        )
        self.fc = ShortDense(computed, 8, 10)

    def construct(self, x: Tensor) -> Tensor:
        x = self.relu(self.bn1(self.conv1(x)))
        return self.fc((x + self.relu(self.conv2(x))).mean((2, 3)))


KEPT = {"hf32": 11, "tf32": 10, "bf16": 7}  # bits of the mantissa


def short(x: Tensor, name: str) -> Tensor:
    """x rounded to a shorter format; Veltkamp's way: the sum drops the bits that are not kept."""
    if name == "fp32":
        return x
    if name == "fp16":
        return ops.cast(ops.cast(x, mindspore.float16), mindspore.float32)
    large = x * (2.0 ** (23 - KEPT[name]) + 1.0)
    return large - (large - x)


class Shortened(nn.Cell):
    """Rounds on the way forward, and hands the gradient through."""

    def __init__(self, name: str) -> None:
        super().__init__()
        self.name = name

    def construct(self, x: Tensor) -> Tensor:
        return short(x, self.name)

    def bprop(self, x: Tensor, out: Tensor, dout: Tensor) -> tuple[Tensor, ...]:
        return (dout,)


class GradientShortened(Shortened):
    """Hands through on the way forward, and rounds the gradient."""

    def construct(self, x: Tensor) -> Tensor:
        return x * 1.0

    def bprop(self, x: Tensor, out: Tensor, dout: Tensor) -> tuple[Tensor, ...]:
        return (short(dout, self.name),)


class ShortConv2d(nn.Conv2d):
    def __init__(self, name: str, *given: Any, **options: Any) -> None:
        super().__init__(*given, **options)
        self.__dict__["round"] = Shortened(name)  # no child: the layer stays a leaf
        self.__dict__["round_gradient"] = GradientShortened(name)

    def construct(self, x: Tensor) -> Tensor:
        out = self.round_gradient(self.conv2d(self.round(x), self.round(self.weight)))
        return out + self.bias.reshape(1, -1, 1, 1) if self.has_bias else out


class ShortDense(nn.Dense):
    def __init__(self, name: str, *given: Any) -> None:
        super().__init__(*given)
        self.__dict__["round"] = Shortened(name)  # no child: the layer stays a leaf
        self.__dict__["round_gradient"] = GradientShortened(name)

    def construct(self, x: Tensor) -> Tensor:
        return self.round_gradient(ops.matmul(self.round(x), self.round(self.weight).T)) + self.bias


def build(case: Any) -> Any:
    def made(name: str, **arguments: Any) -> nn.Cell:
        if case.recipe == "plain":
            return Plain(case.wrong, case.computed)
        return Net(case.wrong)

    return made
