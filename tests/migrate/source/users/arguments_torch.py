"""Arguments as people hand them to layers: unpacked, left to classes that have none of them, computed."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import partial
from typing import List  # noqa: UP035  # as TorchScript's users wrote it

import numpy as np
import scipy.special
import torch
from scipy import linalg as la
from torch import nn


def images() -> tuple[torch.Tensor, ...]:
    return (torch.randn(2, 4, 6, 6),)


class Unpacked(nn.Module):
    """Sizes and ranges in tuples that are opened with a star."""

    def __init__(self, sizes: tuple[int, int] = (4, 3), span: tuple[float, float] = (0.5, 1.5)) -> None:
        super().__init__()
        self.sizes, self.span = sizes, list(span)
        self.fc = nn.Linear(*sizes)
        self.conv = nn.Conv2d(*self.sizes, 1)
        self.scale = nn.Parameter(torch.empty(sizes[0]))
        nn.init.normal_(self.scale, *self.span)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.conv(x) + self.fc((x.permute(0, 2, 3, 1) * self.scale)).permute(0, 3, 1, 2)


def unpacked():
    return Unpacked(), images()


def activation(kind: type[nn.Module]) -> nn.Module:
    """As timm makes one: not every class has an inplace."""
    try:
        return kind(inplace=True)
    except TypeError:
        return kind()


class Block(nn.Module):
    """A norm and an activation that may be Identity, which takes what they are given."""

    def __init__(self, width: int, norm: type[nn.Module], act: type[nn.Module]) -> None:
        super().__init__()
        self.norm = norm(width, eps=1e-3)
        self.act = act(inplace=True)
        self.again = activation(nn.GELU if act is nn.Identity else act)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.again(self.act(self.norm(x)) * 2)


def lenient():
    blocks = Block(4, nn.BatchNorm2d, nn.ReLU), Block(4, nn.Identity, nn.Identity)
    return nn.Sequential(*blocks, nn.Identity(54, unused=0.1)), images()


def scaled(tensor: torch.Tensor) -> float:
    fan_in, fan_out = nn.init._calculate_fan_in_and_fan_out(tensor)
    return nn.init.calculate_gain("leaky_relu", 0.2) * math.sqrt(2.0 / (fan_in + fan_out))


class Computed(nn.Module):
    """What is computed from shapes: deviations of initial weights, factors, dtypes."""

    def __init__(self) -> None:
        super().__init__()
        self.convs = nn.ModuleList([nn.Conv2d(4, 2, 3, 2**i, 1) for i in range(3)])
        for conv in self.convs:
            nn.init.normal_(conv.weight, std=scaled(conv.weight))
        self.ups = nn.ModuleList([nn.Upsample(scale_factor=2**i, mode="nearest") for i in range(3)])
        steps = torch.arange(2, dtype=torch.get_default_dtype())
        self.register_buffer("steps", steps.view(1, 2, 1, 1))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        found = torch.jit.annotate(List[torch.Tensor], [])  # noqa: UP006
        for conv, up in zip(self.convs, self.ups):
            found.append(up(conv(x))[..., :4, :4])
        return torch.cat(found, 1) + torch.cat([self.steps] * 3, 1)


def computed():
    return Computed(), images()


class Norms(nn.Module):
    """Norms without all of their weights, as diffusion transformers have them; a pool in a variable."""

    def __init__(self, norm: type[nn.Module] = partial(nn.LayerNorm, eps=1e-6, elementwise_affine=False)) -> None:
        super().__init__()
        self.plain = norm(6)
        self.scaled = nn.LayerNorm(6, bias=False)
        self.whole = nn.LayerNorm(6, elementwise_affine=True)
        pools = {"max": nn.MaxPool2d, "avg": nn.AvgPool2d}
        self.pools = nn.ModuleList([pools[name](kernel_size=2) for name in pools])

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        for pool in self.pools:
            x = x + pool(x).mean((2, 3), keepdim=True)
        x = x - torch.amax(x, axis=1, keepdims=True)  # as NumPy calls them
        x = torch.stack([x, x], axis=-1).sum(axis=-1) + torch.max(x, axis=1, keepdims=True)[0]
        return self.whole(self.scaled(self.plain(x)))


def norms():
    return Norms(), images()


class Drawn(nn.Module):
    """Draws between any bounds, and begins layers anew."""

    def __init__(self, span: tuple[float, float] = (1.0, 16.0)) -> None:
        super().__init__()
        self.scale = nn.Parameter(torch.empty(400))
        self.rate = nn.Parameter(torch.empty(400))
        self.norm = nn.BatchNorm2d(4)
        kernel = [size // 2 for size in (2, 3)]
        self.conv = nn.Conv2d(4, 400, kernel, bias=True)
        self.attention = nn.MultiheadAttention(4, 2)
        nn.init.uniform_(self.scale, *span)
        nn.init.uniform_(self.rate)
        for module in self.modules():
            if isinstance(module, (nn.BatchNorm2d, nn.Conv2d)):
                module.reset_parameters()

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        y = x.flatten(2).transpose(1, 2)
        x = self.norm(x) + self.attention(y, y, y)[0].mean(1)[:, :, None, None]
        return self.conv(x).mean((2, 3)) * self.scale + self.rate


def drawn():
    return Drawn(), images()


@dataclass
class LayerSetting:
    """What a layer is made of."""

    ratio: float
    width: int
    layer: type[nn.Module]

    @staticmethod
    def even(width: float) -> int:
        return int(width / 2 + 0.5) * 2


class WideSetting(LayerSetting):
    """One that is made from other things than its fields, as torchvision's EfficientNets have them."""

    def __init__(self, width: int, times: float = 1.0, layer: type[nn.Module] | None = None) -> None:
        super().__init__(times, self.even(width * times), layer or nn.Conv2d)


