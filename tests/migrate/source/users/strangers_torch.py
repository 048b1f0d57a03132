"""Small models as strangers publish them: settings in objects, a zoo's backbone inside, einops, old constructors."""

from __future__ import annotations

import types
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import torch
import torchvision
from torch import nn


def image(side: int = 8) -> torch.Tensor:
    torch.manual_seed(1)
    return torch.randn(2, 3, side, side)


class Settings:
    """Settings that may be merged, as people write such classes."""

    def __init__(self, **given: Any) -> None:
        self.__dict__.update(given)

    def merge(self, more: dict[str, Any]) -> None:
        self.__dict__.update(more)


@dataclass
class Width:
    hidden: int = 4
    classes: int = 3


class AttributeDict(dict):  # as EasyDict
    def __getattr__(self, name: str) -> Any:
        if name not in self:
            raise AttributeError(name)
        return self[name]


class SettingsNet(nn.Module):
    def __init__(self, settings: Any, width: Any, tree: Any, plain: Any) -> None:
        super(SettingsNet, self).__init__()
        settings.merge({"small": dict(hidden=5), "large": dict(hidden=50)}[settings.kind])
        self.first = nn.Linear(6, settings.hidden)
        self.second = nn.Linear(settings.hidden, width.hidden)
        self.third = nn.Linear(width.hidden, tree.head.classes * getattr(tree, "factor", 1))
        self.scale = plain.inner.scale if hasattr(tree, "head") else 1.0

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.third(torch.tanh(self.second(torch.relu(self.first(x))))) * self.scale


def handed_on():
    one = Settings()
    one.kind = "small"
    width = Width()
    width.hidden = 7
    tree = AttributeDict(head=AttributeDict(classes=3), items_seen=2)
    plain = types.SimpleNamespace(inner=types.SimpleNamespace(scale=0.5))
    torch.manual_seed(0)
    return SettingsNet(one, width, tree, plain), (torch.randn(4, 6),)


class Twins(nn.Module):
    """A zoo's model whose first and last layers are others."""

    def __init__(self, classes: int = 4) -> None:
        super().__init__()
        self.body = torchvision.models.squeezenet1_1(weights=None, num_classes=classes, dropout=0.0)
        self.body.features[0] = nn.Conv2d(3, 64, 3, stride=2, padding=1)
        self.head = nn.Linear(2 * classes, 3)

    def forward(self, a: torch.Tensor) -> torch.Tensor:
        return self.head(torch.cat((self.body(a), self.body(a.flip(3))), 1))


def zoo():
    torch.manual_seed(0)
    return Twins(), (image(32),)


class OldNet(nn.Module):
    """torch's constructors of long ago, and attributes by name."""

    def __init__(self, width: int = 6) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.FloatTensor(width, 4))
        self.bias = nn.Parameter(torch.Tensor(4))
        self.register_buffer("shift", torch.FloatTensor([[0.5 * i for i in range(4)]]))
        for i in range(2):
            self.__setattr__("layer_%d" % i, nn.Linear(4, 4))
        nn.init.xavier_uniform_(self.weight)
        nn.init.zeros_(self.bias)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        x = torch.spmm(x, self.weight) + self.bias + self.shift
        for i in range(2):
            x = torch.relu(self.__getattr__("layer_%d" % i)(x))
        return x


def old():
    torch.manual_seed(0)
    net = OldNet()
    net.classes = 4  # which the class does not have
    return net, (torch.randn(5, 6),)


class Scale(nn.Module):
    """Parameters without axes, as a contrastive model's temperature is."""

    def __init__(self, several: bool = False) -> None:
        super().__init__()

        from math import sqrt

        self.first = nn.Linear(6, 4)
        shape = [1] if several else []
        self.other = nn.Parameter(torch.ones(shape) * sqrt(2.0))
        self.scale = nn.Parameter(torch.ones([]) * 2.5)
        self.shift = nn.Parameter(torch.zeros((), dtype=torch.float32))
        self.register_buffer("offset", torch.zeros(size=()))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return (
            self.first(x) * self.scale.exp() * self.other + self.shift + torch.ones([], device=x.device) * self.offset
        )


