"""Backbones of which layers are taken out, in a constructor or afterwards, and functions that make them."""

from __future__ import annotations

import torch
from torch import nn


class Branches(nn.Sequential):
    """What every part gives."""

    def forward(self, x):
        found = []
        for module in self._modules.values():
            x = module(x)
            found.append(x.mean())
        return x, torch.stack(found).sum()


class Body(nn.Module):
    def __init__(self, width=8, kind=nn.Sequential):
        super().__init__()
        self.features = kind()
        self.features.add_module("init", nn.Conv2d(3, width, 3, padding=1))
        for i in range(3):
            self.features.add_module(f"stage{i}", nn.Sequential(nn.Conv2d(width, width, 3, padding=1), nn.Tanh()))
        self.features.add_module("pool", nn.AvgPool2d(2))
        self.output = nn.Linear(width, 10)
        self.extra = nn.ModuleList([nn.Linear(2, 2), nn.Linear(2, 3)])

    def forward(self, x):
        return self.output(self.features(x).mean((2, 3)))


class Headed(nn.Module):
    def __init__(self, body, width, classes=3):
        super().__init__()
        self.body = body
        self.head = nn.Linear(width, classes)

    def forward(self, x):
        x = self.body(x)
        return self.head((x[0] + x[1] if isinstance(x, tuple) else x).mean((2, 3)))


def images() -> list[torch.Tensor]:
    return [torch.randn(2, 3, 8, 8)]


def shortened(which: int | slice = -1, kind: type = nn.Sequential) -> nn.Module:
    features = Body(kind=kind).features
    del features[which]
    return Headed(features, 8)


def without_last():
    return shortened(), images()


def without_middle():
    return shortened(2), images()


def without_slice():
    return shortened(slice(1, 3)), images()


def without_last_of_branches():
    return shortened(-1, Branches), images()


def without_several():
    net = Body()
    del net.output
    del net.extra[0]
    del net.features[-2]
    net.features.append(nn.Conv2d(8, 8, 1))
    return Headed(net.features, 8), images()


def without_what_trains():
    net = Body()
    del net.extra
    del net.features[1]
    for parameter in net.features[1].parameters():
        parameter.requires_grad = False
    return net, images()


def changed_inside():
    """What is left is not what was made: it is not known which layer was taken out."""
    net = Body()
    del net.features[1]
    net.features[2][1] = nn.ReLU()
    return net, images()


class Taking(nn.Module):
    """`which` layer of the body is taken out, and used separately."""

    def __init__(self, width=8, which=-1):
        super().__init__()
        net = Body(width)
        self.separate = net.features.pop(which)
        del net.features[0:2]
        self.first = nn.Conv2d(3, width, 1)
        self.rest = net.features
        self.head = nn.Linear(width, 3)

    def forward(self, x):
        return self.head(self.separate(self.rest(self.first(x))).mean((2, 3)))


def takes_last():
    return Taking(), images()


def takes_middle():
    return Taking(which=3), images()


class Multi(nn.Sequential):
    def __init__(self, last=True):
        super().__init__()
        self.last = last

    def forward(self, x):
        found = []
        for module in self._modules.values():
            x = module(x)
            if hasattr(module, "keep") and module.keep:
                found.append(x)
        return [*found, x] if self.last else found


class Merged(nn.Module):
    """The function that makes its body is an argument."""

    def __init__(self, body, norm, classes=3):
        super().__init__()
        self.body, width = body()
        self.norm = norm(width)
        self.head = nn.Linear(width, classes)

    def forward(self, x):
        a, b, c = self.body(x)
        return self.head(self.norm(a + b + c).mean((2, 3)))


def merged(width: int, groups: int) -> nn.Module:
    def body():
        raw = Body(width).features
        del raw[-1]
        features = Multi(last=groups < 0)
        features.add_module("init", raw[0])
        for i, stage in enumerate(raw[1:]):
            stage.keep = True
            features.add_module(f"stage{i + 1}", stage)
        return features, width

    def norm(count):
        return nn.GroupNorm(groups, count, eps=1e-3)

    return Merged(body, norm)


def made_by_functions():
    return merged(8, 2), images()


def made_by_functions_narrow():
    return merged(4, 4), images()