class Settled(nn.Module):
    def __init__(self, settings: list[LayerSetting]) -> None:
        super().__init__()
        layers, before = [], 4
        for setting in settings:
            layers.append(setting.layer(before, setting.width, 1))
            before = setting.width
        self.layers = nn.Sequential(*layers)
        self.scale = settings[-1].ratio

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.layers(x) * self.scale


def settings():
    return Settled([WideSetting(3), WideSetting(5, 1.5)]), images()


class PickNet(nn.Module):
    """
    Runs one layer of a list by its number, as TorchScript needed it written.

    Examples::

        >>> PickNet()

    """

    def __init__(self):
        super().__init__()
        self.layers = nn.ModuleList(nn.Linear(6, 6) for _ in range(3))

    def pick(self, x, idx):
        if idx < 0:
            idx += len(self.layers)
        out = x
        for i, layer in enumerate(self.layers):
            if i == idx:
                out = layer(x)
        return out

    def some(self, x, idx):
        out = x
        for i, layer in enumerate(self.layers):
            if i == idx:
                out = out + layer(x) * i
        return out

    def forward(self, x):
        x = self.pick(self.pick(x, -1), 0)
        return self.some(self.some(x, 1), 7)


def picked():
    return PickNet(), (torch.randn(2, 6),)


@dataclass
class Sizes:
    width: int
    expand: int = 2
    rank: str = "auto"

    def __post_init__(self):
        self.inner = self.expand * self.width
        if self.rank == "auto":
            self.rank = self.inner // 4


class SizesNet(nn.Module):
    """Sizes that a dataclass computes, a decay from whole numbers, and strides that are a number or a list."""

    def __init__(self, sizes):
        super().__init__()
        self.decay = nn.Parameter(torch.log(torch.arange(1, sizes.inner + 1)))
        strides = [2, [2], [1, 2]]
        self.convs = nn.ModuleList([self.made(sizes, stride) for stride in strides])
        self.fc = nn.Linear(sizes.inner, sizes.rank)

    def made(self, sizes, stride):
        return nn.Conv2d(3, sizes.inner, 3, stride=stride, padding=1)

    def forward(self, x):
        return self.fc(sum(conv(x).mean([2, 3]) for conv in self.convs) * torch.exp(-self.decay))


def sizes():
    torch.manual_seed(1)
    return SizesNet(Sizes(6)), (torch.randn(2, 3, 8, 8),)


