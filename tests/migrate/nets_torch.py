"""Torch models for --model, named in the tests as nets_torch.py:FUNCTION."""

import torch
from torch import nn


class OwnNorm(nn.LayerNorm):
    """A subclass, as vision models have them: its tensors cross as LayerNorm's do."""


class Token(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.zeros(1, 4))  # a layer's name, in a class of one's own


def text(words: int = 6) -> nn.Module:
    print("a model may print what it likes")
    net = nn.ModuleDict({"embed": nn.Embedding(words, 4), "head": nn.Linear(4, 6, bias=False), "norm": OwnNorm(4)})
    net["token"] = Token()
    return net


def recurrent() -> nn.Module:
    return nn.ModuleDict({"rnn": nn.LSTM(2, 3)})


class Sequence(nn.Module):
    """Every sort of tensor that stands in steps or in parts: forward takes (6, 2, 8) to (6, 2, 8)."""

    def __init__(self) -> None:
        super().__init__()
        self.norm = nn.InstanceNorm1d(8, affine=True)
        self.up = nn.ConvTranspose1d(8, 8, 3, padding=1, groups=2)
        self.rnn = nn.LSTM(8, 4, num_layers=2, bidirectional=True)
        self.gru = nn.GRU(8, 8, bias=False)
        self.attention = nn.MultiheadAttention(8, 2, bias=False)
        self.encoder = nn.TransformerEncoder(nn.TransformerEncoderLayer(8, 2, 12, 0.0), 2, nn.LayerNorm(8))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        x = self.up(self.norm(x.permute(1, 2, 0))).permute(2, 0, 1)
        x = self.gru(self.rnn(x)[0])[0]
        return self.encoder(x + self.attention(x, x, x)[0])


def sequence() -> nn.Module:
    return Sequence()


def values() -> nn.Module:
    """Looks at a value while it is built, which the meta device cannot do."""
    assert float(torch.ones(1)) == 1
    return text()


def broken() -> nn.Module:
    raise ZeroDivisionError("the user's own mistake")


def number() -> int:
    return 3
