"""Small models as strangers publish them: settings in objects, a zoo's backbone inside, einops, old constructors."""

from __future__ import annotations

import argparse
import enum
import types
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
import torch.nn.functional as F
import torchvision
from torch import nn
from torch.autograd import Variable
from torch.nn.attention import SDPBackend
from torch.nn.modules.utils import _pair


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
        self.scale = plain.inner.scale if hasattr(tree, "head") and "inner" in plain else 1.0

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.third(torch.tanh(self.second(torch.relu(self.first(x))))) * self.scale


def handed_on():
    one = Settings()
    one.kind = "small"
    width = Width()
    width.hidden = 7
    tree = AttributeDict(head=AttributeDict(classes=3), items_seen=2)
    plain = argparse.Namespace(inner=types.SimpleNamespace(scale=0.5))
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


class Order(enum.Enum):
    AFTER = "after"
    BEFORE = "before"


class Attending(nn.Module):
    """A layer with two orders, of which one runs, attention by words, and functions as attributes."""

    def __init__(self, width: int = 8, before: bool = False, act: str = "relu", gated: bool = False) -> None:
        super().__init__()
        self.gate = nn.Linear(width, width) if gated else None
        self.order = Order("before") if before else Order.AFTER
        self.attention = nn.MultiheadAttention(width, 2, dropout=0.0)
        self.norm, self.linear = nn.LayerNorm(width), nn.Linear(width, width)
        self.act = {"relu": F.relu, "gelu": F.gelu}[act]
        if gated:
            self.table = np.concatenate([np.zeros((1, width), np.float32), np.ones((1, width), np.float32)], axis=0)

    def after_norm(self, x: torch.Tensor, hidden: torch.Tensor) -> torch.Tensor:
        x = x + self.attention(x, x, value=x, key_padding_mask=hidden)[0]
        x = x + self.attention(query=x, key=x, value=x, key_padding_mask=hidden, need_weights=False)[0]
        gate = self.gate(x).sigmoid() if self.gate is not None else None
        if gate is not None:
            x = x * gate
        return self.norm(x + self.act(self.linear(x)))

    def before_norm(self, x: torch.Tensor, hidden: torch.Tensor) -> torch.Tensor:
        y = self.norm(x)
        x = x + self.attention(y, y, value=y, key_padding_mask=hidden)[0]
        return x + self.act(self.linear(self.norm(x)))

    def forward(self, x: torch.Tensor, hidden: torch.Tensor) -> torch.Tensor:
        return self.before_norm(x, hidden) if self.order == Order.BEFORE else self.after_norm(x, hidden)


class Begun(nn.Module):
    """Weights that begin as if they had another shape, under a name of their own, or in a part."""

    def __init__(self, width: int = 6) -> None:
        super().__init__()
        self.conv, self.rest = nn.Conv2d(3, width, 2), nn.Linear(width, width)
        w = self.conv.weight.data
        nn.init.constant_(w.view([w.shape[0], -1]), 0.25)
        nn.init.eye_(self.rest.weight.data)
        weight = self.rest.weight.detach()
        weight[1:3].fill_(0.5)
        bias = self.rest.bias.data
        nn.init.uniform_(bias.view(2, -1), 2.0, 2.0)
        shift = self.conv.bias.data
        shift.zero_()
        for i in range(2):
            setattr(self, f"scale_{i}", nn.Parameter(torch.zeros(width)))
            nn.init.constant_(getattr(self, f"scale_{i}"), 0.5 + i)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.rest(self.conv(x).flatten(2).mean(2) * self.scale_0) * self.scale_1


def begun():
    torch.manual_seed(0)
    return Begun(), (image(),)


class Body(nn.Module):
    """Made, taken apart and left behind."""

    def __init__(self, width: int = 8, zero: bool = False) -> None:
        super().__init__()
        self.first, self.second = nn.Linear(width, width), Attending(width)
        if zero:
            for m in self.modules():
                if isinstance(m, Attending):
                    nn.init.zeros_(m.linear.weight)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.first(x)


class TakenApart(nn.Module):
    """Layers of another module, all levels where these are wanted."""

    def __init__(self, width: int = 8, levels: bool = False) -> None:
        super().__init__()
        self.layers = nn.ModuleDict({name: module for name, module in Body(width).named_children()})
        self.levels = levels

    @torch.jit.unused
    def _auxiliary(self, outputs: list[torch.Tensor]) -> list[torch.Tensor]:
        return [output * 2 for output in outputs]

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        hidden = torch.zeros(3, 5, dtype=torch.bool)
        hidden[1, 3:] = True
        found = []
        for name, layer in self.layers.items():
            x = layer(x, hidden) if name == "second" else layer(x)
            if self.levels:
                found.append(x)
        if self.levels:
            found.pop()
            found.append(x + 1)
            return torch.stack(self._auxiliary(found))
        return x


