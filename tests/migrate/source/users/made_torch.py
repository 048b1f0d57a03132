"""Small models of which something runs, or is chosen, while they are made."""

from __future__ import annotations

import os
from collections import OrderedDict

import torch
import torch.backends.cudnn as cudnn
import torch.nn as nn
import torch.nn.functional as F
from torch import backends


def image():
    torch.manual_seed(1)
    return (torch.randn(2, 3, 8, 8),)


class Widened(nn.Module):
    """The constructor runs its own layers, in training mode."""

    def __init__(self, shape=(3, 8, 8)):
        super().__init__()
        self.features = nn.Sequential(nn.Conv2d(3, 4, 3), nn.BatchNorm2d(4, momentum=0.5), nn.Flatten())
        self.width = self._width(shape)
        self.fc = nn.Linear(self.width, 3)
        self.trained = self.mode(torch.zeros(1))

    def _width(self, shape):
        return self.features(torch.randn(2, *shape)).shape[1]

    def mode(self, x):
        return 2.0 if self.training else 1.0

    def forward(self, x):
        return self.fc(self.features(x)) * self.trained


def runs_while_it_is_made():
    return Widened(), image()


class Head(nn.Module):
    stride = None

    def __init__(self, width, places):
        super().__init__()
        self.convs = nn.ModuleList(nn.Conv2d(width, places, 1) for _ in range(2))

    def forward(self, x):
        found = [conv(one) for conv, one in zip(self.convs, x)]
        return (
            found if self.training else torch.cat([one.flatten(1) * self.stride[i] for i, one in enumerate(found)], 1)
        )


class Conv(nn.Module):
    def __init__(self, ins, outs, stride=1):
        super().__init__()
        self.conv = nn.Conv2d(ins, outs, 3, stride, 1)

    def forward(self, x):
        return F.relu(self.conv(x))


LAYERS = [
    [-1, Conv, [3, 4, 2]],
    [-1, Conv, [4, 4]],
    [-1, nn.Upsample, [None, 2, "nearest"]],
    [[1, 2], Head, [4, 2]],
]


class Table(nn.Module):
    """Layers by a table, each from those before it, and a head that gets its strides from a run."""

    def __init__(self, layers):
        super().__init__()
        made = []
        for place, (before, kind, args) in enumerate(layers):
            layer = kind(*args)
            layer.before, layer.place = before, place
            made.append(layer)
        self.layers = nn.Sequential(*made)
        head = self.layers[-1]
        with torch.no_grad():
            found = self.forward(torch.zeros(1, 3, 16, 16))
            head.stride = torch.tensor([16 / one.shape[-2] for one in found])
        for conv, stride in zip(head.convs, head.stride):
            bias = conv.bias.view(2, -1)
            bias.data[:, 0] += float(stride)
            conv.bias = nn.Parameter(bias.view(-1), requires_grad=True)
        if head.stride[0].sign() != head.stride[1].sign():
            self.reversed = head.convs[::-1].weird()

    def forward(self, x):
        kept = []
        for layer in self.layers:
            if layer.before != -1:
                x = [kept[one] for one in layer.before]
            x = layer(x)
            kept.append(x)
        return x


def layers_by_a_table():
    return Table(LAYERS), image()


def enabled() -> bool:
    return os.environ.get("NO_CHECKS_AT_ALL", "") == ""


CHECKS: bool = enabled()


class Scaled(nn.BatchNorm2d):
    """A norm whose forward is its own, with torch's check of the input, and a cache by device."""

    def __init__(self, width):
        super().__init__(width, affine=False)
        self.cache = {}

    def forward(self, x):
        if CHECKS:
            self._check_input_dim(x)
        if x.device not in self.cache:
            self.cache[x.device] = torch.arange(x.shape[1]).float().view(1, -1, 1, 1)
        y = F.batch_norm(x, self.running_mean, self.running_var, None, None, self.training, self.momentum, self.eps)
        return y * self.cache[x.device]


