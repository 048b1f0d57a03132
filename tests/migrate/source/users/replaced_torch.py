"""Small models that give themselves one method in the place of another, as their arguments say."""

from __future__ import annotations

import logging
import warnings
from collections import namedtuple

import torch
from torch import nn
from torch.utils.checkpoint import checkpoint

log = logging.getLogger(__name__)


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
        self.shard = nn.ModuleList([nn.Linear(4, 4)])

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        for cell in self.shard:
            x = cell(x)
        return x


def grown():
    return Grown(), (torch.randn(3, 4),)


Kinds = namedtuple("Kinds", "names places")
KINDS = Kinds(names=["linear", "same", "linear"], places=range(1, 3))


class OfCells(nn.Module):
    """Lists that are called `cells`, and settings that are a named tuple, as nets that were searched for have them."""

    def __init__(self, kinds, inner: bool = True) -> None:
        super().__init__()
        self.first = nn.Linear(4, 4)
        self.cells = nn.ModuleList()
        for kind in kinds.names:
            self.cells += [nn.Linear(4, 4) if kind == "linear" else nn.Identity()]
        self.places = kinds.places
        self.parts = InnerCells() if inner else nn.Identity()

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        states = [self.first(x)]
        for cell in self.cells:
            states.append(cell(states[-1]))
        return self.parts(sum(states[place] for place in self.places) + len(self.cells))


