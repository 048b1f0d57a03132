"""The nets of devices.py in torch: small, since what is recorded of them has to travel."""

from __future__ import annotations

import torch
from msmigrate.training.models import torch_models
from torch import Tensor, nn

SIZE, WIDTH, HEADS, LAYERS = 32, 32, 4, 2


def convolutional() -> nn.Module:
    """A ResNet of 26 layers, an eighth as wide as ResNet50."""
    torch.manual_seed(0)
    return torch_models.build("resnet_tiny", layers=(2, 2, 2, 2))


class Transformer(nn.Module):
    """Patches of 8 by 8, two encoder layers with dropout in their attention, the mean of the tokens."""

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
    """The rows of an image, one after the other, through two layers of LSTM with dropout between them."""

    def __init__(self) -> None:
        super().__init__()
        self.lstm = nn.LSTM(3 * SIZE, WIDTH, 2, batch_first=True, dropout=0.2)
        self.norm = nn.LayerNorm(WIDTH)
        self.head = nn.Linear(WIDTH, 10)

    def forward(self, images: Tensor) -> Tensor:
        rows = images.transpose(1, 2).flatten(2)
        return self.head(self.norm(self.lstm(rows)[0][:, -1]))


class Fused(nn.Module):
    """The rows through an LSTM and an attention, neither with dropout: one kernel of the GPU's each."""

    def __init__(self) -> None:
        super().__init__()
        self.lstm = nn.LSTM(3 * SIZE, WIDTH, batch_first=True)
        self.attention = nn.MultiheadAttention(WIDTH, HEADS, batch_first=True)
        self.norm = nn.LayerNorm(WIDTH)
        self.head = nn.Linear(WIDTH, 10)

    def forward(self, images: Tensor) -> Tensor:
        rows = self.lstm(images.transpose(1, 2).flatten(2))[0]
        return self.head(self.norm(rows + self.attention(rows, rows, rows, need_weights=False)[0]).mean(1))


def transformer() -> nn.Module:
    torch.manual_seed(0)
    return Transformer()


def recurrent() -> nn.Module:
    torch.manual_seed(0)
    return Recurrent()


def fused() -> nn.Module:
    torch.manual_seed(0)
    return Fused()
