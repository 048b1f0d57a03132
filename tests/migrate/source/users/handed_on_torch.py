"""Constructors and functions that hand their `*args` on to one of torch's layers or functions."""

from __future__ import annotations

import torch
import torch.nn.functional as F
from torch import nn


class Even(nn.Conv1d):
    """Weights of one value."""

    def __init__(self, *args, **kwargs):
        super(Even, self).__init__(*args, **kwargs)

    def reset_parameters(self):
        nn.init.constant_(self.weight, 0.2)
        if self.bias is not None:
            nn.init.uniform_(self.bias, -0.1, 0.1)


class Point(Even):
    def __init__(self, inside, outside, bias):
        super().__init__(inside, outside, kernel_size=1, bias=bias)


class Points(nn.Module):
    def __init__(self, bias=True, long=False):
        super().__init__()
        self.wide = Even(3, 4, 3, padding=1)
        self.point = Point(4, 5, bias)
        self.last = Even(5, 2, 3, 2, 1, bias=False) if long else Even(5, 2, (2,), 2, (1,))

    def forward(self, x):
        return self.last(self.point(self.wide(x)))


def points():
    return Points(), [torch.randn(2, 3, 9)]


def points_long():
    return Points(False, True), [torch.randn(2, 3, 9)]


class Unit(nn.Module):
    def __init__(self, *args, act=True, **kwargs):
        super().__init__()
        self.conv = nn.Conv2d(*args, bias=False, **kwargs)
        self.act = nn.ReLU() if act else nn.Identity()

    def forward(self, x):
        return self.act(self.conv(x))


class Pool(nn.MaxPool2d):
    def __init__(self, *args, **kwargs):
        super().__init__(*args, **kwargs)


class Halves(nn.GroupNorm):
    def __init__(self, *args):
        super().__init__(2, *args)


class Quiet(Halves):
    pass


def mixed(*args, **kwargs):
    """A layer."""
    return nn.Linear(*args, **kwargs)


def enlarged(x, *args, **kwargs):
    """An image in another size."""
    return F.interpolate(x, *args, **kwargs)


class Handing(nn.Module):
    def __init__(self, sides=(0, 1), window=(3, 2)):
        super().__init__()
        self.first = Unit(3, 4, 3, padding=1)
        self.second = Unit(4, 4, 1, 1, act=False)
        self.third = Unit(4, 4, (1, 3), 1, sides)
        self.pools = nn.ModuleList([Pool(2), Pool(*window, padding=1)])
        self.norms = nn.ModuleList([Halves(4), Quiet(4, 1e-3)])
        self.mix, self.last = mixed(4, 5), mixed(5, 3, bias=False)

    def forward(self, x):
        x = self.third(self.second(self.first(enlarged(x, 20))))
        for pool, norm in zip(self.pools, self.norms):
            x = norm(pool(x))
        x = enlarged(x, None, 2.0, mode="bilinear", align_corners=False)
        return self.last(self.mix(x.mean((2, 3))))


def hands_layers():
    return Handing(), [torch.randn(2, 3, 8, 8)]


def hands_layers_otherwise():
    return Handing((2, 1), (2,)), [torch.randn(2, 3, 8, 8)]


class Raised(nn.Module):
    """What it hands on is changed, or used twice: a call of another length raises."""

    def __init__(self, *sizes):
        super().__init__()
        self.conv = nn.Conv1d(*sizes)
        self.count = len(sizes)

    def forward(self, x):
        return self.conv(x) * self.count


class Lengths(nn.Module):
    def __init__(self, more=False):
        super().__init__()
        self.first = Raised(3, 4, 2)
        if more:
            self.first = Raised(3, 4, 2, 2)

    def forward(self, x):
        return self.first(x)


def lengths():
    return Lengths(), [torch.randn(2, 3, 9)]


def dimmed(x, by=None):
    return x if by is None else x * by


class Lit(nn.Module):
    def __init__(self, width, gain=None):
        super().__init__()
        self.layer = nn.Linear(width, width)
        self.gain = gain

    def forward(self, x, by=None, among=None):
        x = self.layer(x) if self.gain is None else self.layer(x) * self.gain
        return dimmed(x if among is None else x[:, among], **{"by": by})


class Lamp(Lit):
    def __init__(self, width, **settings):
        super().__init__(width, **settings)

    def forward(self, x, **given):
        return super().forward(x, **given)


class Room(nn.Module):
    """Keywords that are all None as it runs."""

    def __init__(self, gain=None):
        super().__init__()
        self.lamps = nn.ModuleList([Lamp(6, gain=gain), Lamp(6, gain=gain)])
        self.looks = nn.MultiheadAttention(6, 2, batch_first=True)

    def each(self, lamp, x, **given):
        return lamp(x, **given)

    def seen(self, x, **given):
        return self.looks(x, x, x, **given)[0]

    def forward(self, x, by=None, hidden=None):
        for lamp, given in zip(self.lamps, [{"by": by}, {"by": None}]):
            x = self.each(lamp, x, **given)
        return self.seen(x, key_padding_mask=hidden)


def room():
    return Room(), [torch.randn(2, 3, 6)]
