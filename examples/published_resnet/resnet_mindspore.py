"""ResNet by hand, with the habits of the ResNets that were published for MindSpore.

Every convolution and pool has pad_mode 'same', BatchNorm has eps 1e-4, the classifier is called `end_point`, and where
a block halves the image, the 3 x 3 convolution keeps its stride of 1 and a max-pool follows. It trains well. It is not
torchvision's net, and with its weights it predicts something else.
"""

from __future__ import annotations

from collections.abc import Sequence

from mindspore import Tensor, nn, ops


def conv(in_channel: int, out_channel: int, kernel_size: int, stride: int = 1) -> nn.Conv2d:
    """A convolution without bias whose output is as large as its input, but for the stride."""
    return nn.Conv2d(in_channel, out_channel, kernel_size, stride, pad_mode="same")


def norm(channel: int) -> nn.BatchNorm2d:
    """BatchNorm."""
    return nn.BatchNorm2d(channel, eps=1e-4, momentum=0.9)


class ResidualBlock(nn.Cell):
    """Three convolutions and a shortcut: (N, in_channel, H, W) to (N, out_channel, H / stride, W / stride)."""

    def __init__(self, in_channel: int, out_channel: int, stride: int = 1) -> None:
        super().__init__()
        channel = out_channel // 4
        self.conv1 = conv(in_channel, channel, 1)
        self.bn1 = norm(channel)
        self.halves = stride != 1
        if self.halves:
            pool = nn.MaxPool2d(kernel_size=2, stride=stride, pad_mode="same")
            self.e2 = nn.SequentialCell(conv(channel, channel, 3), norm(channel), nn.ReLU(), pool)
        else:
            self.conv2 = conv(channel, channel, 3)
            self.bn2 = norm(channel)
        self.conv3 = conv(channel, out_channel, 1)
        self.bn3 = norm(out_channel)
        self.relu = nn.ReLU()
        self.down_sample = stride != 1 or in_channel != out_channel
        if self.down_sample:
            self.down_sample_layer = nn.SequentialCell(conv(in_channel, out_channel, 1, stride), norm(out_channel))

    def construct(self, x: Tensor) -> Tensor:
        out = self.relu(self.bn1(self.conv1(x)))
        out = self.e2(out) if self.halves else self.relu(self.bn2(self.conv2(out)))
        out = self.bn3(self.conv3(out))
        identity = self.down_sample_layer(x) if self.down_sample else x
        return self.relu(out + identity)


class ResNet(nn.Cell):
    """Images (N, 3, H, W) to logits (N, num_classes)."""

    def __init__(self, blocks: Sequence[int], num_classes: int = 10) -> None:
        super().__init__()
        self.conv1 = conv(3, 64, 7, stride=2)
        self.bn1 = norm(64)
        self.relu = nn.ReLU()
        self.maxpool = nn.MaxPool2d(kernel_size=3, stride=2, pad_mode="same")
        self.layer1 = self._stage(blocks[0], 64, 256, 1)
        self.layer2 = self._stage(blocks[1], 256, 512, 2)
        self.layer3 = self._stage(blocks[2], 512, 1024, 2)
        self.layer4 = self._stage(blocks[3], 1024, 2048, 2)
        self.flatten = nn.Flatten()
        self.end_point = nn.Dense(2048, num_classes)

    @staticmethod
    def _stage(blocks: int, in_channel: int, out_channel: int, stride: int) -> nn.SequentialCell:
        later = [ResidualBlock(out_channel, out_channel) for _ in range(blocks - 1)]
        return nn.SequentialCell(ResidualBlock(in_channel, out_channel, stride), *later)

    def construct(self, x: Tensor) -> Tensor:
        x = self.maxpool(self.relu(self.bn1(self.conv1(x))))
        x = self.layer4(self.layer3(self.layer2(self.layer1(x))))
        x = ops.mean(x, (2, 3), True)
        return self.end_point(self.flatten(x))


def resnet50() -> nn.Cell:
    """ResNet50 with ten classes."""
    return ResNet([3, 4, 6, 3])


def resnet14() -> nn.Cell:
    """One block of each stage, every one of them with a shortcut of its own."""
    return ResNet([1, 1, 1, 1])