class InnerCells(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.cells = nn.ModuleList([nn.Linear(4, 4) for _ in range(2)])
        self.cells.append(nn.Tanh())

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        for place, cell in enumerate(self.cells):
            x = cell(x) + place
        return self.cells[0](x)


def of_cells():
    return OfCells(KINDS), (torch.randn(3, 4),)


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


class Unread(nn.Module):
    """Most of it does not run: what its names are is known from elsewhere in the class."""

    def __init__(self, kind: str = "first", gated: bool = False, save: bool = False) -> None:
        super().__init__()
        self.fc = nn.Linear(4, 4)
        self.kind, self.save = kind, save
        self.ways = {"first": self.first, "second": self.second}
        self.low = nn.ModuleList()
        if kind == "second":
            for _ in range(2):
                self.low.append(nn.Linear(4, 4))
        if gated:
            self.gate = nn.Conv1d(4, 4, 1)
            self.gate.weight.data.zero_()
        self.apply(self.begin)

    def begin(self, m) -> None:
        if isinstance(m, nn.Parameter):
            if m.data.dim() > 1:
                nn.init.uniform_(m.data, -1, 1)
        elif isinstance(m, nn.Linear):
            nn.init.zeros_(m.bias)

    def first(self, x, mask=False):
        if mask:
            mask = torch.tril(torch.ones(4, 4)).to(torch.bool)
            mask = mask.unsqueeze(0).repeat(x.size(0), 1, 1)
            x = x.masked_fill(mask, -1.0)
        return x * 2

    def second(self, x, layer=None):
        for i, layer in enumerate(self.low):
            x = layer(x) * i
        for layer, k in zip(self.low, (1, 2)):
            x = layer(x) + k
        return x

    def sample(self, n: int, where: torch.device):
        return self(torch.randn(n, 4, 4).to(where))

    def zeros(self, n, device):
        return self.fc(torch.zeros(n, 4).to(device))

    def values(self):
        with torch.no_grad():
            return torch.sigmoid(self.fc.weight).cpu().tolist()

    def loss(self, states, loss_fn, target, decay: float = 0.9):
        weights = torch.tensor([decay**k for k in range(len(states))])
        return sum(w * loss_fn(state, target) for w, state in zip(weights / weights.sum(), states))

    def forward(self, x):
        if self.kind in {"second", "other"}:
            return self.second(x) if self.kind not in {"other"} else x
        if self.save and self.training:
            x = checkpoint(self.fc, x, use_reentrant=False)
        return self.first(self.fc(x))


def unread():
    return Unread(), (torch.randn(3, 4, 4),)


def pyramid(x, levels: int = 2):
    return torch.stack([x.mean(1).cumsum(-1) * k for k in range(1, levels + 1)], 1)


def spoil(x):
    x.mul_(0.0)


class Wide(nn.Module):
    """Never made, as the next ones."""

    def __init__(self, emb, heads=2):
        super(Wide, self).__init__()  # noqa: UP008  # as it was written for Python 2
        self.heads, self.emb = heads, emb
        self.keys = nn.Linear(emb, emb * heads, bias=False)
        self.out = nn.Linear(emb * heads, emb)
        self.scale = nn.Parameter(torch.ones(emb))

    def forward(self, x):
        b, t, e = x.size()
        assert e == self.emb, f"{e} is not {self.emb}"
        k = self.keys(x).view(b, t, self.heads, e).transpose(1, 2).contiguous().view(b * self.heads, t, e)
        dot = torch.softmax(torch.bmm(k, k.transpose(1, 2)) / e**0.5, dim=2)
        return self.out(torch.bmm(dot, k).view(b, self.heads, t, e).transpose(1, 2).reshape(b, t, -1)) * self.scale


class Deeper(Wide):
    def __init__(self, emb):
        super().__init__(emb, heads=1)
        self.norm = nn.LayerNorm(emb)

    def forward(self, x):
        return self.norm(super().forward(x))


class Spoiled(nn.Module):
    def forward(self, x):
        x += 1
        return x


class Choosing(nn.Module):
    """Has classes and functions of this file for what its arguments choose."""

    def __init__(self, emb: int = 4, wide: bool = False, deep: bool = False, levels: int = 0, kind: str = "") -> None:
        super().__init__()
        self.inner = Wide(emb) if wide else nn.Linear(emb, emb)
        if deep:
            self.deep = Deeper(emb)
        if kind == "spoiled":
            self.more = Spoiled()
        self.is_deep, self.levels, self.kind = deep, levels, kind

    def forward(self, x):
        x = self.inner(x)
        if self.is_deep:
            x = self.deep(x)
        if self.levels > 0:
            return pyramid(x, self.levels)
        if self.kind == "spoil":
            spoil(x)
        return x


def choosing():
    return Choosing(), (torch.randn(3, 4, 4),)


def chosen_wide():
    return Choosing(wide=True), (torch.randn(3, 4, 4),)


class Tuned(nn.Module):
    """Its layers get other settings once they are made, as detectors give them to all of their norms."""

    def __init__(self, slope: float = 0.3, rate: float = 0.0) -> None:
        super().__init__()
        self.conv = nn.Conv2d(3, 4, 3)
        self.norms = nn.ModuleList([nn.BatchNorm2d(4), nn.GroupNorm(2, 4), nn.LayerNorm(4)])
        self.cube, self.row = nn.BatchNorm3d(4), nn.BatchNorm1d(4)
        self.act = nn.LeakyReLU(0.1)
        self.drop, self.drops = nn.Dropout(0.5), nn.Dropout2d(0.5)
        for m in self.modules():
            if isinstance(m, (nn.BatchNorm1d, nn.BatchNorm2d, nn.BatchNorm3d)):
                m.eps = 0.5
                m.momentum = 0.3
            elif isinstance(m, (nn.GroupNorm, nn.LayerNorm)):
                m.eps += 0.25
            elif isinstance(m, nn.LeakyReLU):
                m.inplace = True
                m.negative_slope = slope
            elif isinstance(m, (nn.Dropout, nn.Dropout2d)):
                setattr(m, "p", rate)  # noqa: B010  # as users write it
        self.eps = 0.1

    def slower(self, rate: float) -> None:
        self.drop.p = rate
        for name, child in self.named_children():
            if isinstance(child, nn.Dropout2d):
                child.p = rate

    def wider(self, stride: int) -> None:
        self.conv.stride = (stride, stride)

    def known(self) -> int:
        return sum(p.numel() for p in self.parameters())

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        x = self.conv(x)
        for norm in self.norms:
            x = self.act(norm(x))
        x = self.cube(x[:, :, None])[:, :, 0] * self.eps
        return self.drop(self.drops(x)) + self.row(x.flatten(2)).view_as(x)


class Tuning(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.net = Tuned()

    def slower(self, rate: float) -> None:
        self.net.slower(rate)

    def known(self) -> int:
        return self.net.known()

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.net(x)


def tuned():
    return Tuning(), (torch.randn(3, 3, 6, 6),)


class Widened(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.conv = nn.Conv2d(3, 4, 3, padding=1, stride=2)
        self.conv.stride = (1, 1)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.conv(x)


def widened():
    return Widened(), (torch.randn(3, 3, 6, 6),)


class Phased(nn.Module):
    """It calls settings of its own as a Cell calls what it sets itself: the phase of a Cell is "predict" in evaluation."""

    cell_type = "gated"

    def __init__(self, phase: str = "train") -> None:
        super().__init__()
        self.phase = phase
        self.fc = nn.Linear(4, 4)

    def switch(self, phase: str, cell_type: str) -> None:
        self.phase, self.cell_type = phase, cell_type

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        x = self.fc(x) * 3
        if getattr(self, "phase", "") == "train" and self.cell_type == "gated":
            return x
        return x.softmax(-1)


class Phases(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.inner = Phased()

    def switch(self, phase: str) -> None:
        self.inner.phase = phase
        self.inner.switch(phase, "plain")

    def switch_all(self, phase: str) -> None:
        for m in self.modules():
            m.phase = phase

    def freeze(self, named: str) -> None:
        for name, one in self.named_parameters():
            if named in name:
                one.requires_grad = False

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.inner(x) if self.inner.phase == "train" else x


def phased():
    return Phases(), (torch.randn(3, 4),)


class Plain(nn.Module):
    growth = 1

    def __init__(self, width: int) -> None:
        super().__init__()
        self.fc = nn.Linear(width, width)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.fc(x)


class Reporting(nn.Module):
    """What did not run says so to a logger, and asks a class that it is given for a number."""

    def __init__(self, width: int = 4, block: type[nn.Module] = Plain, rate: float = 0.2) -> None:
        super().__init__()
        self.down = None
        if width != 4:
            log.warning("%d wide", width)
            self.down = nn.Sequential(nn.Linear(4, width * block.growth), nn.Dropout(1 - rate * 5 / width))
        if width < 1:
            said = f"{width} is no width"
            log.error(said)
            raise ValueError(said)
        self.block = block(width)

    def begin(self) -> None:
        log.info("anew")
        for m in self.modules():
            if isinstance(m, nn.Linear):
                nn.init.constant_(m.weight, 0.5)
                logging.info("done")
                warnings.warn("done", stacklevel=1)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        if self.down is not None:
            x = self.down(x)
        return self.block(x)


def reporting():
    return Reporting(), (torch.randn(3, 4),)
