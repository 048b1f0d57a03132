"""Layers at places that may have none, that resize by any factor, and calls and conditions that torch alone needs."""

from __future__ import annotations

import numbers
from functools import partial

import torch
from packaging import version
from packaging.version import Version
from torch import nn
from torch.nn import functional as F
from torch.nn.utils import remove_weight_norm, weight_norm
from torch.utils.checkpoint import checkpoint


class Steps(nn.Module):
    """Projections where the width changes, and none where it does not."""

    def __init__(self, widths=(4, 4, 6, 6), last=True):
        super().__init__()
        pairs = list(zip(widths, widths[1:], strict=False))
        self.projections = nn.ModuleList([nn.Linear(a, b) if a != b else None for a, b in pairs])
        self.layers = nn.ModuleList()
        self.skips = nn.ModuleList([])
        for a, b in pairs:
            self.layers.append(nn.Linear(a, b))
            self.skips.append(nn.Linear(b, b) if a != b else None)
        self.norms = nn.ModuleList(
            [nn.ModuleList([nn.LayerNorm(b), None, nn.Tanh() if last else None]) for _, b in pairs]
        )

    def forward(self, x):
        for layer, skip, projection, (norm, drop, act) in zip(
            self.layers, self.skips, self.projections, self.norms, strict=True
        ):
            kept = x if projection is None else projection(x)
            x = norm(layer(x)) + kept
            x = x if skip is None else skip(x)
            if drop is not None:
                x = drop(x)
            x = x if act is None else act(x)
        return x


def none_in_lists():
    return Steps(), [torch.randn(3, 4)]


def none_in_lists_without_activation():
    return Steps((4, 6, 6, 4), last=False), [torch.randn(3, 4)]


class Ordered(nn.GRU):
    def forward(self, x):
        self.flatten_parameters()
        return super().forward(x)


class Recurrent(nn.Module):
    def __init__(self, width=4, own=False, twice=False):
        super().__init__()
        self.rnn = nn.LSTM(width, width, batch_first=True)
        self.stack = nn.ModuleList([nn.GRU(width, width, batch_first=True) for _ in range(2)])
        self.own = Ordered(width, width, batch_first=True) if own else None
        self.twice = twice

    def forward(self, x):
        self.rnn.flatten_parameters()
        x, _ = self.rnn(x)
        for one in self.stack:
            one.flatten_parameters()
            x = one(x)[0]
        if self.twice:
            self.rnn.flatten_parameters()
            x = self.rnn(x)[0]
        return x if self.own is None else self.own(x)[0]


def ordered_weights():
    return Recurrent(), [torch.randn(2, 3, 4)]


def ordered_weights_of_its_own():
    return Recurrent(own=True, twice=True), [torch.randn(2, 3, 4)]


class Resized(nn.Module):
    def __init__(self, factor=0.5, mode="bilinear"):
        super().__init__()
        self.down = nn.Sequential(
            nn.Upsample(scale_factor=0.5, mode="bilinear", align_corners=False), nn.Conv2d(3, 4, 1, bias=False)
        )
        self.up = nn.Upsample(scale_factor=2, mode="bilinear", align_corners=True)
        self.cubic = nn.Upsample(size=(9, 10), mode="bicubic")
        self.last = nn.Upsample(scale_factor=factor, mode=mode)

    def forward(self, x):
        return self.last(self.cubic(self.up(self.down(x))))


def resized():
    return Resized(), [torch.randn(2, 3, 6, 8)]


def resized_up():
    return Resized(1.7, "nearest"), [torch.randn(2, 3, 6, 8)]


def squeezed(x, w, power=1.0):
    return torch.tanh(x) * w * power


def waved(x, w, power=1.0):
    return torch.sin(x) * w * power


sparing = partial(checkpoint, squeezed)


