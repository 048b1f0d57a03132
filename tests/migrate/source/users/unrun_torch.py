# Somebody wrote this, and anybody may use it.
"""Code that did not run, and is read."""

from __future__ import annotations

import torch
from torch import nn
from torch.nn.modules.batchnorm import _NormBase

MARGIN = 0.5


class Settings:
    width = 4
    where = torch.device("cuda" if torch.cuda.is_available() else "cpu")
    device = "cuda:0" if torch.cuda.is_available() else "cpu"


class Encoder(nn.Module):
    def __init__(self):
        super().__init__()
        self.mix = nn.Linear(4, 4)

    def forward(self, x):
        return self.encode(x)

    def encode(self, x):
        return self.mix(x).relu()


class Predicts(nn.Module):
    """Calls a method of a layer where it is told so, and its own forward."""

    def __init__(self, centred=False):
        super().__init__()
        self.encoder, self.centred = Encoder(), centred

    def forward(self, x):
        y = self.encoder(x)
        if self.centred:
            y = y - self.encoder.encode(x).mean(0, keepdim=True)
        return y

    def classes(self, x):
        found = self.forward(x)
        return found.argmax(dim=-1)

    def moved(self, x, by=MARGIN, *, times=2 * MARGIN):
        return self.forward(x) + by * times


def predicts():
    return Predicts(), (torch.randn(3, 4),)


def predicts_centred():
    return Predicts(centred=True), (torch.randn(3, 4),)


class Asked(nn.Module):
    """Counts and freezes its weights when it is asked to, and has layers of other kinds when it is told so."""

    def __init__(self, settings, normed=False):
        super().__init__()
        self.mix, self.normed = nn.Linear(settings.width, 4), normed
        self.layers = nn.ModuleList()
        if normed:
            for width in (4, 4):
                layer = torch.nn.Conv1d(width, 4, 3, padding=1)
                layer = torch.nn.utils.weight_norm(layer)
                torch.nn.init.xavier_normal_(layer.weight)
                self.layers.append(layer)

    def forward(self, x):
        x = self.mix(x)
        if self.normed:
            for layer in self.layers:
                x = layer(x)
            x = torch.softmax(x.masked_fill(x > 0.5, torch.finfo(x.dtype).min), -1)
        return x

    def count(self):
        return sum(p.numel() for p in self.parameters() if p.requires_grad)

    def freeze(self, prefix):
        for name, p in self.mix.named_parameters():
            p.requires_grad = not name.startswith(prefix)
        return [p.shape for p in self.mix.parameters() if not p.requires_grad]


def asked():
    return Asked(Settings()), (torch.randn(2, 4, 4),)


def asked_normed():
    return Asked(Settings(), normed=True), (torch.randn(2, 4, 4),)


class Leaky(_NormBase):
    """Of a class that MindSpore does not have."""

    def __init__(self, width):
        super().__init__(width)
        self.slope = 0.1

    def forward(self, x):
        return x * self.slope


class Leaky2d(Leaky):
    pass


class Doubled(nn.Linear):
    def forward(self, x):
        return super().forward(x) * 2


class Bent(nn.Module):
    """Is only asked for before it may be made."""

    def __init__(self, width):
        super().__init__()
        self.fc = nn.Linear(width, width)

    def forward(self, x):
        return self.fc(x).tanh()


class Filled(nn.Module):
    """Fills its layers by their classes, most of which it does not have."""

    def __init__(self, layer=nn.Linear, bent=False):
        super().__init__()
        self.fc, self.norm = layer(4, 4), nn.BatchNorm1d(4)
        for m in self.modules():
            if isinstance(m, Leaky2d):
                m.weight.data.fill_(2)
            elif isinstance(m, (Doubled, Bent)):
                m.bias.data.zero_()
            elif isinstance(m, (nn.Linear, nn.BatchNorm1d)):
                m.weight.data.fill_(0.5)
        self.last = Bent(4) if bent else nn.Tanh()

    def forward(self, x):
        return self.last(self.norm(self.fc(x)))


def filled_by_class():
    return Filled(), (torch.randn(3, 4),)


def filled_by_class_and_bent():
    return Filled(bent=True), (torch.randn(3, 4),)


class OfTheirs(_NormBase):
    def forward(self, x):
        return x * self.weight


def of_theirs():
    return nn.Sequential(nn.Linear(4, 4), OfTheirs(4)), (torch.randn(3, 4),)
