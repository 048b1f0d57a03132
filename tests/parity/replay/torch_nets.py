"""Small torch models for the replay, under the names that mindspore_nets has."""

from __future__ import annotations

from typing import Any

import torch
import torch.nn.functional as F
from msmigrate.training.models import torch_models
from torch import Tensor, nn


class Block(nn.Module):
    """A transformer block, attention written out."""

    def __init__(self, width: int, heads: int) -> None:
        super().__init__()
        self.heads = heads
        self.norm1 = nn.LayerNorm(width)
        self.qkv = nn.Linear(width, 3 * width)
        self.proj = nn.Linear(width, width)
        self.norm2 = nn.LayerNorm(width)
        self.fc1 = nn.Linear(width, 4 * width)
        self.act = nn.GELU()
        self.fc2 = nn.Linear(4 * width, width)
        self.drop = nn.Dropout(0.1)

    def forward(self, x: Tensor) -> Tensor:
        n, length, width = x.shape
        q, k, v = self.qkv(self.norm1(x)).reshape(n, length, 3, self.heads, -1).permute(2, 0, 3, 1, 4)
        weights = torch.softmax(q @ k.transpose(-2, -1) / (width // self.heads) ** 0.5, -1)
        x = x + self.drop(self.proj((weights @ v).transpose(1, 2).reshape(n, length, width)))
        return x + self.drop(self.fc2(self.act(self.fc1(self.norm2(x)))))


class Transformer(nn.Module):
    """Patches, two blocks, and a head on the mean."""

    def __init__(self, width: int = 32, blocks: int = 2) -> None:
        super().__init__()
        self.patch = nn.Conv2d(3, width, 8, stride=8)
        self.blocks = nn.Sequential(*(Block(width, 4) for _ in range(blocks)))
        self.norm = nn.LayerNorm(width)
        self.head = nn.Linear(width, 10)

    def forward(self, x: Tensor) -> Tensor:
        x = self.patch(x).flatten(2).transpose(1, 2)
        return self.head(self.norm(self.blocks(x)).mean(1))


class Pair(nn.Module):
    """Two tensors in, a tuple and a dict out; the last output is used by nobody."""

    def __init__(self) -> None:
        super().__init__()
        self.left, self.right = nn.Linear(8, 8), nn.Linear(8, 8)
        self.idle = nn.Linear(8, 3)

    def forward(self, x: Tensor, y: Tensor, *, scale: float = 1.0, mask: Tensor | None = None) -> Any:
        if mask is not None:
            y = y * mask
        left = self.left(x) * scale
        return left, {"right": self.right(y), "idle": self.idle(left)}


class Odd(nn.Module):
    """What makes modules hard to run alone: an embedding, in-place and reused layers, many inputs and outputs."""

    def __init__(self) -> None:
        super().__init__()
        self.word = nn.Embedding(16, 8)
        self.relu = nn.ReLU(inplace=True)
        self.pair = Pair()
        self.idle = nn.Identity()
        self.stack = nn.ModuleList([nn.Linear(8, 8), nn.Linear(8, 8)])
        self.bn = nn.BatchNorm2d(3)
        self.drop = nn.Dropout(0.5)
        self.fc = nn.Linear(8, 10)

    def forward(self, images: Tensor) -> Tensor:
        ids = (images.detach().abs().amax((1, 2)) * 5).long().clamp(0, 15)  # (N, W)
        x = self.relu(self.word(ids))
        y = self.idle(self.bn(images).mean((1, 2))[:, None, :8])
        left, rest = self.pair(x, y, scale=0.5, mask=torch.ones(8))
        x = left + rest["right"]
        for layer in self.stack:
            x = x + self.drop(self.relu(layer(x)))
        return self.fc(F.silu(x).mean(1))


def build(name: str) -> nn.Module:
    """A model by name: one of these, or one that a recipe may name."""
    if name == "resnet_tiny":
        return torch_models.build(name, num_classes=10, width=4)
    if name == "lenet5":
        return torch_models.build(name, channels=3)
    return {"transformer": Transformer, "odd": Odd}[name]()
