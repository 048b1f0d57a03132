"""Small models as users write them: parameters, buffers and how they begin."""

from __future__ import annotations

import math

import torch
from torch import nn
from torch.nn import functional as F
from torch.nn.init import trunc_normal_
from torch.nn.utils import parametrizations, remove_weight_norm, weight_norm


def image() -> tuple[torch.Tensor]:
    torch.manual_seed(1)
    return (torch.randn(2, 3, 8, 8),)


def vectors(width: int = 6) -> tuple[torch.Tensor]:
    torch.manual_seed(1)
    return (torch.randn(4, width),)


class BufferNet(nn.Module):
    """Buffers that are saved, one that is not, and one that is not there."""

    def __init__(self, width: int = 6) -> None:
        super().__init__()
        self.register_buffer("scale", torch.linspace(0.5, 1.5, width))
        self.register_buffer("count", torch.tensor(0, dtype=torch.int64))
        mask = torch.triu(torch.ones(width, width), diagonal=1).bool()
        self.register_buffer("mask", mask, persistent=False)
        self.register_buffer("shift", None)
        self.register_parameter("bias", None)
        self.weight = nn.Parameter(torch.empty(width, width))
        self.gain = nn.Parameter(torch.ones(1, width) * 0.5, requires_grad=False)
        self.reset_parameters()

    def reset_parameters(self) -> None:
        nn.init.kaiming_uniform_(self.weight, a=math.sqrt(5))
        if self.bias is not None:
            nn.init.zeros_(self.bias)

    def forward(self, x):
        weight = self.weight.masked_fill(self.mask, 0.0)
        x = F.linear(x, weight, self.bias) * self.scale * self.gain
        if self.shift is not None:
            x = x + self.shift
        return x + self.count


def buffers():
    return BufferNet(), vectors()


class NormAct(nn.BatchNorm2d):
    """A norm with its activation, whose forward is torch's own, copied."""

    def __init__(self, features: int, eps: float = 1e-5, momentum: float = 0.1, track_running_stats: bool = True):
        super().__init__(features, eps=eps, momentum=momentum, track_running_stats=track_running_stats)
        self.act = nn.ReLU()

    def forward(self, x):
        factor = 0.0 if self.momentum is None else self.momentum
        if self.training and self.track_running_stats:
            if self.num_batches_tracked is not None:
                self.num_batches_tracked.add_(1)
                if self.momentum is None:
                    factor = 1.0 / float(self.num_batches_tracked)
                else:
                    factor = self.momentum
        if self.training:
            of_batch = True
        else:
            of_batch = (self.running_mean is None) and (self.running_var is None)
        mean = self.running_mean if not self.training or self.track_running_stats else None
        var = self.running_var if not self.training or self.track_running_stats else None
        return self.act(F.batch_norm(x, mean, var, self.weight, self.bias, of_batch, factor, self.eps))


class OwnNorms(nn.Module):
    """A class that comes from torch's norm, and one with statistics of its own, which training moves."""

    def __init__(self) -> None:
        super().__init__()
        self.norm = NormAct(3, momentum=0.2)
        self.register_buffer("mean", torch.zeros(3))
        self.register_buffer("var", torch.ones(3))

    def forward(self, x):
        x = self.norm(x)
        moved = self.norm.running_mean + self.norm.running_var
        x = F.batch_norm(x, self.mean, self.var, training=self.training, momentum=0.3)
        return x * moved.view(1, -1, 1, 1) + (self.mean * self.var).view(1, -1, 1, 1)


def own_norms():
    return OwnNorms(), image()


class CountNet(nn.Module):
    """A running mean of its own, which train mode moves."""

    def __init__(self, width: int = 6, momentum: float = 0.1) -> None:
        super().__init__()
        self.momentum = momentum
        self.register_buffer("running", torch.zeros(width))
        self.register_buffer("steps", torch.zeros((), dtype=torch.long))
        self.fc = nn.Linear(width, width)

    def forward(self, x):
        if self.training:
            with torch.no_grad():
                self.steps += 1
                self.running.mul_(1 - self.momentum).add_(x.mean(0), alpha=self.momentum)
        return self.fc(x - self.running)