def begun_by(module, weight_init, bias_init=nn.init.zeros_, **how):
    weight_init(module.weight.data, **how)
    bias_init(module.bias)
    return module


class GivenStarts(nn.Module):
    """Functions of torch.nn.init that are handed on: by name, in a lambda, in a table, with arguments by name."""

    def __init__(self, weights=nn.init.constant_):
        super().__init__()
        ones = lambda tensor: nn.init.constant_(tensor, 1)  # noqa: E731
        rules = {"flat": nn.init.ones_, "steep": partial(nn.init.constant_, val=3.0)}
        self.first = begun_by(nn.Linear(6, 5), weights, ones, val=0.25)
        self.second = begun_by(nn.Linear(5, 4), nn.init.uniform_, rules["flat"], a=2.0, b=4.0)
        self.third = begun_by(nn.Linear(4, 3), rules["steep"])
        self.norm = nn.GroupNorm(2, 4)
        for layer in self.modules():
            if isinstance(layer, (nn.BatchNorm2d, nn.GroupNorm)):
                if layer.num_groups > 9:
                    nn.init.constant_(layer.weight, 1)

    def forward(self, x):
        return self.third(torch.relu(self.norm(self.second(self.first(x)))))


def given_starts():
    torch.manual_seed(1)
    return GivenStarts(), (torch.randn(2, 6),)


class OwnLayer(nn.TransformerEncoderLayer):
    """A layer whose attention MindSpore would begin otherwise."""

    def __init__(self, width: int):
        super().__init__(width, 2, 12, dropout=0.0, batch_first=True)
        self.scale = nn.Parameter(torch.ones(width))

    def forward(self, x):
        return super().forward(x) * self.scale


def own_layer():
    torch.manual_seed(1)
    return OwnLayer(8), (torch.randn(2, 5, 8),)


class OnGraph(nn.Module):
    """Layers of a graph: its matrix, and an array of sizes, one of which is no whole number of Python's."""

    def __init__(self, matrix, widths, rate, shift=None, nothing=None):
        super().__init__()
        self.matrix, self.widths = matrix / matrix.sum(1, keepdim=True), widths
        matrix *= 2  # after the user gave it, and before anybody writes it
        self.register_buffer("twice", matrix)
        self.layers = nn.ModuleList(nn.Linear(a, b) for a, b in zip(widths[:-1], widths[1:]))
        self.norm = nn.BatchNorm1d(len(matrix), momentum=rate)
        self.shift, self.nothing = shift, nothing

    def forward(self, x):
        for layer in self.layers:
            x = torch.tanh(layer(self.matrix @ x))
        x = x if self.shift is None else x + self.shift[None]
        return self.norm(x @ x.transpose(1, 2)) + self.twice + len(self.nothing)


def on_graph():
    matrix = torch.tensor([[1.0, 0.1, 0.0], [0.1, 1.0, 1 / 3], [0.0, 1e-7, 1.0]])
    widths, rate = np.array([4, 6, 5]), np.float32(0.3)
    return OnGraph(matrix, widths, rate, torch.arange(15).view(3, 5), np.zeros((0, 2))), (torch.randn(2, 3, 4),)


class Rotated(nn.Module):
    """Starting weights that a library of arrays computes, and a branch of the same that did not run."""

    def __init__(self, width, shrink=False):
        super().__init__()
        turn, upper = la.qr(np.random.randn(width, width))
        gate = np.full(width, scipy.special.expit(0.5), dtype=np.float32)
        if shrink:
            gate = scipy.special.expit(la.norm(upper) * gate)
        self.turn = nn.Parameter(torch.from_numpy(turn.astype(np.float32)))
        self.register_buffer("gate", torch.from_numpy(gate), persistent=False)

    def forward(self, x):
        return x @ self.turn * self.gate


def rotated():
    return Rotated(4), (torch.randn(3, 4),)


