"""Small models that move their tensors, that say numbers in texts, and that take or look up some of their layers."""

from __future__ import annotations

import torch
import torch.nn as nn
from torch.utils.checkpoint import checkpoint_sequential

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
        least = y.detach().min()
        print(f"at least {least:.2f}, at most {y.max():.2f}")
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


class Sparing(nn.Module):
    """Its layers one after the other, in parts that are computed again in the backward pass."""

    def __init__(self, count=3):
        super().__init__()
        self.layers = nn.ModuleList([nn.Sequential(nn.Linear(4, 4), nn.Tanh()) for _ in range(count)])
        self.tail = nn.Sequential(nn.Linear(4, 4), nn.ReLU())

    def forward(self, x):
        x = checkpoint_sequential(self.layers, 2, x, use_reentrant=False)
        x = checkpoint_sequential(self.tail, segments=1, input=x, use_reentrant=False)
        return checkpoint_sequential([self.tail[0], torch.tanh], 1, x)


def in_checkpointed_parts():
    torch.manual_seed(0)
    return Sparing(), (torch.randn(3, 4),)


class Made(dict):
    """A table that makes a layer of its entry."""

    def __getitem__(self, key):
        made = super().__getitem__(key)
        kind, words = made if isinstance(made, tuple) else (made, {})
        return kind(**words)


class Widths(dict):
    def __missing__(self, key):
        return 2 * len(key)


class Times(nn.Module):
    def __init__(self, by=2.0):
        super().__init__()
        self.by = by

    def forward(self, x):
        return x * self.by


class Half(nn.Module):
    def forward(self, x):
        return x / 2


LAYERS = Made({"times": (Times, {"by": 3.0}), "half": Half})
WIDTHS = Widths(narrow=4)


class Looks(nn.Module):
    def __init__(self, kind="times", width="narrow"):
        super().__init__()
        self.act = LAYERS[kind]
        self.fc = nn.Linear(4, WIDTHS[width])
        self.more = nn.Linear(WIDTHS["ab"], 2)

    def forward(self, x):
        return self.act(self.more(self.fc(x)))


def looks_up_by_itself():
    torch.manual_seed(0)
    return Looks(), (torch.randn(3, 4),)


class Deep(nn.Module):
    """Convolutions back to a volume, whose padding comes by name, and as now one number and now three."""

    def __init__(self, pad=(1, 0, 1), **words):
        super().__init__()
        self.first = nn.ConvTranspose3d(2, 3, bias=False, **words)
        self.second = nn.ConvTranspose3d(3, 2, 3, padding=pad, stride=(1, 2, 2))
        self.third = nn.ConvTranspose3d(2, 2, 3, padding=words["padding"] - 1)

    def forward(self, x):
        return self.third(self.second(self.first(x)))


def back_to_a_volume():
    torch.manual_seed(0)
    return Deep(kernel_size=4, padding=1, stride=2), (torch.randn(1, 2, 3, 3, 3),)


class Registry:
    """Layers by their names, as many projects register them."""

    def __init__(self):
        self.kinds = {}

    def add(self, name, kind):
        self.kinds[name] = kind

    def build(self, name, **words):
        return self.kinds[name](**words)

    def get(self, name):
        return self.kinds[name]


KINDS = Registry()
KINDS.add("drop", nn.Dropout)
KINDS.add("bent", nn.LeakyReLU)
KINDS.add("plain", nn.ReLU)
KINDS.add("times", Times)


class Built(nn.Module):
    def __init__(self, rate=0.3, by=2.0, classes=True):
        super().__init__()
        self.fc = nn.Linear(4, 4)
        self.plain = KINDS.build("plain", inplace=False)
        self.bent = KINDS.get("bent")(0.3) if classes else KINDS.build("bent", negative_slope=rate)
        self.times = KINDS.get("times")(by=4.0) if classes else KINDS.build("times", by=by)

    def forward(self, x):
        return self.times(self.bent(self.plain(self.fc(x)) - 0.1))


def builds_by_classes():
    torch.manual_seed(0)
    return Built(), (torch.randn(3, 4),)


def builds_with_arguments():
    torch.manual_seed(0)
    return Built(by=3.0, classes=False), (torch.randn(3, 4),)


class Shared(nn.Module):
    """Parts of it are shared among devices, of which there is one."""

    def __init__(self, several=False):
        super().__init__()
        self.first = nn.DataParallel(nn.Sequential(nn.Linear(4, 4), nn.ReLU()), device_ids=[0, 1]).cuda()
        self.several = several
        if several:
            self.second = nn.DataParallel(nn.Linear(4, 4))

    def forward(self, x):
        count = sum(isinstance(layer, nn.DataParallel) for layer in self.modules())
        inside = self.first.module if isinstance(self.first, nn.DataParallel) else self.first
        if self.several:
            x = self.second(x)
        return self.first(x) * count + inside[0].weight.sum()


def shared_among_devices():
    torch.manual_seed(0)
    return Shared(), (torch.randn(3, 4),)


def shared_among_more():
    torch.manual_seed(0)
    return Shared(several=True), (torch.randn(3, 4),)


class Short(nn.Module):
    def __init__(s, width=4):
        super().__init__()
        s.fc = nn.Linear(width, width)

    def forward(me, x):
        return me.fc(x)


def whose_self_has_other_names():
    torch.manual_seed(0)
    return Short(), (torch.randn(3, 4),)


class Ancestor(nn.Module):
    def spread(self, x):
        return x.softmax(-1)


class Middle(Ancestor):
    def __init__(self, width):
        Ancestor.__init__(self)
        self.fc = nn.Linear(4, width)

    def forward(self, x):
        return self.spread(self.fc(x))


class Descendant(Middle):
    def __init__(self, width=3, **words):
        Middle.__init__(self, width, **words)
        self.plain = Undecorated()
        self.last = nn.Linear(width, 4)

    def forward(self, x):
        return self.plain(self.last(Middle.forward(self, x)))


class Undecorated(nn.Module):
    def __init__(self):
        nn.Module.__init__(self)
        self.fc = nn.Linear(4, 2)

    def forward(self, x):
        return self.fc(x)


def made_by_its_bases():
    torch.manual_seed(0)
    return Descendant(), (torch.randn(3, 4),)


class Ranges(nn.Module):
    def __init__(self):
        super().__init__()
        self.conv = nn.Conv2d(3, 5, 1)
        self.weights = torch.FloatTensor(range(1, 6))

    def forward(self, x, labels):
        y = self.conv(x)
        places = torch.LongTensor(range(y.size(0)))
        more = torch.tensor(range(5)).float() + torch.as_tensor(range(0, 10, 2))
        return y[places, labels, :, :] * self.weights.sum() + more.sum()


def tensors_of_ranges():
    torch.manual_seed(0)
    return Ranges(), (torch.randn(2, 3, 4, 4), torch.tensor([1, 4]))


class Halved(nn.Module):
    """Parts of it are to run in a shorter format."""

    def __init__(self, mixed=False):
        super().__init__()
        self.mixed = mixed
        self.fc = nn.Linear(4, 4)

    def forward(self, x, deep=False):
        with torch.autocast("cpu", enabled=self.mixed, dtype=torch.bfloat16):
            y = self.fc(x)
        with torch.autocast("cpu", enabled=False):
            y = y.float()
        if deep:
            with torch.autocast("cpu"):
                y = self.fc(y)
        return torch.erfinv(torch.tanh(y.float()) * 0.999)


def partly_in_half():
    torch.manual_seed(0)
    return Halved(), (torch.randn(3, 4),)
