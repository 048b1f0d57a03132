"""Small models with what MindSpore's own layers do not take, and einops' patterns for any number of axes."""

from __future__ import annotations

from functools import partial

import torch
import torchvision
from einops import einsum, pack, parse_shape, rearrange, reduce, repeat, unpack
from einops.layers.torch import EinMix, Rearrange, Reduce
from torch import int32, nn, tensor
from torch.nn.utils.parametrizations import weight_norm


def image(*shape: int) -> torch.Tensor:
    return torch.randn(*(shape or (2, 3, 7, 10)))


class Up(nn.ConvTranspose2d):
    """One that brings its own step."""

    def __init__(self, width: int) -> None:
        super().__init__(width, width, 3, stride=2, padding=1, bias=False)


class Back(nn.ConvTranspose1d):
    """One that gives what it was given in front."""

    def forward(self, x: torch.Tensor, like: torch.Tensor) -> torch.Tensor:
        return super().forward(x, [like.size(-1)])


class Sized(nn.Module):
    """Layers that are called with the size of what they are to give."""

    def __init__(self) -> None:
        super().__init__()
        self.down = nn.Conv2d(3, 4, 3, 2, 1)
        self.pool = nn.MaxPool2d(2, return_indices=True)
        self.unpool = nn.MaxUnpool2d(2)
        self.up = Up(4)
        self.last = nn.ConvTranspose2d(4, 2, kernel_size=2, stride=2, padding=0)
        self.plain = nn.ConvTranspose2d(2, 2, 3, stride=2, padding=1, output_padding=1)
        self.line = Back(3, 3, 4, stride=3, padding=1, groups=3)
        self.volume = nn.ConvTranspose3d(1, 2, 2, stride=(1, 2, 3), bias=False)
        self.few = nn.MaxPool1d(3, 2, return_indices=True)
        self.lines = nn.MaxUnpool1d(3, stride=2)

    def forward(self, x: torch.Tensor):
        deep = self.down(input=x)
        small, where = self.pool(deep)
        whole = self.unpool(small, where, output_size=deep.size())
        same = self.up(whole, output_size=(x.size(2), x.size(3)))
        line = self.line(x.mean(2)[:, :, :3], like=x)
        few, places = self.few(x[:, 0])
        volume = self.volume(x[:1, :1].unsqueeze(0), output_size=[2, 15, 31])
        return self.plain(self.last(same)), line, volume, self.lines(few, places, x[:, 0].shape)


def sized():
    torch.manual_seed(0)
    return Sized(), (image(),)


class Beyond(nn.Module):
    """Layers whose arguments MindSpore's own do not have, none of them with a size of its call."""

    def __init__(self, make=partial(nn.Conv2d, padding_mode="circular"), border: str = "reflect") -> None:
        super().__init__()
        self.over = make(3, 4, 3, padding=1)
        self.through = nn.Conv3d(1, 2, 3, padding=(1, 1, 2), padding_mode=border)
        self.even = nn.Conv1d(3, 4, 4, padding="same", bias=False)
        self.normed = weight_norm(nn.Conv1d(4, 4, 3, padding=1, padding_mode="replicate"))
        self.wider = weight_norm(nn.ConvTranspose1d(4, 2, 3, stride=2, output_padding=1))
        self.deep = nn.ConvTranspose3d(2, 2, 3, dilation=2, stride=2, padding=1, output_padding=1)

    def forward(self, x: torch.Tensor):
        line = self.wider(self.normed(self.even(x.mean(3))))
        return self.over(x), self.deep(self.through(x.unsqueeze(1))), line


def beyond():
    torch.manual_seed(0)
    return Beyond(), (image(2, 3, 4, 5),)


