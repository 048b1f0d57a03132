"""Torch nets as their users write them; foreign_mindspore.py has each by hand, under other names and otherwise cut."""

from __future__ import annotations

import math
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


class DoubleConv(nn.Module):
    def __init__(self, inputs: int, outputs: int, dilation: int = 1) -> None:
        super().__init__()
        self.double_conv = nn.Sequential(
            nn.Conv2d(inputs, outputs, 3, padding=1, bias=False),
            nn.GroupNorm(4, outputs),
            nn.LeakyReLU(0.1, inplace=True),
            nn.Conv2d(outputs, outputs, 3, padding=dilation, dilation=dilation, groups=2),
            nn.BatchNorm2d(outputs),
            nn.ELU(inplace=True),
        )

    def forward(self, x: Tensor) -> Tensor:
        return self.double_conv(x)


class Up(nn.Module):
    def __init__(self, deep: int, skip: int, outputs: int) -> None:
        super().__init__()
        self.up = nn.ConvTranspose2d(deep, deep // 2, 3, 2, 1, output_padding=1)
        self.conv = DoubleConv(deep // 2 + skip, outputs)

    def forward(self, x: Tensor, skip: Tensor) -> Tensor:
        x = self.up(x)
        high, wide = skip.size(2) - x.size(2), skip.size(3) - x.size(3)
        x = F.pad(x, [wide // 2, wide - wide // 2, high // 2, high - high // 2])
        return self.conv(torch.cat([skip, x], dim=1))


class SqueezeGate(nn.Module):
    def __init__(self, width: int) -> None:
        super().__init__()
        self.fc = nn.Sequential(nn.Linear(width, 4), nn.SiLU(), nn.Linear(4, width))

    def forward(self, x: Tensor) -> Tensor:
        w = torch.softmax(self.fc(x.mean((2, 3))), dim=1)
        return x * w[:, :, None, None] * x.size(1)


class UNet(nn.Module):
    """A class for each point: transposed convolutions, crops, a gate, and a second output that is resized."""

    def __init__(self, classes: int = 5) -> None:
        super().__init__()
        self.inc, self.pool1 = DoubleConv(3, 8), nn.MaxPool2d(3, 2, padding=1, ceil_mode=True)
        self.down1, self.pool2 = DoubleConv(8, 16, dilation=2), nn.AvgPool2d(3, 2, padding=1)
        self.down2, self.gate = nn.Conv2d(16, 24, 3, stride=2, padding=1), SqueezeGate(24)
        self.context = nn.Conv2d(16, 24, 1)
        self.up1, self.up2 = Up(24, 16, 16), Up(16, 8, 8)
        self.outc, self.aux = nn.Conv2d(8, classes, 1), nn.Conv2d(16, classes, 1)

    def forward(self, x: Tensor) -> Tensor:
        x1 = self.inc(x)
        x2 = self.down1(self.pool1(x1))
        pooled = self.pool2(x2)
        x3 = self.gate(self.down2(x2)) + self.context(pooled)
        y = self.up1(x3, x2)
        logits = self.outc(self.up2(y, x1))
        aux = F.interpolate(self.aux(y), size=logits.shape[2:], mode="bilinear", align_corners=True)
        return logits + 0.4 * aux


class OwnAdam(torch.optim.Optimizer):
    """AdamW as somebody wrote it."""

    def __init__(self, params: Any, lr: float, betas: tuple[float, float] = (0.9, 0.99), eps: float = 1e-6) -> None:
        super().__init__(params, {"lr": lr, "betas": betas, "eps": eps, "weight_decay": 0.0})

    @torch.no_grad()
    def step(self, closure: Any = None) -> None:
        for group in self.param_groups:
            one, two = group["betas"]
            for p in group["params"]:
                state = self.state[p]
                if not state:
                    state["t"], state["m"], state["v"] = 0, torch.zeros_like(p), torch.zeros_like(p)
                state["t"] += 1
                state["m"].mul_(one).add_(p.grad, alpha=1 - one)
                state["v"].mul_(two).addcmul_(p.grad, p.grad, value=1 - two)
                p.mul_(1 - group["lr"] * group["weight_decay"])
                m, v = state["m"] / (1 - one ** state["t"]), state["v"] / (1 - two ** state["t"])
                p.addcdiv_(m, v.sqrt() + group["eps"], value=-group["lr"])


class SelfAttention(nn.Module):
    def __init__(self, dim: int, heads: int) -> None:
        super().__init__()
        self.h = heads
        self.q_proj, self.v_proj, self.o_proj = (nn.Linear(dim, dim) for _ in range(3))
        self.k_proj = nn.Linear(dim, dim, bias=False)
        self.register_buffer("causal", torch.tril(torch.ones(12, 12, dtype=torch.bool)), persistent=False)

    def forward(self, x: Tensor, pad: Tensor) -> Tensor:
        b, t, d = x.shape
        q = self.q_proj(x).view(b, t, self.h, d // self.h).transpose(1, 2)
        k = self.k_proj(x).view(b, t, self.h, d // self.h).transpose(1, 2)
        v = self.v_proj(x).view(b, t, self.h, d // self.h).transpose(1, 2)
        att = q @ k.transpose(-2, -1) / math.sqrt(d // self.h)
        seen = self.causal[:t, :t] & ~pad[:, None, None, :]
        att = att.masked_fill(~seen, -1e4)
        y = torch.softmax(att, dim=-1) @ v
        return self.o_proj(y.transpose(1, 2).contiguous().view(b, t, d))


class Block(nn.Module):
    def __init__(self, dim: int, heads: int) -> None:
        super().__init__()
        self.ln1, self.ln2, self.attn = nn.LayerNorm(dim), nn.LayerNorm(dim), SelfAttention(dim, heads)
        self.mlp = nn.Sequential(nn.Linear(dim, 2 * dim), nn.GELU(), nn.Linear(2 * dim, dim))

    def forward(self, x: Tensor, pad: Tensor) -> Tensor:
        x = x + self.attn(self.ln1(x), pad)
        return x + self.mlp(self.ln2(x))


class Speech(nn.Module):
    """A convolution over time, masked attention, a GRU in both directions, and the last word that counts."""

    def __init__(self) -> None:
        super().__init__()
        self.tok, self.pos = nn.Embedding(29, 16, padding_idx=0), nn.Parameter(torch.randn(1, 12, 16) * 0.1)
        self.conv, self.bn = nn.Conv1d(16, 16, 3, padding=1), nn.BatchNorm1d(16, momentum=0.2)
        self.blocks = nn.ModuleList([Block(16, 4) for _ in range(2)])
        self.rnn = nn.GRU(16, 10, batch_first=True, bidirectional=True)
        self.norm, self.fc = nn.LayerNorm(20, eps=1e-6), nn.Linear(20, 6)

    def forward(self, ids: Tensor) -> Tensor:
        pad = ids == 0
        x = self.tok(ids) * 4.0 + self.pos
        x = F.relu(self.bn(self.conv(x.transpose(1, 2)))).transpose(1, 2)
        for block in self.blocks:
            x = block(x, pad)
        y, _ = self.rnn(x)
        last = (~pad).sum(1) - 1
        return self.fc(self.norm(y[torch.arange(y.shape[0]), last]))


def decayed(params: Any) -> tuple[list[Any], list[Any]]:
    """The parameters that decay, and the others."""
    params = list(params)
    return [p for p in params if p.ndim > 1], [p for p in params if p.ndim < 2]


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


def segment() -> dict[str, Any]:
    """With its loss, over the points that have a label, and its own optimizer."""
    weight = torch.tensor([0.5, 1.0, 2.0, 1.5, 0.25])

    def criterion(logits: Tensor, target: Tensor) -> Tensor:
        return F.cross_entropy(logits, target, weight.to(logits.dtype), ignore_index=255)

    def optimizer(params: Any) -> OwnAdam:
        decay, rest = decayed(params)
        return OwnAdam([{"params": decay, "weight_decay": 0.05}, {"params": rest, "lr": 2e-3}], lr=1e-3)

    return {"model": UNet(), "loss": criterion, "optimizer": optimizer}


def speech() -> dict[str, Any]:
    def optimizer(params: Any) -> torch.optim.Optimizer:
        decay, rest = decayed(params)
        groups = [{"params": decay, "weight_decay": 0.1}, {"params": rest, "weight_decay": 0.0}]
        return torch.optim.AdamW(groups, lr=1e-3, eps=1e-6)

    return {"model": Speech(), "optimizer": optimizer}
