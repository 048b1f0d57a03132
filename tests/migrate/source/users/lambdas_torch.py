"""Small models whose layers and functions are lambdas at a file's top and in a class."""

from __future__ import annotations

import torch
import torch.nn as nn
from package_torch.tables import OPERATIONS

ACTS = {
    "plain": lambda: nn.ReLU(inplace=True),
    "bent": lambda slope=0.2: nn.LeakyReLU(slope),
    "swish": lambda x: x * torch.sigmoid(x),
}
DROPS = {"drop": lambda p: nn.Dropout(p), "maps": lambda p: nn.Dropout2d(p)}
NORMS = [lambda c: nn.BatchNorm2d(c, momentum=0.3), lambda c: nn.GroupNorm(2, c)]
conv = lambda a, b: nn.Conv2d(a, b, 3, padding=1)  # noqa: E731
moved = lambda x, by=1: torch.roll(x, by, dims=-1)  # noqa: E731
loud = lambda text: text.upper()  # noqa: E731


class Tabled(nn.Module):
    pick = {"sum": lambda x: x.sum(-1), "std": lambda x: x.std(dim=-1)}

    def __init__(self, act="plain", norm=0, drop="drop", how="sum", rate=0.0, stride=1):
        super().__init__()
        self.norm, self.act, self.drop, self.how = NORMS[norm](4), ACTS[act](), DROPS[drop](rate), how
        self.conv, self.name = conv(4, 4), loud(act)
        self.op = OPERATIONS["pool"](4, stride, True)
        self.other = OPERATIONS["sep"](4, 1, False)

    def forward(self, x):
        x = self.other(self.op(self.drop(self.act(self.norm(self.conv(x))))))
        return self.pick[self.how](moved(x))


def made_by_lambdas():
    torch.manual_seed(0)
    return Tabled(), (torch.randn(2, 4, 6, 6),)


def made_by_other_lambdas():
    torch.manual_seed(0)
    return Tabled("bent", 1, "maps", "std", stride=2), (torch.randn(2, 4, 6, 6),)


class Pair(nn.Module):
    def __init__(self, first, second):
        super().__init__()
        self.first, self.second = first, second

    def forward(self, x):
        return self.second(self.first(x))


def pair_of(made, width):
    return Pair(made(width), made(2 * width))


def handed_lambdas():
    pair = pair_of(lambda width: Pair(nn.Linear(6, width), nn.Linear(width, 6)), 5)
    return Pair(pair, (lambda: Pair(nn.Dropout(0.0), nn.Identity()))()), [torch.randn(2, 6)]
