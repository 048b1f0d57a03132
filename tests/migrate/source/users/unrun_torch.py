# Somebody wrote this, and anybody may use it.
"""Code that did not run, and is read."""

from __future__ import annotations

from collections import OrderedDict
from functools import partial, wraps

import numpy as np
import torch
import torch.nn.functional as F
import torchvision
from torch import nn
from torch.nn.modules.batchnorm import _NormBase
from torch.nn.utils import spectral_norm as spectral

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


class Weighs(nn.Module):
    """Weighs channels by a function of their means."""

    def __init__(self, width, gate=nn.Sigmoid):
        super().__init__()
        self.mix, self.scale = nn.Linear(width, width), 1.0
        self.gate = gate()

    def forward(self, x):
        return x * self.gate(self.mix(x.mean(dim=2))).unsqueeze(2) * self.scale


class Remembers(nn.Module):
    """A recurrent layer, resized, between layers of the kinds that it is given, or of its own."""

    def __init__(self, width, act=nn.GELU, norm=nn.BatchNorm1d, inner=nn.LayerNorm, weigh=Weighs, last=F.softmax):
        super().__init__()
        self.act, self.norm, self.inner = act(), norm(width), inner(width)
        self.weigh = weigh(width)
        self.recurrent = nn.LSTM(width, width, batch_first=True)
        self.longer = nn.Upsample(scale_factor=2)
        self.last = last

    def forward(self, x):
        y, (h, _) = self.recurrent(self.inner(x.transpose(1, 2)))
        y = self.weigh(self.act(self.norm(y.transpose(1, 2))))
        return self.last(self.longer(y) + h[-1].unsqueeze(2), dim=1)


class Table(nn.Module):
    """Two sizes in torch's old constructor, of which nothing else says what they are."""

    def __init__(self, width, times):
        super().__init__()
        self.weights = nn.Parameter(torch.Tensor(width, times))

    def forward(self, x):
        return x * self.weights.sum()


class MayRemember(nn.Module):
    """Has such layers where it is told so, with their own settings and with others."""

    def __init__(self, width=4, times=0, kind="plain"):
        super().__init__()
        places = width * 2
        self.first = nn.Conv1d(3, width, 3)
        self.layers = nn.ModuleList([Remembers(width) for _ in range(times)])
        self.other = None
        if kind == "other":
            self.other = Remembers(width, nn.ReLU, norm=nn.InstanceNorm1d)
        if kind == "shifted":
            self.shift = nn.Parameter(torch.zeros(places))
            self.table = Table(width, times=places)

    def forward(self, x):
        y = self.first(x)
        for layer in self.layers:
            y = layer(y)
        if self.other is not None:
            y = self.other(y)
        return y


def remembers_not():
    return MayRemember(), (torch.randn(2, 3, 8),)


def remembers_twice():
    return MayRemember(times=2), (torch.randn(2, 3, 8),)


def remembers_otherwise():
    return MayRemember(kind="other"), (torch.randn(2, 3, 8),)


class Waves(nn.Module):
    """A table that is written into as it is made, by steps and by rows."""

    def __init__(self, count, width):
        super().__init__()
        w = torch.zeros(count, width).float()
        place = torch.arange(count).float().unsqueeze(1)
        w[:, 0::2] = torch.sin(place)
        w[:, 1::2] = torch.cos(place)
        rows = (torch.ones(count, width) / width).to(w.dtype)
        rows[torch.arange(2)[:, None], torch.arange(width)[None, :]] = 0.0
        self.table = nn.Embedding(count, width)
        self.table.weight = nn.Parameter(w + rows, requires_grad=False)

    def forward(self, x):
        return self.table(x).detach()


class Hours(nn.Module):
    """Tables of one class or of another one."""

    def __init__(self, width, kind="waves", minutes=False):
        super().__init__()
        Table = Waves if kind == "waves" else nn.Embedding
        if minutes:
            self.minute = Table(60, width)
        self.hour = Table(24, width)

    def forward(self, x):
        minute = self.minute(x[:, 1]) if hasattr(self, "minute") else 0.0
        return self.hour(x[:, 0]) + minute


