"""A small model whose names come by stars."""

# ruff: noqa: F403, F405

from __future__ import annotations

import torch
from starred_helpers import *
from torch import nn


class Starred(nn.Module):
    def __init__(self, scales):
        super().__init__()
        self.keep = int(np.cumprod(scales)[-1])
        self.parts = nn.Sequential(Ordered([("fc", nn.Linear(WIDTH, WIDTH)), ("act", nn.ReLU())]))
        self.raise_ = partial(raised, by=math.e)

    def forward(self, x):
        return functions.gelu(self.raise_(halved(self.parts(x)))[:, : self.keep])

    def shown(self, x):
        return np.array(2.0) * x


def starred():
    torch.manual_seed(2)
    return Starred((3, 1)), (torch.randn(2, WIDTH),)
