"""Small models that move their tensors, that say numbers in texts, and that take some of their layers."""

from __future__ import annotations

import torch
import torch.nn as nn

PLACE = torch.device("cuda:0")


class OnGpu(nn.Module):
    """Written for a GPU throughout: as a layer is made, as tensors are, and where they are."""

    def __init__(self, classes=4, place="cuda"):
        super().__init__()
        self.fc = nn.Linear(4, classes).cuda()
        self.scale = torch.ones(classes).cuda(0)
        self.table = torch.zeros(classes, device=place)
        self.last = nn.Linear(classes, classes).to(PLACE, non_blocking=True)
        self.to(place)

    def forward(self, x, labels):
        x = x.cuda(non_blocking=True)
        y = self.last(self.fc(x))
        chosen = torch.zeros(y.size(), device="cuda")
        chosen.scatter_(1, labels.view(-1, 1).long(), 1)
        places = torch.arange(y.shape[1]).to(PLACE).float()
        if torch.cuda.is_available():
            places = places.cuda()
        more = torch.full_like(y, 2.0, device=PLACE) + torch.eye(4).to(device="cuda")[: y.shape[0], : y.shape[1]]
        return y * chosen * self.scale + places.to("cuda", torch.float32) + self.table + more


def made_for_a_gpu():
    torch.manual_seed(0)
    return OnGpu(), (torch.randn(3, 4), torch.tensor([0, 3, 1]))


class Placed(nn.Module):
    """Layers that are put somewhere as they are made, also where that did not run."""

    def __init__(self, deep=False):
        super().__init__()
        here = torch.device("cpu")
        self.first = nn.Linear(4, 4).cpu()
        self.rest = nn.Sequential(nn.Linear(4, 4), nn.ReLU()).to(here).float()
        self.second = nn.Linear(4, 4).to(dtype=torch.float32, device="cpu")
        self.deep = deep
        if deep:
            self.extra = nn.Linear(4, 4).cpu().float()
            self.extra.to(here)
        for layer in (self.first, self.second):
            layer.to(here)
        self.cpu()

    def forward(self, x):
        x = self.second(self.rest(self.first(x)))
        if self.deep:
            x = self.extra(x)
        return x


def put_somewhere():
    torch.manual_seed(0)
    return Placed(), (torch.randn(3, 4),)


def put_somewhere_deep():
    torch.manual_seed(0)
    return Placed(deep=True), (torch.randn(3, 4),)


class Doubled(nn.Module):
    def __init__(self):
        super().__init__()
        self.fc = nn.Linear(4, 4).to(torch.float64)

    def forward(self, x):
        return self.fc(x.double())


def of_another_dtype():
    return Doubled(), (torch.randn(3, 4),)


class Says(nn.Module):
    """Numbers of tensors in texts, of which one decides."""

    def __init__(self):
        super().__init__()
        self.fc = nn.Linear(4, 2)

    def forward(self, x):
        y = self.fc(x)
        mean, size = y.detach().abs().mean(), x.shape[0]
        print("mean {:.4f} of {}".format(mean, size), f"or {mean:.2e}", "or %.3f" % mean, format(mean, ".1f"))
        text = f"{mean:.3f}" + "{:>8.3f}".format(mean) + f"{size:02d}"
        return y * len(text)


def says_numbers():
    torch.manual_seed(0)
    return Says(), (torch.randn(3, 4),)


class Layers(nn.Module):
    """Some of its layers, in a branch that did not run."""

    def __init__(self, some=False):
        super().__init__()
        self.blocks = nn.ModuleList(nn.Linear(4, 4) for _ in range(3))
        self.tail = nn.Sequential(nn.Linear(4, 4), nn.Tanh(), nn.Linear(4, 4))
        self.some = some

    def forward(self, x):
        if self.some:
            for block in self.blocks[:-1]:
                x = block(x).relu()
            for layer in self.tail[1:]:
                x = layer(x)
            return self.tail[:2](x)
        for block in self.blocks:
            x = block(x)
        return self.tail(x)


def all_of_its_layers():
    torch.manual_seed(0)
    return Layers(), (torch.randn(3, 4),)


def some_of_its_layers():
    torch.manual_seed(0)
    return Layers(some=True), (torch.randn(3, 4),)