def running():
    return CountNet(), vectors()


class ParameterNet(nn.Module):
    """Parameters in lists and dictionaries, and plain ones."""

    def __init__(self, width=6, depth=3):
        super().__init__()
        self.scales = nn.ParameterList([nn.Parameter(torch.ones(width) * (i + 1)) for i in range(depth)])
        self.shifts = nn.ParameterDict({"a": nn.Parameter(torch.zeros(width)), "b": nn.Parameter(torch.ones(1))})
        self.token = nn.Parameter(torch.zeros(1, width))
        self.temperature = nn.Parameter(torch.tensor(1.0))
        nn.init.normal_(self.token, std=0.02)

    def forward(self, x):
        for scale in self.scales:
            x = torch.tanh(x * scale)
        x = x * self.scales[0] + self.shifts["a"] + self.shifts["b"]
        token = self.token.expand(x.shape[0], -1)
        return torch.cat((token, x), dim=1) / self.temperature.exp()


def parameters():
    return ParameterNet(), vectors()


def begin_by_name(m: nn.Module) -> None:
    name = m.__class__.__name__
    if name.find("Conv") != -1:
        nn.init.constant_(m.weight.data, 0.5)
    elif name.find("Linear") != -1:
        nn.init.constant_(m.weight.data, 0.75)
        nn.init.constant_(m.bias.data, 0.125)


class NamedNet(nn.Module):
    """Initialised by the names of its layers' classes, also by a function inside of one."""

    def __init__(self, kind: str = "constant", scale: float = 0.25) -> None:
        super().__init__()
        self.body = nn.Sequential(nn.Linear(6, 6), nn.Tanh(), nn.Linear(6, 6))
        self.head = nn.Linear(6, 4)
        self.body.apply(begin_by_name)

        def begin(m: nn.Module) -> None:
            if type(m).__name__ in ("Linear", "Bilinear") and kind == "constant":
                nn.init.constant_(m.weight, scale)
            elif kind == "xavier":
                # as Glorot has it
                nn.init.xavier_normal_(m.weight.data, gain=scale)
            elif kind == "unknown":
                nn.init.thick_(m.weight)
            else:
                raise ValueError(kind)

        self.head.apply(begin)

    def forward(self, x):
        return self.head(self.body(x))


def begun_by_names():
    return NamedNet(), vectors()


class NormedByNameNet(nn.Module):
    """A norm that MindSpore has under the name of another one."""

    def __init__(self) -> None:
        super().__init__()
        self.mix, self.norm = nn.Conv1d(4, 4, 3), nn.InstanceNorm1d(4, affine=True)
        for m in self.children():
            if m.__class__.__name__.startswith("Instance"):
                nn.init.constant_(m.weight, 0.5)

    def forward(self, x):
        return self.norm(self.mix(x))


class BegunInAnotherShape(nn.Module):
    """A filter that begins as the matrix that it is would, and a matrix of rows that are drawn together."""

    def __init__(self) -> None:
        super().__init__()
        self.patch, self.head = nn.Conv1d(3, 4, 2, stride=2), nn.Linear(4, 4)
        weight = self.patch.weight.data
        nn.init.xavier_uniform_(weight.view([weight.shape[0], -1]), gain=0.5)
        nn.init.constant_(self.head.weight.view(-1), 0.25)

    def forward(self, x):
        return self.head(self.patch(x).mean(2))


def begun_in_another_shape():
    return BegunInAnotherShape(), (torch.randn(2, 3, 8),)


def normed_by_name():
    return NormedByNameNet(), (torch.randn(2, 4, 8),)