class Sparing(nn.Module):
    """What memory is saved by, where a gradient is asked for."""

    def __init__(self, spare=False):
        super().__init__()
        self.first, self.second = nn.Linear(4, 4), nn.Linear(4, 4)
        self.w = nn.Parameter(torch.ones(4))
        self.spare = spare

    def forward(self, x):
        needed = x.requires_grad
        compute = sparing if needed else squeezed
        x = self.first(compute(x, self.w))
        if x.requires_grad:
            x = checkpoint(self.second, x, use_reentrant=False)
        else:
            x = self.second(x)
        if self.spare and x.requires_grad:
            x = checkpoint(self.second, x)
        else:
            x = self.second(x)
        return checkpoint(squeezed, x, self.w) if x.requires_grad else squeezed(x, self.w)


def saves_memory():
    return Sparing(), [torch.randn(2, 4)]


class Choosing(Sparing):
    """The two are not the same."""

    def forward(self, x):
        x = self.first(x)
        needed = x.requires_grad
        compute = sparing if needed else waved
        return compute(x, self.w)


def chooses_by_gradient():
    return Choosing(), [torch.randn(2, 4)]


class UsingTwice(Sparing):
    def forward(self, x):
        x = self.first(x)
        needed = x.requires_grad
        compute = sparing if needed else squeezed
        x = compute(x, self.w)
        return x * 2 if needed else x


def asks_twice():
    return UsingTwice(), [torch.randn(2, 4)]


device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
DEVICE = "cuda:0" if torch.cuda.is_available() else "cpu"


class Placed(nn.Module):
    """Branches that put tensors on the file's device."""

    def __init__(self, kind=0):
        super().__init__()
        self.kind = kind
        self.layer = nn.Linear(4, 4)

    def forward(self, x):
        if self.kind == 1:
            x = x + torch.ones(x.size(0), 4).float().to(device)
        elif self.kind == 2:
            x = x + torch.ones(x.size(0), 4, device=DEVICE)
        elif self.kind == 3:
            x = self.layer(x.to(DEVICE)) + torch.FloatTensor(x.size(0), 4).fill_(2).to(device)
        elif self.kind == 4:
            x = x * (2 if device.type == "cuda" else 3)
        return self.layer(x)


def placed():
    return Placed(), [torch.randn(2, 4)]


def placed_1():
    return Placed(1), [torch.randn(2, 4)]


def placed_2():
    return Placed(2), [torch.randn(2, 4)]


def placed_3():
    return Placed(3), [torch.randn(2, 4)]


def placed_4():
    return Placed(4), [torch.randn(2, 4)]


class OwnNorm(nn.Module):
    def __init__(self, shape):
        super().__init__()
        if isinstance(shape, numbers.Integral):
            shape = (shape,)
        shape = torch.Size(shape)
        self.shape = shape
        self.weight = nn.Parameter(torch.ones(shape))
        self.bias = nn.Parameter(torch.zeros(*shape))
        self.more = nn.Parameter(torch.full(torch.Size([shape[0], 1]), 2.0).squeeze(-1))

    def forward(self, x):
        x = (x - x.mean(-1, keepdim=True)) * self.weight * self.more + self.bias
        return x + x.new_ones(torch.Size((x.size(0), self.shape[0])))


class Normed(nn.Module):
    def __init__(self, norm=True):
        super().__init__()
        self.norm = OwnNorm(4) if norm else nn.Identity()
        self.layer = nn.Linear(4, 4)

    def forward(self, x):
        return self.norm(self.layer(x))


def sizes_by_torch():
    return Normed(), [torch.randn(3, 4)]


def sizes_by_torch_unrun():
    return Normed(False), [torch.randn(3, 4)]


class Versioned(nn.Module):
    """What a newer torch would do, asked for by a package for versions."""

    def __init__(self, fast=False):
        super().__init__()
        now = version.parse(torch.__version__)
        assert not (fast and now < version.parse("1.9.0")), "too old"
        self.new = Version(torch.__version__.split("+")[0]) > Version("1.10")
        if fast:
            self.scale = 3.0 if now >= version.parse("2.0") else 4.0
        else:
            self.scale = 2.0
        self.layer = nn.Linear(4, 4)

    def forward(self, x):
        x = self.layer(x) * self.scale
        return x + 1 if self.new else x


