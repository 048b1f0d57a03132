"""Models with layers that change their input in place, which is read again under its name or another one."""

from __future__ import annotations

import torch
import torch.nn.functional as F
from torch import nn


class Residual(nn.Module):
    """The sum has the ReLU's output twice: x is changed before it is added."""

    def __init__(self, width=6):
        super().__init__()
        self.act = nn.ReLU(inplace=True)
        self.first = nn.Linear(width, width)
        self.second = nn.Linear(width, width)

    def forward(self, x):
        x = self.first(x)
        out = self.act(x)
        out = self.second(out)
        return x + out


def in_place_residual():
    return Residual(), (torch.randn(4, 6),)


class OtherNames(nn.Module):
    """Another name for the tensor, an operand, a view and a function's argument."""

    def __init__(self, width=6):
        super().__init__()
        self.act, self.leaky = nn.ReLU(inplace=True), nn.LeakyReLU(0.3, inplace=True)
        self.first, self.second = nn.Linear(width, width), nn.Linear(width, width)
        self.skip = nn.Identity()

    def forward(self, x):
        x = self.first(x)
        kept = x
        x = self.leaky(x)
        x = self.second(x) + kept
        turned = x.view(2, -1)
        y = self.first(self.act(x)) + turned.view(4, -1)
        z = self.skip(y) * self.act(y)
        z = self.second(z)
        return self.first(F.relu(z, inplace=True)) + z


def in_place_other_names():
    return OtherNames(), (torch.randn(4, 6),)


class Containers(nn.Module):
    """The first layer of a Sequential changes its input, which is added to the output."""

    def __init__(self, width=6):
        super().__init__()
        self.first = nn.Linear(width, width)
        self.once = nn.Sequential(nn.ReLU6(inplace=True), nn.Linear(width, width))
        self.leaky = nn.Sequential(nn.LeakyReLU(0.3, inplace=True), nn.Linear(width, width), nn.Tanh())
        self.blocks = nn.ModuleList(nn.Sequential(nn.ReLU(True), nn.Linear(width, width)) for _ in range(2))

    def forward(self, x):
        x = self.first(x)
        x = x + self.once(x)
        x = self.leaky(x) + x
        for block in self.blocks:
            x = block(x) + x
        return x


def in_place_containers():
    return Containers(), (torch.randn(4, 6),)


class NotSeen(nn.Module):
    """Nothing reads what was changed, or reads it before."""

    def __init__(self, width=6):
        super().__init__()
        self.act = nn.ReLU(inplace=True)
        self.first, self.second = nn.Linear(width, width), nn.Linear(width, width)

    def forward(self, x):
        x = self.act(self.first(x))
        y = self.second(x)
        return y.sum() + self.act(y)


def in_place_not_seen():
    return NotSeen(), (torch.randn(4, 6),)


class Block(nn.Module):
    def __init__(self, width=6):
        super().__init__()
        self.act, self.layer = nn.ReLU(inplace=True), nn.Linear(width, width)

    def forward(self, x):
        return self.layer(self.act(x))


class NotWritten(nn.Module):
    """A list holds what is changed; a block of the model changes what its caller reads."""

    def __init__(self, width=6):
        super().__init__()
        self.act, self.first, self.block = nn.ReLU(inplace=True), nn.Linear(width, width), Block(width)

    def forward(self, x):
        found = []
        x = self.first(x)
        found.append(x)
        y = self.first(self.act(x))
        y = self.block(y) + found[0] + y
        return (y * 2).mean() + self.act(y) + y


def in_place_not_written():
    return NotWritten(), (torch.randn(4, 6),)
