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


def values() -> nn.Module:
    """Looks at a value while it is built, which the meta device cannot do."""
    assert float(torch.ones(1)) == 1
    return text()


def broken() -> nn.Module:
    raise ZeroDivisionError("the user's own mistake")


def number() -> int:
    return 3
