"""Tensors that a gradient is taken by: nothing that the model itself computes depends on it."""

from __future__ import annotations

import torch
from torch import nn


class Coordinates(nn.Module):
    """Gives back the coordinates, so that who calls it can take a gradient by them."""

    def __init__(self):
        super().__init__()
        self.mix = nn.Linear(2, 3)

    def forward(self, x):
        at = x.clone().detach().requires_grad_(True)
        return at, self.mix(at.requires_grad_() * 2)


def coordinates():
    return Coordinates(), (torch.randn(5, 2),)


class Marked(Coordinates):
    """Says so of its input, and of what it computes."""

    def forward(self, x):
        x.requires_grad_()
        y = x.detach()
        y.requires_grad = True
        return self.mix(x) * y.sum()


def marked():
    return Marked(), (torch.randn(5, 2),)


class Switching(Coordinates):
    """Has what decides over gradients, and what takes some."""

    def forward(self, x):
        with torch.enable_grad():
            at = x.detach().requires_grad_(self.training)
            y = self.mix(at)
            if self.training:
                (slope,) = torch.autograd.grad(y.sum(), at, create_graph=True)
                return y.sum(1) + slope.sum(1)
        return y.sum(1)


def switching():
    return Switching(), (torch.randn(5, 2),)


class Unmarked(Coordinates):
    """Takes it back."""

    def forward(self, x):
        with torch.no_grad():
            y = self.mix(x)
            z = x * 2
        y.requires_grad = False
        return y * z.requires_grad_(False).mean() + self.mix((x.detach() + 1).requires_grad_(False))


def unmarked():
    return Unmarked(), (torch.randn(5, 2),)


class Asking(Coordinates):
    """Asks whether a gradient goes through its input, also where that does not run."""

    def __init__(self, deep=False):
        super().__init__()
        self.deep = deep

    def forward(self, x):
        if self.deep and x.requires_grad:
            x = x * 2
        y = x + 1
        asked = y.requires_grad
        return self.mix(x) * (3.0 if asked else 1.0)


def asks_for_gradients():
    return Asking(), (torch.randn(5, 2),)


class AliasUnmarked(Coordinates):
    """Takes it back of a tensor that has another name."""

    def forward(self, x):
        y = z = x.detach()
        z = y
        y.requires_grad = False
        return self.mix(z)


def alias_unmarked():
    return AliasUnmarked(), (torch.randn(5, 2),)


class Pair(nn.Module):
    """Gives two tensors."""

    def __init__(self):
        super().__init__()
        self.first, self.second = nn.Linear(4, 4), nn.Linear(4, 4)

    def forward(self, x):
        return self.first(x), self.second(x)


class CutOff(nn.Module):
    """What is computed in contexts without gradients, in every form of statement."""

    def __init__(self, frozen: bool = True, deep: bool = True):
        super().__init__()
        self.pair, self.more, self.head = Pair(), nn.Linear(4, 4), nn.Linear(4, 4)
        self.rnn = nn.LSTM(4, 4, batch_first=True)
        self.frozen, self.deep = frozen, deep

    @torch.no_grad()
    def state(self, x, twice: bool = False):
        out, (h, c) = self.rnn(x)
        if twice:
            out, (h, c) = self.rnn(out)
        return out + h.mean() + c.mean()

    def forward(self, x):
        same = self.more(x) * 1
        with torch.no_grad():
            a, b = self.pair(x)
            if self.deep:
                c = self.more(a)
            d = x * 1
            d += self.more(x)
            found = []
            for k in range(2):
                found.append(self.more(x) * k)
            named = {"b": self.more(b), "same": same}
            other = same
        with torch.set_grad_enabled(not self.frozen):
            y = self.more(x)
            with torch.enable_grad():
                z = self.head(y)
        return self.head(a + c + d + found[1] + named["b"] + named["same"]) + other + z + self.state(x)


def cut_off():
    return CutOff(), (torch.randn(2, 3, 4),)


class CutTuple(CutOff):
    """Keeps both together, so that neither is cut off."""

    def forward(self, x):
        with torch.no_grad():
            both = self.pair(x)
        return both[0] + both[1] + self.more(x)


def cut_tuple():
    return CutTuple(), (torch.randn(2, 3, 4),)


class Showing(nn.Module):
    """Keeps tensors as attributes, for people to look at, and goes on with them."""

    def __init__(self):
        super().__init__()
        self.mix = nn.Linear(4, 4)
        self.cell = nn.GRUCell(4, 4)
        self.state = None
        self.seen = None

    def forward(self, x, times: int = 2):
        self.mixed = torch.tanh(self.mix(x))
        self.low, self.high = self.mixed.chunk(2, dim=-1)
        self.state = torch.zeros_like(x)
        for _ in range(times):
            self.state = self.cell(self.mixed * self.state.mean(), self.state)
        if times > 1:
            self.seen = self.state * 2
        else:
            self.seen = self.state
        self.shape = x.shape
        self.table = self.mixed * 1.0
        self.table[0] = 0.0
        return self.high * self.low + self.seen.sum() * self.table.mean() + self.shape[0]


def showing():
    torch.manual_seed(1)
    return Showing(), (torch.randn(3, 4),)


class IntoOthers(nn.Module):
    """What goes into a tensor in place where there are no gradients has none either."""

    def __init__(self):
        super().__init__()
        self.one, self.other = nn.Linear(4, 4), nn.Linear(4, 4)

    def forward(self, x, many: bool = False):
        y, z = self.one(x), self.other(x)
        with torch.no_grad():
            found = x * 2
            found.add_(torch.mul(y, 0.5)).mul_(z)
            found += z
            part = found.clone()
            part[:, 0] = y[:, 1]
            part[:, 1:] = z[:, 1:]
            for row in range(2):
                part[row] *= y[row]
            if many:
                part -= y
        return found.sum() + (part * y).sum() + (part * z).sum()


def into_others():
    return IntoOthers(), [torch.rand(3, 4)]