def without_axes():
    torch.manual_seed(0)
    return Scale(), (torch.randn(5, 6),)


class Register(Mapping):
    """Looks its entries up in Python, as a library's tables of layers do."""

    def __init__(self, **kinds: type[nn.Module]) -> None:
        self._kinds = kinds

    def __getitem__(self, key: str) -> type[nn.Module]:
        if key in self._kinds:
            return self._kinds[key]
        raise KeyError(key)

    @property
    def CUBED(self) -> str:
        return "cubed"

    def __iter__(self) -> Iterator[str]:
        return iter(self._kinds)

    def __len__(self) -> int:
        return len(self._kinds)


class Cubed(nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return x**3


class Places(nn.Embedding):
    """Vectors that are computed, and never trained."""

    def __init__(self, count: int, width: int) -> None:
        super().__init__(count, width, _freeze=True)

    def forward(self, length: int) -> torch.Tensor:
        return super().forward(torch.arange(length))


KINDS = Register(cubed=Cubed, norm=nn.LayerNorm)


class Masked(nn.Module):
    """A mask of Python's own type, and an activation by its name."""

    def __init__(self, width: int = 6, act: str = "cubed", last: str | None = None, times=2) -> None:
        super().__init__()
        self.first = nn.Linear(width, 4)
        self.places = Places(8, 4)
        self.act = KINDS[act]()
        self.last = self.picked(last)
        self.both = nn.Sequential(self.picked(KINDS.CUBED), self.picked(None))
        self.norm = KINDS["norm"](4)
        self.mix = nn.Conv1d(4, 4, 1)
        self.wider = nn.Upsample(scale_factor=(times, times))
        self.register_buffer("mask", torch.tril(torch.ones((5, 5), dtype=bool)))

    def picked(self, kind: str | None) -> nn.Module:
        return KINDS[kind]() if kind is not None else nn.Identity()

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        x = self.both(self.last(self.act(self.first(x)))) + self.places(x.shape[0])
        x = self.norm(x) @ self.mix.weight.squeeze(-1) + self.wider(x[None, None])[0, 0, ::2, ::2]
        rows, _ = torch.where(self.mask)
        for row in rows[:2]:
            if row == 7:
                continue
            x = x + (row + rows.sum()) * 0.01
        return torch.where(self.mask.to(bool), x @ x.T, torch.zeros((), dtype=x.dtype)).to(float).float()


def python_types():
    torch.manual_seed(0)
    return Masked(), (torch.randn(5, 6),)


def strict(cls: type) -> type:
    return dataclass(cls)


@strict
class HeadSettings:
    classes: int = 3


@strict
class LibrarySettings:
    """A library's settings, of which some are computed from others."""

    width: int = 8
    heads: int = 2
    head_width: int | None = None
    kinds: list[str] | None = None
    head: HeadSettings | dict | None = None

    def __post_init__(self) -> None:
        if self.head_width is None:
            self.head_width = self.width // self.heads
        self.kinds = self.named(self.heads)
        if not isinstance(self.head, HeadSettings):
            self.head = HeadSettings(**(self.head or {}))

    @staticmethod
    def named(count: int) -> list[str]:
        return [f"kind {number}" for number in range(count)]

    @property
    def inner(self) -> int:
        return self.heads * self.head_width


class Computed(nn.Module):
    def __init__(self, settings: LibrarySettings) -> None:
        super().__init__()
        self.depth = getattr(settings, "depth", settings.heads * 2)
        self.wide = nn.Linear(settings.width, settings.inner)
        self.heads = nn.ModuleList(nn.Linear(settings.head_width, 4) for _ in settings.kinds)
        self.last = nn.Linear(4, settings.head.classes)
        self.tall = hasattr(settings, "height")

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        parts = self.wide(x).chunk(len(self.heads), dim=-1)
        x = sum(head(part) for head, part in zip(self.heads, parts)) * self.depth
        return self.last(-x if self.tall else x)


def computed_settings():
    torch.manual_seed(0)
    return Computed(LibrarySettings(width=6, head={"classes": 5})), (torch.randn(5, 6),)