class InitNet(nn.Module):
    """Initialised as published transformers are."""

    def __init__(self, width: int = 64, words: int = 50, std: float = 0.02):
        super().__init__()
        self.std = std
        self.embed = nn.Embedding(words, width)
        self.position = nn.Parameter(torch.zeros(1, 4, width))
        self.conv = nn.Conv1d(width, width, 3, padding=1)
        self.norm = nn.LayerNorm(width)
        self.fc = nn.Linear(width, width)
        self.head = nn.Linear(width, 200)
        trunc_normal_(self.position, std=0.02)
        self.apply(self._init_weights)
        self.head.weight.data.mul_(0.5)
        nn.init.constant_(self.head.bias, 0.25)
        with torch.no_grad():
            self.fc.bias.fill_(0.5)

    def _init_weights(self, m):
        if isinstance(m, nn.Linear):
            trunc_normal_(m.weight, std=self.std)
            if m.bias is not None:
                nn.init.zeros_(m.bias)
        elif isinstance(m, nn.Embedding):
            m.weight.data.normal_(mean=0.0, std=self.std)
        elif isinstance(m, (nn.LayerNorm, nn.GroupNorm)):
            m.bias.data.zero_()
            m.weight.data.fill_(1.0)
        elif isinstance(m, nn.Conv1d):
            fan = m.kernel_size[0] * m.out_channels
            m.weight.data.normal_(0, math.sqrt(2.0 / fan))

    def forward(self, tokens):
        x = self.embed(tokens) + self.position[:, : tokens.shape[1]]
        x = x + self.conv(x.transpose(1, 2)).transpose(1, 2)
        return self.head(self.fc(self.norm(x)))


def initialised():
    torch.manual_seed(1)
    return InitNet(), (torch.randint(0, 50, (2, 4)),)


class LoopInitNet(nn.Module):
    """Initialised in a loop over its modules, and over its parameters."""

    def __init__(self) -> None:
        super().__init__()
        self.conv = nn.Conv2d(3, 32, 3)
        self.bn = nn.BatchNorm2d(32)
        self.fc = nn.Linear(32, 64)
        for m in self.modules():
            if isinstance(m, nn.Conv2d):
                nn.init.kaiming_normal_(m.weight, mode="fan_out", nonlinearity="relu")
                if m.bias is not None:
                    nn.init.constant_(m.bias, 0)
            elif isinstance(m, nn.BatchNorm2d):
                nn.init.constant_(m.weight, 1)
                nn.init.constant_(m.bias, 0)
        for name, p in self.fc.named_parameters():
            if "weight" in name:
                nn.init.xavier_uniform_(p, gain=0.5)
            elif p.dim() == 1:
                nn.init.uniform_(p, -0.1, 0.1)
        for p in self.conv.parameters():
            p.requires_grad = False

    def forward(self, x):
        return self.fc(F.relu(self.bn(self.conv(x))).mean([2, 3]))


def loop_initialised():
    return LoopInitNet(), image()


class OrthogonalNet(nn.Module):
    """A parametrization that has no counterpart."""

    def __init__(self):
        super().__init__()
        self.fc = parametrizations.orthogonal(nn.Linear(6, 4))

    def forward(self, x):
        return self.fc(x)


def orthogonal():
    return OrthogonalNet(), vectors()


class WeightNormNet(nn.Module):
    """Layers whose weight is computed, in both of torch's ways; what is drawn into such a weight is lost in torch."""

    def __init__(self, whole=False):
        super().__init__()
        self.first = weight_norm(nn.Conv1d(6, 4, 3, padding=1))
        self.ups = nn.ModuleList(
            [
                weight_norm(nn.ConvTranspose1d(4, 6, 4, 2, 1), dim=1),
                parametrizations.weight_norm(nn.Conv1d(6, 6, 3, dilation=2, bias=False)),
            ]
        )
        self.last = parametrizations.weight_norm(nn.Linear(6, 2), dim=None if whole else 0)
        self.tail = nn.Sequential(self.last)
        self.first.weight.data.normal_(0, 5.0)
        self.ups.apply(self.init)

    def init(self, m):
        if m.__class__.__name__.find("Conv") != -1:
            nn.init.normal_(m.weight, 0.0, 5.0)

    def remove(self):
        remove_weight_norm(self.first)

    def forward(self, x):
        x = torch.tanh(self.first(x))
        for up in self.ups:
            x = torch.tanh(up(x))
        return self.tail(x.mean(-1))


def weight_normed():
    return WeightNormNet(), (torch.randn(2, 6, 9),)


