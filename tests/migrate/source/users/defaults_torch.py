"""Small models whose parameters have attributes of classes, and functions that never ran, as defaults."""

from __future__ import annotations

import enum

import shapes_of_defaults
import torch
from shapes_of_defaults import Kind as How
from shapes_of_defaults import doubled
from torch import nn


class Sizes:
    width, slope = 4, 0.3

    class Inner:
        rate: float = 0.25


class Wide(Sizes):
    scale = 3.0


class Order(enum.Enum):
    FIRST = (0,)
    LAST = "last"

    @property
    def sign(self):
        return 1.0 if self is Order.FIRST else -1.0


class Pooled(nn.Module):
    """Every default is another than what the run is given."""

    def __init__(
        self,
        kind=How.MEAN,
        order=Order.LAST,
        slope=Wide.slope,
        scale=Wide.scale,
        rate=Sizes.Inner.rate,
        text=Order.LAST.value,
        more=shapes_of_defaults.Kind.SUM,
        times=shapes_of_defaults.Block.expansion,
        bend=doubled,
        *,
        then=shapes_of_defaults.lessened,
    ):
        super().__init__()
        self.kind, self.order, self.more, self.bend, self.then = kind, order, more, bend, then
        self.factor = slope * scale + rate + len(text)
        self.fc = nn.Linear(Sizes.width, 2 * times)

    def forward(self, x, kind=How.MEAN):
        x = self.fc(x) * self.factor * self.order.sign
        if self.bend is not None:
            x = self.bend(x)
        if self.then is not None:
            x = self.then(x)
        if self.more is How.SUM:
            x = x + 1.0
        if kind == How.SUM:
            x = x * 2.0
        return x.mean(1) if self.kind == How.MEAN else x.sum(1)


def vectors_by_row() -> tuple[torch.Tensor, ...]:
    torch.manual_seed(3)
    return (torch.randn(3, 5, Sizes.width),)


def defaults_taken():
    return Pooled(), vectors_by_row()


def defaults_given():
    return Pooled(How.SUM, Order.FIRST, 0.1, 1.0, 0.0, "", How.MEAN, 1, None, then=None), vectors_by_row()
