"""The same net, moved to MindSpore by hand: one line is not what it should be."""

from mindspore import Tensor, nn, ops


class Block(nn.Cell):
    def __init__(self, channels: int) -> None:
        super().__init__()
        self.conv = nn.Conv2d(channels, channels, 3, pad_mode="pad", padding=1, has_bias=False)
        self.norm = nn.BatchNorm2d(channels, momentum=0.1)

    def construct(self, x: Tensor) -> Tensor:
        return ops.relu(x + self.norm(self.conv(x)))


class Net(nn.Cell):
    def __init__(self, classes: int = 10) -> None:
        super().__init__()
        self.stem = nn.Conv2d(3, 8, 3, stride=2, pad_mode="pad", padding=1, has_bias=True)
        self.block = Block(8)
        self.pool = nn.MaxPool2d(2, stride=2)
        self.head = nn.Dense(8 * 8 * 8, classes)

    def construct(self, x: Tensor) -> Tensor:
        x = self.pool(self.block(ops.relu(self.stem(x))))
        return self.head(ops.flatten(x))


def build() -> nn.Cell:
    return Net()
