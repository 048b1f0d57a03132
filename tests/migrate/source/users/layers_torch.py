"""Layers at places that may have none, layers that resize by any factor, and calls that only order weights in memory."""

from __future__ import annotations

import torch
from torch import nn


class Steps(nn.Module):
    """Projections where the width changes, and none where it does not."""

    def __init__(self, widths=(4, 4, 6, 6), last=True):
        super().__init__()
        pairs = list(zip(widths, widths[1:], strict=False))
        self.projections = nn.ModuleList([nn.Linear(a, b) if a != b else None for a, b in pairs])
        self.layers = nn.ModuleList()
        for a, b in pairs:
            self.layers.append(nn.Linear(a, b))
        self.norms = nn.ModuleList(
            [nn.ModuleList([nn.LayerNorm(b), None, nn.Tanh() if last else None]) for _, b in pairs]
        )

    def forward(self, x):
        for layer, projection, (norm, drop, act) in zip(self.layers, self.projections, self.norms, strict=True):
            kept = x if projection is None else projection(x)
            x = norm(layer(x)) + kept
            if drop is not None:
                x = drop(x)
            x = x if act is None else act(x)
        return x


def none_in_lists():
    return Steps(), [torch.randn(3, 4)]


def none_in_lists_without_activation():
    return Steps((4, 6, 6, 4), last=False), [torch.randn(3, 4)]


class Ordered(nn.GRU):
    def forward(self, x):
        self.flatten_parameters()
        return super().forward(x)


class Recurrent(nn.Module):
    def __init__(self, width=4, own=False, twice=False):
        super().__init__()
        self.rnn = nn.LSTM(width, width, batch_first=True)
        self.stack = nn.ModuleList([nn.GRU(width, width, batch_first=True) for _ in range(2)])
        self.own = Ordered(width, width, batch_first=True) if own else None
        self.twice = twice

    def forward(self, x):
        self.rnn.flatten_parameters()
        x, _ = self.rnn(x)
        for one in self.stack:
            one.flatten_parameters()
            x = one(x)[0]
        if self.twice:
            self.rnn.flatten_parameters()
            x = self.rnn(x)[0]
        return x if self.own is None else self.own(x)[0]


def ordered_weights():
    return Recurrent(), [torch.randn(2, 3, 4)]


def ordered_weights_of_its_own():
    return Recurrent(own=True, twice=True), [torch.randn(2, 3, 4)]


class Resized(nn.Module):
    def __init__(self, factor=0.5, mode="bilinear"):
        super().__init__()
        self.down = nn.Sequential(
            nn.Upsample(scale_factor=0.5, mode="bilinear", align_corners=False), nn.Conv2d(3, 4, 1, bias=False)
        )
        self.up = nn.Upsample(scale_factor=2, mode="bilinear", align_corners=True)
        self.cubic = nn.Upsample(size=(9, 10), mode="bicubic")
        self.last = nn.Upsample(scale_factor=factor, mode=mode)

    def forward(self, x):
        return self.last(self.cubic(self.up(self.down(x))))


def resized():
    return Resized(), [torch.randn(2, 3, 6, 8)]


def resized_up():
    return Resized(1.7, "nearest"), [torch.randn(2, 3, 6, 8)]
