"""A Block, a scale and a WIDTH from another file; the encoder has others."""

from functools import partial

from torch import nn
from torch.nn import functional as F

from . import encoder, helpers, settings
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
        for one in self.encoders:
            x = one(x)
        x = F.leaky_relu(scale(self.fc(x)), SLOPE) / WIDTH  # noqa: F405
        return F.leaky_relu(x, settings.cfg.slope) * settings.WIDTH


class Hiding(nn.Module):
    """Local variables that have the names of what they are made of."""

    def __init__(self, width=5, swish=0.5):
        super().__init__()
        Block = partial(encoder.Block, norm=nn.LayerNorm)  # noqa: N806
        self.blocks = nn.ModuleList(Block(width if i == 0 else 4) for i in range(2))
        self.swish = swish

    def forward(self, x, skip=False):
        scaled = helpers.scaled(x, 2.0)
        for block in self.blocks:
            scaled = block(scaled)
        if skip:
            swish = helpers.swish(scaled, beta=self.swish)
            scaled = scaled + swish
        return helpers.scaled(scaled, 0.5)


def hiding():
    return Hiding(), (torch_numbers(),)


class Hidden(nn.Module):
    """A parameter that has the name of a function which is used beside it."""

    def __init__(self, scaled=0.5):
        super().__init__()
        self.fc = nn.Linear(5, 4)
        self.fc.weight.data = helpers.scaled(self.fc.weight.data, scaled)

    def forward(self, x):
        return self.fc(x)


def hidden_by_a_parameter():
    return Hidden(), (torch_numbers(),)


def twins():
    return Block(5), (torch_numbers(),)


def torch_numbers() -> object:
    import torch

    torch.manual_seed(2)
    return torch.randn(2, 5)