class Tracked(nn.Module):
    """Norms of single images that keep statistics."""

    def __init__(self, norm=partial(nn.InstanceNorm2d, affine=True, track_running_stats=True)) -> None:
        super().__init__()
        self.first = norm(3)
        self.plain = nn.InstanceNorm2d(3, affine=True)
        self.line = nn.InstanceNorm1d(3, momentum=0.3, affine=True, track_running_stats=True)
        self.volume = nn.InstanceNorm3d(3, eps=1e-3, momentum=None, affine=True, track_running_stats=True)
        self.functional = nn.InstanceNorm2d(3, affine=True, track_running_stats=True)

    def forward(self, x: torch.Tensor):
        y = self.plain(self.first(x)) + x
        kept = self.functional
        z = nn.functional.instance_norm(
            y, kept.running_mean, kept.running_var, kept.weight, kept.bias, self.training, 0.2
        )
        return z, self.line(y.mean(3)), self.volume(torch.stack((x, y), 2))


def tracked():
    torch.manual_seed(0)
    return Tracked(), (image(),)


def norm_of(kind: str):
    if kind == "batch":
        return partial(nn.BatchNorm2d, affine=True)
    return partial(nn.InstanceNorm2d, affine=True, track_running_stats=False)


class Asking(nn.Module):
    """Layers that are made by what their classes are."""

    def __init__(self, norm=nn.BatchNorm2d, act=nn.GELU, last=nn.LayerNorm) -> None:
        super().__init__()
        if type(norm) == partial:  # noqa: E721
            bias = norm.func == nn.InstanceNorm2d
        else:
            bias = norm == nn.InstanceNorm2d
        self.conv, self.norm, self.act, self.last = nn.Conv2d(3, 4, 3, bias=bias), norm(4), act(), last(4)
        self.grouped = nn.GroupNorm(1, 4)
        self.twice = 2.0 if act is nn.GELU else 3.0
        self.thrice = 2.0 if last not in (nn.LayerNorm, nn.GroupNorm) else 3.0

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        for one in (self.norm, self.grouped):
            x = x + 1 if isinstance(one, nn.InstanceNorm2d) else x * 2
        x = self.act(self.norm(self.conv(x))) * self.twice
        return self.last(self.grouped(x).mean((2, 3))) * self.thrice


def asking():
    torch.manual_seed(0)
    return Asking(norm_of("instance")), (image(),)


def asking_others():
    torch.manual_seed(0)
    return Asking(norm_of("batch"), nn.ReLU, partial(nn.LayerNorm, eps=1e-6)), (image(),)


class Streams(nn.Module):
    """einops' patterns with `...`, of tensors of two and of three numbers of axes."""

    def __init__(self, streams: int = 2) -> None:
        super().__init__()
        self.grow = Reduce("b ... -> (b s) ...", "repeat", s=streams)
        self.shrink = Reduce(pattern="(b s) ... -> b ...", reduction="sum", s=streams)
        self.first = Rearrange("b d ... -> b ... d")
        self.ends = nn.Sequential(nn.AdaptiveAvgPool2d(1), Rearrange("... () () -> ..."), nn.Linear(3, 3))
        self.scale = nn.Parameter(torch.randn(2, 3, 4))

    def turned(self, x: torch.Tensor) -> torch.Tensor:
        x = self.first(self.grow(x))
        x = rearrange(x, "b ... (f1 d) -> (b f1) d ...", f1=1)
        last = rearrange(x, "b ... n -> n b ...")
        return self.shrink(reduce(x * x, "b d ... -> b d", "mean") + last.flatten(2).sum((0, 2)).unsqueeze(1))

    def forward(self, x: torch.Tensor):
        both = self.turned(x), self.turned(x.mean(3))
        pair = rearrange([x, 2 * x], "n b ... -> b n (...)")
        flat = rearrange(x, "b ... -> b (...)"), rearrange(x, "b c h w -> b (c h w)")
        named = einsum(x.mean(2), self.scale[0], "b ... w1, f1 c2 -> b ... f1")
        ways = repeat(self.scale, "v (f h) d -> d v f h", f=3), repeat(self.scale, "v (f h) d -> d v f h", h=3)
        return both, pair, flat, named, ways, self.ends(x), repeat(self.scale.sum()[None], "1 -> s", s=3)


class Prefixed(nn.Module):
    """Sizes that are looked up among all arguments."""

    def __init__(self, *, wide=4, out_wide=5, out_bias=False, unread=1) -> None:
        super().__init__()
        given = dict(locals())
        options = {key[4:]: value for key, value in given.items() if key.startswith("out_")}
        self.first = nn.Linear(10, wide)
        self.out = nn.Linear(wide, options["wide"], bias=options["bias"])

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.out(self.first(x))