class NamedAlike(nn.Module):
    """Begins all of its layers in one loop, whatever they are: in MindSpore each has its own names."""

    def __init__(self):
        super().__init__()
        self.first, self.norm, self.scale = nn.Linear(6, 8), nn.LayerNorm(8), nn.GroupNorm(2, 8)
        for layer in self.modules():
            if hasattr(layer, "weight") and layer.weight is not None:
                nn.init.constant_(layer.weight, 0.5)
            if getattr(layer, "bias", None) is not None:
                layer.bias.data.fill_(0.25)

    def forward(self, x):
        return self.scale(self.norm(self.first(x) * torch.arange(8)))


def named_alike():
    torch.manual_seed(1)
    return NamedAlike(), (torch.randn(2, 6),)


class Normed(nn.Module):
    """A layer whose norm is given as a class."""

    def __init__(self, width, norm):
        super().__init__()
        self.linear, self.norm = nn.Linear(width, width), norm(width)

    def forward(self, x):
        return self.norm(self.linear(x))


class NormedTwice(nn.Module):
    """Hands on the class that it is given, and a partial of it."""

    def __init__(self, width=4, norm=nn.LayerNorm):
        super().__init__()
        self.first, self.second = Normed(width, norm), Normed(width, partial(norm, eps=1e-2))

    def forward(self, x):
        return self.second(self.first(x))


def normed_twice():
    return NormedTwice(), (torch.randn(3, 4),)


class ImageNormNet(nn.Module):
    """A norm of images without weights, among all parameters."""

    def __init__(self) -> None:
        super().__init__()
        self.conv, self.norm = nn.Conv2d(3, 4, 3), nn.InstanceNorm2d(4)
        self.count = len([*self.parameters()]) + len(list(self.norm.named_parameters()))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.norm(self.conv(x)) * self.count + sum(p.abs().sum() for _, p in self.named_parameters())


def penalised_without_ones():
    return ImageNormNet(), (torch.randn(2, 3, 5, 6),)


"""Layers that are collected in a list first.

Its name is a Sequential's afterwards.
"""


class Collected(nn.Module):
    def __init__(self, last: bool = True, more: bool = False) -> None:
        super().__init__()
        self.net = []
        self.net.append(nn.Linear(6, 6))
        if last:
            self.net.append(nn.Linear(6, 6))
        else:
            self.net.append(nn.ReLU())
            self.net.extend([nn.Linear(6, 6), nn.Tanh()])
        self.net = nn.Sequential(*self.net)
        if more:
            self.net.append(nn.Linear(6, 3))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.net(x)


def collected():
    return Collected(), (torch.randn(2, 6),)


class Scaled(nn.Module):
    """A norm of this file, whose momentum is torch's."""

    def __init__(self, width: int, momentum: float = 0.1) -> None:
        super().__init__()
        self.momentum, self.weight = momentum, nn.Parameter(torch.ones(width))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return x * self.weight[:, None, None] * self.momentum


class NormedAsGiven(nn.Module):
    """Norms of classes that are given, with another momentum, by which they normalize right after."""

    def __init__(self, norm=nn.BatchNorm2d, own=Scaled) -> None:
        super().__init__()
        self.first, self.second = norm(4, momentum=0.3), own(4, momentum=0.2)
        self.norms = nn.ModuleList([each(4, momentum=0.4) for each in (nn.BatchNorm2d, partial(norm, eps=0.1), own)])

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        x = self.second(self.first(x))
        for norm in self.norms:
            y = norm(x)
            norm.eval()
            x = y + norm(x)
            norm.train(self.training)
        return x


def normed_as_given():
    return NormedAsGiven(), images()


def spread(table: torch.Tensor, std: float = 0.1) -> None:
    nn.init.normal_(table, std=std)


class BegunByFunction(nn.Module):
    """A function draws what begins as a tensor, and what is a parameter."""

    def __init__(self) -> None:
        super().__init__()
        table = torch.zeros(40, 6)
        spread(table)
        self.table, self.fc = nn.Parameter(table), nn.Linear(6, 40)
        spread(self.fc.weight, 0.2)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.fc(x) @ self.table


def begun_by_function():
    return BegunByFunction(), (torch.randn(2, 6),)


WEIGHT = 0.3