def taken_apart():
    torch.manual_seed(0)
    return TakenApart(), (torch.randn(5, 3, 8),)


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


class Old(nn.Module):
    """What torch's own habits left behind: Variable, `_pair`, `new`, shifts, a module that only holds others."""

    def __init__(self, kernel: int = 3, device: torch.device = torch.device("cpu")) -> None:
        super().__init__()
        kernel = _pair(kernel)
        self.device = device
        self.held = nn.Module()
        self.held.conv = nn.Conv2d(3, 4, kernel, padding=kernel[0] >> 1)
        self.held.more = nn.ModuleList([nn.Conv2d(4, 4, 1)])
        self.backends = [SDPBackend.MATH]
        self.padding = 1 if torch.__version__ >= "1.5.0" else 2

    def forward(self, x: torch.Tensor, lengths: torch.Tensor):
        x = Variable(self.held.conv.forward(x)).to(self.device)
        for layer in self.held.more:
            x = layer(x)
        shift = x.new_tensor([0.5, 1.0, 1.5, 2.0]) + x.new(4) * 0 + x.new([1.0])
        if not torch.is_tensor(lengths) or not self.backends:
            return x
        first, second = (x + shift[:, None, None]).split(split_size=[1, 3], dim=1)
        kept = (lengths >> 1).float()[:, None, None, None]
        chosen = torch.randint(1, (3,)) + torch.randint(1, size=(3,))  # which are zeros
        hidden = kept.masked_fill(kept > 2, -np.inf).clamp(min=-9.0 * self.padding)
        return first * hidden, second[:, chosen]


def habits():
    torch.manual_seed(0)
    return Old(), (image(), torch.tensor([4, 7]))


class Shifted(nn.Module):
    """A buffer that some have, as the masks of shifted windows."""

    def __init__(self, shift: int) -> None:
        super().__init__()
        mask = torch.full((8,), 0.5) if shift > 0 else None
        self.register_buffer("mask", mask)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return x if self.mask is None else x * self.mask


class Gaps(nn.Module):
    """A list of layers in which None stands, and a number of NumPy's before a tensor."""

    def __init__(self) -> None:
        super().__init__()
        self.shifted = nn.Sequential(*(Shifted(i % 2) for i in range(2)))
        self.steps = self.made(3)
        self.rate = np.log(8.0)

    def made(self, count: int) -> nn.ModuleList:
        found = []
        for i in range(count):
            found.append(nn.Conv2d(3, 3, 1) if i != 1 else None)
        return nn.ModuleList(found)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        for i in range(len(self.steps)):
            if self.steps[i] is not None:
                x = self.steps[i](x)
        return self.rate * self.shifted(x) + np.float32(2) * x.mean()


def gaps():
    torch.manual_seed(0)
    return Gaps(), (image(),)


class Continued(nn.Module):
    """Convolutions whose input is continued at its sides."""

    def __init__(self, border: str = "circular") -> None:
        super().__init__()
        self.along = nn.Conv1d(3, 4, kernel_size=3, padding=2, padding_mode=border, bias=False)
        self.over = nn.Conv2d(3, 4, (3, 5), padding=(1, 2), stride=2, padding_mode="reflect")
        self.last = nn.Conv2d(4, 2, 3, 1, 1, padding_mode="replicate")

    def forward(self, x: torch.Tensor):
        return self.along(x.mean(3)), self.last(self.over(x))


def continued():
    torch.manual_seed(0)
    return Continued(), (image(),)


class SwishFunction(torch.autograd.Function):
    """Swish by hand, to spare memory."""

    @staticmethod
    def forward(ctx, x, beta=1.0):
        ctx.beta = beta
        ctx.save_for_backward(x)
        return SwishFunction.scaled(x, beta)

    @staticmethod
    def scaled(x, beta):
        return x * torch.sigmoid(beta * x)

    @staticmethod
    def backward(ctx, grad):
        (x,) = ctx.saved_tensors
        share = torch.sigmoid(ctx.beta * x)
        return grad * share * (1 + ctx.beta * x * (1 - share)), None


swish = SwishFunction.apply