def prefixed():
    torch.manual_seed(0)
    return Prefixed(out_wide=6), (image(),)


def streams():
    torch.manual_seed(0)
    return Streams(), (image(),)


class ToOnePlace(nn.Module):
    """Attends to several places, and then to one, whose gradient is the first."""

    def __init__(self):
        super().__init__()
        self.mix = nn.Linear(4, 4)
        self.attend = nn.Softmax(dim=-1)

    def forward(self, x):
        x = self.mix(x)
        weights = torch.softmax(x @ x.transpose(1, 2), dim=-1)
        x = weights @ x * nn.functional.softmax(x, dim=1, dtype=torch.float32)
        alone = x[:, :1]
        weights = self.attend(alone @ alone.transpose(1, 2))
        return weights @ alone + x


def to_one_place():
    return ToOnePlace(), (torch.randn(3, 5, 4),)


def to_many_places():
    return nn.Sequential(nn.Linear(4, 4), nn.Softmax(dim=-1)), (torch.randn(3, 5, 4),)


class Doubled(nn.BatchNorm2d):
    """One that has no constructor of its own."""

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return super().forward(x) * (2.0 if self.affine else 3.0)


class Weightless(nn.Module):
    """Norms without weights, which loops ask for these."""

    def __init__(self, norm=nn.BatchNorm2d, affine=False) -> None:
        super().__init__()
        self.conv = nn.Conv2d(3, 4, 3, bias=norm == nn.BatchNorm2d)
        self.first, self.second = norm(4, affine=affine), partial(nn.BatchNorm2d, eps=1e-3)(4)
        self.third = Doubled(4, affine=False)
        self.group, self.image = nn.GroupNorm(2, 4, affine=affine), nn.InstanceNorm2d(4)
        self.volume, self.line = nn.BatchNorm3d(4, affine=False), nn.BatchNorm1d(4, affine=affine)
        self.scaled, self.plain = nn.LayerNorm(4, bias=False), nn.LayerNorm([4], elementwise_affine=affine)
        for m in self.modules():
            if isinstance(m, (nn.BatchNorm2d, nn.GroupNorm, nn.InstanceNorm2d)):
                if m.weight is not None:
                    nn.init.constant_(m.weight, 0.5)
            if isinstance(m, nn.LayerNorm) and m.elementwise_affine:
                nn.init.constant_(m.weight, 0.7)
            if isinstance(m, (nn.BatchNorm1d, nn.BatchNorm2d)) and not m.affine:
                m.requires_grad_(False)

    def forward(self, x: torch.Tensor):
        x = self.image(self.group(self.third(self.second(self.first(self.conv(x))))))
        x = self.volume(x[:, :, None])[:, :, 0].amax((2, 3))
        y = self.plain(self.scaled(self.line(x)))
        return y, sum(p.square().sum() for p in self.parameters())


def weightless():
    torch.manual_seed(0)
    return Weightless(), (image(4, 3, 6, 7),)


def weightless_by_a_setting():
    torch.manual_seed(0)
    return Weightless(affine=True), (image(4, 3, 6, 7),)


class Guessing(nn.Module):
    """Softmaxes without a dim, which torch guesses from the number of axes."""

    def __init__(self, dim=None) -> None:
        super().__init__()
        self.fc, self.dim, self.act = nn.Linear(6, 6), dim, nn.functional.softmax
        self.layers = nn.ModuleList([nn.Softmax(), nn.LogSoftmax(), nn.Softmin(dim=None)])
        self.known = nn.Softmax(dim=-1)

    def forward(self, x: torch.Tensor, flat: torch.Tensor):
        x = self.fc(x)
        y = nn.functional.softmax(x) + nn.functional.log_softmax(x, self.dim) + nn.functional.softmin(x) + self.act(x)
        for layer in self.layers:
            y = y + layer(x)
        return self.known(y), self.act(self.fc(flat)), self.layers[0](flat)


