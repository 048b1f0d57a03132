"""Small models that call their own things as the new file calls MindSpore's: `ops`, `initializer`, `Zero`, `Tensor`."""

from __future__ import annotations

import torch
from torch import nn


def some(width=4) -> tuple[torch.Tensor, ...]:
    torch.manual_seed(5)
    return (torch.randn(3, width),)


class Zero(nn.Module):
    """An operation of a search, as MindSpore's initial value is called."""

    def forward(self, x):
        return x.mul(0.0)


def create_initializer(mode):
    """A function that is handed to `apply`."""
    if mode not in ("fan_in", "fan_out"):
        raise ValueError(mode)

    def initializer(module):
        if isinstance(module, nn.Linear):
            nn.init.kaiming_normal_(module.weight, mode=mode)
            nn.init.zeros_(module.bias)

    return initializer


class Searched(nn.Module):
    """Variables, a list and a function inside of a method."""

    def __init__(self, width, mode="fan_out"):
        super().__init__()
        ops = [Zero(), nn.Linear(width, width), nn.Tanh()]
        self.ops = nn.ModuleList(ops)
        initializer = create_initializer(mode)
        self.apply(initializer)
        nn.init.ones_(ops[1].bias)

    def forward(self, x):
        ops = [op(torch.relu(x)) for op in self.ops]
        Tensor = torch.stack(ops).sum(0)
        return Tensor + torch.ones(Tensor.shape)


def searched():
    return Searched(4), some()


class Scaled(nn.Module):
    """Parameters of functions, also of one inside of another."""

    def __init__(self, width, ops=2, mindspore=0.5):
        super().__init__()
        self.fc = nn.Linear(width, width)
        self.register_buffer("scale", torch.full((width,), mindspore))
        self.ops = ops

    def forward(self, x, ops=None):
        ops = self.ops if ops is None else ops

        def bent(Parameter):
            return torch.sigmoid(Parameter) * ops

        x = torch.abs(self.fc(x))
        for mindspore in range(ops):
            x = bent(x) + mindspore * self.scale.to(torch.float32)
        return x


def scaled_by_names():
    return Scaled(4), some()


class Plain(nn.Module):
    """Nothing here has such a name: its imports are the usual ones."""

    def __init__(self, width):
        super().__init__()
        self.fc = nn.Linear(width, width)
        self.ops = nn.ReLU()

    def forward(self, x):
        return self.ops(torch.relu(self.fc(x)))


def plain_names():
    return Plain(4), some()
