"""Projections that the nets of cut_mindspore.py have cut otherwise."""

from __future__ import annotations

from typing import Any

import torch
import torch.nn.functional as F
from torch import nn

WIDTH, HEADS = 8, 2


def attention(q: torch.Tensor, k: torch.Tensor, v: torch.Tensor) -> torch.Tensor:
    q, k, v = (x.unflatten(-1, (HEADS, -1)).transpose(1, 2) for x in (q, k, v))
    scores = q @ k.transpose(-2, -1) * (WIDTH // HEADS) ** -0.5
    return (torch.softmax(scores, -1) @ v).transpose(1, 2).flatten(2)


class Packed(nn.Module):
    """Query, key and value in one layer."""

    def __init__(self) -> None:
        super().__init__()
        self.qkv, self.proj = nn.Linear(WIDTH, 3 * WIDTH), nn.Linear(WIDTH, WIDTH)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.proj(attention(*self.qkv(x).chunk(3, -1)))


class Three(nn.Module):
    """In three."""

    def __init__(self) -> None:
        super().__init__()
        self.query, self.key, self.value = (nn.Linear(WIDTH, WIDTH) for _ in range(3))
        self.out = nn.Linear(WIDTH, WIDTH)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.out(attention(self.query(x), self.key(x), self.value(x)))


class Keyed(nn.Module):
    """Key and value in one layer, the query in another; without a bias."""

    def __init__(self) -> None:
        super().__init__()
        self.to_q, self.to_kv = nn.Linear(WIDTH, WIDTH, bias=False), nn.Linear(WIDTH, 2 * WIDTH, bias=False)
        self.to_out = nn.Linear(WIDTH, WIDTH)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.to_out(attention(self.to_q(x), *self.to_kv(x).chunk(2, -1)))


class Torchs(nn.Module):
    """torch's own."""

    def __init__(self) -> None:
        super().__init__()
        self.mha = nn.MultiheadAttention(WIDTH, HEADS, batch_first=True)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.mha(x, x, x, need_weights=False)[0]


class Block(nn.Module):
    """Attention, and a gated layer in one."""

    def __init__(self, kind: type[nn.Module]) -> None:
        super().__init__()
        self.norm1, self.attn, self.norm2 = nn.LayerNorm(WIDTH), kind(), nn.LayerNorm(WIDTH)
        self.both, self.down = nn.Linear(WIDTH, 24), nn.Linear(12, WIDTH)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        x = x + self.attn(self.norm1(x))
        gate, up = self.both(self.norm2(x)).chunk(2, -1)
        return x + self.down(torch.tanh(gate) * up)


class Net(nn.Module):
    """A convolution for the two there, blocks, and two layers for the one that ends it there."""

    def __init__(self, *kinds: type[nn.Module]) -> None:
        super().__init__()
        self.stem = nn.Conv2d(3, WIDTH, 8, 8)
        self.blocks = nn.ModuleList([Block(kind) for kind in kinds])
        self.norm, self.left, self.right = nn.LayerNorm(WIDTH), nn.Linear(WIDTH, 2), nn.Linear(WIDTH, 3)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        x = self.stem(x).flatten(2).transpose(1, 2)
        for block in self.blocks:
            x = block(x)
        x = self.norm(x).mean(1)
        return torch.cat([self.left(x), self.right(x)], 1)


def cut() -> nn.Module:
    return Net(Packed, Keyed)


def packed() -> nn.Module:
    return Net(Packed)


def three() -> nn.Module:
    return Net(Three)


def torchs() -> nn.Module:
    return Net(Torchs)


class Rnn(nn.Module):
    """Recurrent layers in one, or one after the other."""

    def __init__(self, kind: Any, *layers: int) -> None:
        super().__init__()
        self.rnns = nn.ModuleList([kind(6 if i == 0 else 4, 4, n, batch_first=True) for i, n in enumerate(layers)])
        self.head = nn.Linear(4, 5)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        x = F.avg_pool2d(x, 8)[:, :, 0].transpose(1, 2).repeat(1, 1, 2)
        for rnn in self.rnns:
            x = rnn(x)[0]
        return self.head(x[:, -1])


def stacked() -> nn.Module:
    return Rnn(nn.LSTM, 3)


def apart() -> nn.Module:
    return Rnn(nn.LSTM, 2, 1)


def step() -> Any:
    """With a training step of its own, and the recipe's optimizer."""

    def own(model: nn.Module, optimizer: Any, images: torch.Tensor, labels: torch.Tensor) -> Any:
        loss = F.cross_entropy(model(images), labels)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        return loss

    return {"model": cut(), "step": own}