def guessing():
    torch.manual_seed(0)
    return Guessing(), (torch.randn(4, 3, 6), torch.randn(2, 6))


class Fine(nn.Module):
    def __init__(self, by=2.0):
        super().__init__()
        self.by = by

    def forward(self, x):
        return x * self.by


class ByText(nn.Module):
    """Layers of which a text gives the name, and sizes that layers are asked for."""

    def __init__(self, act="LeakyReLU", names=("Fine", "nn.GELU"), pad=(1, 2), deep="True"):
        super().__init__()
        self.act = eval("nn.{}()".format(act))
        self.some = nn.ModuleList([eval(name)() for name in names])
        self.own, self.slope = eval(f"{names[0]}(by=3.0)"), eval("nn.LeakyReLU(0.3)")
        self.fc = nn.Linear(4, 4) if eval(deep) else None
        self.conv = nn.Conv2d(3, 4, (3, 5), padding=pad, stride=(1, 2))
        self.rows = nn.Sequential(
            nn.Conv1d(4, 4, 3, padding=2), nn.MaxPool1d(2), nn.Conv1d(4, 4, 1), nn.AvgPool1d(3, 1)
        )
        for module in self.modules():
            if type(module) == nn.Conv2d:  # noqa: E721  # as people write it
                nn.init.constant_(module.weight, 0.1)
            elif module.__class__ in (nn.Conv1d, nn.Linear):
                nn.init.constant_(module.weight, 0.2)
        kind = type(self.act)
        self.is_leaky, self.wide = kind == nn.LeakyReLU, self.conv.padding[1] + self.rows[0].padding[0]
        self.length = 9
        for layer in self.rows:
            sizes = (layer.kernel_size, layer.stride, layer.padding)
            kernel, stride, padding = (size if isinstance(size, int) else size[0] for size in sizes)
            self.length = (self.length + 2 * padding - kernel) // stride + 1

    def forward(self, x):
        x = self.rows(self.conv(x).mean(2)) * self.wide
        y = nn.functional.conv2d(x[:, None], self.conv.weight[:, :1], padding=self.conv.padding)
        x = self.act(self.fc(torch.cat((x, y.mean((1, 3))[:, :4, None]), 2)))
        for one in self.some:
            x = one(x)
        return self.own(self.slope(x)) if self.is_leaky else x, x.new_full((1,), self.length)


def by_text():
    torch.manual_seed(0)
    return ByText(), (torch.randn(2, 3, 8, 17),)


class Parts(nn.Module):
    """Slices of lists of modules, each of which is made of the same layers in two places."""

    def __init__(self, width=4):
        super().__init__()
        self.layers = nn.ModuleList([nn.Linear(width, width) for _ in range(4)])
        self.body = nn.Sequential(nn.Linear(width, width), nn.ReLU(), nn.Linear(width, width), nn.Tanh())
        self.tail, self.count = self.body[2:], len(self.layers[1:])
        for layer in self.layers[:2]:
            nn.init.zeros_(layer.bias)

    def forward(self, x):
        for layer in self.layers[:-1]:
            x = torch.tanh(layer(x))
        rest = self.layers[1:3]
        for i, layer in enumerate(rest):
            x = x + i * layer(x)
        x = self.body[: self.count](x)
        for layer, other in zip(self.layers[1:], self.body[::2]):
            x = layer(x) - other(x)
        return self.tail(x)


class TwoParts(nn.Module):
    def __init__(self):
        super().__init__()
        self.one, self.two = Parts(), Parts()

    def forward(self, x):
        return self.one(x) + self.two(x)


def parts():
    torch.manual_seed(0)
    return TwoParts(), (torch.randn(3, 4),)


class UpOrDown(nn.Module):
    def __init__(self, inside, outside, deconv=True, **kwargs):
        super().__init__()
        layer = nn.ConvTranspose2d if deconv else nn.Conv2d
        self.conv = (
            nn.ConvTranspose2d(inside, outside, bias=False, **kwargs) if deconv else layer(inside, outside, **kwargs)
        )

    def forward(self, x):
        return self.conv(x)


