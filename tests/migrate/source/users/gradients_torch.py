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
        y = x.detach()
        y.requires_grad = False
        return self.mix(y.requires_grad_(False))


def unmarked():
    return Unmarked(), (torch.randn(5, 2),)
