"""Functions inside of functions, and classes by their names, in code that runs now and then."""

from __future__ import annotations

import math

import torch
import torch.nn.functional as F
from torch import nn


def series(x, times):
    """The first terms of a cosine."""
    x = x * times
    return 1 - x**2 / math.factorial(2) + x**4 / math.factorial(4)


class Scores(nn.Module):
    """One way or another; `way` has to be one of these, or empty."""

    def __init__(self, way=""):
        super().__init__()
        self.mix = nn.Linear(4, 4)
        self.way = way
        if way == "filled":
            self.reset()

    def reset(self):
        def fill(m, gain: float = 0.5):
            if isinstance(m, nn.Linear):
                nn.init.constant_(m.weight, gain)
                nn.init.zeros_(m.bias)

        self.apply(fill)

    def forward(self, x):
        z = self.mix(x)
        if self.way == "defaults":

            def bent(y: torch.Tensor, act=F.relu, by: float = 0.1):
                return act(y) + by * x.mean()

            z = bent(z) + bent(z, act=torch.tanh) + bent(z, torch.sigmoid, 0.5)
        elif self.way == "nested":

            def outer(y):
                def inner(v, keep=False):
                    return v.std(-1, keepdim=keep)

                return y / inner(y, keep=True) + inner(y.t()).mean()

            z = outer(z)
        elif self.way == "lambda":
            normed = lambda t, dim=-1: (t - t.mean(dim, keepdim=True)) / t.std(dim, keepdim=True)  # noqa: E731
            z = normed(z) * normed(x, 0)
        elif self.way == "results":
            found = series(z, 2)
            z = found.clamp(-0.5, 0.9).transpose(0, 1)
        return z


def scores():
    return Scores(), [torch.rand(3, 4)]


def scores_filled():
    return Scores("filled"), [torch.rand(3, 4)]


def scores_by_defaults():
    return Scores("defaults"), [torch.rand(3, 4)]


def scores_nested():
    return Scores("nested"), [torch.rand(3, 4)]


def scores_by_lambda():
    return Scores("lambda"), [torch.rand(3, 4)]


def scores_by_results():
    return Scores("results"), [torch.rand(3, 4)]


class Writing(nn.Module):
    """Functions inside that write into what others read."""

    def __init__(self, way=""):
        super().__init__()
        self.mix = nn.Linear(4, 4)
        self.way = way

    def forward(self, x):
        z = self.mix(x)
        if self.way == "named":

            def more(y):
                y += 1
                return y * 2

            x = more(z)
            z = z + x
        elif self.way == "lambda":
            twice = lambda y: y.mul_(2)  # noqa: E731
            x = twice(z)
            z = z + x
        elif self.way == "around":

            def first():
                z[:, 0] = 0.0
                return z.sum()

            x = x * first()
            z = z + x
        elif self.way == "counted":
            total = 0

            def count(y):
                nonlocal total
                total = total + y.mean()
                return y

            z = count(z) + total
        return z


def writing():
    return Writing(), [torch.rand(3, 4)]


class Chosen(nn.Module):
    """Layers and functions by their names."""

    def __init__(self, kind="LeakyReLU", options=None, how="tanh", again=False):
        super().__init__()
        self.mix = nn.Linear(4, 4)
        self.act = getattr(torch.nn, kind)(**(options or {}))
        if again:
            self.last = getattr(nn, kind)(0.4)
        self.how, self.again = how, again

    def forward(self, x):
        x = getattr(torch, self.how)(self.act(self.mix(x) - 0.5))
        return self.last(x) if self.again else x


def chosen():
    return Chosen(options={"negative_slope": 0.2}), [torch.rand(3, 4)]


def chosen_again():
    return Chosen(options={"negative_slope": 0.3}, again=True), [torch.rand(3, 4)]


class Local(nn.Module):
    def __init__(self):
        super().__init__()
        self.mix = nn.Linear(4, 4)

        class Twice(nn.Module):
            def forward(self, x):
                return x * 2

        self.twice = Twice()

    def forward(self, x):
        return self.twice(self.mix(x))


def local_class():
    return Local(), [torch.rand(3, 4)]


def unit(t):
    return F.normalize(t, dim=-1)


class Uncalled(nn.Module):
    """Lambdas that are called now and then; sizes of tensors."""

    def __init__(self, way=""):
        super().__init__()
        self.mix = nn.Linear(4, 4)
        self.maybe = (lambda t: unit(t) * 2) if way == "unit" else nn.Identity()
        self.spread = lambda t, dim=-1: t.std(dim) + t.max(dim)[0]
        self.unknown = lambda m: m.weight
        self.way = way

    def forward(self, x):
        x = self.maybe(self.mix(x))
        if self.way == "sized":
            n = x.size(0)
            some = torch.randn(n).argsort(dim=-1) < int(n * 2)
            x = x * some[:, None] + torch.arange(n)[:, None]
            x = x.view(n, -1) + x.new_ones(x.size(0), x.size(dim=-1))
        elif self.way == "spread":
            x = x + self.spread(x)[:, None]
        return x


def uncalled():
    return Uncalled(), [torch.rand(3, 4)]


def uncalled_unit():
    return Uncalled("unit"), [torch.rand(3, 4)]


def uncalled_sized():
    return Uncalled("sized"), [torch.rand(3, 4)]


def uncalled_spread():
    return Uncalled("spread"), [torch.rand(3, 4)]


def summed(x, how=torch.distributed.ReduceOp.SUM):
    """What other processes have, too, where there are some."""
    if torch.distributed.is_available() and torch.distributed.is_initialized():
        torch.distributed.all_reduce(x, op=how)
    return x


class Base(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.mix = nn.Linear(width, width)

    def forward(self, x):
        return self.mix(x)


class Derived(Base):
    """Made where `more` is True, as its base is."""

    def __init__(self, width):
        super().__init__(width)
        self.last = nn.Linear(width, width)

    def forward(self, x):
        return self.last(self.mix(x))


class Settings(nn.Module):
    def __init__(self, more=False):
        super().__init__()
        self.mix = Derived(4) if more else nn.Linear(4, 4)

    def forward(self, x):
        x = summed(self.mix(x))
        if torch.backends.cudnn.enabled and x.device.type == "cuda":
            return x * 2
        return x


def settings_of_torch():
    return Settings(), [torch.rand(3, 4)]


def settings_of_torch_more():
    return Settings(True), [torch.rand(3, 4)]