def newer_by_package():
    return Versioned(), [torch.randn(2, 4)]


def newer_by_package_fast():
    return Versioned(True), [torch.randn(2, 4)]


class Masked(nn.Module):
    """Floats filled with whole numbers, in place and not, and whole numbers."""

    def __init__(self, zero=0, more=False):
        super().__init__()
        self.layer = nn.Linear(4, 4)
        self.zero = zero
        self.more = more

    def forward(self, x):
        where = torch.eye(4, dtype=torch.bool)
        x = self.layer(x)
        x.masked_fill_(where, -100)
        x = torch.masked_fill(x, value=3, mask=where.roll(1, 0))
        x = x.masked_fill(where.roll(2, 0), self.zero)
        places = torch.arange(4).repeat(4, 1).masked_fill(where, 7)
        if self.more:
            x = x.masked_fill(where, 1)
        return x + places


def masked_by_whole_numbers():
    return Masked(), [torch.randn(4, 4)]


def masked_by_whole_numbers_more():
    return Masked(more=True), [torch.randn(4, 4)]


class Vocoder(nn.Module):
    def __init__(self, fold=False):
        super().__init__()
        self.steps = nn.ModuleList([weight_norm(nn.Conv1d(4, 4, 3, padding=1)) for _ in range(2)])
        self.last = weight_norm(nn.Conv1d(4, 4, 1))
        self.scales = nn.ParameterList()
        for size in (4, 1):
            self.scales.append(nn.Parameter(torch.ones(size, 1)))
        self.scales.extend([nn.Parameter(torch.zeros(1))])
        if fold:
            self.remove_weight_norm()

    def remove_weight_norm(self):
        """Called as the function of torch's that it calls."""
        for step in self.steps:
            remove_weight_norm(step)
        remove_weight_norm(self.last)

    def forward(self, x):
        for step in self.steps:
            x = torch.tanh(step(x))
        return self.last(x) * self.scales[0] * self.scales[1] + self.scales[-1]


def vocoder_of_norms():
    return Vocoder(), [torch.randn(2, 4, 6)]


def vocoder_folded():
    return Vocoder(fold=True), [torch.randn(2, 4, 6)]


class Encoder(nn.Module):
    """Of spectra or of waves, by a class in a variable that is given lists or numbers."""

    def __init__(self, width, kernel=8, stride=4, spectra=True):
        super().__init__()
        kind, pad = nn.Conv1d, kernel // 4
        if spectra:
            kernel, stride, pad = [kernel, 1], [stride, 1], [pad, 0]
            kind = nn.Conv2d
        self.conv = kind(2, width, kernel, stride, pad)
        self.mix = kind(width, 2 * width, 3, 1, 1)

    def forward(self, x):
        return F.glu(self.mix(self.conv(x)), dim=1)


class Decoder(nn.Module):
    def __init__(self, width, kernel=8, stride=4, spectra=True):
        super().__init__()
        kernel, stride = ([kernel, 1], [stride, 1]) if spectra else (kernel, stride)
        self.kind = nn.ConvTranspose2d if spectra else nn.ConvTranspose1d
        self.back = self.kind(width, 2, kernel, stride)

    def forward(self, x):
        return self.back(x)


class Both(nn.Module):
    def __init__(self, width=4):
        super().__init__()
        self.spectra = nn.Sequential(Encoder(width), Decoder(width))
        self.waves = nn.Sequential(Encoder(width, spectra=False), Decoder(width, spectra=False))

    def forward(self, x, y):
        return self.spectra(x).mean((2, 3)) + self.waves(y).mean(2)


def spectra_and_waves():
    return Both(), [torch.randn(2, 2, 32, 6), torch.randn(2, 2, 64)]


def spectra_and_waves_wide():
    return Both(6), [torch.randn(2, 2, 32, 6), torch.randn(2, 2, 64)]


