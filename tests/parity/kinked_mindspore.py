"""The nets of kinked_torch.py in MindSpore, under other names."""

from mindspore import Tensor, nn, ops


def conv(ours: int, theirs: int, padding: int = 0) -> nn.Conv2d:
    """A convolution with a bias."""
    return nn.Conv2d(ours, theirs, 3, pad_mode="pad", padding=padding, has_bias=True)


class Functions(nn.Cell):
    """Functions alone."""

    def __init__(self) -> None:
        super().__init__()
        self.first, self.second = conv(1, 16), conv(16, 32)
        self.wide, self.head = nn.Dense(128, 32), nn.Dense(32, 10)

    def construct(self, x: Tensor) -> Tensor:
        x = ops.max_pool2d(ops.relu(self.second(ops.relu(self.first(x)))), 2)
        return ops.log_softmax(self.head(ops.relu(self.wide(x.reshape(len(x), -1)))), axis=1)


class Modules(Functions):
    """The same with Cells, one ReLU for all."""

    def __init__(self) -> None:
        super().__init__()
        self.relu, self.pool, self.flat, self.last = nn.ReLU(), nn.MaxPool2d(2, 2), nn.Flatten(), nn.LogSoftmax(1)

    def construct(self, x: Tensor) -> Tensor:
        x = self.flat(self.pool(self.relu(self.second(self.relu(self.first(x))))))
        return self.last(self.head(self.relu(self.wide(x))))


class Clipped(nn.Conv2d):
    """A layer with weights that has another one inside."""

    def __init__(self, inputs: int, outputs: int) -> None:
        super().__init__(inputs, outputs, 3, pad_mode="valid", has_bias=True)
        self.act = nn.ReLU()

    def construct(self, x: Tensor) -> Tensor:
        return self.act(super().construct(x))


class Inside(nn.Cell):
    """The net of such layers, under torch's names, by which a layer inside of another corresponds too."""

    def __init__(self) -> None:
        super().__init__()
        self.conv1, self.conv2, self.act = Clipped(1, 16), Clipped(16, 32), nn.ReLU()
        self.fc1, self.fc2 = nn.Dense(128, 32), nn.Dense(32, 10)

    def construct(self, x: Tensor) -> Tensor:
        x = ops.max_pool2d(self.conv2(self.conv1(x)), 2)
        return ops.log_softmax(self.fc2(self.act(self.fc1(x.reshape(len(x), -1)))), axis=1)


class Rare(nn.Cell):
    """Cells where torch has functions, and functions that are called otherwise."""

    def __init__(self) -> None:
        super().__init__()
        self.first, self.second, self.third = conv(1, 16, 1), conv(16, 32, 1), conv(8, 16, 1)
        self.head = nn.Dense(16, 10)
        self.pool, self.leaky = nn.MaxPool2d(3, 2, pad_mode="pad", padding=1), nn.LeakyReLU(0.1)
        self.hard = nn.Hardtanh(-0.3, 0.3)

    def construct(self, x: Tensor) -> Tensor:
        x = ops.clip(self.first(x), 0, 0.5)
        x = ops.maximum(x, ops.flip(x, (3,)) * 0.9)
        x = self.leaky(self.pool(self.second(x)))
        x = x.reshape(len(x), 8, 4, *x.shape[2:]).max(axis=2)
        return self.head(ops.amax(self.hard(self.third(x)), (2, 3)))


class Plain(nn.Cell):
    """wrong: by how much the gradient of the last layer's weight is too large, as a share of it."""

    def __init__(self, wrong: float = 0.0) -> None:
        super().__init__()
        self.first, self.second, self.head = conv(1, 16, 1), conv(16, 16, 1), nn.Dense(16, 10)

        def larger(gradient: Tensor) -> Tensor:
            return gradient * (1.0 + wrong)

        self.larger = ops.InsertGradientOf(larger)

    def construct(self, x: Tensor) -> Tensor:
        x = ops.relu(self.second(ops.relu(self.first(x)))).mean((2, 3))
        return ops.dense(x, self.larger(self.head.weight), self.head.bias)


class Pixels(nn.Cell):
    """wrong: by how much the gradient of the first layer's bias is too large, as a share of it."""

    def __init__(self, wrong: float = 0.0) -> None:
        super().__init__()
        self.each, self.fc = nn.Dense(1, 16), nn.Dense(16, 10)

        def larger(gradient: Tensor) -> Tensor:
            return gradient * (1.0 + wrong)

        self.larger = ops.InsertGradientOf(larger)

    def construct(self, x: Tensor) -> Tensor:
        rows = x.flatten(start_dim=2).swapaxes(1, 2)
        return self.fc(ops.dense(rows, self.each.weight, self.larger(self.each.bias)).mean(1))