class Later:
    """No module: it holds a mask."""

    def __init__(self, length, device="cpu"):
        with torch.no_grad():
            self._mask = torch.triu(torch.ones([length, length], dtype=torch.bool), diagonal=1).to(device)

    @property
    def mask(self):
        return self._mask

    def opposite(self):
        return ~self._mask

    def __call__(self, values):
        return values.masked_fill(self._mask, 0.0)

    def eval(self):
        return self._mask


class Timed(nn.Module):
    """Knows hours, and what comes later, where it is told so."""

    def __init__(self, width=4, kind="none", minutes=False, later=False):
        super().__init__()
        self.first, self.later = nn.Linear(3, width), later
        self.hours = Hours(width, kind, minutes) if kind != "none" else None

    def forward(self, x, when):
        y = self.first(x)
        if self.hours is not None:
            y = y + self.hours(when)
        if self.later:
            later = Later(y.shape[1], device=y.device)
            y = (y.t() @ y).masked_fill(later.mask[:4, :4], 0.5) * torch.where(later.opposite()[:4, :4], 1.0, 0.5)
        return y


def timed():
    return Timed(), (torch.randn(5, 3), torch.randint(0, 20, (5, 2)))


def timed_by_waves():
    return Timed(kind="waves", later=True), (torch.randn(5, 3), torch.randint(0, 20, (5, 2)))


def timed_by_tables():
    return Timed(kind="learned", minutes=True), (torch.randn(5, 3), torch.randint(0, 20, (5, 2)))


class Casts(nn.Conv1d):
    """Its weights in the dtype of its input, by what torch's layer calls."""

    def _conv_forward(self, x, weight, bias):
        return super()._conv_forward(x, weight.to(x.dtype), None if bias is None else bias.to(x.dtype))


class Centres(nn.Conv1d):
    def _conv_forward(self, x, weight, bias):
        return super()._conv_forward(x, weight - weight.mean(), bias)


class Draws(nn.Module):
    """Draws where its weights are, and takes what is made when it is needed."""

    def __init__(self, width=4, layer=None, doubled=False):
        super().__init__()
        """
        What it is made of.

            layer: of 3 channels
        """
        self.mix, self.doubled = layer or Casts(3, width, 3), doubled

    def forward(self, x, more=None):
        if self.doubled:
            more = given_or_made(more, lambda: torch.zeros_like(x))
            first, second = map(lambda t: t * 2, (x, more))
            x = first + second + torch.ones(1, device=next(self.parameters()).device)
        return self.mix(x)

    def upsampled(self, flow, mask):
        count, width, length = flow.shape
        mask = mask.view(count, 1, 3, length).softmax(dim=2)
        return (mask * flow.unsqueeze(2)).sum(dim=2).reshape(count, width, length)

    def by_number(self, x):
        found = OrderedDict()
        for number in range(2):
            found[number] = self.forward(x) * number
        return found

    def drawn(self, count):
        device = next(self.parameters()).device
        return self.forward(torch.randn(count, 3, 8).to(device))


def given_or_made(value, make):
    return value if value is not None else make()


def draws():
    return Draws(), (torch.randn(2, 3, 8),)


def draws_doubled():
    return Draws(doubled=True), (torch.randn(2, 3, 8),)


def draws_centred():
    return Draws(layer=Centres(3, 4, 3)), (torch.randn(2, 3, 8),)


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


def dropped(x, share=0.0, training=False):
    if share == 0.0 or not training:
        return x
    shape = (x.shape[0],) + (1,) * (x.ndim - 1)
    kept = torch.rand(shape, dtype=x.dtype, device=x.device)
    return x.div(1 - share) * kept.add_(1 - share).floor()


def once(make):
    found = None

    @wraps(make)
    def made(*args, again=True, **kwargs):
        if again:
            return make(*args, **kwargs)
        nonlocal found
        if found is not None:
            return found
        found = make(*args, **kwargs)
        return found

    return made


class Drops(nn.Module):
    def __init__(self, share=0.0):
        super().__init__()
        self.share = share

    def forward(self, x):
        return dropped(x, self.share, self.training)


