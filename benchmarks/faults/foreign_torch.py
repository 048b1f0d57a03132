"""Torch nets as their users write them; foreign_mindspore.py has each by hand, under other names and otherwise cut."""

from __future__ import annotations

from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor, nn


class ConvNormAct(nn.Module):
    def __init__(self, inputs: int, outputs: int, stride: int, padding: int, **more: int) -> None:
        super().__init__()
        self.conv = nn.Conv2d(inputs, outputs, 3, stride, padding, bias=False, **more)
        self.bn = nn.BatchNorm2d(outputs)
        self.act = nn.ReLU()

    def forward(self, x: Tensor) -> Tensor:
        return self.act(self.bn(self.conv(x)))


class Encoder(nn.Module):
    def __init__(self, width: int, heads: int) -> None:
        super().__init__()
        self.norm1 = nn.LayerNorm(width)
        self.attn = nn.MultiheadAttention(width, heads, batch_first=True)
        self.norm2 = nn.LayerNorm(width)
        self.mlp = nn.Sequential(nn.Linear(width, 2 * width), nn.GELU(), nn.Linear(2 * width, width))

    def forward(self, x: Tensor) -> Tensor:
        y = self.norm1(x)
        x = x + self.attn(y, y, y, need_weights=False)[0]
        return x + self.mlp(self.norm2(x))


class Composite(nn.Module):
    """Blocks that the other net has not, and attention in one module: convolutions, then an encoder on their cells."""

    def __init__(self) -> None:
        super().__init__()
        self.stem = ConvNormAct(3, 12, 2, 1)
        self.body = ConvNormAct(12, 24, 1, 2, dilation=2, groups=3)
        self.pool = nn.AvgPool2d(3, 2, 1)
        self.reduce = nn.Conv2d(24, 24, 2, 2)
        self.encoder = nn.Sequential(Encoder(24, 4), Encoder(24, 4))
        self.norm = nn.LayerNorm(24)
        self.head = nn.Linear(24, 10)

    def forward(self, x: Tensor) -> Tensor:
        x = self.reduce(self.pool(self.body(self.stem(x))))
        x = self.encoder(x.flatten(2).transpose(1, 2))
        return self.head(self.norm(x).mean(1))


class Functional(nn.Module):
    """Whatever has no weight is a function here."""

    def __init__(self) -> None:
        super().__init__()
        self.first = nn.Conv2d(3, 8, 3, padding=1)
        self.bn = nn.BatchNorm2d(8)
        self.second = nn.Conv2d(8, 16, 3, 2, 1)
        self.gn = nn.GroupNorm(4, 16)
        self.up = nn.ConvTranspose2d(16, 8, 3, 2, 1, output_padding=1)
        self.wide = nn.Linear(128, 32)
        self.head = nn.Linear(32, 10)

    def forward(self, x: Tensor) -> Tensor:
        x = F.leaky_relu(self.bn(self.first(x)), 0.2)
        small = F.max_pool2d(x, 3, 2, 1)
        deep = F.silu(self.gn(self.second(small)))
        large = F.interpolate(deep, scale_factor=2.0, mode="bilinear", align_corners=False)
        x = torch.cat([self.up(deep), large, small], 1)
        x = F.avg_pool2d(x, 3, 2, 1, count_include_pad=False)
        x = F.adaptive_avg_pool2d(x, 2).flatten(1)
        x = F.gelu(self.wide(F.normalize(x, dim=1) * 4.0))
        return self.head(x)


class Tagger(nn.Module):
    """A tag for each word: an LSTM in both directions, and a GRU on it."""

    def __init__(self, words: int = 31, width: int = 12, hidden: int = 10, tags: int = 5) -> None:
        super().__init__()
        self.embed = nn.Embedding(words, width, padding_idx=0)
        self.lstm = nn.LSTM(width, hidden, batch_first=True, bidirectional=True)
        self.gru = nn.GRU(2 * hidden, 16, batch_first=True)
        self.norm = nn.LayerNorm(16)
        self.head = nn.Linear(16, tags)

    def forward(self, ids: Tensor) -> Tensor:
        x, _ = self.lstm(self.embed(ids))
        x, _ = self.gru(torch.tanh(x))
        return self.head(self.norm(x))