class Cached(nn.Module):
    def __init__(self):
        super().__init__()
        self.conv, self.norm = nn.Conv2d(3, 4, 3), Scaled(4)

    def forward(self, x):
        return self.norm(self.conv(x))


def checks_its_input_and_keeps_by_device():
    return Cached(), image()


class Stateful(nn.Module):
    def __init__(self, i=6, o=5):
        super().__init__()
        self.l = nn.Linear(i, o)
        self.bn = nn.BatchNorm1d(o)
        self.ln = nn.LayerNorm(o)
        self.c = nn.Conv1d(1, 2, 3)
        self.register_buffer("shift", torch.ones(o))

    def forward(self, x):
        x = self.ln(torch.relu(self.bn(self.l(x)))) + self.shift
        return self.c(x.unsqueeze(1)).mean(1)


class Teacher(nn.Module):
    """Parts that begin with the state of another one, as teachers and momentum encoders do."""

    def __init__(self):
        super().__init__()
        self.student = Stateful()
        self.teacher = Stateful()
        self.teacher.load_state_dict(self.student.state_dict())
        self.small = nn.Linear(6, 5, bias=False)
        found = self.small.load_state_dict(self.student.l.state_dict(), strict=False)
        self.left = len(found.unexpected_keys)
        for p in self.teacher.parameters():
            p.requires_grad = False

    def forward(self, x):
        return self.student(x), self.teacher(x), self.small(x) * self.left


def begins_with_the_state_of_another():
    return Teacher(), [torch.randn(4, 6)]


class Chosen(nn.Module):
    """States by the names of their tensors: parts of them, other values, their order and number."""

    def __init__(self):
        super().__init__()
        self.whole = nn.Sequential(OrderedDict(enc=nn.Conv2d(3, 4, 3), norm=nn.BatchNorm2d(4), act=nn.PReLU()))
        self.enc = nn.Conv2d(1, 4, 3)
        self.other = nn.Sequential(nn.Conv2d(3, 4, 3), nn.BatchNorm2d(4, affine=False))
        found = OrderedDict()
        for k, v in self.whole.state_dict().items():
            if k.startswith("enc."):
                found[k[4:]] = v.mean(dim=1, keepdim=True) if v.dim() > 1 else v
        missing, unexpected = self.enc.load_state_dict(found, strict=False)
        own = self.other.state_dict()
        given = {k: v for k, v in zip(own, self.whole.state_dict().values()) if v.shape == own[k].shape}
        own.update(given)
        self.other.load_state_dict(own)
        self.load()
        self.names = [*self.whole.state_dict(), *self.other.state_dict()]
        self.number = len("".join(self.names)) + len(given) + len(missing)

    def load(self):
        state = self.whole.enc.state_dict()
        state["bias"] = state["bias"] * 2
        self.whole.enc.load_state_dict(state)

    def forward(self, x):
        return self.whole(x), self.enc(x[:, :1]), self.other(x) + self.number


def states_by_names():
    return Chosen(), [torch.randn(2, 3, 6, 6)]


class WritesIntoItsState(nn.Module):
    def __init__(self):
        super().__init__()
        self.a = nn.Linear(6, 5)
        self.b = nn.Linear(6, 5)
        mine = self.a.state_dict()
        for k, v in self.b.state_dict().items():
            v.copy_(mine[k])

    def forward(self, x):
        return self.a(x), self.b(x)


def writes_into_its_state():
    return WritesIntoItsState(), [torch.randn(4, 6)]


class ScalesItsState(nn.Module):
    def __init__(self):
        super().__init__()
        self.a = nn.Linear(6, 5)
        state = self.a.state_dict()
        for key in state:
            state[key] *= 2

    def forward(self, x):
        return self.a(x)


def scales_its_state():
    return ScalesItsState(), [torch.randn(4, 6)]