class ByHand(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.conv = nn.Conv2d(3, 4, 1)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return swish(self.conv(x), 1.5) + SwishFunction.apply(x.mean(1, keepdim=True))


def by_hand():
    torch.manual_seed(0)
    return ByHand(), (image(),)


class Segments(nn.Embedding):
    def __init__(self, width: int) -> None:
        super().__init__(4, width, padding_idx=0)


class Padded(nn.Module):
    """A class of its own for an embedding whose first row is not trained."""

    def __init__(self) -> None:
        super().__init__()
        self.segments = Segments(6)
        self.head = nn.Linear(6, 2)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.head(self.segments(x))


def padded():
    torch.manual_seed(0)
    return Padded(), (torch.tensor([[0, 1, 2], [3, 0, 1]]),)


class Features(torchvision.models.SqueezeNet):
    """Derived from a class that a package offers, and another of its files defines; without its last layers."""

    def __init__(self, **kwargs):
        super().__init__(**kwargs)
        del self.classifier

    def forward(self, x):
        return self.features[:4](x)


def derived():
    return Features(version="1_1", num_classes=3), (torch.randn(2, 3, 32, 32),)


class Learner(nn.Module):
    """Keeps what trains it, what prepares its images, and what it reads."""

    def __init__(self, width: int = 4, rate: float = 0.1) -> None:
        super().__init__()
        self.body = nn.Linear(6, width)
        # reads an image
        self.prepare = torchvision.transforms.Compose([torchvision.transforms.ToTensor()])
        self.optimizer = torch.optim.Adam(self.parameters(), lr=rate)
        self.known = torchvision.transforms.Compose([])
        self.criterion = nn.MSELoss()

    def forward(self, x):
        return self.body(x) * (2.0 if self.known.transforms == [] else 1.0)

    def update(self, x, y):
        self.optimizer.zero_grad()
        self.criterion(self(x), y).backward()
        self.optimizer.step()


def learner():
    torch.manual_seed(0)
    return Learner(), (torch.randn(2, 6),)


VERSION = [int(part) for part in torch.__version__.split(".")[:2]]


def newer(version, than):
    return [int(part) for part in version.split("+")[0].split(".")] >= [int(part) for part in than.split(".")]


class Versioned(nn.Module):
    """Asks torch which it is, and passes dtypes on as the names of classes."""

    def __init__(self):
        super().__init__()
        padding = 1 if newer(torch.__version__, "1.5.0") else 2
        self.conv = nn.Conv1d(3, 4, 3, padding=padding)
        self.steps = torch.arange(8)

    def forward(self, x):
        x = self.conv(x)
        torch.cuda.empty_cache()
        return x + self.places(x, x.type()) * (2 if VERSION >= [1, 10] else 3)

    def places(self, x, dtype):
        return self.steps.type(dtype) + (x > 0).type(dtype).sum(1, keepdim=True)

    def is_half(self, x: torch.Tensor):
        return x.type() == "torch.HalfTensor"


def versioned():
    torch.manual_seed(0)
    return Versioned(), (torch.randn(2, 3, 8),)


class Volumes(nn.Module):
    """Fills its norms by a base that only torch has, where the last one begins with zeros."""

    def __init__(self, width=4):
        super().__init__()
        kernel = (3, 1, 3)
        self.conv = nn.Conv3d(2, width, kernel, padding=[size // 2 for size in kernel])
        self.norm, self.last = nn.BatchNorm3d(width), nn.BatchNorm3d(width)
        self.last.is_last = True
        for m in self.modules():
            if isinstance(m, nn.modules.batchnorm._NormBase):
                m.weight.data.fill_(0.5 if hasattr(m, "is_last") and m.is_last else 1.5)
                m.bias.data.zero_()
        for name, m in self.named_modules():
            if isinstance(m, (nn.BatchNorm2d, nn.BatchNorm3d)) and name.endswith("last"):
                nn.init.constant_(m.bias, 0.25)

    def forward(self, x):
        return self.last(torch.relu(self.norm(self.conv(x))))


def volumes():
    torch.manual_seed(0)
    return Volumes(), (torch.randn(2, 2, 3, 4, 4),)


class Worded(nn.Module):
    """Embeddings that begin with vectors, one of which trains, and one of which has a row of its own."""

    def __init__(self, vectors, train=False):
        super().__init__()
        if train:
            self.words = nn.Embedding.from_pretrained(vectors, freeze=False)
        else:
            self.words = nn.Embedding.from_pretrained(vectors)
        self.more = nn.Embedding.from_pretrained(embeddings=vectors * 2, freeze=False, padding_idx=-1)
        self.fc = nn.Linear(vectors.shape[1], 3)

    def forward(self, ids):
        return self.fc(self.words(ids) + self.more(ids))


def worded():
    torch.manual_seed(4)
    return Worded(torch.randn(6, 5)), (torch.tensor([[0, 5, 2], [3, 5, 1]]),)


def worded_and_trained():
    torch.manual_seed(4)
    return Worded(torch.randn(6, 5), train=True), (torch.tensor([[0, 5, 2], [3, 5, 1]]),)


class Flattened(nn.Module):
    """Recurrent layers in a list of which something is asked in a list, tensors of sizes, and how one lies."""

    def __init__(self, turned):
        super().__init__()
        self.first, self.second = nn.GRU(4, 3, batch_first=True), nn.LSTM(3, 3, batch_first=True)
        self.turned = turned
        self.flat = [self.first, self.second]
        self.flatten()

    def flatten(self):
        [rnn.flatten_parameters() for rnn in self.flat]

    def forward(self, x):
        self.flatten()
        y = self.second(self.first(x)[0])[0]
        parts = []
        for part in (y, y.transpose(0, 1)):
            if not part.is_contiguous():
                part = part.contiguous()
            parts.append(part.view(-1, 3))
        noise = x.data.new(*x.size()[:2]).fill_(0.5)
        ones = y.new(*y.shape).zero_() + 1.0
        if self.turned:
            ones = ones.t() if ones.is_contiguous() else ones
        return parts[0] * noise.view(-1, 1) + parts[1] * ones.view(-1, 3)


def flattened_in_a_list():
    torch.manual_seed(6)
    return Flattened(turned=False), (torch.randn(2, 5, 4),)


class Attributes(dict):
    """A dictionary whose entries are attributes, too."""

    __getattr__ = dict.__getitem__


class Shown(nn.Module):
    """Says its settings in texts."""

    def __init__(self, config):
        super().__init__()
        print(f"made with {config.inner}, {config.inner.slope:.2f}")
        self.name = f"{config.width}-{config.inner.slope}"
        self.fc = nn.Linear(config.width, config.width)
        self.slope = config.inner.slope
        self.wide = self.name == "4-0.25"

    def forward(self, x):
        x = torch.nn.functional.leaky_relu(self.fc(x), self.slope)
        return x * 2 if self.wide else x


class ByItem(dict):
    """The same, in a method."""

    def __getattr__(self, name):
        return self[name]


def shown_settings_by_item():
    torch.manual_seed(8)
    return Shown(ByItem(width=4, inner=ByItem(slope=0.25))), (torch.randn(3, 4),)


def shown_settings():
    torch.manual_seed(8)
    return Shown(Attributes(width=4, inner=Attributes(slope=0.25))), (torch.randn(3, 4),)


def like(t):
    return {"device": t.device, "dtype": t.dtype}


class Alike(nn.Module):
    """Makes tensors that are alike by what a function gives, in one dictionary."""

    def __init__(self):
        super().__init__()
        self.fc = nn.Linear(4, 4)

    def forward(self, x):
        x = self.fc(x)
        loss = torch.tensor(0.5, requires_grad=True, **like(x))
        places = torch.arange(4, **like(x)) + torch.zeros(x.shape[-1], **like(t=x))
        return x * places + loss


def alike():
    torch.manual_seed(9)
    return Alike(), (torch.randn(3, 4),)


class Counted(nn.Module):
    """Functions inside of others that give the variables around them other values."""

    def __init__(self, width):
        super().__init__()
        depth, last = 0, 0.5

        def make(n):
            nonlocal depth, last
            depth += 1
            last = n * 2.0
            return nn.Linear(width, width)

        def kept():
            found = None

            def once():
                nonlocal found
                if found is None:
                    found = make(7)
                return found

            return once

        self.layers = nn.ModuleList([make(n) for n in range(2)])
        share = kept()
        self.shared = nn.ModuleList([share(), share()])
        self.depth, self.last = depth, last

    def forward(self, x):
        means, largest = 0.0, None

        def noted(y):
            nonlocal means, largest
            means = means + y.mean()
            largest = y.max()
            return y

        for layer in [*self.layers, *self.shared]:
            x = noted(layer(x))
        return x * self.depth + self.last + means + largest


def counted_around():
    torch.manual_seed(3)
    return Counted(4), (torch.randn(2, 4),)
