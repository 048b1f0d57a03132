"""DenseNet, name for name the network of `torch_small`."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Sequence

from mindspore import Tensor, nn, ops
from mindspore.common.initializer import HeNormal
from mindspore_layers import (  # type: ignore[import-not-found]  # a neighbour, found where this file is run from
    batch_norm,
    convolution,
    flatten,
    linear,
    max_pool,
)

CLASSES = 10


def dense_convolution(inputs: int, outputs: int, kernel: int, stride: int = 1, padding: int = 0) -> nn.Conv2d:
    """A convolution that starts from `kaiming_normal_()`, as DenseNet's do."""
    init = HeNormal(negative_slope=0, mode="fan_in", nonlinearity="leaky_relu")
    return convolution(inputs, outputs, kernel, stride, padding, weight_init=init)


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


def densenet() -> DenseNet:
    """A DenseNet of four short and narrow blocks."""
    return DenseNet(growth=8, blocks=(2, 3, 3, 2), stem=16, bottleneck=2)
