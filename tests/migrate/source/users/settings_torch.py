"""Models that read settings at the top of a file: objects that other statements have filled."""

import torch
from package_torch import options
from package_torch.options import entries, merged, named, parsed
from package_torch.options import plain as settings
from torch import nn

here = options.Entries()
here.wide = 4
here.part = options.Entries(depth=2, kind="relu")


def widen(factor):
    here.wide = here.wide * factor


class Layers(nn.Module):
    def __init__(self, wide, depth, rate):
        super().__init__()
        self.layers = nn.ModuleList([nn.Linear(4, wide) for _ in range(depth)])
        self.rate = rate

    def forward(self, x):
        for layer in self.layers:
            x = layer(x)
        return x * self.rate


class ByEntries(nn.Module):
    def __init__(self, rate=entries.rates[0], depth=named.layer.depth, more=[here.wide] * 2):
        super().__init__()
        self.rate = rate * depth * more[1]
        self.inner = Layers(entries.wide, entries.layer.depth, entries.rates[1])

    def forward(self, x):
        entries.seen += 1
        for name, value in entries.layer.items():
            x = x * value if name == "depth" else x
        return self.inner(x) * entries.rates[0] * self.rate


class ByOthers(nn.Module):
    def __init__(self):
        super().__init__()
        self.first = Layers(merged.wide, merged["layer"].depth, merged.rates[1])
        self.second = Layers(named.wide, named.layer.depth, named.rates[0])
        self.third = Layers(parsed.wide, parsed.layer.depth, parsed.rates[1])
        self.fourth = Layers(settings.wide, settings.layer.depth, settings.rates[0])

    def forward(self, x):
        return self.fourth(self.third(self.second(self.first(x)))) * options.entries.get("other", 3)


class ByHere(nn.Module):
    def __init__(self, factor=1, rough=True):
        super().__init__()
        if factor != 1:
            widen(factor)
        self.layers = nn.ModuleList([nn.Linear(4, 4) for _ in range(here.part.depth)])
        self.out = nn.Linear(4, here.wide)
        if not rough:
            here.part.kind = "tanh"
        if not rough and here.lacking:
            self.more = nn.Linear(4, here.lacking)

    def forward(self, x):
        for layer in self.layers:
            x = torch.relu(layer(x)) if here.part.kind == "relu" else torch.tanh(layer(x))
        return self.out(x)


def by_entries():
    return ByEntries(), [torch.rand(3, 4)]


def by_other_settings():
    return ByOthers(), [torch.rand(3, 4)]


def by_settings_here():
    return ByHere(), [torch.rand(3, 4)]
