"""Small models that give themselves one method in the place of another, as their arguments say."""

from __future__ import annotations

import torch
from torch import nn


class Split(nn.Module):
    """One that has no forward but those that it chooses among."""

    def __init__(self, width: int, how: str) -> None:
        super().__init__()
        self.fc = nn.Linear(width, width)
        if how == "slow":
            self.forward = self.forward_slow
        elif how == "fast":
            self.forward = self.forward_fast
        elif how == "never":
            self.forward = self.forward_never
        else:
            raise ValueError(how)

    def forward_slow(self, x: torch.Tensor) -> torch.Tensor:
        return self.fc(x) + x

    def forward_fast(self, x: torch.Tensor, scale: float = 2.0) -> torch.Tensor:
        return self.fc(x) * scale

    def forward_never(self, x: torch.Tensor) -> torch.Tensor:
        return torch.tanh(self.fc(x))


class Either(nn.Module):
    """One with a forward, and other methods in its place and in another's now and then."""

    def __init__(self, width: int, fast: bool = False, hard: bool = False) -> None:
        super().__init__()
        self.fc = nn.Linear(width, width)
        if fast:
            self.forward = self.forward_fast
        self.squash = self.clipped if hard else self.squash

    def squash(self, x: torch.Tensor) -> torch.Tensor:
        return x.tanh()

    def clipped(self, x: torch.Tensor) -> torch.Tensor:
        return x.clamp(-0.5, 0.5)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.squash(self.fc(x))

    def forward_fast(self, x: torch.Tensor) -> torch.Tensor:
        return self.squash(self.fc(x)) * 5


class Derived(Either):
    """One whose own forward is replaced by what a base does, and that calls the base's."""

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return super().forward(x) * 3

    def forward_fast(self, x: torch.Tensor) -> torch.Tensor:
        return super().forward(x) - self.fc(x)


class Checked(nn.Module):
    """One that keeps its forward, and puts something around it."""

    def __init__(self, width: int, kind: str) -> None:
        super().__init__()
        self.fc = nn.Linear(width, width)
        self.plain = self.forward
        self.forward = {"twice": self.twice, "once": self.once}[kind]

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.fc(x)

    def once(self, x: torch.Tensor) -> torch.Tensor:
        return self.plain(x) + 1

    def twice(self, x: torch.Tensor) -> torch.Tensor:
        return self.plain(self.plain(x))


class Net(nn.Module):
    """All of them, each in its ways."""

    def __init__(self) -> None:
        super().__init__()
        self.parts = nn.ModuleList([Split(4, "slow"), Split(4, "fast"), Either(4), Either(4, fast=True)])
        self.parts.extend([Either(4, hard=True), Derived(4), Derived(4, fast=True), Derived(4, True, True)])
        self.parts.extend([Checked(4, "twice"), Checked(4, "once")])

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return torch.stack([part(x) for part in self.parts])


def replaced():
    torch.manual_seed(0)
    return Net(), (torch.randn(3, 4),)


class Fused(nn.Module):
    """One that another function gives a forward, as a detector that is made ready to be used."""

    def __init__(self) -> None:
        super().__init__()
        self.part = Either(4)

    def fuse(self) -> None:
        for module in self.modules():
            if hasattr(module, "forward_fast"):
                module.forward = module.forward_fast

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.part(x)


def fused_later():
    return Fused(), (torch.randn(3, 4),)


class Borrowed(nn.Module):
    """One whose forward is another module's."""

    def __init__(self) -> None:
        super().__init__()
        self.fc = nn.Linear(4, 4)
        self.forward = self.fc.forward

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.fc(x) + 1


def borrowed():
    return Borrowed(), (torch.randn(3, 4),)


class Trained(nn.Module):
    """One with methods that a Cell has too, for another purpose, and that did not run."""

    def __init__(self) -> None:
        super().__init__()
        self.fc = nn.Linear(4, 4)

    def compile(self, optimizer):
        self.optimizer = optimizer

    def trainable_params(self):
        return [self.fc.weight]

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.fc(x)


def trained():
    return Trained(), (torch.randn(3, 4),)


class Grown(nn.Module):
    """One whose modules have the name of a Cell's method."""

    def __init__(self) -> None:
        super().__init__()
        self.cells = nn.ModuleList([nn.Linear(4, 4)])

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        for cell in self.cells:
            x = cell(x)
        return x


def grown():
    return Grown(), (torch.randn(3, 4),)


class TwoNames(nn.Module):
    """Methods under two names: its forward has no `def`."""

    def __init__(self, twice=True) -> None:
        super().__init__()
        self.fc = nn.Linear(4, 4)
        self.gate = Gating()
        self.twice = twice

    def _forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.run(self.gate.infer(self.fc(x)))

    def once(self, x: torch.Tensor) -> torch.Tensor:
        return x * 2 if self.twice else x

    run = once
    # for classes derived from this one
    forward = _forward


class Gating(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.fc = nn.Linear(4, 4)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return torch.sigmoid(self.fc(x)) * x

    infer = forward


def two_names():
    return TwoNames(), (torch.randn(3, 4),)


class OfTwoNames(TwoNames):
    """One that calls it by both names."""

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return super().forward(x) + self._forward(x)


def of_two_names():
    return OfTwoNames(), (torch.randn(3, 4),)
