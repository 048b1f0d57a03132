"""ShuffleNet V2, DenseNet, GoogLeNet and RegNet, name for name the networks of `torch_small`."""

from __future__ import annotations

import math
from collections import OrderedDict
from collections.abc import Sequence

from mindspore import Tensor, nn, ops
from mindspore.common.initializer import HeNormal, Initializer, Normal
from mindspore_layers import (  # type: ignore[import-not-found]  # a neighbour, found where this file is run from
    ConvNormActivation,
    SqueezeExcitation,
    batch_norm,
    convolution,
    flatten,
    linear,
    max_pool,
    normal_linear,
)

CLASSES = 10


class ShuffleBlock(nn.Cell):
    """ShuffleNet V2's block: one half of the channels goes through, the other is filtered, then they are shuffled."""

    def __init__(self, inputs: int, outputs: int, stride: int) -> None:
        super().__init__()
        self.stride = stride
        half = outputs // 2
        if stride > 1:
            self.branch1 = nn.SequentialCell(
                [
                    convolution(inputs, inputs, 3, stride, padding=1, groups=inputs),
                    batch_norm(inputs),
                    convolution(inputs, half, 1),
                    batch_norm(half),
                    nn.ReLU(),
                ]
            )
        self.branch2 = nn.SequentialCell(
            [
                convolution(inputs if stride > 1 else half, half, 1),
                batch_norm(half),
                nn.ReLU(),
                convolution(half, half, 3, stride, padding=1, groups=half),
                batch_norm(half),
                convolution(half, half, 1),
                batch_norm(half),
                nn.ReLU(),
            ]
        )

    def construct(self, x: Tensor) -> Tensor:
        if self.stride == 1:
            kept, filtered = ops.chunk(x, 2, axis=1)
            out = ops.cat((kept, self.branch2(filtered)), axis=1)
        else:
            out = ops.cat((self.branch1(x), self.branch2(x)), axis=1)
        n, c, h, w = out.shape
        return out.reshape((n, 2, c // 2, h, w)).transpose((0, 2, 1, 3, 4)).reshape((n, c, h, w))


class ShuffleNetV2(nn.Cell):
    """torchvision's ShuffleNet V2, for images (N, 3, H, W)."""

    def __init__(self, repeats: Sequence[int], channels: Sequence[int]) -> None:
        super().__init__()
        stem, *widths, last = channels
        self.conv1 = nn.SequentialCell([convolution(3, stem, 3, stride=2, padding=1), batch_norm(stem), nn.ReLU()])
        self.maxpool = max_pool(3, 2, padding=1)
        inputs, stages = stem, []
        for blocks, width in zip(repeats, widths, strict=True):
            rest = [ShuffleBlock(width, width, 1) for _ in range(blocks - 1)]
            stages.append(nn.SequentialCell([ShuffleBlock(inputs, width, 2), *rest]))
            inputs = width
        self.stage2, self.stage3, self.stage4 = stages
        self.conv5 = nn.SequentialCell([convolution(inputs, last, 1), batch_norm(last), nn.ReLU()])
        self.fc = linear(last, CLASSES)

    def construct(self, x: Tensor) -> Tensor:
        x = self.stage4(self.stage3(self.stage2(self.maxpool(self.conv1(x)))))
        return self.fc(self.conv5(x).mean((2, 3)))


def dense_convolution(inputs: int, outputs: int, kernel: int, stride: int = 1, padding: int = 0) -> nn.Conv2d:
    """A convolution that starts from `kaiming_normal_()`, as DenseNet's do."""
    init = HeNormal(negative_slope=0, mode="fan_in", nonlinearity="leaky_relu")
    return convolution(inputs, outputs, kernel, stride, padding, weight_init=init)


def average_pool(kernel: int) -> nn.AvgPool2d:
    """An average over windows that do not overlap."""
    return nn.AvgPool2d(
        kernel_size=kernel, stride=kernel, pad_mode="valid", padding=0, ceil_mode=False, count_include_pad=True
    )


class DenseLayer(nn.Cell):
    """A bottleneck that adds `growth` channels to all that came before."""

    def __init__(self, inputs: int, growth: int, bottleneck: int) -> None:
        super().__init__()
        self.norm1 = batch_norm(inputs)
        self.relu1 = nn.ReLU()
        self.conv1 = dense_convolution(inputs, bottleneck * growth, 1)
        self.norm2 = batch_norm(bottleneck * growth)
        self.relu2 = nn.ReLU()
        self.conv2 = dense_convolution(bottleneck * growth, growth, 3, padding=1)

    def construct(self, features: list[Tensor]) -> Tensor:
        x = self.conv1(self.relu1(self.norm1(ops.cat(features, axis=1))))
        return self.conv2(self.relu2(self.norm2(x)))


class DenseBlock(nn.Cell):
    """Layers that each see the outputs of all before them."""

    def __init__(self, layers: int, inputs: int, growth: int, bottleneck: int) -> None:
        super().__init__()
        self.names = [f"denselayer{i + 1}" for i in range(layers)]
        for i, name in enumerate(self.names):
            self.insert_child_to_cell(name, DenseLayer(inputs + i * growth, growth, bottleneck))

    def construct(self, x: Tensor) -> Tensor:
        features = [x]
        for name in self.names:
            features.append(getattr(self, name)(features))
        return ops.cat(features, axis=1)


class DenseNet(nn.Cell):
    """torchvision's DenseNet, for images (N, 3, H, W)."""

    def __init__(self, growth: int, blocks: Sequence[int], stem: int, bottleneck: int) -> None:
        super().__init__()
        features = OrderedDict(
            conv0=dense_convolution(3, stem, 7, stride=2, padding=3),
            norm0=batch_norm(stem),
            relu0=nn.ReLU(),
            pool0=max_pool(3, 2, padding=1),
        )
        channels = stem
        for i, layers in enumerate(blocks, 1):
            features[f"denseblock{i}"] = DenseBlock(layers, channels, growth, bottleneck)
            channels += layers * growth
            if i != len(blocks):
                features[f"transition{i}"] = nn.SequentialCell(
                    OrderedDict(
                        norm=batch_norm(channels),
                        relu=nn.ReLU(),
                        conv=dense_convolution(channels, channels // 2, 1),
                        pool=nn.AvgPool2d(
                            kernel_size=2,
                            stride=2,
                            pad_mode="valid",
                            padding=0,
                            ceil_mode=False,
                            count_include_pad=True,
                        ),
                    )
                )
                channels //= 2
        features["norm5"] = batch_norm(channels)
        self.features = nn.SequentialCell(features)
        self.classifier = linear(channels, CLASSES, bias_init="zeros")

    def construct(self, x: Tensor) -> Tensor:
        x = ops.relu(self.features(x))
        return self.classifier(flatten(ops.adaptive_avg_pool2d(x, (1, 1))))


class BasicConv2d(nn.Cell):
    """GoogLeNet's convolution with a BatchNorm and a ReLU, which is a function call in torchvision."""

    def __init__(self, inputs: int, outputs: int, kernel: int, stride: int = 1, padding: int = 0) -> None:
        super().__init__()
        self.conv = convolution(inputs, outputs, kernel, stride, padding)
        self.bn = batch_norm(outputs, eps=1e-3)

    def construct(self, x: Tensor) -> Tensor:
        return ops.relu(self.bn(self.conv(x)))


class Inception(nn.Cell):
    """Four branches side by side; torchvision's third has a 3x3 convolution where the paper has 5x5."""

    def __init__(self, inputs: int, one: int, red3: int, three: int, red5: int, five: int, pooled: int) -> None:
        super().__init__()
        self.branch1 = BasicConv2d(inputs, one, 1)
        self.branch2 = nn.SequentialCell([BasicConv2d(inputs, red3, 1), BasicConv2d(red3, three, 3, padding=1)])
        self.branch3 = nn.SequentialCell([BasicConv2d(inputs, red5, 1), BasicConv2d(red5, five, 3, padding=1)])
        self.branch4 = nn.SequentialCell([max_pool(3, 1, padding=1, ceil=True), BasicConv2d(inputs, pooled, 1)])

    def construct(self, x: Tensor) -> Tensor:
        return ops.cat((self.branch1(x), self.branch2(x), self.branch3(x), self.branch4(x)), axis=1)


class GoogLeNet(nn.Cell):
    """torchvision's GoogLeNet without auxiliary heads, for images (N, 3, H, W)."""

    def __init__(self) -> None:
        super().__init__()
        self.conv1 = BasicConv2d(3, 64, 7, stride=2, padding=3)
        self.maxpool1 = max_pool(3, 2, ceil=True)
        self.conv2 = BasicConv2d(64, 64, 1)
        self.conv3 = BasicConv2d(64, 192, 3, padding=1)
        self.maxpool2 = max_pool(3, 2, ceil=True)
        self.inception3a = Inception(192, 64, 96, 128, 16, 32, 32)
        self.inception3b = Inception(256, 128, 128, 192, 32, 96, 64)
        self.maxpool3 = max_pool(3, 2, ceil=True)
        self.inception4a = Inception(480, 192, 96, 208, 16, 48, 64)
        self.inception4b = Inception(512, 160, 112, 224, 24, 64, 64)
        self.inception4c = Inception(512, 128, 128, 256, 24, 64, 64)
        self.inception4d = Inception(512, 112, 144, 288, 32, 64, 64)
        self.inception4e = Inception(528, 256, 160, 320, 32, 128, 128)
        self.maxpool4 = max_pool(2, 2, ceil=True)
        self.inception5a = Inception(832, 256, 160, 320, 32, 128, 128)
        self.inception5b = Inception(832, 384, 192, 384, 48, 128, 128)
        self.avgpool = nn.AdaptiveAvgPool2d(output_size=(1, 1))
        self.dropout = nn.Dropout(p=0.0)
        self.fc = linear(1024, CLASSES)

    def construct(self, x: Tensor) -> Tensor:
        x = self.maxpool2(self.conv3(self.conv2(self.maxpool1(self.conv1(x)))))
        x = self.maxpool3(self.inception3b(self.inception3a(x)))
        x = self.inception4d(self.inception4c(self.inception4b(self.inception4a(x))))
        x = self.maxpool4(self.inception4e(x))
        x = self.avgpool(self.inception5b(self.inception5a(x)))
        return self.fc(self.dropout(flatten(x)))


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


googlenet = GoogLeNet


def shufflenet_v2_x0_5() -> ShuffleNetV2:
    """ShuffleNet V2 x0.5 as it is."""
    return ShuffleNetV2((4, 8, 4), (24, 48, 96, 192, 1024))


def densenet() -> DenseNet:
    """A DenseNet of four short and narrow blocks."""
    return DenseNet(growth=8, blocks=(2, 3, 3, 2), stem=16, bottleneck=2)


def regnet_y() -> RegNet:
    """A RegNetY with the groups of 8 and the squeeze of regnet_y_400mf, narrow and short."""
    return RegNet((1, 2, 2, 1), (16, 32, 48, 64), group_width=8, squeeze=0.25)