class Unrun(nn.Module):
    """Code that these inputs and arguments do not run."""

    def __init__(self, scales=1, deep=False, more=False, act=nn.functional.elu):
        super().__init__()
        if more:
            self.act = act
        else:
            self.act = None
        self.up, self.down = (
            UpOrDown(3, 4, kernel_size=4, stride=2, padding=1),
            UpOrDown(4, 4, False, kernel_size=3, padding=1),
        )
        self.deep = nn.Conv2d(4, 4, (3, 2), padding=(1, 0), groups=2) if deep else None
        self.fc, self.norm, self.scales, self.more = nn.Linear(4, 4), nn.LayerNorm(4), scales, more
        self.table = Unrun.grid(4, 4)
        for m in self.modules():
            if isinstance(m, nn.Conv2d) and m.groups == 2:
                n = m.kernel_size[0] * m.kernel_size[1] * m.out_channels + m.padding[0]
                m.weight.data.fill_(1 / n)
            elif isinstance(m, nn.BatchNorm2d):
                m.weight.data.fill_(1 / m.num_features)
            elif isinstance(m, (nn.Linear, nn.LayerNorm)):
                nn.init.constant_(m.bias, 0.25)

    @staticmethod
    def grid(rows, width):
        return torch.arange(rows * width, dtype=torch.float).view(rows, width) / 100

    def forward(self, x):
        x = self.down(self.up(x))
        if self.deep is not None:
            x = self.deep(x)[..., :4]
        y = self.norm(self.fc(x[..., :4, :4].mean(2)))
        if y.size(1) > self.table.size(0):
            self.table = Unrun.grid(y.size(1), 4)
        mask = y.ne(0)
        if mask.all():
            mask = None
        if self.scales == 1:
            found = y.mean(2, keepdim=True)
        else:
            parts = y.new_empty(y.size(0), y.size(1), self.scales)
            for s in range(self.scales):
                parts[:, :, s : s + 1] = y[:, :, s : s + 1] * s
            found = parts
        z = self.fc(y)
        if self.act is not None:
            z = self.act(z)
        if self.more:
            for j in range(z.size(1)):
                z[:, j, :] += found[:, :, 0] * j
        return found, z + self.table if mask is None else z * mask


def unrun():
    torch.manual_seed(0)
    return Unrun(), (image(2, 3, 5, 5).abs(),)


def unrun_otherwise():
    torch.manual_seed(0)
    return Unrun(scales=2, deep=True, more=True), (image(2, 3, 5, 5).abs(),)


class Proposes(nn.Module):
    """Functions of torchvision that call a kernel of its own, as detectors do."""

    def __init__(self):
        super().__init__()
        self.mix = nn.Conv2d(3, 4, 1)

    def forward(self, x, boxes, scores):
        kept = torchvision.ops.nms(boxes, scores, 0.5)
        rois = torch.cat((torch.zeros_like(boxes[kept][:, :1]), boxes[kept]), 1)
        return torchvision.ops.roi_align(self.mix(x), rois, output_size=2, sampling_ratio=2)


def proposes():
    boxes = torch.tensor([[0.0, 0.0, 4.0, 4.0], [0.5, 0.0, 4.0, 4.5], [2.0, 3.0, 7.0, 7.0]])
    return Proposes(), (torch.randn(1, 3, 8, 8), boxes, torch.tensor([0.9, 0.8, 0.7]))


def pack_one(t, pattern):
    return pack([t], pattern)


def unpack_one(t, sizes, pattern):
    return unpack(t, sizes, pattern)[0]


class Packing(nn.Module):
    """Flattens axes and brings them back, and reduces to a single number."""

    def __init__(self, d=6):
        super().__init__()
        self.mix = nn.Linear(d, d)
        self.register_buffer("levels", tensor([8, 5, 5], dtype=int32), persistent=False)
        self.turned = torch.randn(4, d)
        self.turned = nn.Parameter(nn.init.orthogonal_(self.turned) * 2.0, requires_grad=False)

    def forward(self, x, y):
        flat, sizes = pack_one(x, "b * d")
        flat = self.mix(flat) @ self.turned.t()
        both, whole = pack([x, y], "* d")
        first, second = unpack(both, whole, "* d")
        mean = reduce(flat, "b n d -> ", "mean")
        return unpack_one(flat, sizes, "b * d"), first + second.mean() * rearrange(
            mean, "-> 1"
        ) * self.levels.float().sum()


