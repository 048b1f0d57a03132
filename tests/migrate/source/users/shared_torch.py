"""Tensors whose memory something else has too, changed in branches that do not run."""

import torch
from torch import nn


class Holder:
    def __init__(self, values):
        self.values = values


class Acting(nn.Module):
    """Changes what it is given."""

    def __init__(self):
        super().__init__()
        self.act, self.mix = nn.LeakyReLU(0.1, inplace=True), nn.Linear(4, 4)

    def forward(self, x):
        return self.mix(self.act(x))


class Shares(nn.Module):
    """Writes into what a list, an attribute, a view, a helper's result or a layer's input has, and reads that."""

    def __init__(self, way=""):
        super().__init__()
        self.way, self.mix, self.act = way, nn.Linear(4, 4), nn.ReLU(inplace=True)
        self.twice, self.kept = nn.Sequential(Acting(), nn.Tanh()), None
        self.register_buffer("seen", torch.zeros(4))

    def first(self, t):
        return t[:, 0]

    def doubled(self, t):
        t *= 2
        return t.sum()

    def noted(self, parts, t):
        parts.append(t)

    def forward(self, x):
        y = self.mix(x)
        if self.way == "tuple":
            both = (y, x)
            y -= 1
            return both[0]
        if self.way == "nested":
            rows = [[y], [x]]
            rows[0][0] += 2
            return y
        if self.way == "values":
            for each in {"a": y}.values():
                each.sub_(1)
            return y
        if self.way == "helper's view":
            part = self.first(y)
            part += 1
            return y
        if self.way == "helper's write":
            total = self.doubled(y)
            return y + total
        if self.way == "helper's list":
            parts = []
            self.noted(parts, y)
            y += 1
            return parts[0]
        if self.way == "attribute":
            self.kept = y
            y.add_(1)
            return self.kept
        if self.way == "buffer":
            seen = self.seen
            seen += 1
            return y + seen
        if self.way == "layer":
            z = self.act(y)
            return y + z
        if self.way == "layer's first":
            z = self.twice(y)
            return y + z
        if self.way == "object":
            held = Holder(y)
            y += 1
            return held.values
        if self.way == "turned":
            z = y.T
            z += 1
            return y
        if self.way == "axis":
            z = y[None]
            z += 1
            return y
        if self.way == "loop":
            found = []
            for _ in range(2):
                y += 1
                found.append(y)
            return found[0]
        if self.way == "overlapping":
            y[:, 1:] = y[:, :-1]
            return y
        if self.way == "same":
            found = [y for _ in range(2)]
            found[0] += 1
            return found[1]
        return y


class Keeps(nn.Module):
    """Writes into what nothing else has, or what is not read any more."""

    def __init__(self, way=""):
        super().__init__()
        self.way, self.mix, self.act = way, nn.Linear(4, 4), nn.ReLU(inplace=True)
        self.register_buffer("seen", torch.zeros(4))

    def own(self, t):
        t = t * 2
        t += 1
        return t

    def forward(self, x):
        y = self.mix(x)
        if self.way == "other item":
            a, b = y * 1, y * 2
            both = [a, b]
            both[0] += 1
            return b
        if self.way == "parts":
            a, b = (y * 1).chunk(2, -1)
            b = b * 2
            b += 1
            return torch.cat([a, b], -1)
        if self.way == "new ones":
            found = []
            for number in range(2):
                each = y * number
                each += 1
                found.append(each)
            return found[0] + found[1]
        if self.way == "anew":
            z = y
            z = z + 1
            z += 1
            return y + z
        if self.way == "shape":
            z = y
            y += 1
            return y * z.shape[0]
        if self.way == "helper":
            z = self.own(y)
            return y + z
        if self.way == "own attribute":
            self.seen += 1
            return y + self.seen
        if self.way == "layers":
            z = self.act(self.mix(y))
            z += y
            return self.act(z)
        if self.way == "counted":
            counts = {"n": 0}
            n = counts["n"]
            n += 2
            return y * n + counts["n"]
        if self.way == "lists":
            one = [1, 2]
            other = one
            other += [3]
            return y * len(one)
        if self.way == "before":
            z = y
            w = z.sum()
            y += w
            return y
        return y


class Works(nn.Module):
    """Runs a method of which a branch does not run, which writes into what is given, and reads that afterwards."""

    def __init__(self, sharply=False, keeps=True):
        super().__init__()
        self.mix, self.sharply, self.keeps = nn.Linear(4, 4), sharply, keeps

    def worked(self, t):
        if self.sharply:
            t += 1
        return t * 2

    def forward(self, x):
        y = self.mix(x)
        if self.keeps:
            return y + self.worked(y)
        return self.worked(y)


def shares():
    return Shares(), (torch.randn(3, 4),)


def keeps():
    return Keeps(), (torch.randn(3, 4),)


def keeps_helper():
    return Keeps("helper"), (torch.randn(3, 4),)


def works():
    return Works(), (torch.randn(3, 4),)


def works_alone():
    return Works(keeps=False), (torch.randn(3, 4),)