class Momenta(nn.Module):
    """Norms whose momentum is computed, always a number: from a constant of the file, an argument, and many of them."""

    def __init__(self, momentum: float = 0.2, level: int = 1, wide: bool = False) -> None:
        super().__init__()
        self.first = nn.BatchNorm2d(3, momentum=WEIGHT)
        self.second = nn.BatchNorm2d(3, momentum=momentum)
        self.more = nn.ModuleList([nn.BatchNorm2d(3, momentum=1 / (place + 2)) for place in range(30)])
        if wide:
            self.first = nn.BatchNorm2d(3, momentum=momentum / 2)
        self.up = nn.Upsample(scale_factor=2**level)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        x = self.second(self.first(x))
        for norm in self.more:
            x = norm(x)
        return self.up(x)


def momenta():
    return Momenta(), (torch.randn(4, 3, 4, 4),)


class Slope(nn.Module):
    def __init__(self, inplace: bool = False) -> None:
        super().__init__()

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return x.clamp(-1, 2) * 0.5


def activation(cls: type[nn.Module], inplace: bool | None = None, **kwargs: float) -> nn.Module:
    if inplace is None:
        return cls(**kwargs)
    return cls(inplace=inplace, **kwargs)


class Activations(nn.Module):
    """Activations of torch's and of this file out of one function, which hands on what it is given: nothing here."""

    def __init__(self, first: type[nn.Module] = nn.ReLU6, second: type[nn.Module] = Slope) -> None:
        super().__init__()
        self.fc = nn.Linear(4, 4)
        self.first, self.second = activation(first), activation(second)
        self.third, self.fourth = activation(first, inplace=False), activation(second, inplace=True)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        x = self.fc(x)
        return self.fourth(self.third(x + 1)) + self.first(x * 3) * self.second(x)


def activations():
    return Activations(), (torch.randn(3, 4),)


class Deep(nn.Module):
    """Layers of which functions make another number than they are asked for."""

    def __init__(self, width=4, depth=2, kernel=3, padding=1, rate=0.0):
        super().__init__()
        self.first = nn.Conv1d(3, width, kernel, padding=padding)
        self.layers = nn.ModuleList([nn.Linear(width, width) for _ in range(depth)])
        self.drop = nn.Dropout(rate)

    def forward(self, x):
        x = self.first(x).mean(2)
        for layer in self.layers:
            x = layer(x).relu()
        return self.drop(x)


def deep_and_wide(*, width=4, depth=1, **more):
    return Deep(width=width, depth=2 * depth, **more), (torch.randn(2, 3, 8),)


def _padded(*, kernel=3, padding=None, **more):
    padding = kernel // 2 if padding is None else padding
    return Deep(kernel=kernel, padding=padding, **more)


def deep_and_padded(**more):
    return _padded(rate=0.5, **more), (torch.randn(2, 3, 8),)


class Halved(nn.LayerNorm):
    """A layer of torch's with torch's own constructor."""

    def forward(self, x):
        return super().forward(x) / 2


class Kept(nn.Conv1d):
    pass


class Refined(nn.Module):
    """Small values, of which a norm's epsilon is most."""

    def __init__(self, width=4, norm=Halved, layers=(Kept, nn.Identity)):
        super().__init__()
        self.first, self.rest = layers[0](3, width, 3), layers[1]()
        self.norm, self.other = norm([width]), norm(width, eps=1e-3)

    def forward(self, x):
        return self.other(self.norm(self.rest(self.first(x * 1e-3)).transpose(1, 2)))


def refined():
    return Refined(), (torch.randn(2, 3, 8),)


class Keyed:
    """Keys that are attributes, in an object that is no dictionary."""

    def __init__(self, **given):
        object.__setattr__(self, "_keyed", given)

    def __getattr__(self, name):
        if name == "_keyed" or name not in self._keyed:
            raise AttributeError(name)
        return self._keyed[name]

    def __setattr__(self, name, value):
        self._keyed[name] = value

    def __getitem__(self, name):
        return self._keyed[name]

    def __iter__(self):
        return iter(self._keyed)

    def __len__(self):
        return len(self._keyed)

    def items(self):
        return self._keyed.items()


class Dotted(dict):
    __getattr__, __setattr__ = dict.get, dict.__setitem__


