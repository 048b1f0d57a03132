"""Models with decorators of their own, and with what is registered, missing or a buffer by its class."""

import functools
from collections import OrderedDict

import numpy as np
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


class Narrow(nn.Module):
    def __init__(self, width, steps):
        super().__init__()
        self.mix = nn.Linear(4, width)
        self.steps = steps

    def forward(self, x):
        return self.mix(x) * sum(self.steps)


class Wide(Narrow):
    """Of a kind that the model does not have."""

    def forward(self, x):
        return super().forward(x).repeat(1, 2)


NARROW = {
    "narrow": {"kind": Narrow, "says": {"url": "somewhere"}, "params": {"width": 3, "steps": (1, 2.5)}},
    "small": {"kind": Narrow, "says": {}, "params": {"width": 2, "steps": (1, 2)}},
}
FILLED = {}
FILLED.update(NARROW)
FILLED["wide"] = {"kind": Wide, "says": {}, "params": {"width": 3, "steps": ()}}
ENDS = OrderedDict()
SIZES = {"first": 1, "last": 2}
SIZES["last"] = 4


def end(name):
    """Enter a function and how often it is called into a dictionary."""

    def enter(function):
        ENDS[name] = (function, 2)
        return function

    return enter


@end("tanh")
def as_tanh(x):
    return torch.tanh(x)


@end("never")
def as_nothing(x):
    return x * 0


class Filled(nn.Module):
    """Takes its parts out of dictionaries that are empty where they are made."""

    def __init__(self, kind="narrow", ending="tanh"):
        super().__init__()
        params = FILLED[kind]["params"]
        params.update(width=SIZES["last"])
        self.part = FILLED[kind]["kind"](**params)
        self.end, self.times = ENDS[ending]

    def forward(self, x):
        for _ in range(self.times):
            x = self.end(self.part(x))
        return x


def filled():
    return Filled(), (torch.randn(2, 4),)


def set_seed(seed: int) -> None:
    torch.manual_seed(seed)
    torch.cuda.manual_seed_all(seed)
    np.random.seed(seed)


class Seeded(nn.Module):
    """Seeds as it is made, so that two of its layers begin alike."""

    def __init__(self, seed: int = 7) -> None:
        super().__init__()
        set_seed(seed)
        self.first = nn.Linear(6, 6)
        set_seed(seed)
        self.second = nn.Linear(6, 6)

    def forward(self, x):
        return self.first(x) * self.second(x)


def seeded():
    return Seeded(), (torch.randn(2, 6),)


@torch.jit.script
def gated(a, b, width: torch.Tensor):
    """What torch compiles is read as what it was written as."""
    both = a + b
    first = width[0]
    return torch.tanh(both[:, :first]) * torch.sigmoid(both[:, first:])


class Scripted(nn.Module):
    def __init__(self):
        super().__init__()
        self.mix, self.width = nn.Linear(4, 8), 4

    def forward(self, x):
        y = self.mix(x)
        return gated(y, y.flip(0), torch.IntTensor([self.width]))


def scripted():
    return Scripted(), (torch.randn(3, 4),)


def kept_arguments(init):
    """What a constructor was given, for a file that is saved."""

    @functools.wraps(init)
    def __init__(self, *args, **kwargs):
        self._init_args_kwargs = (args, kwargs)
        init(self, *args, **kwargs)

    return __init__


def counted_arguments(init):
    @functools.wraps(init)
    def wrapper(self, *args, **kwargs):
        init(self, *args, **kwargs)
        self.scale = len(args)

    return wrapper


def begun_twice(init):
    @functools.wraps(init)
    def wrapper(self, *args, **kwargs):
        init(self, *args, **kwargs)
        init(self, *args, **kwargs)

    return wrapper


class Keeping(nn.Module):
    @kept_arguments
    def __init__(self, width=4, scale=3):
        super().__init__()
        self.layer = nn.Linear(width, width)
        self.scale = scale

    def forward(self, x):
        return self.layer(x) * self.scale


class Counting(Keeping):
    @counted_arguments
    def __init__(self, width=4, scale=3):
        super().__init__(width, scale=scale)


class Twice(Keeping):
    @begun_twice
    def __init__(self, width=4, scale=3):
        super().__init__(width, scale=scale)


def keeps_what_it_is_given():
    return Keeping(4, scale=2), [torch.randn(2, 4)]


def counts_what_it_is_given():
    return Counting(4, scale=2), [torch.randn(2, 4)]


def begins_twice():
    return Twice(4, scale=2), [torch.randn(2, 4)]
