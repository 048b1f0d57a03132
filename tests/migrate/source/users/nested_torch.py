"""Small models whose classes stand within classes, and one whose own train() returns nothing."""

from __future__ import annotations

import enum
from typing import NamedTuple

import torch
import torch.nn as nn
import torch.nn.functional as F


def vectors(width=4):
    torch.manual_seed(1)
    return (torch.randn(4, width),)


class Swish(nn.Module):
    class Fn(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            ctx.save_for_backward(x)
            return x * torch.sigmoid(x)

        @staticmethod
        def backward(ctx, gradient):
            (x,) = ctx.saved_tensors
            gate = torch.sigmoid(x)
            return gradient * gate * (1 + x * (1 - gate))

    def forward(self, x):
        return self.Fn.apply(x)


class Step(nn.Module):
    class Fn(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x, slope):
            ctx.slope = slope
            return (x > 0).float()

        @staticmethod
        def backward(ctx, gradient):
            return gradient * ctx.slope, None

    step = Fn.apply

    def forward(self, x):
        return Step.Fn.apply(x, 0.5) + type(self).step(x, 0.25)


class Functions(nn.Module):
    def __init__(self):
        super().__init__()
        self.first, self.act, self.step = nn.Linear(4, 4), Swish(), Step()

    def forward(self, x):
        x = self.first(x)
        return self.act(x) + self.step(x)


def functions_of_one_name_in_two_classes():
    return Functions(), vectors()


class Tower(nn.Module):
    class Layer(nn.Module):
        """One of them."""

        slope = 0.3

        def __init__(self, width, norm=False):
            super().__init__()
            self.fc = nn.Linear(width, width)
            self.norm = nn.LayerNorm(width) if norm else None

        def forward(self, x):
            x = self.fc(x)
            if self.norm is not None:
                x = self.norm(x)
            return F.leaky_relu(x, self.slope)

    class Steep(Layer):
        slope = 0.6

    # how they are added
    class How(enum.Enum):
        SUM = "sum"
        LAST = "last"

    class Out(NamedTuple):
        whole: torch.Tensor
        given: torch.Tensor

    KINDS = {"plain": Layer, "steep": Steep}

    def __init__(self, kind="plain", how="sum"):
        super().__init__()
        self.layers = nn.ModuleList([self.KINDS[kind](4), Tower.Layer(4, norm=True)])
        self.how = self.How(how)

    def forward(self, x):
        found, given = [], x
        for layer in self.layers:
            x = layer(x)
            found.append(x)
        return self.Out(sum(found) if self.how is Tower.How.SUM else x, given)


class Doubled(Tower):
    class Head(nn.Module):
        class Gate(nn.Module):
            def __init__(self):
                super().__init__()
                self.fc = nn.Linear(4, 2)

            def forward(self, x):
                return torch.sigmoid(self.fc(x))

        def __init__(self):
            super().__init__()
            self.gate = self.Gate()

        def forward(self, x):
            return 2.0 * self.gate(x)

    def __init__(self, kind="plain"):
        super().__init__(kind)
        self.head = self.Head()

    def forward(self, x):
        return self.head(super().forward(x).whole)


def classes_in_a_class_and_in_the_one_that_derives():
    return Doubled("steep"), vectors()


def classes_in_a_class():
    return Tower(), vectors()


class Frozen(nn.Module):
    def __init__(self):
        super().__init__()
        self.fc, self.norm = nn.Linear(4, 4), nn.BatchNorm1d(4)

    def train(self, mode=True):
        super().train(mode)
        self.norm.eval()

    def forward(self, x):
        return self.norm(self.fc(x))


def train_returns_nothing():
    return Frozen(), vectors()
