"""Models with losses inside that have tensors of their own, and one-hot rows of a number that is computed."""

from __future__ import annotations

from functools import partial

import torch
import torch.nn.functional as F
from torch import nn
from torch.nn.modules.loss import _Loss, _WeightedLoss


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


class Focal(nn.CrossEntropyLoss):
    """Comes from torch's loss, and goes on with what that gives for classes of int64."""

    def __init__(self, gamma=2.0, weight=None):
        super().__init__(weight=weight, reduction="none")
        self.gamma = gamma

    def forward(self, logits, classes):
        each = super().forward(logits, classes)
        return ((1 - torch.exp(-each)) ** self.gamma * each).mean()


class FocalOfFunction(nn.CrossEntropyLoss):
    def forward(self, logits, classes):
        each = F.cross_entropy(logits, classes, weight=self.weight, reduction="none", ignore_index=self.ignore_index)
        return ((1 - torch.exp(-each)) * each).mean()


class Renamed(nn.CrossEntropyLoss):
    """Torch's loss under another name."""


class Derived(nn.Module):
    def __init__(self):
        super().__init__()
        self.head = nn.Linear(5, 3)
        self.first = Focal(weight=torch.tensor([0.2, 1.0, 2.5]))
        self.second = FocalOfFunction(torch.tensor([2.0, 1.0, 0.5]), ignore_index=1)
        self.third = Renamed(label_smoothing=0.1)

    def forward(self, x, classes):
        out = self.head(x)
        return self.first(out, classes) + self.second(out, classes) + self.third(out, classes)


def derived_losses():
    return Derived(), (torch.randn(4, 5), torch.tensor([2, 0, 1, 1]))


class FromVariable(nn.Module):
    """The classes of its losses stand in variables, and get weights."""

    def __init__(self, kind="cross"):
        super().__init__()
        self.head = nn.Linear(5, 3)
        made = {"cross": nn.CrossEntropyLoss, "likely": nn.NLLLoss}[kind]
        self.chosen = made(weight=torch.tensor([0.2, 1.0, 2.5]), reduction="sum")
        losses = [nn.BCEWithLogitsLoss, nn.MultiLabelSoftMarginLoss]
        self.several = nn.ModuleList([cls(weight=torch.tensor([1.0, 3.0, 0.5])) for cls in losses])

    def forward(self, x, classes):
        out = self.head(x)
        rows = F.one_hot(classes, 3).float()
        return self.chosen(out, classes) + sum(loss(out, rows) for loss in self.several)


def loss_from_variable():
    return FromVariable(), (torch.randn(4, 5), torch.tensor([2, 0, 1, 1]))


class Positive(nn.BCEWithLogitsLoss):
    """A loss of one's own without a constructor, made with a tensor."""

    def forward(self, logits, rows):
        return super().forward(logits, rows).sqrt()


def positive_loss():
    return Positive(pos_weight=torch.tensor([4.0, 1.0, 0.5])), (torch.randn(4, 3), torch.eye(3)[[2, 0, 1, 1]])


class InPartial(nn.Module):
    def __init__(self):
        super().__init__()
        self.head = nn.Linear(5, 3)
        make = partial(nn.CrossEntropyLoss, weight=torch.tensor([0.2, 1.0, 2.5]))
        self.loss = make(reduction="sum")

    def forward(self, x, classes):
        return self.loss(self.head(x), classes)


def loss_in_partial():
    return InPartial(), (torch.randn(4, 5), torch.tensor([2, 0, 1, 1]))


class SumSquared(_Loss):
    def __init__(self, size_average=None, reduce=None, reduction="sum"):
        super().__init__(size_average, reduce, reduction)

    def forward(self, a, b):
        return F.mse_loss(a, b, reduction=self.reduction).div_(2)


class Absolute(_Loss):
    def forward(self, a, b):
        apart = (a - b).abs()
        return apart.mean() if self.reduction == "mean" else apart.sum()


class Focusing(_WeightedLoss):
    def __init__(self, weight=None, gamma=2.0, reduction="mean"):
        super().__init__(weight, reduction=reduction)
        self.gamma = gamma

    def forward(self, x, y):
        logs = F.log_softmax(x, 1)
        loss = -(((1 - logs.exp()) ** self.gamma) * logs) * y
        if self.weight is not None:
            loss = loss * self.weight
        return loss.sum() if self.reduction == "sum" else loss.mean()


class Losing(nn.Module):
    def __init__(self, loss):
        super().__init__()
        self.layer = nn.Linear(4, 4)
        self.loss = loss

    def forward(self, x, y):
        return self.loss(self.layer(x), y)


def from_torchs_base():
    return Losing(SumSquared()), [torch.randn(3, 4), torch.rand(3, 4)]


def from_torchs_base_without_constructor():
    return Losing(Absolute()), [torch.randn(3, 4), torch.rand(3, 4)]


def from_torchs_weighted_base():
    return Losing(Focusing(torch.tensor([1.0, 2.0, 3.0, 4.0]))), [torch.randn(3, 4), torch.rand(3, 4)]


def from_torchs_weighted_base_without_weight():
    return Losing(Focusing(reduction="sum")), [torch.randn(3, 4), torch.rand(3, 4)]


class ByOldWords(nn.Module):
    def __init__(self, average=True):
        super().__init__()
        self.average = average
        self.layer = nn.Linear(4, 4)
        self.squares = nn.MSELoss(False)
        self.classes = nn.CrossEntropyLoss(size_average=False)
        self.apart = nn.L1Loss(reduce=False)
        self.binary = nn.BCEWithLogitsLoss(None, True, True)
        self.both = nn.SmoothL1Loss(size_average=False, reduce=False)

    def forward(self, x, y):
        x, wanted = self.layer(x), torch.tensor([1, 2, 0])
        found = F.smooth_l1_loss(x, y, size_average=self.average)
        found = found + F.nll_loss(F.log_softmax(x, 1), wanted, None, False)
        found = found + F.kl_div(F.log_softmax(x, 1), y, size_average=None, reduce=False).sum()
        found = found + self.squares(x, y) + self.classes(x, wanted) + self.apart(x, y).mean()
        return found + self.binary(x, y) + self.both(x, y).max()


def by_old_words():
    return ByOldWords(), [torch.randn(3, 4), torch.rand(3, 4)]


class ByOldWordsUnseen(nn.Module):
    def __init__(self, size_average, reduce):
        super().__init__()
        self.layer = nn.Linear(4, 4)
        self.loss = nn.MSELoss(size_average=size_average, reduce=reduce)

    def forward(self, x):
        return self.loss(self.layer(x), x)


def by_old_words_unseen():
    return ByOldWordsUnseen(True, False), [torch.randn(3, 4)]