def packing():
    torch.manual_seed(0)
    return Packing(), (torch.randn(2, 3, 4, 6), torch.randn(2, 6))


class Sparse(nn.Module):
    """A product with a sparse matrix, of which MindSpore's CPU has none."""

    def __init__(self):
        super().__init__()
        self.mix = nn.Linear(4, 4)

    def forward(self, x, places):
        matrix = torch.sparse_coo_tensor(places, torch.ones(places.shape[1]), (3, 3))
        return torch.sparse.mm(matrix, self.mix(x))


def sparse_product():
    return Sparse(), [torch.rand(3, 4), torch.tensor([[0, 1, 2], [1, 2, 0]])]


class GivenPatterns(nn.Module):
    """Patterns that are filled in, given as an argument, chosen, and gone over; sizes by their names."""

    def __init__(self, axes: str = "h w", last: str = "b c n -> b n c", times: int = 2, first: bool = True) -> None:
        super().__init__()
        self.axes, self.last, self.times, self.first = axes, last, times, first
        self.sizes = {"t": times}
        self.mix = nn.Linear(4, 4)
        self.ways = ["b h c -> b c h", "b c h -> b (c h)"]

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        sizes = parse_shape(x, "b _ h w")
        y = rearrange(self.mix(x), f"b c {self.axes} -> b c ({self.axes})")
        y = reduce(y, f"b c (n t{self.times}) -> b c n", "mean", **{f"t{self.times}": self.times})
        y = repeat(rearrange(y, self.last), "b n c -> b (t n) c", **self.sizes) * sizes["h"]
        chosen = "b n c -> b c n" if self.first else "b n c -> n b c"
        z = rearrange(y, chosen)
        for way in self.ways:
            y = rearrange(y, way)
        return z, y


def given_patterns():
    return GivenPatterns(), (torch.randn(2, 3, 4, 4),)


class Rearranged(nn.Module):
    """A class of one's own with the name of one of msmigrate's."""

    def forward(self, x):
        return x * 2


class Mixes(nn.Module):
    """Products with a weight along any axes: of groups, of `...`, of each value, with sums over an axis."""

    def __init__(self, dim=6, heads=2, **sizes):
        super().__init__()
        self.dense = EinMix("b t c -> b t c1", weight_shape="c c1", bias_shape="c1", c=dim, c1=4)
        self.along = EinMix("b t c -> b t0 c", "t t0", "t0", t=3, t0=5)
        self.heads = EinMix("b t (h c) -> b h t c1", weight_shape="h c c1", h=heads, c=3, c1=4)
        self.scale = EinMix("b h t c -> b t (h c)", weight_shape="h c", bias_shape="h c", h=heads, c=4)
        self.patches = EinMix("b (t p) (c q) -> b (t c) d", weight_shape="p q d", bias_shape="d", p=3, q=2, d=dim)
        self.rest = EinMix("... (x w) -> ... w b", weight_shape="x w b", bias_shape="w b", **sizes)
        self.sums = EinMix("b t w c -> t (b w)", weight_shape="t w", t=3, w=2)
        self.change = nn.Sequential(Rearrange("b t c -> t b c"), Rearranged())

    def forward(self, x):
        whole = self.along(self.dense(x)), self.scale(self.heads(x)), self.patches(x)
        return (*whole, self.sums(self.rest(x)), self.change(x))


def einops_products():
    return Mixes(x=3, w=2, b=4), [torch.randn(2, 3, 6)]


class MixesOther(nn.Module):
    def __init__(self, pattern="b c -> b d"):
        super().__init__()
        self.mix = EinMix(pattern, weight_shape="c d", c=6, d=4)

    def forward(self, x):
        return self.mix(x)


def einops_product_by_an_argument():
    return MixesOther(), [torch.randn(2, 6)]


