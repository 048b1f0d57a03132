"""Layers that are made and never run, and such that run under some settings, on some inputs, or for somebody else."""

from __future__ import annotations

import torch
from torch import nn


class Widening(nn.Module):
    """Runs two of its layers where it widens, and two never."""

    def __init__(self, width, times=1):
        super().__init__()
        self.times = times
        self.norm = nn.BatchNorm1d(width)
        self.widen = nn.Linear(width, times * width)
        self.act = nn.PReLU()
        self.mix = nn.Linear(times * width, width)
        self.shift = nn.Parameter(torch.zeros(width))
        self.spare = nn.Sequential(nn.Linear(width, width), nn.PReLU())
        self.drop, self.pool = nn.Dropout(0.1), nn.MaxPool1d(2)
        self.dropped = nn.Dropout(0.2)
        self.plain = nn.Sequential(nn.ReLU(), nn.Sequential(nn.Dropout(0.3), nn.Flatten()))
        self.loss = nn.CrossEntropyLoss()
        nn.init.ones_(self.norm.weight)

    def forward(self, x):
        if self.times != 1:
            x = self.act(self.widen(x))
        return self.mix(x)


def never_run():
    return nn.Sequential(Widening(4), Widening(4, 2)), (torch.randn(3, 4),)


class Early(nn.Module):
    """Leaves before its second layer, or does not."""

    def __init__(self, kind="short", more=False):
        super().__init__()
        self.kind, self.more = kind, more
        self.first = nn.Linear(4, 4)
        self.second = nn.Linear(4, 4)

    def forward(self, x):
        return self.first(x)


class Late(nn.Module):
    """Leaves early by a setting, and has a layer for two of them."""

    def __init__(self, kind="short", more=False):
        super().__init__()
        self.kind = kind
        self.more = more
        self.first = nn.Linear(4, 4)
        self.second = nn.Linear(4, 4)
        self.third = nn.Linear(4, 4)

    def forward(self, x):
        x = self.first(x)
        if self.kind == "short":
            return x + self.third(x) if self.more else x
        return self.third(self.second(x))


def left_early():
    return nn.Sequential(Early(), Late(), Late("long"), Late(more=True)), (torch.randn(3, 4),)


class OnSomeInputs(nn.Module):
    """Has a layer for large inputs, one for evaluation, and one for a switch that anybody may throw."""

    def __init__(self):
        super().__init__()
        self.switch = False
        self.mix = nn.Linear(4, 4)
        self.large = nn.Linear(4, 4)
        self.calm = nn.Linear(4, 4)
        self.other = nn.Linear(4, 4)

    def throw(self):
        self.switch = True

    def forward(self, x):
        if x.shape[0] > 100:
            x = self.large(x)
        if not self.training:
            x = self.calm(x)
        return self.mix(self.other(x) if self.switch else x)


def on_some_inputs():
    return OnSomeInputs(), (torch.randn(3, 4),)


class Lends(nn.Module):
    """Runs nothing that it makes: another takes it out, or holds it as well."""

    def __init__(self, given):
        super().__init__()
        self.lent = nn.Linear(4, 4)
        self.inside = nn.Linear(4, 4)
        self.list = [self.inside]
        self.given = nn.Sequential(given)

    def forward(self, x):
        return self.list[0](x)


class Borrows(nn.Module):
    """Runs a layer of another's, and one that it lends itself."""

    def __init__(self):
        super().__init__()
        self.own = nn.Linear(4, 4)
        self.of = Lends(self.own)

    def forward(self, x):
        return self.of.lent(self.own(self.of(x)))


def lent():
    return Borrows(), (torch.randn(3, 4),)


class InheritedBase(nn.Module):
    """Makes a layer that another class runs, and one that nobody does."""

    def __init__(self):
        super().__init__()
        self.mix = nn.Linear(4, 4)
        self.taken = nn.Linear(4, 4)
        self.unwanted = nn.Linear(4, 4)

    def forward(self, x):
        return self.mix(x)


class Inheriting(InheritedBase):
    """Runs what its base only makes."""

    def forward(self, x):
        return self.taken(self.mix(x))


def run_by_the_derived():
    return nn.Sequential(InheritedBase(), Inheriting()), (torch.randn(3, 4),)


class Skips(nn.Module):
    """Whether its side layer runs is set in a branch of its constructor."""

    def __init__(self, inside, outside):
        super().__init__()
        self.side = nn.Linear(inside, outside)
        if inside == outside:
            self.need_side = False
        else:
            self.need_side = True
        self.main = nn.Linear(inside, outside)

    def forward(self, x):
        if self.need_side:
            residual = self.side(x)
        else:
            residual = x
        return self.main(x) + residual


class SkipsLater(Skips):
    """A class whose attribute another method sets, too."""

    def __init__(self, inside, outside):
        super().__init__(inside, outside)
        self.over = nn.Linear(outside, outside)
        if inside == outside:
            self.need_over = False
        else:
            self.need_over = True

    def use(self):
        self.need_over = True

    def forward(self, x):
        x = super().forward(x)
        return self.over(x) if self.need_over else x


def skips():
    return nn.Sequential(Skips(4, 4), nn.Tanh(), Skips(4, 3)), (torch.randn(5, 4),)


def skips_later():
    return SkipsLater(4, 4), (torch.randn(5, 4),)