class Sparing(nn.Module):
    """One layer several times, of which some features may be chosen."""

    def __init__(self, tied=False, most=0, share=0.0):
        super().__init__()
        layer = once(lambda: nn.Linear(8, 8))
        self.layers = nn.ModuleList([layer(again=not tied) for _ in range(3)])
        self.drops = Drops(share) if share > 0 else nn.Identity()
        self.most = most

    def forward(self, x):
        at = torch.linspace(0.0, 1.0, x.shape[-1], device=x.device, dtype=x.dtype)
        for layer in self.layers:
            x = self.drops(layer(x)) * at
        if self.most:
            places = x.topk(self.most, dim=-1).indices
            x = x.gather(-1, places) - x.max(dim=-1, keepdim=True).values
        return x


def sparing():
    return Sparing(), (torch.randn(4, 8),)


def sparing_tied():
    return Sparing(tied=True), (torch.randn(4, 8),)


def sparing_most():
    return Sparing(most=3), (torch.randn(4, 8),)


def sparing_drops():
    return Sparing(share=0.5).eval(), (torch.randn(4, 8),)


class Stage(nn.Module):
    def __init__(self, width, norm, side=1, momentum=0.1):
        super().__init__()
        self.fc = nn.Linear(width, width)
        self.mix = nn.Conv2d(1, 1, 2 * side + 1, padding=side)
        self.row = nn.Conv1d(1, 1, 2 * side + 1, padding=side)
        self.batch = nn.BatchNorm1d(width, momentum=momentum)
        self.norm = nn.LayerNorm(width) if norm == "layer" else nn.Sequential()

    def forward(self, x):
        x = self.norm(self.fc(x)).relu()
        return self.batch(self.row(self.mix(x[None, None])[0, 0][:, None])[:, 0])


class Deep(nn.Module):
    """Its layers are what its own methods make."""

    def __init__(self, norm):
        super().__init__()
        self.width = 8
        self.first = self._stage(norm, 2)
        self.last = self._head()

    def _stage(self, norm, number):
        one = Stage(self.width, norm)
        more = [Stage(self.width, norm) for _ in range(number - 1)]
        return nn.Sequential(one, *more)

    def _head(self):
        head = nn.Linear(self.width, 3)
        return head

    def forward(self, x):
        pair = isinstance(x, (tuple, list))
        if pair:
            batch = x[0].shape[0]
            x = torch.cat(x, dim=0)
        x = self.last(self.first(x))
        return x.split([batch, batch], dim=0) if pair else x


class Either(nn.Module):
    def __init__(self, deep=False):
        super().__init__()
        self.net = Deep("layer") if deep else nn.Linear(8, 3)

    def forward(self, x):
        return self.net(x)


def either():
    return Either(), (torch.randn(4, 8),)


def either_deep():
    return Either(deep=True), (torch.randn(4, 8),)


class Tables(nn.Module):
    """What is written into items of items, and into what is a part of another tensor."""

    def __init__(self, more=False):
        super().__init__()
        self.fc, self.more = nn.Linear(4, 4), more

    def items(self, x):
        start = torch.full((1, 4), -5.0)
        start[0][2] = 0.5
        rows = torch.zeros(3, 2, 4) + x[0]
        rows[1][0][3] = 7.0
        rows[-1][1] = x[1]
        return start + rows.sum((0, 1)) + x

    def row(self, x):
        rows = torch.ones(3, 4) + x
        first = rows[0]
        first[1] = 3.0
        return rows

    def rows(self, x):
        kept = torch.ones(3, 4) + x
        for number, each in enumerate(kept):
            each[number] = 3.0
        return kept

    def halves(self, x):
        kept = torch.ones(3, 4) + x
        left, _ = kept.chunk(2, dim=-1)
        left[0] = 3.0
        return kept

    def forward(self, x):
        y = self.fc(x)
        return self.items(y) if self.more else y


def tables():
    return Tables(), (torch.randn(3, 4),)


def tables_more():
    return Tables(more=True), (torch.randn(3, 4),)