class ByKeys(nn.Module):
    """Changes the settings that it gets."""

    def __init__(self, config):
        super().__init__()
        config.scale = config.scale * 2
        config.inner = config.width + 1
        self.scale = config.scale
        self.fc = nn.Linear(config.width, config.inner)
        self.out = nn.Linear(config.inner, config.patches.size)
        self.steps = torch.linspace(0, 1, config.patches.size, dtype=torch.float32)

    def forward(self, x):
        self.steps = self.steps.to(x.device)
        return self.out(self.fc(x)) * self.scale + self.steps * x.shape[1:].numel()


def by_keys():
    return ByKeys(Keyed(width=4, patches=Keyed(size=3), scale=3.0)), (torch.randn(2, 4),)


def by_dotted():
    return ByKeys(Dotted(width=4, patches=Dotted(size=3), scale=3.0)), (torch.randn(2, 4),)


class DroppedBetween(nn.Module):
    """Drops out between layers alone."""

    def __init__(self, layers, dropout=0.25):
        super().__init__()
        self.rnn = nn.GRU(3, 4, layers, dropout=dropout if layers > 1 else 0, batch_first=True)

    def forward(self, x):
        return self.rnn(x)[0]


def dropped_between():
    return DroppedBetween(layers=2, dropout=0.0), (torch.randn(2, 5, 3),)


class Begins(nn.Module):
    """Asks its first parameter what its state is to be, in each forward."""

    def __init__(self, width=4):
        super().__init__()
        self.drop = nn.Dropout(0.0)
        self.words = nn.Embedding(9, width)
        self.rnn = nn.GRU(width, width, batch_first=True)
        self.out = nn.Linear(width, 3)

    def begin(self, count):
        weight = next(self.parameters()).data
        return weight.new(1, count, self.out.in_features).zero_()

    def forward(self, x):
        return self.out(self.drop(self.rnn(self.words(x), self.begin(x.size(0)))[0]))


class BeginsWithOwn(Begins):
    def __init__(self):
        super().__init__()
        self.scale = nn.Parameter(torch.ones(3))

    def forward(self, x):
        return super().forward(x) * self.scale


class BeginsWithScale(nn.Module):
    def __init__(self, width=4):
        super().__init__()
        self.fc = nn.Linear(3, width)
        self.scale = nn.Parameter(torch.ones(width))

    def forward(self, x):
        return self.fc(x) * self.scale + torch.zeros(1, dtype=next(self.parameters()).dtype)


class BeginsWithSome(nn.Module):
    def __init__(self, width=4, deep=True):
        super().__init__()
        if deep:
            self.first = nn.Linear(3, 3)
        self.fc = nn.Linear(3, width)

    def forward(self, x):
        return self.fc(self.first(x)) + next(self.parameters()).new_zeros(1)


class BeginsWithOther(nn.Module):
    """With another argument it has a parameter of its own, which torch has first."""

    def __init__(self, width=4, scaled=False):
        super().__init__()
        self.fc = nn.Linear(3, width)
        if scaled:
            self.scale = nn.Parameter(torch.ones(width))

    def forward(self, x):
        return self.fc(x) + next(self.parameters()).sum()


def begins_with_other():
    return BeginsWithOther(), (torch.randn(2, 3),)


def begins():
    return Begins(), (torch.randint(9, (2, 5)),)


def begins_with_own():
    return BeginsWithOwn(), (torch.randint(9, (2, 5)),)


def begins_with_scale():
    return BeginsWithScale(), (torch.randn(2, 3),)


def begins_with_some():
    return BeginsWithSome(), (torch.randn(2, 3),)


class Activated(nn.Module):
    """Layers are made as the defaults of arguments."""

    def __init__(self, width, act=nn.ReLU(True), drop=nn.Dropout(0.3), *, last=nn.LeakyReLU(0.1)):
        super().__init__()
        self.mix = nn.Linear(width, width)
        self.act, self.drop, self.last = act, drop, last

    def forward(self, x):
        return self.last(self.drop(self.act(self.mix(x))))


def arguments_made_as_defaults():
    return nn.Sequential(Activated(6), Activated(6, nn.Tanh(), nn.Dropout(0.2))), (torch.randn(4, 6),)