class HandsOnItsState(nn.Module):
    def __init__(self):
        super().__init__()
        self.a = nn.Linear(6, 5)
        self.b = nn.Linear(6, 5)
        self.copy(self.a.state_dict(), self.b.state_dict())

    def copy(self, one, other):
        for k in one:
            other[k].copy_(one[k])

    def forward(self, x):
        return self.a(x), self.b(x)


def hands_on_its_state():
    return HandsOnItsState(), [torch.randn(4, 6)]


class Doubled(nn.Module):
    def __init__(self, width, times=2):
        super().__init__()
        self.l = nn.Linear(width, width)
        self.times = times

    def forward(self, x):
        return self.l(x) * self.times


class Narrowed(nn.Module):
    def __init__(self, width, to):
        super().__init__()
        self.l = nn.Linear(width, to)

    def forward(self, x):
        return self.l(x)


class FromGlobals(nn.Module):
    """Layers by the names of their classes in this file, with their arguments in lists."""

    def __init__(self, layers=(("Doubled", [6]), ("Narrowed", [6, 4]), ("Doubled", [4, 3]))):
        super().__init__()
        self.net = nn.Sequential(*[globals()[name](*args) for name, args in layers])
        self.last = nn.Conv1d(*[1, 2, 3], **{"padding": 1})

    def forward(self, x):
        return self.last(self.net(x).unsqueeze(1))


def layers_of_this_file_by_name():
    return FromGlobals(), [torch.randn(2, 6)]


class Projected(nn.Module):
    """A parameter, and a layer, of the class, which the first object makes."""

    matrix = None
    layer = None

    def __init__(self, width=6):
        super().__init__()
        if self.__class__.matrix is None:
            self.__class__.matrix = nn.Parameter(torch.randn(width, width))
        if Projected.layer is None:
            Projected.layer = nn.Linear(width, width)
        self.p = self.__class__.matrix
        self.l = Projected.layer

    def forward(self, x):
        return self.l(x @ self.p)


class SharedByClass(nn.Module):
    def __init__(self):
        super().__init__()
        self.a, self.b = Projected(), Projected()

    def forward(self, x):
        return self.b(torch.tanh(self.a(x)))


def shared_by_their_class():
    Projected.matrix = Projected.layer = None
    return SharedByClass(), [torch.randn(2, 6)]


def by_kind(kind):
    return {"tanh": nn.Tanh, "gelu": nn.GELU}[kind]


class ByExpression(nn.Module):
    """Layers of classes, and functions, that an expression gives, which is called at once."""

    def __init__(self, norm=None, linear=None, kind="gelu", gate=None, settings={}):
        super().__init__()
        self.kind, self.gate = kind, gate
        self.inner = (linear or nn.Linear)(6, 6, bias=False)
        self.norm = (norm or nn.LayerNorm)(6, eps=1e-3)
        self.bent = by_kind(kind)()
        self.drop = nn.Dropout(**settings) if settings else nn.Identity()

    def forward(self, x, last=None):
        x = self.drop(self.bent(self.norm(self.inner(x))))
        x = (self.gate or torch.sigmoid)(x) * x
        return (last or F.softmax)(x, dim=-1)


def by_expression():
    return ByExpression(), [torch.randn(2, 6)]


def by_expression_tanh():
    return ByExpression(kind="tanh"), [torch.randn(2, 6)]


class Bagged(nn.Module):
    """Weights of a bag's values, and settings of torch's own by three names."""

    def __init__(self):
        super().__init__()
        torch.backends.cudnn.benchmark = True
        cudnn.deterministic = backends.cudnn.allow_tf32 = False
        self.bag = nn.EmbeddingBag(9, 4, mode="sum")
        self.shares = nn.Parameter(torch.rand(9))

    def forward(self, places, begins, more=None):
        given = self.shares[places]
        rows = self.bag(places.view(2, -1), per_sample_weights=given.view(2, -1))
        return self.bag(places, begins, per_sample_weights=given), rows, self.bag(places, begins, more)


def bagged():
    return Bagged(), [torch.randint(0, 9, (6,)), torch.tensor([0, 2, 2])]