class Checked(nn.Module):
    """Texts of assertions that hold: they never ran, and say what somebody would want to know."""

    def __init__(self, times=2, width=4):
        super().__init__()
        assert times > 0, "times is {}, {}".format(times, self.training)
        assert width % 2 == 0, "%d is odd" % max(width, times)
        self.mix = nn.Linear(3, width)
        assert width == 4, self.mix.flips()  # of which nothing is known
        self.times = times

    def forward(self, x):
        assert x.dim() == 2, f"{x.size()} has {x.dim()} axes"
        assert x.size(-1) == 3, "3 columns, not {} of {}".format(x.size(-1), "x".join(str(n) for n in x.shape))
        return self.mix(x) * self.times


def checked():
    return Checked(), (torch.randn(5, 3),)


class Fused(nn.Module):
    """Makes one layer of two that lie in a Sequential under their names, where an argument says so."""

    def __init__(self, now=False, groups=1):
        super().__init__()
        self.pair = nn.Sequential()
        self.pair.add_module("conv", nn.Conv2d(2, 2, 3, padding=1, groups=groups, bias=False))
        self.pair.add_module("bn", nn.BatchNorm2d(2, eps=1e-3))
        self.norm, self.now = nn.BatchNorm2d(2), now

    def forward(self, x):
        if hasattr(self, "whole"):
            return self.whole(x)
        if self.now:
            kernel, shift = self.folded(self.pair)
            same, more = self.folded(self.norm)
            return F.conv2d(x, kernel + same, shift + more, padding=self.pair.conv.padding)
        return self.pair(x) + self.norm(x)

    def folded(self, branch):
        if isinstance(branch, nn.Sequential):
            kernel, norm = branch.conv.weight, branch.bn
        else:
            assert isinstance(branch, nn.BatchNorm2d)
            values = np.zeros((2, 2 // self.pair.conv.groups, 3, 3), dtype=np.float32)
            for place in range(2):
                values[place, place % values.shape[1], 1, 1] = 1
            kernel, norm = torch.from_numpy(values).to(branch.weight.device), branch
        scale = norm.weight / (norm.running_var + norm.eps).sqrt()
        return kernel * scale.reshape(-1, 1, 1, 1), norm.bias - norm.running_mean * scale

    def fuse(self):
        kernel, shift = self.folded(self.pair)
        conv = self.pair.conv
        self.whole = nn.Conv2d(conv.in_channels, conv.out_channels, conv.kernel_size, padding=conv.padding)
        self.whole.weight.data = kernel
        self.whole.bias.data = shift
        self.__delattr__("pair")


def fused():
    return Fused(), (torch.randn(3, 2, 5, 5),)


def fused_now():
    return Fused(now=True), (torch.randn(3, 2, 5, 5),)


class Typed(nn.Module):
    """Asks of which class of tensors something is by the name of that class."""

    def __init__(self, more=False):
        super().__init__()
        self.mix, self.more = nn.Linear(3, 3), more

    def forward(self, x):
        y = self.mix(x)
        if self.more:
            if x.type() == "torch.cuda.HalfTensor":
                y = y.half()
            return y * 3 if y.type() == "torch.FloatTensor" else y
        return y if y.type() != "torch.DoubleTensor" else y * 2


def typed():
    return Typed(), (torch.randn(4, 3),)


def typed_more():
    return Typed(more=True), (torch.randn(4, 3),)


class Stretch(nn.Module):
    def __init__(self, width=4):
        super().__init__()
        self.factor = nn.Parameter(torch.full((width,), 1.5))

    def forward(self, x):
        return x * self.factor

    def inverse(self, x):
        return x / self.factor


class InTurn(nn.Sequential):
    def forward(self, x):
        for one in self:
            x = one(x)
        return x

    def inverse(self, x):
        for one in reversed(self):
            x = one.inverse(x)
        return x


class Density(nn.Module):
    """A property makes a distribution; an attribute is a list before it is a Sequential."""

    def __init__(self, width=4, way="values"):
        super().__init__()
        self.way = way
        self.parts = []
        for _ in range(2):
            self.parts += [Stretch(width)]
        self.parts = InTurn(*self.parts)
        self.more = nn.ModuleList([Stretch(width), Stretch(width)])
        self.register_buffer("mean", torch.zeros(width))
        self.register_buffer("spread", torch.ones(width))

    @property
    def prior(self):
        return torch.distributions.Normal(self.mean, self.spread)

    def values(self, x):
        return self.parts(self.more[1](self.more[0](x)))

    def forward(self, x):
        if self.way == "likely":
            return self.likely(x)
        if self.way == "back":
            return self.back(x)
        return self.values(x)

    def back(self, x):
        x = self.parts.inverse(x) + torch.zeros(len(x), 1).to(x.device)
        for one in reversed(self.more):
            x = one.inverse(x)
        return x

    def likely(self, x):
        return self.prior.log_prob(self.values(x)).sum(1)


def density_values():
    return Density(), (torch.randn(3, 4),)


def density_likely():
    return Density(way="likely"), (torch.randn(3, 4),)


def density_back():
    return Density(way="back"), (torch.randn(3, 4),)


def all_begin(layers, scale=0.5):
    for layer in layers:
        for m in layer.modules():
            if isinstance(m, nn.Linear):
                nn.init.kaiming_normal_(m.weight)
                m.weight.data *= scale
            elif isinstance(m, nn.modules.batchnorm._BatchNorm):
                nn.init.constant_(m.weight, 1)
                if m.bias is not None:
                    m.bias.data.fill_(0)


class BegunByBase(nn.Module):
    """The base class of norms in a branch that did not run, which passes over all other layers."""

    def __init__(self, width=4):
        super().__init__()
        self.mix = nn.Sequential(nn.Linear(width, width), nn.Tanh())
        self.shift = nn.Parameter(nn.init.uniform_(torch.rand(width), -0.5, 0.5))
        all_begin([self.mix])

    def forward(self, x):
        return self.mix(x) + self.shift


def begun_by_base():
    return BegunByBase(), (torch.randn(3, 4),)


class Empty(nn.Module):
    """A branch in which nothing is done."""

    def __init__(self, width=4):
        super().__init__()
        self.mix = nn.Linear(width, width)

    def forward(self, x):
        if x.ndim == 2:
            pass
        else:
            x = x.flatten(1)
        return self.mix(x)


def branches_of_nothing():
    return Empty(), (torch.randn(3, 4),)


class Picks(nn.Module):
    """Layers of a library and a loss that one setting makes, and calls with places of int64 and a window in a tuple."""

    def __init__(self, wide=False):
        super().__init__()
        self.wide = wide
        self.mix = nn.Linear(4, 4)
        if wide:
            self.turn = torchvision.ops.Permute([0, 2, 1])
            self.fits = nn.CrossEntropyLoss(reduction="none")

    def forward(self, x, classes, places):
        y = self.mix(x)
        if self.wide:
            y = self.turn(y)
            y, shift = torch.broadcast_tensors(y, y[:, :1])
            y = F.avg_pool1d(y - 0.5 * shift, kernel_size=(2,))
            y = torch.index_fill(y, 2, places, 0.25).type(dtype=torch.float32).type_as(x)
            return self.fits(y, classes)
        return y


def picks():
    return Picks(), (torch.randn(2, 6, 4), torch.tensor([[0, 2, 3], [1, 1, 0]]), torch.tensor([0, 2]))


def picks_widely():
    return Picks(wide=True), (torch.randn(2, 6, 4), torch.tensor([[0, 2, 3], [1, 1, 0]]), torch.tensor([0, 2]))


class Rescales(nn.Module):
    """Has a setting that is a property, says at the end what it did, and turns the bits of integers around."""

    def __init__(self, width, swift=False):
        super().__init__()
        self.mix = nn.Linear(width, width)
        self.swift = swift
        self.level = 1
        self.calls = 0

    @property
    def strength(self):
        return self.level * 2

    @strength.setter
    def strength(self, value):
        self.level = value + 1

    def forward(self, x):
        y = self.mix(x)
        if self.swift:
            self.strength = 3
            return self.counted(y + self.strength) + (~torch.arange(4)).sum()
        return y

    def counted(self, y):
        try:
            return y * (self.calls + 2)
        finally:
            self.calls = self.calls + 1


def rescales():
    return Rescales(4), (torch.randn(3, 4),)


def rescales_swiftly():
    return Rescales(4, swift=True), (torch.randn(3, 4),)


PENALTIES = {"far": F.smooth_l1_loss, "near": F.l1_loss}


class ByValue(nn.Module):
    """Functions and classes in variables, one of which ran: MindSpore's have other defaults, and take other arguments."""

    def __init__(self, bent=False, pooled=False, penalty="near", normed=False):
        super().__init__()
        self.mix = nn.Linear(4, 4)
        self.act = F.leaky_relu if bent else F.relu
        if pooled:
            self.pool = F.avg_pool1d
        else:
            self.pool = F.max_pool1d
        self.penalty = PENALTIES[penalty]
        layer = nn.Softmax if normed else nn.Identity
        self.last = layer(1)

    def forward(self, x):
        y = self.act(self.mix(x))
        return self.last(y).sum() + self.penalty(y, 2 * x) + self.pool(y, 2).sum()


def by_value():
    torch.manual_seed(3)
    return ByValue(), (torch.randn(3, 4, 4),)


def by_value_bent():
    torch.manual_seed(3)
    return ByValue(bent=True, penalty="far", normed=True), (torch.randn(3, 4, 4),)


class Handed(nn.Module):
    """Layers of classes that are handed on with some of their arguments, in a variable and as defaults."""

    def __init__(
        self,
        width=4,
        norm=None,
        conv=partial(nn.Conv1d, padding=1, bias=False),
        act=None,
        bound=partial(torch.clamp, min=0.1),
        deep=False,
    ):
        super().__init__()
        norm = norm or partial(nn.LayerNorm, eps=1e-3)
        act = act or partial(nn.LeakyReLU, 0.3)
        self.norm, self.act, self.bound, self.deep = norm(width), act(), bound, deep
        self.conv = conv(3, 3, 3)
        if deep:
            self.before = norm(width)
            self.second = conv(3, 3, kernel_size=3, stride=1)
            self.bent = act()

    def forward(self, x):
        if self.deep:
            x = self.bound(self.bent(self.second(self.before(x))), max=2.0)
        return self.act(self.conv(self.norm(x)))


def handed():
    torch.manual_seed(3)
    return Handed(), (torch.randn(2, 3, 4),)


def handed_deep():
    torch.manual_seed(3)
    return Handed(deep=True), (torch.randn(2, 3, 4),)


class Meter:
    """An object that its class keeps, made before anything is seen to run."""

    kept: dict[str, Meter] = {}
    one: Meter | None = None

    def __init__(self, name="", by=2.0):
        self.name, self.by, self.among = name, by, []

    @classmethod
    def named(cls, name=""):
        if name not in cls.kept:
            cls.kept[name] = cls(name, by=3.0)
        return cls.kept[name]

    @staticmethod
    def single():
        if Meter.one is None:
            Meter.one = Meter(by=0.5)
        return Meter.one

    def read(self, x):
        return x * self.by + len(self.among)


class Metered(nn.Module):
    def __init__(self, kind="none", name="first"):
        super().__init__()
        self.layer = nn.Linear(4, 4)
        self.meters = [Meter.named(name), Meter.single()]
        if kind == "spectral":
            self.wrap = spectral
        elif kind == "weight":
            self.wrap = nn.utils.weight_norm
        else:
            self.wrap = None
        if self.wrap:
            self.layer = self.wrap(self.layer)

    def forward(self, x):
        for meter in self.meters:
            x = meter.read(self.layer(x))
        return x.sum(1) if torch._C._get_tracing_state() else x


def metered():
    return Metered(), [torch.randn(2, 4)]


class Scaled(nn.Module):
    """Variables with the names of functions that the new file has, in code that did not run."""

    def forward(self, x, pad=1):
        norm = x.norm(dim=-1, keepdim=True)
        clamp = x.clamp(min=0.1)
        return F.pad(x / norm.clamp(min=1e-6) + clamp, (pad, 0))


class Shadowed(nn.Module):
    def __init__(self, scaled=False):
        super().__init__()
        self.layer = nn.Linear(4, 4)
        self.last = Scaled() if scaled else nn.Identity()

    def forward(self, x):
        return self.last(self.layer(x))


def shadowed():
    return Shadowed(), [torch.randn(2, 4)]


def shadowed_scaled():
    return Shadowed(True), [torch.randn(2, 4)]
