"""MindSpore nets for --into, named in the tests as nets_mindspore.py:FUNCTION."""

from __future__ import annotations

import mindspore
import numpy as np
from mindspore import nn


class Text(nn.Cell):
    def __init__(self, tied: bool, words: int = 6) -> None:
        super().__init__()
        self.embed = nn.Embedding(words, 4)
        self.norm = nn.LayerNorm((4,))
        self.token = nn.Cell()
        self.token.weight = mindspore.Parameter(np.zeros((1, 4), np.float32), name="weight")
        if not tied:
            self.head = nn.Dense(4, 6, has_bias=False)


class Sequence(nn.Cell):
    """The counterpart of the torch net of that name."""

    def __init__(self) -> None:
        super().__init__()
        self.norm = nn.GroupNorm(8, 8)
        self.up = nn.Conv1dTranspose(8, 8, 3, pad_mode="pad", padding=1, group=2, has_bias=True)
        self.rnn = nn.LSTM(8, 4, num_layers=2, bidirectional=True)
        self.gru = nn.GRU(8, 8, has_bias=False)
        self.attention = nn.MultiheadAttention(8, 2, has_bias=False)
        layer = nn.TransformerEncoderLayer(8, 2, 12, 0.0)
        self.encoder = nn.TransformerEncoder(layer, 2, nn.LayerNorm((8,), epsilon=1e-5))

    def construct(self, x: mindspore.Tensor) -> mindspore.Tensor:
        x = self.up(self.norm(x.permute(1, 2, 0))).permute(2, 0, 1)
        x = self.gru(self.rnn(x)[0])[0]
        return self.encoder(x + self.attention(x, x, x)[0])


def sequence() -> nn.Cell:
    return Sequence()


def text(words: int = 6) -> nn.Cell:
    return Text(False, words)


def tied() -> nn.Cell:
    return Text(True)


def weightless() -> nn.Cell:
    """With norms that MindSpore gives ones and zeros, which no checkpoint has."""
    net = Text(False)
    net.plain = nn.GroupNorm(2, 4, affine=False)
    net.more = nn.SequentialCell([nn.GroupNorm(4, 4, affine=False)])
    return net
