"""MobileNet V2 and V3, MNASNet and EfficientNet, name for name the networks of `torch_small`."""

from __future__ import annotations

import math
from collections.abc import Sequence

from mindspore import Tensor, nn, ops
from mindspore.common.initializer import HeUniform, Uniform
from mindspore_layers import (  # type: ignore[import-not-found]  # a neighbour, found where this file is run from
    ConvNormActivation,
    SqueezeExcitation,
    batch_norm,
    convolution,
    flatten,
    kaiming_fan_out,
    linear,
    normal_linear,
)

CLASSES = 10


def divisible(value: float, divisor: int = 8) -> int:
    """torchvision's _make_divisible: the nearest multiple, but not less than nine tenths of the value."""
    rounded = max(divisor, int(value + divisor / 2) // divisor * divisor)
    return rounded + divisor if rounded < 0.9 * value else rounded


class Residual(nn.Cell):
    """MobileNet V2's inverted residual block."""

    def __init__(self, inputs: int, outputs: int, stride: int, expand: int) -> None:
        super().__init__()
        self.shortcut = stride == 1 and inputs == outputs
        hidden = inputs * expand
        layers: list[nn.Cell] = []
        if expand != 1:
            layers.append(ConvNormActivation(inputs, hidden, 1, activation=nn.ReLU6()))
        layers += [
            ConvNormActivation(hidden, hidden, 3, stride, groups=hidden, activation=nn.ReLU6()),
            convolution(hidden, outputs, 1, weight_init=kaiming_fan_out()),
            batch_norm(outputs),
        ]
        self.conv = nn.SequentialCell(layers)

    def construct(self, x: Tensor) -> Tensor:
        return x + self.conv(x) if self.shortcut else self.conv(x)


class MobileNetV2(nn.Cell):
    """torchvision's MobileNet V2 of any width, for images (N, 3, H, W)."""

    def __init__(self, width: float) -> None:
        super().__init__()
        # expansion, channels, blocks, stride
        stages = (
            (1, 16, 1, 1),
            (6, 24, 2, 2),
            (6, 32, 3, 2),
            (6, 64, 4, 2),
            (6, 96, 3, 1),
            (6, 160, 3, 2),
            (6, 320, 1, 1),
        )
        inputs = divisible(32 * width)
        last = divisible(1280 * max(1.0, width))
        features: list[nn.Cell] = [ConvNormActivation(3, inputs, 3, stride=2, activation=nn.ReLU6())]
        for expand, channels, blocks, stride in stages:
            outputs = divisible(channels * width)
            for i in range(blocks):
                features.append(Residual(inputs, outputs, stride if i == 0 else 1, expand))
                inputs = outputs
        features.append(ConvNormActivation(inputs, last, 1, activation=nn.ReLU6()))
        self.features = nn.SequentialCell(features)
        self.classifier = nn.SequentialCell([nn.Dropout(p=0.0), normal_linear(last, CLASSES)])

    def construct(self, x: Tensor) -> Tensor:
        return self.classifier(flatten(ops.adaptive_avg_pool2d(self.features(x), (1, 1))))


V3 = {"eps": 1e-3, "kept": 0.99}  # torchvision's momentum of 0.01


class ResidualV3(nn.Cell):
    """MobileNet V3's inverted residual block."""

    def __init__(
        self, inputs: int, kernel: int, hidden: int, outputs: int, squeeze: bool, hard: bool, stride: int
    ) -> None:
        super().__init__()
        self.shortcut = stride == 1 and inputs == outputs
        activation = nn.HSwish if hard else nn.ReLU
        layers: list[nn.Cell] = []
        if hidden != inputs:
            layers.append(ConvNormActivation(inputs, hidden, 1, activation=activation(), **V3))
        layers.append(ConvNormActivation(hidden, hidden, kernel, stride, groups=hidden, activation=activation(), **V3))
        if squeeze:
            layers.append(SqueezeExcitation(hidden, divisible(hidden // 4), nn.ReLU(), nn.HSigmoid()))
        layers.append(ConvNormActivation(hidden, outputs, 1, **V3))
        self.block = nn.SequentialCell(layers)

    def construct(self, x: Tensor) -> Tensor:
        return self.block(x) + x if self.shortcut else self.block(x)


class MobileNetV3Small(nn.Cell):
    """torchvision's small MobileNet V3 of any width, for images (N, 3, H, W)."""

    def __init__(self, width: float) -> None:
        super().__init__()
        # inputs, kernel, hidden, outputs, squeeze, hard swish, stride
        blocks = (
            (16, 3, 16, 16, True, False, 2),
            (16, 3, 72, 24, False, False, 2),
            (24, 3, 88, 24, False, False, 1),
            (24, 5, 96, 40, True, True, 2),
            (40, 5, 240, 40, True, True, 1),
            (40, 5, 240, 40, True, True, 1),
            (40, 5, 120, 48, True, True, 1),
            (48, 5, 144, 48, True, True, 1),
            (48, 5, 288, 96, True, True, 2),
            (96, 5, 576, 96, True, True, 1),
            (96, 5, 576, 96, True, True, 1),
        )

        def wide(channels: int) -> int:
            return divisible(channels * width)

        last = 6 * wide(96)
        layers: list[nn.Cell] = [ConvNormActivation(3, wide(16), 3, stride=2, activation=nn.HSwish(), **V3)]
        for inputs, kernel, hidden, outputs, squeeze, hard, stride in blocks:
            layers.append(ResidualV3(wide(inputs), kernel, wide(hidden), wide(outputs), squeeze, hard, stride))
        layers.append(ConvNormActivation(wide(96), last, 1, activation=nn.HSwish(), **V3))
        self.features = nn.SequentialCell(layers)
        self.avgpool = nn.AdaptiveAvgPool2d(output_size=1)
        self.classifier = nn.SequentialCell(
            [
                normal_linear(last, wide(1024)),
                nn.HSwish(),
                nn.Dropout(p=0.0),
                normal_linear(wide(1024), CLASSES),
            ]
        )

    def construct(self, x: Tensor) -> Tensor:
        return self.classifier(flatten(self.avgpool(self.features(x))))


KEPT = 0.9997  # of MNASNet's running statistics


class MnasBlock(nn.Cell):
    """MNASNet's inverted residual block."""

    def __init__(self, inputs: int, outputs: int, kernel: int, stride: int, expand: int) -> None:
        super().__init__()
        self.shortcut = inputs == outputs and stride == 1
        self.layers = nn.SequentialCell(mnas_layers(inputs, inputs * expand, outputs, kernel, stride, expanding=True))

    def construct(self, x: Tensor) -> Tensor:
        return self.layers(x) + x if self.shortcut else self.layers(x)


def mnas_layers(inputs: int, hidden: int, outputs: int, kernel: int, stride: int, expanding: bool) -> list[nn.Cell]:
    """Expand with a 1x1 convolution if `expanding`, filter by channel, project with a 1x1 convolution."""
    init = kaiming_fan_out
    first = [convolution(inputs, hidden, 1, weight_init=init()), batch_norm(hidden, kept=KEPT), nn.ReLU()]
    return [
        *(first if expanding else []),
        convolution(hidden, hidden, kernel, stride, kernel // 2, hidden, weight_init=init()),
        batch_norm(hidden, kept=KEPT),
        nn.ReLU(),
        convolution(hidden, outputs, 1, weight_init=init()),
        batch_norm(outputs, kept=KEPT),
    ]


class MNASNet(nn.Cell):
    """torchvision's MNASNet of any width, for images (N, 3, H, W)."""

    def __init__(self, width: float) -> None:
        super().__init__()
        depths = [divisible(depth * width) for depth in (32, 16, 24, 40, 80, 96, 192, 320)]
        # kernel, stride, expansion, blocks
        stacks = ((3, 2, 3, 3), (5, 2, 3, 3), (5, 2, 6, 3), (3, 1, 6, 2), (5, 2, 6, 4), (3, 1, 6, 1))
        layers: list[nn.Cell] = [
            convolution(3, depths[0], 3, stride=2, padding=1, weight_init=kaiming_fan_out()),
            batch_norm(depths[0], kept=KEPT),
            nn.ReLU(),
            *mnas_layers(depths[0], depths[0], depths[1], kernel=3, stride=1, expanding=False),
        ]
        for i, (kernel, stride, expand, blocks) in enumerate(stacks, 1):
            inputs, outputs = depths[i], depths[i + 1]
            rest = [MnasBlock(outputs, outputs, kernel, 1, expand) for _ in range(blocks - 1)]
            layers.append(nn.SequentialCell([MnasBlock(inputs, outputs, kernel, stride, expand), *rest]))
        layers += [
            convolution(depths[7], 1280, 1, weight_init=kaiming_fan_out()),
            batch_norm(1280, kept=KEPT),
            nn.ReLU(),
        ]
        self.layers = nn.SequentialCell(layers)
        init = HeUniform(negative_slope=0, mode="fan_out", nonlinearity="sigmoid")
        self.classifier = nn.SequentialCell(
            [nn.Dropout(p=0.0), linear(1280, CLASSES, weight_init=init, bias_init="zeros")]
        )

    def construct(self, x: Tensor) -> Tensor:
        return self.classifier(self.layers(x).mean((2, 3)))


class MBConv(nn.Cell):
    """EfficientNet's inverted residual block."""

    def __init__(self, inputs: int, outputs: int, kernel: int, stride: int, expand: int) -> None:
        super().__init__()
        self.shortcut = stride == 1 and inputs == outputs
        hidden = divisible(inputs * expand)
        layers: list[nn.Cell] = []
        if hidden != inputs:
            layers.append(ConvNormActivation(inputs, hidden, 1, activation=nn.SiLU()))
        layers += [
            ConvNormActivation(hidden, hidden, kernel, stride, groups=hidden, activation=nn.SiLU()),
            SqueezeExcitation(hidden, max(1, inputs // 4), nn.SiLU(), nn.Sigmoid()),
            ConvNormActivation(hidden, outputs, 1),
        ]
        self.block = nn.SequentialCell(layers)

    def construct(self, x: Tensor) -> Tensor:
        return self.block(x) + x if self.shortcut else self.block(x)


class EfficientNet(nn.Cell):
    """torchvision's EfficientNet B0 of any width, for images (N, 3, H, W)."""

    def __init__(self, width: float, stages: Sequence[tuple[int, int, int, int, int, int]]) -> None:
        super().__init__()
        inputs = divisible(stages[0][3] * width)
        layers: list[nn.Cell] = [ConvNormActivation(3, inputs, 3, stride=2, activation=nn.SiLU())]
        for expand, kernel, stride, _, channels, blocks in stages:
            outputs = divisible(channels * width)
            stage = [MBConv(inputs, outputs, kernel, stride, expand)]
            stage += [MBConv(outputs, outputs, kernel, 1, expand) for _ in range(blocks - 1)]
            layers.append(nn.SequentialCell(stage))
            inputs = outputs
        layers.append(ConvNormActivation(inputs, 4 * inputs, 1, activation=nn.SiLU()))
        self.features = nn.SequentialCell(layers)
        self.avgpool = nn.AdaptiveAvgPool2d(output_size=1)
        init = Uniform(scale=1 / math.sqrt(CLASSES))
        self.classifier = nn.SequentialCell(
            [nn.Dropout(p=0.0), linear(4 * inputs, CLASSES, weight_init=init, bias_init="zeros")]
        )

    def construct(self, x: Tensor) -> Tensor:
        return self.classifier(flatten(self.avgpool(self.features(x))))


def mobilenet_v2() -> MobileNetV2:
    """MobileNet V2, a quarter as wide."""
    return MobileNetV2(0.25)


def mobilenet_v3_small() -> MobileNetV3Small:
    """MobileNet V3 small, half as wide."""
    return MobileNetV3Small(0.5)


def mnasnet0_5() -> MNASNet:
    """MNASNet 0.5 as it is."""
    return MNASNet(0.5)


def efficientnet_b0() -> EfficientNet:
    """EfficientNet B0, a quarter as wide."""
    stages = (
        (1, 3, 1, 32, 16, 1),
        (6, 3, 2, 16, 24, 2),
        (6, 5, 2, 24, 40, 2),
        (6, 3, 2, 40, 80, 3),
        (6, 5, 1, 80, 112, 3),
        (6, 5, 2, 112, 192, 4),
        (6, 3, 1, 192, 320, 1),
    )
    return EfficientNet(0.25, stages)
