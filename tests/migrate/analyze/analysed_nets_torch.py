"""Nets whose operators are known, and functions that go wrong in every way."""

from __future__ import annotations

import os

import torch
from torch import nn
from torch.nn import functional as F


class Renamed(nn.Linear):
    """Only constructs otherwise: still a Linear."""

    def __init__(self, size: int) -> None:
        super().__init__(size, size)


class Different(nn.Linear):
    """Computes otherwise: what it calls is what counts."""

    def forward(self, input: torch.Tensor) -> torch.Tensor:
        return F.relu(torch.matmul(input, self.weight))


class Net(nn.Module):
    """A bit of everything: shared modules, operators from Python, in place, dropout of training."""

    def __init__(self) -> None:
        super().__init__()
        self.conv = nn.Conv2d(3, 4, 3, bias=False)
        self.norms = nn.ModuleList([nn.BatchNorm2d(4), nn.BatchNorm2d(4)])
        self.norms[1].eps = 1e-3
        self.attend = nn.MultiheadAttention(4, 2, batch_first=True)
        self.head = nn.Sequential(Renamed(4), Different(4, 4))
        self.spare = nn.Linear(2, 2)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        x = self.conv(x)
        x = self.norms[0](x) + self.norms[1](x)
        x += 1
        x = 2 * x
        tokens = x.flatten(2).transpose(1, 2)
        tokens = self.attend(tokens, tokens, tokens)[0]
        if self.training:
            tokens = F.dropout(tokens, 0.5)
        return self.head(tokens)


class Looking(nn.Module):
    """Looks at values, so that it cannot run without any."""

    def __init__(self) -> None:
        super().__init__()
        self.fc = nn.Linear(4, 4)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.fc(x) if x.mean() > 0 else x


class Inner(nn.Module):
    """Takes a parameter as its input."""

    def forward(self, token: torch.Tensor) -> torch.Tensor:
        return token * 2


class Counting(nn.Module):
    """Its constructor looks at values and its weights are tied; running it looks at none."""

    def __init__(self) -> None:
        super().__init__()
        rates = [rate.item() for rate in torch.linspace(0.1, 0.4, 2)]
        self.first = nn.Linear(4, 4)
        self.second = nn.Linear(4, 4)
        self.second.weight = self.first.weight
        self.drop = nn.Dropout(rates[1])
        self.token = nn.Parameter(torch.zeros(4))
        self.inner = Inner()

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        x = x + self.inner(self.token)
        return F.relu(self.drop(self.second(self.first(x))), inplace=True)


class Refused(nn.Module):
    """Arguments that have no counterpart: one with a remedy, one without."""

    def __init__(self) -> None:
        super().__init__()
        self.conv = nn.Conv2d(3, 4, 3, padding=1, padding_mode="circular")
        self.norm = nn.BatchNorm2d(4, momentum=None)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.norm(self.conv(x))


def wide() -> nn.Module:
    return Looking()


def net() -> nn.Module:
    return Net()


def narrow() -> tuple[nn.Module, torch.Tensor]:
    return Looking(), torch.ones(2, 4)


def counting() -> tuple[nn.Module, torch.Tensor]:
    return Counting(), torch.ones(2, 4)


def refused() -> tuple[nn.Module, dict[str, torch.Tensor]]:
    return Refused(), {"x": torch.ones(2, 3, 8, 8)}


def fails() -> nn.Module:
    raise ZeroDivisionError("the user's own mistake")


def no_model() -> int:
    return 3


def dies() -> nn.Module:
    os._exit(7)
