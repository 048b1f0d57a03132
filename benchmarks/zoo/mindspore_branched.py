"""ShuffleNet V2 and GoogLeNet, name for name the networks of `torch_small`."""

from __future__ import annotations

from collections.abc import Sequence

from mindspore import Tensor, nn, ops
from mindspore_layers import (  # type: ignore[import-not-found]  # a neighbour, found where this file is run from
    batch_norm,
    convolution,
    flatten,
    linear,
    max_pool,
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


googlenet = GoogLeNet


def shufflenet_v2_x0_5() -> ShuffleNetV2:
    """ShuffleNet V2 x0.5 as it is."""
    return ShuffleNetV2((4, 8, 4), (24, 48, 96, 192, 1024))
