"""A small torch net with every kind of random layer: of elements, channels and branches, functional."""

from typing import Any

import torch
import torch.nn.functional as F
from torch import nn


class DropPath(nn.Module):
    """timm's, as it stands in many a repository."""

    def __init__(self, drop_prob: float) -> None:
        super().__init__()
        self.drop_prob = drop_prob

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        if not self.training:
            return x
        keep = 1 - self.drop_prob
        return x * x.new_empty((x.shape[0],) + (1,) * (x.ndim - 1)).bernoulli_(keep).div_(keep)


class Head(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.fc = nn.Linear(8, 10)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        x = F.dropout(x, 0.0, self.training)
        return self.fc(F.dropout(x, 0.2, self.training))


class Net(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.conv1 = nn.Conv2d(1, 8, 3, padding=1, stride=2, bias=False)
        self.bn1 = nn.BatchNorm2d(8)
        self.relu = nn.ReLU()
        self.channels = nn.Dropout2d(0.3)
        self.conv2 = nn.Conv2d(8, 8, 3, padding=1)
        self.path = DropPath(0.25)
        self.elements = nn.Dropout(0.4)
        self.head = Head()

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        x = self.channels(self.relu(self.bn1(self.conv1(x))))
        x = self.relu(x + self.path(self.conv2(x)))
        x = x + self.path(x)  # a layer may run twice
        return self.head(self.elements(x.mean((2, 3))))


class Plain(nn.Module):
    """The same without what draws."""

    def __init__(self) -> None:
        super().__init__()
        self.conv1 = nn.Conv2d(1, 8, 3, padding=1, stride=2, bias=False)
        self.bn1 = nn.BatchNorm2d(8)
        self.relu = nn.ReLU()
        self.conv2 = nn.Conv2d(8, 8, 3, padding=1)
        self.fc = nn.Linear(8, 10)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        x = self.relu(self.bn1(self.conv1(x)))
        return self.fc((x + self.relu(self.conv2(x))).mean((2, 3)))


def build(recipe: str) -> Any:
    return lambda name, **arguments: Plain() if recipe == "plain" else Net()