class Reader(Tagger):
    """One class for each text, of its last step."""

    def forward(self, ids: Tensor) -> Tensor:
        x, _ = self.lstm(self.embed(ids))
        x, _ = self.gru(torch.tanh(x))
        return self.head(self.norm(x[:, -1]))


class NormAct(nn.BatchNorm2d):
    """A norm with its activation inside, as timm's BatchNormAct2d."""

    def __init__(self, width: int, act: type[nn.Module]) -> None:
        super().__init__(width)
        self.act = act()

    def forward(self, x: Tensor) -> Tensor:
        return self.act(super().forward(x))


class Inverted(nn.Module):
    def __init__(self, width: int, wide: int) -> None:
        super().__init__()
        self.expand, self.norm1 = nn.Conv2d(width, wide, 1, bias=False), NormAct(wide, nn.Hardswish)
        self.depth, self.norm2 = nn.Conv2d(wide, wide, 3, 1, 1, groups=wide, bias=False), NormAct(wide, nn.ReLU6)
        self.project, self.norm3 = nn.Conv2d(wide, width, 1, bias=False), nn.BatchNorm2d(width)

    def forward(self, x: Tensor) -> Tensor:
        y = self.norm2(self.depth(self.norm1(self.expand(x))))
        return x + self.norm3(self.project(y))


class PackedAttention(nn.Module):
    def __init__(self, width: int, heads: int) -> None:
        super().__init__()
        self.heads, self.qkv, self.proj = heads, nn.Linear(width, 3 * width), nn.Linear(width, width)
        nn.init.xavier_uniform_(self.qkv.weight)  # as a MultiheadAttention begins
        nn.init.zeros_(self.qkv.bias)

    def forward(self, x: Tensor) -> Tensor:
        n, length, width = x.shape
        q, k, v = self.qkv(x).reshape(n, length, 3, self.heads, width // self.heads).permute(2, 0, 3, 1, 4)
        return self.proj(F.scaled_dot_product_attention(q, k, v).transpose(1, 2).reshape(n, length, width))


class PostNorm(nn.Module):
    def __init__(self, width: int, heads: int) -> None:
        super().__init__()
        self.attn, self.norm1 = PackedAttention(width, heads), nn.LayerNorm(width)
        self.fc1, self.act, self.fc2 = nn.Linear(width, 2 * width), nn.GELU(), nn.Linear(2 * width, width)
        self.norm2 = nn.LayerNorm(width)

    def forward(self, x: Tensor) -> Tensor:
        x = self.norm1(x + self.attn(x))
        return self.norm2(x + self.fc2(self.act(self.fc1(x))))


class Fused(nn.Module):
    """Norms with activations in them, attention written out, norms behind its branches, an LSTM, and two heads."""

    def __init__(self) -> None:
        super().__init__()
        self.stem, self.norm = nn.Conv2d(3, 8, 4, 4, bias=False), NormAct(8, nn.SiLU)
        self.stage = nn.Sequential(Inverted(8, 20), Inverted(8, 20))
        self.down = nn.Conv2d(8, 16, 2, 2)
        self.layers = nn.Sequential(PostNorm(16, 4), PostNorm(16, 4))
        self.lstm, self.last = nn.LSTM(16, 14, batch_first=True), nn.LayerNorm(14)
        self.main, self.side = nn.Linear(14, 10), nn.Linear(16, 10)

    def forward(self, x: Tensor) -> Tensor:
        x = self.down(self.stage(self.norm(self.stem(x))))
        x = self.layers(x.flatten(2).transpose(1, 2))
        y, _ = self.lstm(x)
        return (self.main(self.last(y).mean(1)) + self.side(x[:, 0])) / 2.0


def composite() -> nn.Module:
    return Composite()


def fused() -> nn.Module:
    return Fused()


def functional() -> nn.Module:
    return Functional()


def recurrent() -> nn.Module:
    return Reader()


def tagger() -> dict[str, Any]:
    """With its loss: weighted classes, and words that are no part of it."""
    weight = torch.tensor([1.0, 0.5, 2.0, 1.5, 0.25])

    def loss(tags: Tensor, labels: Tensor) -> Tensor:
        return F.cross_entropy(tags.flatten(0, 1), labels.flatten(), weight.to(tags.dtype), ignore_index=4)

    return {"model": Tagger(), "loss": loss}