class OneSize(nn.Module):
    """Sizes as lists and tuples of one number, which torch takes for every side."""

    def __init__(self):
        super().__init__()
        self.a = nn.Conv2d(3, 4, 3, stride=[2])
        self.b = nn.MaxPool2d([2], stride=[1])
        self.c = nn.Conv2d(4, 4, kernel_size=3, padding=(1,), dilation=[2])
        self.d = nn.AvgPool2d(2, [1])
        self.e = nn.ConvTranspose2d(4, 4, 4, [2], [1])
        self.f = nn.Conv3d(4, 4, 3, [2], [1])
        self.g = nn.Conv1d(4, 4, [3], stride=[1], padding=[1])

    def forward(self, x):
        y = self.d(self.c(self.b(self.a(x))))
        flat = nn.functional.conv2d(x, self.a.weight, stride=[2], padding=[1]), nn.functional.max_pool2d(x, [2], [2])
        return (
            self.e(y),
            self.f(torch.stack([y, y], 2)),
            self.g(y.flatten(2)),
            *flat,
            nn.functional.avg_pool2d(x, (3,), [1], (1,)),
        )


def sizes_of_one_number():
    return OneSize(), [torch.randn(2, 3, 15, 15)]


class OldOrder(nn.Module):
    """Numbers before the tensors, as torch once had them, also where that did not run."""

    def __init__(self, more=False):
        super().__init__()
        self.l = nn.Linear(6, 6)
        self.more = more

    def forward(self, x, y):
        z = self.l(x)
        d = x.pow(2).sum(1, keepdim=True).expand(4, 5) + y.pow(2).sum(1, keepdim=True).expand(5, 4).t()
        d.addmm_(1, -2, z, y.t())
        d = torch.addmm(0.5, d, -2, z, y.t())
        d = torch.addmm(0.5, d, z, y.t()).addcmul(2, d, d)
        scale = float(self.l.in_features)
        z.add_(2, x)
        z.mul_(0.9).add_(scale, x)
        z.addcdiv_(0.5, x, x.abs() + 1)
        if self.more:
            d = torch.addcmul(d, 0.5, d, d)
            d.sub_(3, d)
        return d, torch.add(d, 2, d), d.sub(2, d), z


def numbers_before_tensors():
    return OldOrder(), [torch.randn(4, 6), torch.randn(5, 6)]


def numbers_before_tensors_in_a_branch():
    return OldOrder(more=True), [torch.randn(4, 6), torch.randn(5, 6)]


class Mixed(nn.Module):
    def __init__(self, width, wide=8, bias=True, shift=0.0):
        super().__init__()
        self.mix, self.shift = nn.Linear(width, wide, bias=bias), shift

    def forward(self, x):
        return self.mix(x) + self.shift


class Described(nn.Module):
    """Layers by a list of names, how often each is there, and its arguments, which are texts of all kinds."""

    LAYERS = (("Mixed", 1, ("wide", "True")), ("nn.Upsample", 1, ("None", 2, "nearest")), ("nn.Tanh", 1, ()))
    LAYERS += (("Fine", 1, ("1 / 4",)), ("Mixed", 1, ("2 * wide", False, "start")))

    def __init__(self, layers=LAYERS, wide=6):
        super().__init__()
        start, made, width = 1, [], 4
        for kind, times, given in layers:
            kind = eval(kind) if isinstance(kind, str) else kind
            args = [*given]
            for place, one in enumerate(args):
                try:
                    args[place] = eval(one) if isinstance(one, str) else one
                except NameError:
                    args[place] = one.upper().lower()
            if kind in (Mixed,):
                args = [width, *args]
                width = 2 * args[1]
            layer = nn.Sequential(*(kind(*args) for _ in range(times))) if times > 1 else kind(*args)
            made.append(layer)
        self.layers = nn.Sequential(*made)

    def forward(self, x):
        return self.layers(x)


def described():
    return Described(), (torch.randn(2, 1, 4),)


def described_twice():
    layers = [*Described.LAYERS[:3], ("nn.Tanh", 2, ()), ("Fine", 3, (0.5,)), *Described.LAYERS[3:]]
    return Described(layers), (torch.randn(2, 1, 4),)
