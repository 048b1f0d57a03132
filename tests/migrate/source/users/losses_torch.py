"""Models with losses inside that have tensors of their own, and one-hot rows of a number that is computed."""

from __future__ import annotations

import torch
import torch.nn.functional as F
from torch import nn


class Weighed(nn.Module):
    """Losses with the weights of classes, written out, computed and given by an argument."""

    def __init__(self, rare: float = 4.0, balance=(1.0, 0.5, 2.0)):
        super().__init__()
        self.head = nn.Linear(5, 3)
        self.cross = nn.CrossEntropyLoss(weight=torch.tensor([0.2, 1.0, 2.5]), label_smoothing=0.1)
        self.likely = nn.NLLLoss(torch.tensor(balance) / sum(balance), reduction="sum")
        self.binary = nn.BCEWithLogitsLoss(pos_weight=torch.tensor([rare, 1.0, 0.5]))
        self.unweighed = nn.BCEWithLogitsLoss(weight=None)

    def forward(self, x, classes):
        out = self.head(x)
        rows = F.one_hot(classes, 3).float()
        whole = self.cross(out, classes) + self.likely(out.log_softmax(1), classes)
        return whole + self.binary(out, rows) * self.unweighed(out, rows)


def weighed():
    return Weighed(), (torch.randn(4, 5), torch.tensor([2, 0, 1, 1]))


class Tied(nn.Module):
    """Its loss has the model's own buffer, as torch ties the two."""

    def __init__(self):
        super().__init__()
        self.head = nn.Linear(5, 3)
        self.register_buffer("shares", torch.tensor([1.0, 2.0, 3.0]))
        self.binary = nn.BCEWithLogitsLoss(weight=self.shares)
        self.several = nn.MultiLabelSoftMarginLoss(weight=torch.ones(3) * 2)

    def forward(self, x, rows):
        out = self.head(x) * self.shares
        return self.binary(out, rows) + self.several(out, rows)


def tied():
    return Tied(), (torch.randn(4, 5), torch.eye(3)[[2, 0, 1, 1]])


class Penalized(nn.BCELoss):
    """A class that comes from torch's, with a weight."""

    def __init__(self, weights=(1.0, 2.0, 0.5)):
        super().__init__(weight=torch.tensor(weights))

    def forward(self, shares, rows):
        return super().forward(shares, rows) + 0.01 * shares.pow(2).mean()


class Around(nn.Module):
    def __init__(self):
        super().__init__()
        self.head = nn.Linear(5, 3)
        self.loss = Penalized()

    def forward(self, x, rows):
        return self.loss(self.head(x).sigmoid(), rows)


def penalized():
    return Around(), (torch.randn(4, 5), torch.eye(3)[[2, 0, 1, 1]])


class Rows(nn.Module):
    """One-hot rows of a number of classes that is an attribute, a size, and one number after the other."""

    def __init__(self, classes=3):
        super().__init__()
        self.classes = classes
        self.head = nn.Linear(5, classes)

    def forward(self, x, classes):
        out = self.head(x)
        near = F.one_hot(classes, num_classes=self.classes).float() - F.one_hot(classes, out.shape[-1])
        return out * near + out * sum(F.one_hot(classes, many).sum() for many in (3, 4))


def rows():
    return Rows(), (torch.randn(4, 5), torch.tensor([2, 0, 1, 1]))
