"""Small models around those of a zoo, which arguments of theirs choose."""

from __future__ import annotations

import torch
import torchvision
from torch import nn


class Chosen(nn.Module):
    """The name of the model is an argument, and what else it gets."""

    def __init__(self, name="shufflenet_v2_x0_5", classes=5, pretrained=False, **more):
        super().__init__()
        weights = "DEFAULT" if pretrained else None
        self.net = getattr(torchvision.models, name)(weights=weights, num_classes=classes, **more)

    def forward(self, x):
        return self.net(x)


class Numbered(nn.Module):
    """The name is computed of an argument."""

    def __init__(self, size="0_5"):
        super().__init__()
        self.net = getattr(torchvision.models, f"shufflenet_v2_x{size}")(weights=None, num_classes=3)

    def forward(self, x):
        return self.net(x)


def handed(name, **settings):
    return getattr(torchvision.models, name)(**settings)


class Handed(nn.Module):
    """A function gets the settings whole."""

    def __init__(self, name="shufflenet_v2_x0_5", classes=5):
        super().__init__()
        self.net = handed(name, num_classes=classes)

    def forward(self, x):
        return self.net(x)


def image():
    torch.manual_seed(0)
    return (torch.randn(2, 3, 32, 32),)


def of_a_zoo_by_name():
    return Chosen(), image()


def of_a_zoo_by_number():
    return Numbered(), image()


def of_a_zoo_by_settings():
    return Handed(), image()


class Listed(nn.Module):
    """The name is a key of the package's own names."""

    def __init__(self, arch="shufflenet_v2_x0_5", progress=True):
        super().__init__()
        self.net = torchvision.models.__dict__[arch](progress=progress, num_classes=3)

    def forward(self, x):
        return self.net(x)


def of_a_zoo_by_key():
    return Listed(), image()
