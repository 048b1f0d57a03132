"""Models with decorators of their own, and with what is registered, missing or a buffer by its class."""

import functools

import torch
from torch import nn

REGISTER = {}


class Gains:
    """No plain value, so its instance is not written down."""

    def get(self, otherwise):
        return otherwise


if torch.__version__ >= "1":
    GAIN, GAINS = 0.5, Gains()


def register(name):
    """Enter a class into a register, as detection libraries do."""

    def enter(cls):
        REGISTER[name] = cls
        return cls

    return enter


def counted(method):
    """Hands everything on."""

    def wrapper(self, x, *, scale=1.0):
        REGISTER.setdefault("calls", []).append(method)
        out = method(self, x, scale=scale)
        return out

    return wrapper


def checked(method):
    """Hands everything on, under the name of the method inside."""

    @functools.wraps(method)
    def wrapper(*args, **kwargs):
        if not args:
            raise TypeError("nothing given")
        return method(*args, **kwargs)

    return wrapper


def doubled(method):
    """Does more than call the method."""

    @functools.wraps(method)
    def wrapper(self, *args, **kwargs):
        return 2 * method(self, *args, **kwargs)

    return wrapper


@register("handing on")
class HandingOn(nn.Module):
    """Its decorators change nothing."""

    def __init__(self):
        super().__init__()
        self.fc = nn.Linear(6, 6)
        self.shift = nn.Buffer(torch.arange(6.0))
        self.scale = nn.Buffer(torch.full((1, 6), 0.5), persistent=False)

    @counted
    def part(self, x, *, scale=1.0):
        return self.fc(x) * scale

    @checked
    def forward(self, x):
        return GAIN * self.part(x, scale=2.0) * self.scale + self.shift


def handing_on():
    return HandingOn(), (torch.randn(4, 6),)


def replaced(method):
    """Returns what something else gives for the same arguments."""

    def wrapper(self, x):
        method(self, x)
        return threefold(self, x)

    return wrapper


def threefold(module, x):
    return 3 * module.fc(x)


class Doubling(nn.Module):
    """One of its decorators changes what its method gives."""

    def __init__(self):
        super().__init__()
        self.fc = nn.Linear(6, 6)

    @doubled
    def part(self, x):
        return self.fc(x)

    @replaced
    def other(self, x):
        return self.fc(x)

    def forward(self, x):
        return self.part(x) + self.other(x)


def doubling():
    return Doubling(), (torch.randn(4, 6),)


class Lacking(nn.Module):
    """Asks something of which nothing can be written."""

    def __init__(self):
        super().__init__()
        self.fc = nn.Linear(6, 6)

    def own(self, x):
        GAINS = x + 1  # another one
        return GAINS * 2

    def forward(self, x):
        return self.own(self.fc(x)) * GAINS.get(2.0)


def lacking():
    return Lacking(), (torch.randn(4, 6),)
