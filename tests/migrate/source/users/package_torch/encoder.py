"""A Block, a scale and a WIDTH; the decoder has others."""

import torch
from torch import nn

from .never import Never

try:
    from torch.nn.functional import silu
except ImportError:
    silu = None

WIDTH = 4
HAS_COMPILER = hasattr(torch, "compiler")


def scale(x):
    return x * 2.0


class Block(nn.Module):
    def __init__(self, ins: int, outs: int = WIDTH, norm: type[nn.Module] = Never, dtype: torch.dtype = torch.float32):
        super().__init__()
        self.fc = nn.Linear(ins, outs)
        self.norm = norm(outs)
        self.factor = torch.tensor(2.0, dtype=dtype).item()

    def scale(self, x):
        return scale(x) + 1  # a function of the method's own name

    def forward(self, x):
        x = self.norm(silu(self.fc(x))) * self.factor
        return self.scale(x) / WIDTH if HAS_COMPILER else x
