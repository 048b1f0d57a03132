"""The net."""

import torch

from .helpers import conv, make
from .layers import Norm
from .layers.norms import *  # noqa: F403  # which brings nn, as timm's files do
from .layouts import Layout

DEPTH = 2
ACTIVATIONS = {"relu": nn.ReLU, "selu": nn.SELU}  # noqa: F405


def activation(name):
    return ACTIVATIONS[name]


class Net(nn.Module):  # noqa: F405
    def __init__(self, width: int = 4, depth: int = DEPTH):
        super().__init__()
        self.stem = conv(3, width, kernel=1)
        self.blocks = nn.Sequential(*(make("block", width) for _ in range(depth)))  # noqa: F405
        self.norm = Norm(width)
        self.act = activation("selu")()

    def forward(self, x):
        import math

        import torch.nn.functional as F

        from .helpers import scaled

        x = self.act(self.norm(self.blocks(self.stem(x)))).mean(dim=(2, 3))
        return F.relu(scaled(x, 1 / math.sqrt(2)))


def packaged():
    torch.manual_seed(1)
    return Net(), (torch.randn(2, 3, 6, 6),)


build = packaged


class Laid(nn.Module):  # noqa: F405
    """Members of an enumeration by their names, and in what did not run by calls of it."""

    layout: Layout

    def __init__(self, flat: bool = True, layout: str | None = None):
        super().__init__()
        self.fc = nn.Linear(4, 4)  # noqa: F405
        if layout is not None:
            self.flat, self.layout = False, Layout(layout)
        else:
            self.flat, self.layout = flat, Layout.FIRST

    def forward(self, x):
        x = self.fc(x)
        if self.flat:
            x = x.flatten(1)
        elif self.layout != Layout.FIRST:
            x = x + 1
        return x


def laid():
    return Laid(), (torch.randn(3, 4),)
