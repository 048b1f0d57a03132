"""The three nets of devices.py in torch."""

from __future__ import annotations

import torch
from torch import Tensor, nn
from torchvision.models import resnet50

WIDTH, HEADS, LAYERS = 128, 4, 4


def convolutional() -> nn.Module:
    return resnet50(num_classes=10)


class Transformer(nn.Module):
    """Patches of 8 by 8, four encoder layers, the mean of the tokens."""

    def __init__(self) -> None:
        super().__init__()
        self.patches = nn.Conv2d(3, WIDTH, 8, stride=8)
        layer = nn.TransformerEncoderLayer(WIDTH, HEADS, 4 * WIDTH, 0.1, activation="gelu", batch_first=True)
        self.encoder = nn.TransformerEncoder(layer, LAYERS, enable_nested_tensor=False)
        self.norm = nn.LayerNorm(WIDTH)
        self.head = nn.Linear(WIDTH, 10)

    def forward(self, images: Tensor) -> Tensor:
        tokens = self.patches(images).flatten(2).transpose(1, 2)
        return self.head(self.norm(self.encoder(tokens)).mean(1))


class Recurrent(nn.Module):
    """The rows of an image, one after the other, through two layers of LSTM."""

    def __init__(self) -> None:
        super().__init__()
        self.lstm = nn.LSTM(3 * 64, WIDTH, 2, batch_first=True)
        self.norm = nn.LayerNorm(WIDTH)
        self.head = nn.Linear(WIDTH, 10)

    def forward(self, images: Tensor) -> Tensor:
        rows = images.transpose(1, 2).flatten(2)
        return self.head(self.norm(self.lstm(rows)[0][:, -1]))


def transformer() -> nn.Module:
    torch.manual_seed(0)
    return Transformer()


def recurrent() -> nn.Module:
    torch.manual_seed(0)
    return Recurrent()
