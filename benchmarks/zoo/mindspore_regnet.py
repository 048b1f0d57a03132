"""RegNet, name for name the network of `torch_small`."""

from __future__ import annotations

import math
from collections import OrderedDict
from collections.abc import Sequence

from mindspore import Tensor, nn
from mindspore.common.initializer import Initializer, Normal
from mindspore_layers import (  # type: ignore[import-not-found]  # a neighbour, found where this file is run from
    ConvNormActivation,
    SqueezeExcitation,
    flatten,
    normal_linear,
)

CLASSES = 10


def regnet_init(outputs: int, kernel: int) -> Initializer:
    """How RegNet's convolutions start; the fan-out of grouped ones is not divided by the groups."""
    return Normal(sigma=math.sqrt(2.0 / (kernel * kernel * outputs)), mean=0.0)


def regnet_convolution(
    inputs: int, outputs: int, kernel: int, stride: int = 1, groups: int = 1, activation: nn.Cell | None = None
) -> ConvNormActivation:
    """A convolution with a BatchNorm, and perhaps an activation, that starts as RegNet's do."""
    init = regnet_init(outputs, kernel)
    return ConvNormActivation(inputs, outputs, kernel, stride, groups, activation, weight_init=init)


class RegNetBlock(nn.Cell):
    """RegNetY's residual bottleneck with squeeze and excitation."""

    def __init__(self, inputs: int, outputs: int, stride: int, group_width: int, squeeze: float) -> None:
        super().__init__()
        self.proj = None
        if inputs != outputs or stride != 1:
            self.proj = regnet_convolution(inputs, outputs, 1, stride)
        squeezed = round(squeeze * inputs)
        inits = (regnet_init(squeezed, 1), regnet_init(outputs, 1))
        self.f = nn.SequentialCell(
            OrderedDict(
                a=regnet_convolution(inputs, outputs, 1, activation=nn.ReLU()),
                b=regnet_convolution(outputs, outputs, 3, stride, outputs // group_width, nn.ReLU()),
                se=SqueezeExcitation(outputs, squeezed, nn.ReLU(), nn.Sigmoid(), inits, bias_init=None),
                c=regnet_convolution(outputs, outputs, 1),
            )
        )
        self.activation = nn.ReLU()

    def construct(self, x: Tensor) -> Tensor:
        shortcut = x if self.proj is None else self.proj(x)
        return self.activation(shortcut + self.f(x))


class RegNet(nn.Cell):
    """torchvision's RegNetY, for images (N, 3, H, W)."""

    def __init__(self, depths: Sequence[int], widths: Sequence[int], group_width: int, squeeze: float) -> None:
        super().__init__()
        self.stem = regnet_convolution(3, 32, 3, stride=2, activation=nn.ReLU())
        inputs = 32
        stages: OrderedDict[str, nn.Cell] = OrderedDict()
        for i, (depth, width) in enumerate(zip(depths, widths, strict=True), 1):
            stage = [RegNetBlock(inputs, width, 2, group_width, squeeze)]
            stage += [RegNetBlock(width, width, 1, group_width, squeeze) for _ in range(depth - 1)]
            named = OrderedDict((f"block{i}-{j}", block) for j, block in enumerate(stage))
            stages[f"block{i}"] = nn.SequentialCell(named)
            inputs = width
        self.trunk_output = nn.SequentialCell(stages)
        self.avgpool = nn.AdaptiveAvgPool2d(output_size=(1, 1))
        self.fc = normal_linear(inputs, CLASSES)

    def construct(self, x: Tensor) -> Tensor:
        return self.fc(flatten(self.avgpool(self.trunk_output(self.stem(x)))))


def regnet_y() -> RegNet:
    """A RegNetY with the groups of 8 and the squeeze of regnet_y_400mf, narrow and short."""
    return RegNet((1, 2, 2, 1), (16, 32, 48, 64), group_width=8, squeeze=0.25)
