"""Backbones of which layers are taken out, in a constructor or afterwards, and functions that make them."""

from __future__ import annotations

from collections import OrderedDict

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


class HalfRolled(nn.Module):
    def __init__(self, net):
        super().__init__()
        self.net = net

    def forward(self, x):
        return self.net(torch.roll(x, 1, 1) * 0.5 + x * 0.5)


class Inverted(nn.Module):
    def __init__(self, i, o):
        super().__init__()
        self.same = i == o
        self.conv = nn.Sequential(nn.Conv2d(i, o, 1, bias=False), nn.BatchNorm2d(o), nn.ReLU6(), nn.Conv2d(o, o, 1))

    def forward(self, x):
        return x + self.conv(x) if self.same else self.conv(x)


class Wrapped(nn.Module):
    """Layers that are wrapped in a loop, two of them under the same numbers."""

    def __init__(self):
        super().__init__()
        self.base = nn.Sequential(Inverted(3, 4), Inverted(4, 4), Inverted(4, 5), Inverted(5, 5))
        for m in self.base.modules():
            if isinstance(m, Inverted) and m.same:
                m.conv[0] = HalfRolled(m.conv[0])

    def forward(self, x):
        return self.base(x)


def wrapped_by_number():
    return Wrapped(), [torch.randn(2, 3, 6, 6)]


def plain_layers(width):
    named = OrderedDict(act=nn.ReLU(), conv=nn.Conv2d(width, width, 1))
    inner = nn.Sequential(nn.Conv2d(width, width, 1), nn.ReLU())
    return nn.Sequential(nn.Conv2d(3, width, 3, padding=1), nn.BatchNorm2d(width), inner, nn.Sequential(named))


def leaking(module):
    for name, child in module.named_children():
        if isinstance(child, nn.ReLU):
            setattr(module, name, nn.LeakyReLU(0.2))
        else:
            leaking(child)


class WrappedByName(nn.Module):
    """Layers that others take the place of, by their names: in a Sequential, a ModuleDict and a module."""

    def __init__(self):
        super().__init__()
        self.a, self.b, self.c = plain_layers(4), plain_layers(4), plain_layers(4)
        self.parts = nn.ModuleDict({"one": nn.Conv2d(3, 4, 1), "two": nn.ReLU()})
        leaking(self.a)
        for name, m in self.b.named_children():
            if isinstance(m, nn.Conv2d):
                setattr(self.b, name, HalfRolled(m))
        for name, m in list(self.c._modules.items()):
            if isinstance(m, nn.Conv2d):
                self.c._modules[name] = nn.Sequential(m, nn.InstanceNorm2d(m.out_channels))
        self.c[3].conv = HalfRolled(self.c[3].conv)
        setattr(self.parts, "one", HalfRolled(self.parts["one"]))
        self.blocks = nn.ModuleList([nn.Sequential(nn.Conv2d(3, 3, 1), nn.ReLU()) for _ in range(2)])
        for i, block in enumerate(self.blocks):
            block[1] = nn.Sequential(nn.Conv2d(3, 3, 1), nn.Tanh())
            self.blocks[i] = nn.Sequential(block, nn.Conv2d(3, 3, 1))
        self.blocks[-1].register_module("last", nn.Conv2d(3, 3, 1))

    def forward(self, x):
        y = x
        for part in (*self.blocks, *self.parts.values()):
            y = part(y)
        return self.a(x), self.b(x), self.c(x), y


def wrapped_by_name():
    return WrappedByName(), [torch.randn(2, 3, 6, 6)]