class SpectralNormNet(nn.Module):
    """Weights over their largest singular value, whose vectors move in training."""

    def __init__(self, steps=1):
        super().__init__()
        norm = parametrizations.spectral_norm
        self.conv = nn.utils.spectral_norm(nn.Conv2d(3, 4, 3, padding=1), n_power_iterations=steps)
        self.up = norm(nn.ConvTranspose2d(4, 4, 4, 2, 1), eps=1e-10)
        self.fc = norm(nn.Linear(4, 2))

    def forward(self, x):
        return self.fc(torch.relu(self.up(torch.relu(self.conv(x)))).mean([2, 3]))


def spectral_normed():
    return SpectralNormNet(), image()


class Gained(nn.Linear):
    """Begins anew with more than torch's layer has."""

    def __init__(self, *args, **kwargs):
        super().__init__(*args, **kwargs)
        self.gain = nn.Parameter(torch.empty(self.out_features))
        self.reset_parameters()

    def reset_parameters(self):
        if hasattr(self, "gain"):
            nn.init.constant_(self.gain, 1.5)
            super().reset_parameters()

    def forward(self, x):
        return super().forward(x) * self.gain


class RescaledNet(nn.Module):
    """Its weights are made smaller by a function that gives nothing back."""

    def __init__(self):
        super().__init__()
        self.layers = nn.ModuleList([Gained(6, 6) for _ in range(3)])
        self.register_buffer("start", torch.ones(6))
        self.rescale()
        halve(self.start)

    def rescale(self):
        def smaller(weight, place):
            weight.div_(10.0 * place)

        for place, layer in enumerate(self.layers, 1):
            smaller(layer.weight.data, place)

    def forward(self, x):
        for layer in self.layers:
            x = layer(x) + self.start
        return x


def halve(values):
    values *= 0.5


def rescaled():
    return RescaledNet(), vectors()


class OwnSpectralNorm(nn.Module):
    """A norm by hand around a layer, whose vectors move in evaluation too."""

    def __init__(self, module):
        super().__init__()
        self.module = module
        if not self._made():
            weight = module.weight
            u = nn.Parameter(weight.data.new(weight.shape[0]).normal_(0, 1), requires_grad=False)
            u.data = u.data / u.data.norm()
            bar = nn.Parameter(weight.data)
            del module._parameters["weight"]
            module.register_parameter("weight_u", u)
            module.register_parameter("weight_bar", bar)

    def _made(self):
        try:
            u = self.module.weight_u
            return True
        except AttributeError:
            return False

    def forward(self, x):
        u, bar = self.module.weight_u, self.module.weight_bar
        matrix = bar.view(bar.shape[0], -1)
        v = torch.mv(matrix.data.t(), u.data)
        v = v / v.norm()
        u.data = torch.mv(matrix.data, v) / torch.mv(matrix.data, v).norm()
        sigma = u.dot(matrix.mv(v))
        setattr(self.module, "weight", bar / sigma.expand_as(bar))
        return self.module.forward(x)


class OwnSpectralNet(nn.Module):
    def __init__(self):
        super().__init__()
        self.first = OwnSpectralNorm(nn.Conv2d(3, 4, 3))
        self.second = OwnSpectralNorm(nn.Conv2d(4, 2, 3))

    def forward(self, x):
        return self.second(torch.relu(self.first(x))).mean([2, 3])


def own_spectral():
    return OwnSpectralNet(), image()


class LayerNorm2d(nn.LayerNorm):
    """Over the channels of an image."""

    def forward(self, x):
        x = x.permute(0, 2, 3, 1)
        x = F.layer_norm(x, self.normalized_shape, self.weight, self.bias, self.eps)
        return x.permute(0, 3, 1, 2)


class PlainNorm(nn.LayerNorm):
    """With weights or without."""

    def __init__(self, width, eps=1e-6, affine=True, **kwargs):
        super().__init__(width, eps=eps, elementwise_affine=affine, **kwargs)

    def forward(self, x):
        return F.layer_norm(x, self.normalized_shape, self.weight, self.bias, self.eps)


class SamePool(nn.MaxPool2d):
    """A pool that pads by itself, by what torch's layer keeps."""

    def __init__(self, kernel_size, stride=None, dilation=1, ceil_mode=False):
        super().__init__((kernel_size, kernel_size), stride, (0, 0), (dilation, dilation), False, ceil_mode)

    def forward(self, x):
        x = F.pad(x, (0, 1, 0, 1), value=-1e3)
        return F.max_pool2d(x, self.kernel_size, self.stride, self.padding, self.dilation, self.ceil_mode)


