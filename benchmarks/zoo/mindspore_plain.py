"""AlexNet, VGG and SqueezeNet, name for name the networks of `torch_small`."""

from __future__ import annotations

from collections.abc import Sequence

from mindspore import Tensor, nn, ops
from mindspore.common.initializer import HeUniform, Normal
from mindspore_layers import (  # type: ignore[import-not-found]  # a neighbour, found where this file is run from
    batch_norm,
    convolution,
    flatten,
    linear,
    max_pool,
)

CLASSES = 10
HIDDEN = 64


class AlexNet(nn.Cell):
    """torchvision's AlexNet around a classifier of HIDDEN units, for images (N, 3, H, W)."""

    def __init__(self) -> None:
        super().__init__()
        self.features = nn.SequentialCell(
            [
                convolution(3, 64, 11, stride=4, padding=2, bias=True),
                nn.ReLU(),
                max_pool(3, 2),
                convolution(64, 192, 5, padding=2, bias=True),
                nn.ReLU(),
                max_pool(3, 2),
                convolution(192, 384, 3, padding=1, bias=True),
                nn.ReLU(),
                convolution(384, 256, 3, padding=1, bias=True),
                nn.ReLU(),
                convolution(256, 256, 3, padding=1, bias=True),
                nn.ReLU(),
                max_pool(3, 2),
            ]
        )
        self.avgpool = nn.AdaptiveAvgPool2d(output_size=(6, 6))
        self.classifier = nn.SequentialCell(
            [
                nn.Dropout(p=0.0),
                linear(256 * 6 * 6, HIDDEN),
                nn.ReLU(),
                nn.Dropout(p=0.0),
                linear(HIDDEN, HIDDEN),
                nn.ReLU(),
                linear(HIDDEN, CLASSES),
            ]
        )

    def construct(self, x: Tensor) -> Tensor:
        return self.classifier(flatten(self.avgpool(self.features(x))))


class VGG(nn.Cell):
    """torchvision's VGG with batch norms around a classifier of HIDDEN units; 'M' among the widths is a max-pool."""

    def __init__(self, widths: Sequence[int | str]) -> None:
        super().__init__()
        layers: list[nn.Cell] = []
        inputs = 3
        for width in widths:
            if isinstance(width, str):
                layers.append(max_pool(2, 2))
            else:
                layers += [convolution(inputs, width, 3, padding=1, bias=True), batch_norm(width), nn.ReLU()]
                inputs = width
        self.features = nn.SequentialCell(layers)
        self.avgpool = nn.AdaptiveAvgPool2d(output_size=(7, 7))
        self.classifier = nn.SequentialCell(
            [
                linear(inputs * 7 * 7, HIDDEN),
                nn.ReLU(),
                nn.Dropout(p=0.0),
                linear(HIDDEN, HIDDEN),
                nn.ReLU(),
                nn.Dropout(p=0.0),
                linear(HIDDEN, CLASSES),
            ]
        )

    def construct(self, x: Tensor) -> Tensor:
        return self.classifier(flatten(self.avgpool(self.features(x))))


def kaiming_convolution(inputs: int, outputs: int, kernel: int, stride: int = 1, padding: int = 0) -> nn.Conv2d:
    """A convolution with bias that starts from `kaiming_uniform_()` and zeros, as SqueezeNet's do."""
    init = HeUniform(negative_slope=0, mode="fan_in", nonlinearity="leaky_relu")
    return convolution(inputs, outputs, kernel, stride, padding, bias=True, weight_init=init, bias_init="zeros")


class Fire(nn.Cell):
    """Squeeze with 1x1 convolutions, then expand with 1x1 and 3x3 ones side by side."""

    def __init__(self, inputs: int, squeezed: int, expanded1: int, expanded3: int) -> None:
        super().__init__()
        self.squeeze = kaiming_convolution(inputs, squeezed, 1)
        self.squeeze_activation = nn.ReLU()
        self.expand1x1 = kaiming_convolution(squeezed, expanded1, 1)
        self.expand1x1_activation = nn.ReLU()
        self.expand3x3 = kaiming_convolution(squeezed, expanded3, 3, padding=1)
        self.expand3x3_activation = nn.ReLU()

    def construct(self, x: Tensor) -> Tensor:
        x = self.squeeze_activation(self.squeeze(x))
        wide = self.expand1x1_activation(self.expand1x1(x)), self.expand3x3_activation(self.expand3x3(x))
        return ops.cat(wide, axis=1)


class SqueezeNet(nn.Cell):
    """torchvision's SqueezeNet 1.1, for images (N, 3, H, W)."""

    def __init__(self) -> None:
        super().__init__()
        self.features = nn.SequentialCell(
            [
                kaiming_convolution(3, 64, 3, stride=2),
                nn.ReLU(),
                max_pool(3, 2, ceil=True),
                Fire(64, 16, 64, 64),
                Fire(128, 16, 64, 64),
                max_pool(3, 2, ceil=True),
                Fire(128, 32, 128, 128),
                Fire(256, 32, 128, 128),
                max_pool(3, 2, ceil=True),
                Fire(256, 48, 192, 192),
                Fire(384, 48, 192, 192),
                Fire(384, 64, 256, 256),
                Fire(512, 64, 256, 256),
            ]
        )
        last = convolution(512, CLASSES, 1, bias=True, weight_init=Normal(sigma=0.01, mean=0.0), bias_init="zeros")
        self.classifier = nn.SequentialCell(
            [nn.Dropout(p=0.0), last, nn.ReLU(), nn.AdaptiveAvgPool2d(output_size=(1, 1))]
        )

    def construct(self, x: Tensor) -> Tensor:
        return flatten(self.classifier(self.features(x)))


alexnet = AlexNet
squeezenet1_1 = SqueezeNet


def vgg11_bn() -> VGG:
    """VGG 11 with batch norms, an eighth as wide."""
    return VGG((8, "M", 16, "M", 32, 32, "M", 64, 64, "M", 64, 64, "M"))
