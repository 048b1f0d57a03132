"""Small models as users write them: how modules are held, shared, found and given their arguments."""

from __future__ import annotations

import enum
import math
from collections import OrderedDict
from dataclasses import dataclass, field
from functools import partial
from typing import Any, Optional

import torch
import torch.nn as nn
import torch.nn.functional as F

# ---- settings of all models ----

# how wide the layers are,
# as the others have them
WIDTH = 8
LAYERS = {"small": dict(width=8, depth=2), "large": dict(width=16, depth=4)}


def image() -> tuple[torch.Tensor]:
    torch.manual_seed(1)
    return (torch.randn(2, 3, 8, 8),)


def vectors(width: int = 6) -> tuple[torch.Tensor]:
    torch.manual_seed(1)
    return (torch.randn(4, width),)


class ConvNormAct(nn.Sequential):
    """A convolution with what follows it."""

    def __init__(self, ins: int, outs: int, kernel: int = 3, stride: int = 1):
        super().__init__(
            nn.Conv2d(ins, outs, kernel, stride, padding=kernel // 2, bias=False),
            nn.BatchNorm2d(outs),
            nn.ReLU(inplace=True),
        )


class Head(nn.Sequential):
    """Adds up what its modules make, and so runs them itself."""

    def __init__(self, width: int, classes: int) -> None:
        layers = [nn.Flatten(), nn.Linear(width, classes)]
        super().__init__(*layers)
        self.classes = classes

    def forward(self, x):
        for module in self:
            x = module(x)
        return x * self.classes


class SequentialNet(nn.Module):
    def __init__(self):
        super().__init__()
        self.stem = ConvNormAct(3, WIDTH, stride=2)
        self.body = nn.Sequential()
        for i in range(2):
            self.body.add_module(f"block{i}", ConvNormAct(WIDTH, WIDTH))
        self.pool = nn.AdaptiveAvgPool2d(1)
        self.head = Head(WIDTH, 5)

    def forward(self, x):
        x = self.body(self.stem(x))
        x = self.body[0](x)
        return self.head(self.pool(x))


def sequential():
    return SequentialNet(), image()


class ListNet(nn.Module):
    def __init__(self, widths=(6, 8, 10)):
        super().__init__()
        self.layers = nn.ModuleList([nn.Linear(a, b) for a, b in zip(widths[:-1], widths[1:])])
        self.norms = nn.ModuleList()
        for width in widths[1:]:
            self.norms.append(nn.LayerNorm(width))
        self.heads = nn.ModuleDict({"one": nn.Linear(widths[-1], 2), "two": nn.Linear(widths[-1], 3)})
        self.heads["three"] = nn.Linear(widths[-1], 4)

    def forward(self, x):
        for i, layer in enumerate(self.layers):
            x = self.norms[i](layer(x))
        for layer, norm in zip(self.layers[1:], self.norms[1:]):
            x = norm(layer(x[:, : layer.in_features])) + x
        first = self.heads["one"](x)
        out = {name: head(x) for name, head in self.heads.items()}
        out["first"] = first + len(self.layers)
        x = self.layers[-1](x[..., :8])
        out["last"] = x
        return out


def lists():
    return ListNet(), vectors()


class SharedNet(nn.Module):
    """One layer in two places, and a decoder whose weight is the embedding's."""

    def __init__(self, words: int = 11, width: int = 8):
        super().__init__()
        self.embed = nn.Embedding(words, width)
        self.mix = nn.Linear(width, width)
        self.again = self.mix
        self.decoder = nn.Linear(width, words, bias=False)
        self.decoder.weight = self.embed.weight

    def forward(self, tokens):
        x = self.embed(tokens)
        x = torch.tanh(self.mix(x))
        x = self.again(x)
        return self.decoder(x)


def shared():
    torch.manual_seed(1)
    return SharedNet(), (torch.randint(0, 11, (2, 5)),)


class NamedNet(nn.Module):
    """Layers under names that are computed."""

    def __init__(self, depth=3, width=6):
        super().__init__()
        self.depth = depth
        for i in range(depth):
            setattr(self, f"layer{i}", nn.Linear(width, width))
        self.add_module("last", nn.Linear(width, 2))

    def forward(self, x):
        for i in range(self.depth):
            layer = getattr(self, f"layer{i}")
            x = layer(x).relu()
        if hasattr(self, "last"):
            x = self.last(x)
        return x


def named():
    return NamedNet(), vectors()


@dataclass
class Config:
    """What a net is made of."""

    width: int = 6
    hidden: int = 12
    dropout: float = 0.0
    act: str = "gelu"
    scales: list = field(default_factory=lambda: [1.0, 2.0])

    @property
    def ratio(self) -> int:
        return self.hidden // self.width


class Pool(enum.Enum):
    MEAN = "mean"
    MAX = "max"


class ConfigNet(nn.Module):
    """Made of a config, an enum, and tables of functions."""

    ACTS = {"relu": nn.ReLU, "gelu": nn.GELU}

    def __init__(self, cfg: Config, pool: Pool = Pool.MEAN) -> None:
        super().__init__()
        self.cfg = cfg
        self.pool = pool
        self.fc1 = nn.Linear(cfg.width, cfg.width * cfg.ratio)
        self.act = self.ACTS[cfg.act]()
        self.drop = nn.Dropout(cfg.dropout)
        self.fc2 = nn.Linear(cfg.hidden, cfg.width)
        if pool not in (Pool.MEAN, Pool.MAX):
            raise ValueError(f"there is no pool {pool}")

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        for scale in self.cfg.scales:
            x = x + self.fc2(self.drop(self.act(self.fc1(x)))) * scale
        if self.pool == Pool.MEAN:
            return x.mean(dim=-1)
        elif self.pool == Pool.MAX:
            return x.max(dim=-1)[0]
        raise ValueError(f"{self.pool} of shape {x.shape}")


def config():
    return ConfigNet(Config(dropout=0.0), Pool.MAX), vectors()


def make_layer(cfg: dict, name: str) -> nn.Module:
    """One of the kinds of layers that a config may name."""
    if name == "conv":
        return nn.Conv2d(**cfg)
    elif name == "norm":
        return nn.BatchNorm2d(**cfg)
    elif name == "act":
        return nn.LeakyReLU(**cfg)
    raise ValueError(f"there is no layer {name}")


class LoopNet(nn.Module):
    def __init__(self, cfg):
        super().__init__()
        layers = []
        for item in cfg:
            layers.append(make_layer(item["args"], item["type"]))
        self.net = nn.Sequential(*layers)

    def forward(self, x):
        return self.net(x)


def config_loop():
    cfg = [
        {"type": "conv", "args": dict(in_channels=3, out_channels=4, kernel_size=3, padding=1)},
        {"type": "norm", "args": {"num_features": 4}},
        {"type": "act", "args": {"negative_slope": 0.2}},
    ]
    return LoopNet(cfg), image()


class Base(nn.Module):
    """What all nets here have."""

    def __init__(self, width: int) -> None:
        super().__init__()
        self.width = width
        self._build()

    def _build(self):
        raise NotImplementedError

    @property
    def half(self) -> int:
        return self.width // 2

    @staticmethod
    def scale(x, by):
        return x * by

    @classmethod
    def make(cls, **kwargs):
        return cls(**kwargs)


class GateMixin:
    def gate(self, x):
        return x * torch.sigmoid(self.gates(x))


class Derived(GateMixin, Base):
    def __init__(self, width: int = 6, extra: int = 1):
        self.extra = extra
        super().__init__(width)

    def _build(self):
        self.inner = nn.Linear(self.width, self.half * 2)
        self.gates = nn.Linear(self.width, self.width)

    def forward(self, x):
        return self.scale(self.gate(self.inner(x)), by=self.half) + Derived.scale(x, self.extra)


def inherited():
    return Derived.make(width=6), vectors()


class Builder:
    """What makes the layers of a net, one after the other, and remembers how wide the last one was."""

    def __init__(self, act_layer: type[nn.Module]) -> None:
        self.act_layer = act_layer
        self.width = 0
        self.widths: list[int] = []

    def layer(self, width: int) -> nn.Module:
        before, self.width = self.width, width
        self.widths.append(width)
        return nn.Sequential(nn.Linear(before, width), self.act_layer())

    def __call__(self, width: int, blocks: list[dict]) -> list[nn.Module]:
        self.width = width
        return [self.layer(one.pop("width")) for one in blocks]


def rates(rate: float, depth: int, falling: bool = False) -> list[float]:
    if falling:
        return [x.item() for x in torch.linspace(rate, 0, depth)]
    return [x.item() for x in torch.linspace(0, rate, depth)]


class BuiltNet(nn.Module):
    def __init__(self, blocks: list[dict], last: nn.Module, width: int = 6) -> None:
        super().__init__()
        self.last = last
        training = [(module, module.training) for module in last.modules()]
        for module, mode in training:
            module.training = mode
        self.rates = rates(0.5, 2)
        builder = Builder(act_layer=nn.GELU)
        self.layers = nn.Sequential(*builder(width, blocks))
        self.head = nn.Linear(builder.widths[-1], 3)
        self.scaled = nn.ModuleList([])
        self.add(1)
        self.add(2)
        norm = nn.LayerNorm(3)
        if getattr(norm, "weight", None) is not None and hasattr(norm, "bias"):
            nn.init.constant_(norm.weight, 0.5)
        self.norm = norm

    def add(self, factor: int) -> None:
        made = [nn.Upsample(scale_factor=factor) if factor > 1 else nn.Identity()]
        self.scaled.append(nn.Sequential(*made))

    def forward(self, x):
        x = self.norm(self.head(self.layers(x)))
        return self.scaled[0](self.last(x)) * self.rates[1]


def built():
    last = nn.Sequential(OrderedDict([("mix", nn.Linear(3, 3)), ("act", nn.Tanh())]))
    return BuiltNet([{"width": 8}, {"width": 5}], last), vectors()


class PartialNet(nn.Module):
    """Functions that are handed around: partial, lambda, a nested one, a function in an attribute."""

    def __init__(self, norm=partial(nn.LayerNorm, eps=1e-6), act: Any = F.gelu, width=6):
        super().__init__()
        self.norm = norm(width)
        self.act = act
        self.double = lambda x: x * 2
        self.soft = partial(F.softmax, dim=-1)
        self.fc = nn.Linear(width, width)

    def forward(self, x):
        def residual(y, scale=0.5):
            return x + y * scale

        return self.soft(self.double(residual(self.act(self.fc(self.norm(x))))))


def partials():
    return PartialNet(), vectors()


class OwnPart(nn.Module):
    def __init__(self, width, act=None, bias=True):
        super().__init__()
        self.fc = nn.Linear(width, width, bias=bias)
        self.act = act

    def forward(self, x):
        return self.fc(x) if self.act is None else self.act(self.fc(x))


class BiasedNet(nn.Linear):
    def __init__(self, width, **kwargs):
        super().__init__(width, width, **kwargs)


class UnpackingNet(nn.Module):
    """Layers that take what a setting may hold, which held nothing, or always the same."""

    def __init__(self, config=None):
        super().__init__()
        config = config or {}
        self.kw = config.get("layer", {})
        self.first = nn.Linear(6, 6, **self.kw)
        self.second = nn.Linear(6, 6, **config.get("second", {}))
        self.own = OwnPart(6, **self.kw)
        self.biased = BiasedNet(6, **self.kw)
        self.kind = {"bias": False}
        self.third = nn.Linear(6, 6, **self.kind)
        self.each = nn.ModuleList([nn.Linear(6, 6, **one) for one in config.get("each", ({}, {}))])
        self.switched = OwnPart(6, **config.get("none", {"act": None}))
        fixed = {"bias": False}
        self.fixed = nn.Sequential(nn.Linear(6, 6, **fixed), nn.Linear(6, 6, **fixed), nn.Linear(6, 6, **{}))
        changed = {"bias": False}
        changed.update(config.get("more", {}))
        self.changed = nn.Linear(6, 6, **changed)

    def forward(self, x):
        for layer in self.each:
            x = layer(x)
        x = self.biased(self.own(self.second(self.first(x))))
        return self.changed(self.fixed(self.switched(self.third(x))))


def unpacking():
    return UnpackingNet(), (torch.randn(4, 6),)


class PassingNet(nn.Module):
    """Passes on what it is given."""

    def __init__(self, width, **kwargs):
        super().__init__()
        self.first = nn.Linear(width, width, **kwargs)
        self.conv = nn.Conv1d(1, 2, **{"kernel_size": 3, "padding": 1})
        options = {"eps": 1e-3}
        self.norm = nn.BatchNorm1d(2, **options)

    def inner(self, *args, **kwargs):
        return self.run(*args, **kwargs)

    def run(self, x, scale=1.0, shift=None):
        x = self.first(x) * scale
        return x if shift is None else x + shift

    def forward(self, x):
        y = self.inner(x, scale=2.0)
        args = (y, 0.5)
        return self.norm(self.conv(self.run(*args)[:, :, None].transpose(1, 2)))


def passing():
    return PassingNet(6, bias=False), vectors()


class EitherNet(nn.Module):
    """Wants one of two inputs and no more, as language models do."""

    def __init__(self, width):
        super().__init__()
        self.fc = nn.Linear(width, width)

    def forward(self, x=None, embedded=None):
        if not (x is None) ^ (embedded is None):
            raise ValueError("give x or embedded")
        y = self.fc(x if embedded is None else embedded)
        return y * (len(y.shape) ^ 1)


def one_or_the_other():
    return EitherNet(6), vectors()


def started_small(m):
    if isinstance(m, nn.Linear):
        nn.init.normal_(m.weight, std=0.1)


def started_by_kind(m):
    if type(m) == nn.Conv2d or type(m) == nn.Linear:  # noqa: E721
        if hasattr(m, "weight"):
            nn.init.normal_(m.weight, std=1 / m.weight.size(-1))
    elif type(m) in (nn.BatchNorm1d, nn.BatchNorm2d):
        nn.init.constant_(m.weight, 0.5)


def started_oddly(m):
    m.weight.copy_(torch.vander(m.weight[0]))


def doubled(x):
    return x * 2


class Started(nn.Module):
    """Functions in a table, of which one is called."""

    def __init__(self, kind="small"):
        super().__init__()
        table = {
            "small": (nn.Tanh(), started_small),
            "kind": (nn.Sigmoid(), started_by_kind),
            "odd": (nn.ReLU(), started_oddly),
            "double": (doubled, None),
        }
        self.act, start = table[kind]
        self.mix, self.norm = nn.Linear(4, 4), nn.BatchNorm1d(4)
        if start is not None:
            self.apply(start)

    def forward(self, x):
        return self.act(self.norm(self.mix(x)))


def started():
    return Started(), (torch.randn(3, 4),)


class InTurn(nn.Sequential):
    """Runs what it holds itself, with what each is called."""

    def forward(self, x, without=""):
        for name, layer in self._modules.items():
            x = x + layer(x) * len(name) if name != without else x
        return x


def in_turn():
    return InTurn(nn.Linear(4, 4), nn.Tanh(), nn.Linear(4, 4)), (torch.randn(3, 4),)


class MadeNet(nn.Module):
    """Made by its class methods, and with what catches errors."""

    def __init__(self, width: int = 6, names=("one",)):
        super().__init__()
        self.fc = nn.Linear(6, width)
        scales = {"one": 2.0}
        try:
            self.scales = [scales[name] for name in names]
        except KeyError as error:
            print("no such name", error)
            self.scales = [1.0] * len(names)
        self.table = scales

    @classmethod
    def from_config(cls, config):
        return cls(width=config.get("width", 6), **config.get("more", {}))

    @classmethod
    def small(cls, **more):
        more = {**more}
        return cls(width=2, **more)

    def count(self):
        return sum(p.numel() for p in self.parameters())

    def forward(self, x):
        try:
            scale = self.table["one"]
        except KeyError:
            scale = 1.0
        try:
            first = self.scales[0]
        except IndexError:
            raise ValueError("no scales") from None
        return self.fc(x) * scale * first


def made_by_class():
    torch.manual_seed(1)
    net = MadeNet.from_config({"width": 5})
    assert net.count() == 35
    return net, vectors()


class Equals:
    def __init__(self, value):
        self.value = value

    def __call__(self, x, *args):
        return x == self.value


class Order:
    def __call__(self, x):
        return -x


class Count:
    """A number with operators of its own."""

    def __init__(self, count):
        self.count = count

    def __add__(self, other):
        return Count(self.count + other.count)

    def __mul__(self, factor):
        return Count(self.count * factor)

    def __lt__(self, other):
        return self.count < other.count

    def __bool__(self):
        return self.count > 0

    def __int__(self):
        return self.count


class Counted(nn.Module):
    """Objects of its own that Python calls: by filter, map, sorted, max, and for operators."""

    def __init__(self, kinds="aff", width=2):
        super().__init__()
        self.attentions = len(list(filter(Equals("a"), kinds)))
        last = Equals("f")
        self.last = sum(map(last, kinds))
        self.most = sorted([3, 1, 2], key=Order())[0]
        size = (Count(width) + Count(2)) * 2
        self.scale = 2.0 if max([Count(0), size]) else 3.0
        self.layer = nn.Linear(4, int(size))

    def forward(self, x):
        return self.layer(x) * self.scale + self.attentions + 10 * self.last + 100 * self.most


def called_by_python():
    return Counted(), [torch.randn(2, 4)]


class Alike(Count):
    def __eq__(self, other):
        return self.count == other.count


class Compared(nn.Module):
    def __init__(self, width=4):
        super().__init__()
        self.layer = nn.Linear(4, 8 if Alike(width) == Alike(4) else 4)

    def forward(self, x):
        return self.layer(x)


def compared_by_its_own():
    return Compared(), [torch.randn(2, 4)]


class Settings:
    """Values that it has by name, and others for those that it has not."""

    def __init__(self, **values):
        self.__dict__["values"] = values

    def __getattr__(self, name):
        return self.__dict__["values"].get(name, 7)


class AtMost:
    def __init__(self, value):
        self.value = value

    def __setattr__(self, name, value):
        object.__setattr__(self, name, min(value, 5))


class Depth:
    now = 0

    def __enter__(self):
        Depth.now += 1
        return self

    def __exit__(self, *error):
        Depth.now -= 1


class Attributes(nn.Module):
    def __init__(self):
        super().__init__()
        settings = Settings(width=4)
        self.layer = nn.Linear(4, settings.width)
        self.scale = settings.others
        with Depth():
            self.more = Depth.now

    def forward(self, x):
        return self.layer(x) * self.scale + self.more


def attributes_by_methods():
    return Attributes(), [torch.randn(2, 4)]


class Changed(nn.Module):
    def __init__(self):
        super().__init__()
        self.layer = nn.Linear(4, 4)
        self.scale = AtMost(9).value

    def forward(self, x):
        return self.layer(x) * self.scale


def attributes_that_are_changed():
    return Changed(), [torch.randn(2, 4)]


FACTOR = 2.0
FACTOR *= 3
SIZES = (4,)
SIZES += (6,)
STEPS = [0.5]
STEPS.append(0.25)
for times in range(2):
    STEPS.append(times + 1.0)
FIRST, LATER = 1.0, 2.0
LATER = FIRST + 4
SEEN = {1.0}
SEEN.add(3.0)
COUNT = 0
MORE = [3.0, 1.0]
MORE.sort()
del MORE[0]


def counted(by):
    global COUNT
    COUNT += by
    return 1.0


class Scales:
    small = 0.5
    small += 0.25
    large = 2.0


Scales.large = 3.0


class ChangedNames(nn.Module):
    """Names that are given another value after their first, at the file's top and in the class."""

    KINDS = ["sum"]
    KINDS.append("mean")
    WEIGHTS = {"sum": 0.5}
    WEIGHTS.update(mean=0.25)
    WIDE, DEEP = 4, 1
    if WIDE > 3:
        DEEP = 2
    for kind in KINDS:
        DEEP *= 2
    SHARES = (0.5,)
    SHARES += (0.25,)

    def __init__(self, deep=DEEP, shares=SHARES, more=False):
        super().__init__()
        self.layers = nn.ModuleList([nn.Linear(4, size) for size in SIZES])
        self.deep, self.shares, self.more = deep, shares, more
        self.weights = [self.WEIGHTS[kind] for kind in self.KINDS]

    def forward(self, x):
        if self.more:
            x = x * STEPS[0] + len(SEEN) + COUNT * counted(1) + MORE[0]
        y = sum(layer(x).mean() for layer in self.layers) * FACTOR * sum(STEPS) * LATER
        return y * sum(self.weights) * self.deep * sum(self.shares) * Scales.small * Scales.large * self.DEEP


def changed_names():
    return ChangedNames(), (torch.randn(3, 4),)