class PaddedAverage(nn.AvgPool2d):
    def __init__(self, kernel_size, stride=None, padding=0, count_include_pad=True):
        super().__init__(kernel_size, stride, padding, count_include_pad=count_include_pad)

    def forward(self, x):
        size, step = self.kernel_size, self.stride
        return F.avg_pool2d(x, size, step, self.padding, self.ceil_mode, self.count_include_pad)


class GemPool(nn.Module):
    def __init__(self, p=3.0, eps=1e-6):
        super().__init__()
        self.p = nn.Parameter(torch.ones(1) * p)
        self.eps = eps

    def forward(self, x):
        return F.avg_pool2d(x.clamp(min=self.eps).pow(self.p), (x.size(-2), x.size(-1))).pow(1.0 / self.p)


class ScaledLinear(nn.Linear):
    """A Linear with a scale of its own."""

    def __init__(self, in_features, out_features, bias=True, scale=2.0):
        super().__init__(in_features, out_features, bias=bias)
        self.scale = scale

    def forward(self, input):
        return F.linear(input, self.weight * self.scale, self.bias)


class SubclassNet(nn.Module):
    def __init__(self):
        super().__init__()
        self.conv = nn.Conv2d(3, 4, 1)
        self.norm = LayerNorm2d(4, eps=1e-6)
        self.scale = nn.BatchNorm2d(4)
        if isinstance(self.scale, nn.modules.batchnorm._BatchNorm):
            nn.init.constant_(self.scale.weight, 0.5)
        self.same = SamePool(2, 1)
        self.average = PaddedAverage(3, 2, 1, count_include_pad=False)
        self.pool = GemPool()
        self.plain, self.last = PlainNorm(4, affine=False), PlainNorm(5)
        self.head = ScaledLinear(4, 5)

    def forward(self, x):
        x = self.average(self.same(self.scale(self.norm(self.conv(x)))))
        return self.last(self.head(self.plain(self.pool(x).flatten(1))))


def subclasses():
    return SubclassNet(), image()


class NumberedNet(nn.Module):
    """Buffers and parameters whose names are computed."""

    def __init__(self):
        super().__init__()
        self.fc = nn.Linear(6, 6)
        for i in range(2):
            self.register_buffer(f"mean_{i}", torch.full((6,), float(i + 1)))
            self.register_parameter(f"gain_{i}", nn.Parameter(torch.ones(6)))

    def forward(self, x):
        x = self.fc(x)
        for i in range(2):
            x = x * getattr(self, f"mean_{i}") * getattr(self, f"gain_{i}")
        return x


def numbered():
    return NumberedNet(), (torch.randn(4, 6),)


class CountedNet(nn.Module):
    """Counts, names and draws its parameters, among which torch counts no buffer."""

    def __init__(self, width=6):
        super().__init__()
        self.embed = nn.Parameter(torch.zeros(3, width))
        self.register_buffer("places", torch.arange(18.0).view(3, width))
        self.fc = nn.Linear(width, width)
        self.norm = nn.BatchNorm1d(width)
        self.act = nn.PReLU()
        for p in self.parameters():
            if p.dim() > 1:
                nn.init.xavier_uniform_(p)
        self.count = sum(p.numel() for p in self.parameters())
        self.weights = [name for name, _ in self.named_parameters() if name.endswith("weight")]
        self.first = [name for name, _ in self.named_parameters(prefix="net", recurse=False)]
        self.norm.requires_grad_(True)

    def forward(self, x):
        x = self.act(self.norm(self.fc(x + self.embed[0] + self.places[1])))
        return x * self.count + len(self.weights) + len(self.first)


def counted():
    return CountedNet(), vectors()


class PenalisedNet(nn.Module):
    """Adds the size of its weights, among which torch counts no running statistic and no buffer."""

    def __init__(self):
        super().__init__()
        self.norm, self.fc = nn.BatchNorm1d(6), nn.Linear(6, 4)
        self.register_buffer("scale", torch.full((1,), 3.0))
        self.moving_mean = nn.Parameter(torch.full((4,), 0.5))

    def forward(self, x):
        penalty = sum(p.pow(2).sum() for p in self.parameters())
        return self.fc(self.norm(x)) * self.scale + self.moving_mean + penalty