class Otherwise(nn.Module):
    """Classes that take these arguments in different ways, and one that is no layer of torch's."""

    def __init__(self, kinds=(nn.Conv1d, Ordered)):
        super().__init__()
        self.layers = nn.ModuleList([kind(4, 4, 2) for kind in kinds])

    def forward(self, x):
        return self.layers[0](x).mean() + self.layers[1](x.transpose(1, 2))[0]


def classes_of_two_kinds():
    return Otherwise(), [torch.randn(2, 4, 6)]


class Streaming(nn.TransformerEncoderLayer):
    """A layer whose attention looks back alone, which hands on what it attended to."""

    def forward(self, x: torch.Tensor, past: torch.Tensor | None = None):
        if self.norm_first:
            seen = self.norm1(x)
            x = x + self._sa_block(seen, past)
            return x + self._ff_block(self.norm2(x)), seen
        seen = x
        x = self.norm1(x + self._sa_block(seen, past))
        return self.norm2(x + self._ff_block(x)), seen

    def _sa_block(self, x: torch.Tensor, past: torch.Tensor | None = None) -> torch.Tensor:
        keys = x if past is None else torch.cat([past, x], dim=1)
        place = torch.arange(keys.shape[1] - x.shape[1], keys.shape[1], device=x.device).view(-1, 1)
        later = torch.arange(keys.shape[1], device=x.device).view(1, -1) > place
        return self.dropout1(self.self_attn(x, keys, keys, attn_mask=later, need_weights=False)[0])


class ScaledDecoder(nn.TransformerDecoderLayer):
    """Parts of torch's layer one by one, or as a whole, with an activation by any function."""

    def __init__(self, width: int, activation=F.silu, whole: bool = False) -> None:
        super().__init__(width, 2, 12, 0.0, activation=activation, batch_first=True)
        self.gate = nn.Linear(width, width) if not whole else nn.Identity()
        self.whole = whole

    def forward(self, tgt, memory, tgt_mask=None, **kwargs):
        if self.whole:
            return self.gate(super().forward(tgt, memory, tgt_mask, tgt_is_causal=tgt_mask is not None))
        x = self.norm1(tgt + self._sa_block(tgt, tgt_mask, None, is_causal=tgt_mask is not None))
        x = self.norm2(x + self.gate(self._mha_block(x, memory, None, None)))
        return self.norm3(x + self.linear2(self.dropout(self.activation(self.linear1(x)))))


class PlacedAttention(nn.MultiheadAttention):
    """Attention to one tensor whose keys get their places here: its values stay without."""

    def forward(self, x, place=None):
        queries = keys = x if place is None else x + place
        return super().forward(queries, keys, x, need_weights=False)[0]


class DerivedTransformer(nn.Module):
    """Layers of one's own that derive from torch's, alone and in torch's stack."""

    def __init__(self, norm_first: bool = True, activation: str = "gelu", whole: bool = False) -> None:
        super().__init__()
        self.first = Streaming(8, 2, 12, 0.0, activation=F.gelu, batch_first=True, norm_first=norm_first)
        self.place = nn.Parameter(torch.randn(1, 1, 8))
        self.attention = PlacedAttention(8, 2, batch_first=True)
        self.stack = nn.TransformerDecoder(ScaledDecoder(8, getattr(F, activation), whole), 2, norm=nn.LayerNorm(8))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        y, seen = self.first(x)
        y, _ = self.first(y, seen)
        y = self.attention(y, self.place) + self.attention(y)
        mask = nn.Transformer.generate_square_subsequent_mask(x.shape[1]).to(x)
        return self.stack(x, y, tgt_mask=mask)


def derived_transformer():
    torch.manual_seed(0)
    return DerivedTransformer(), (torch.randn(2, 5, 8),)


def derived_transformer_whole():
    torch.manual_seed(0)
    return DerivedTransformer(False, "silu", whole=True), (torch.randn(2, 5, 8),)
