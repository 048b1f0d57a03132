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


def text(words: int = 6) -> nn.Cell:
    return Text(False, words)


def tied() -> nn.Cell:
    return Text(True)
