"""The nets of devices.py in MindSpore; those that begin with `wrong_` have one fault each."""

from __future__ import annotations

from mindspore import Tensor, nn, ops
from mindspore.common.initializer import initializer
from msmigrate.training.models import mindspore_models

SIZE, WIDTH, HEADS, LAYERS = 32, 32, 4, 2


def convolutional() -> nn.Cell:
    return mindspore_models.build("resnet_tiny", layers=(2, 2, 2, 2))


def wrong_convolutional() -> nn.Cell:
    net = convolutional()
    block = net.layer3[1]
    block.bn2 = nn.BatchNorm2d(block.bn2.num_features, eps=1e-3)
    return net


class Transformer(nn.Cell):
    def __init__(self, activation: str = "gelu") -> None:
        super().__init__()
        self.patches = nn.Conv2d(3, WIDTH, 8, stride=8, pad_mode="pad", has_bias=True)
        layer = nn.TransformerEncoderLayer(WIDTH, HEADS, 4 * WIDTH, 0.1, activation=activation, batch_first=True)
        self.encoder = nn.TransformerEncoder(layer, LAYERS)
        for each in self.encoder.layers:  # torch's begin with zeros
            each.self_attn.out_proj.bias.set_data(initializer("zeros", (WIDTH,)))
        self.norm = nn.LayerNorm((WIDTH,), epsilon=1e-5)
        self.head = nn.Dense(WIDTH, 10)

    def construct(self, images: Tensor) -> Tensor:
        tokens = ops.transpose(ops.flatten(self.patches(images), start_dim=2), (0, 2, 1))
        return self.head(ops.mean(self.norm(self.encoder(tokens)), axis=1))


class Recurrent(nn.Cell):
    def __init__(self, epsilon: float = 1e-5) -> None:
        super().__init__()
        self.lstm = nn.LSTM(3 * SIZE, WIDTH, 2, batch_first=True, dropout=0.2)
        self.norm = nn.LayerNorm((WIDTH,), epsilon=epsilon)
        self.head = nn.Dense(WIDTH, 10)

    def construct(self, images: Tensor) -> Tensor:
        rows = ops.flatten(ops.transpose(images, (0, 2, 1, 3)), start_dim=2)
        return self.head(self.norm(self.lstm(rows)[0][:, -1]))


class Fused(nn.Cell):
    def __init__(self, epsilon: float = 1e-5) -> None:
        super().__init__()
        self.lstm = nn.LSTM(3 * SIZE, WIDTH, batch_first=True)
        self.attention = nn.MultiheadAttention(WIDTH, HEADS, batch_first=True)
        self.attention.out_proj.bias.set_data(initializer("zeros", (WIDTH,)))  # torch's begins with zeros
        self.norm = nn.LayerNorm((WIDTH,), epsilon=epsilon)
        self.head = nn.Dense(WIDTH, 10)

    def construct(self, images: Tensor) -> Tensor:
        rows = self.lstm(ops.flatten(ops.transpose(images, (0, 2, 1, 3)), start_dim=2))[0]
        attended = self.attention(rows, rows, rows, need_weights=False)[0]
        return self.head(ops.mean(self.norm(rows + attended), axis=1))


def transformer() -> nn.Cell:
    return Transformer()


def wrong_transformer() -> nn.Cell:
    return Transformer("relu")


def recurrent() -> nn.Cell:
    return Recurrent()


def wrong_recurrent() -> nn.Cell:
    return Recurrent(1e-3)


def fused() -> nn.Cell:
    return Fused()


def wrong_fused() -> nn.Cell:
    return Fused(1e-3)
