"""A Block, a scale and a WIDTH from another file; the encoder has others."""

from torch import nn
from torch.nn import functional as F

from . import settings
from .encoder import Block as Encoder
from .encoder import scale as twice
from .settings import *  # noqa: F403
from .settings import DEPTHS
from .settings import WIDTH as WIDE


def scale(x):
    return twice(x) * 3.0


class Block(nn.Module):
    def __init__(self, ins: int, outs: int = WIDE):
        super().__init__()
        self.encoders = nn.ModuleList(
            Encoder(ins if i == 0 else 4, norm=nn.LayerNorm) for i in range(DEPTHS["encoder"])
        )
        self.fc = nn.Linear(4, outs)

    def forward(self, x):
        for encoder in self.encoders:
            x = encoder(x)
        x = F.leaky_relu(scale(self.fc(x)), SLOPE) / WIDTH  # noqa: F405
        return F.leaky_relu(x, settings.cfg.slope) * settings.WIDTH


def twins():
    return Block(5), (torch_numbers(),)


def torch_numbers() -> object:
    import torch

    torch.manual_seed(2)
    return torch.randn(2, 5)