def penalised():
    return PenalisedNet(), (torch.randn(5, 6),)


class Measured(nn.Module):
    """Keeps what it measures in one method for another one; its mean is a buffer, and no such attribute."""

    def __init__(self):
        super().__init__()
        self.layer = nn.Linear(4, 4)
        self.register_buffer("mean", torch.zeros(4))

    def measure(self, x):
        self.size = x.abs().mean(0).detach()
        self.mean = self.mean * 0.9 + 0.1 * x.mean(0).detach()

    def put_back(self, x):
        return x * self.size + self.mean

    def forward(self, x):
        self.measure(x)
        return self.put_back(self.layer(x))


def measured():
    return Measured(), (torch.randn(3, 4),)


class Wide(nn.Conv1d):
    def __init__(self, inside, out, size):
        super().__init__(inside, out, size, padding=size // 2)


class Doubled(nn.Linear):
    def forward(self, x):
        return super().forward(x) * 2


class NormedLater(nn.Module):
    """Computes the weights of layers which it has already, and of classes of its own, as vocoders do."""

    def __init__(self):
        super().__init__()
        self.body = nn.Sequential(Wide(3, 8, 3), nn.ReLU(), nn.ConvTranspose1d(8, 4, 4, 2, 1), nn.Conv1d(4, 4, 1))
        self.head = nn.ModuleList([Doubled(4, 2), nn.utils.spectral_norm(Doubled(2, 2))])
        self.add_norms()
        nn.utils.remove_weight_norm(self.body[3])

    def add_norms(self):
        def add(m):
            if isinstance(m, (nn.Conv1d, nn.ConvTranspose1d)):
                nn.utils.weight_norm(m)

        self.apply(add)
        nn.utils.weight_norm(self.head[0], dim=None)

    def forward(self, x):
        x = self.body(x).transpose(1, 2)
        return self.head[1](self.head[0](x))


def normed_later():
    torch.manual_seed(0)
    return NormedLater(), (torch.randn(2, 3, 10),)


class Ones(nn.Linear):
    """Draws its weights in its own way, which torch's constructor calls."""

    def reset_parameters(self):
        nn.init.constant_(self.weight, 1.0)
        nn.init.constant_(self.bias, 0.25)


class Halves(nn.Conv1d):
    def __init__(self, *args, **kwargs):
        super().__init__(*args, **kwargs)
        self.seen = True

    def reset_parameters(self):
        nn.init.constant_(self.weight, 0.5)
        if self.bias is not None:
            nn.init.zeros_(self.bias)


class DrawnAnew(nn.Module):
    def __init__(self):
        super().__init__()
        self.conv, self.last = Halves(3, 4, kernel_size=3), Ones(6, 2)

    def forward(self, x):
        return self.last(self.conv(x))


def drawn_anew():
    torch.manual_seed(0)
    return DrawnAnew(), (torch.randn(2, 3, 8),)


class NormedTables(nn.Module):
    """Embeddings whose table is computed, also with a row that gets no gradient, and one whose norm is removed."""

    def __init__(self, steps=2):
        super().__init__()
        norm = nn.utils.parametrizations.spectral_norm
        self.first = nn.utils.spectral_norm(nn.Embedding(7, 5), n_power_iterations=steps, eps=1e-6)
        self.second = norm(nn.Embedding(7, 5, padding_idx=1), n_power_iterations=3, eps=1e-5)
        self.third = nn.utils.weight_norm(nn.Embedding(7, 5), dim=1)
        self.fourth = nn.utils.parametrizations.weight_norm(nn.Embedding(7, 5))
        self.fifth = nn.utils.remove_weight_norm(nn.utils.weight_norm(nn.Embedding(7, 5)))

    def forward(self, x):
        return self.first(x), self.second(x), self.third(x), self.fourth(x) + self.fifth(x)


def normed_tables():
    return NormedTables(), [torch.tensor([[0, 1, 1], [6, 3, 1]])]
