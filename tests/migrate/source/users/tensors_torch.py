"""Small models as users write them: what happens to tensors between the layers."""

from __future__ import annotations

import math

import numpy as np
import torch
import torch.nn as nn
import torch.nn.functional as F
from torch import Tensor, einsum
from torch.utils.checkpoint import checkpoint


def image() -> tuple[torch.Tensor]:
    torch.manual_seed(1)
    return (torch.randn(2, 3, 8, 8),)


def vectors(width: int = 6) -> tuple[torch.Tensor]:
    torch.manual_seed(1)
    return (torch.randn(4, width),)


def tokens(width: int = 8) -> tuple[torch.Tensor]:
    torch.manual_seed(1)
    return (torch.randn(2, 5, width),)


class ShapeNet(nn.Module):
    """Every way to lay a tensor out anew."""

    def __init__(self):
        super().__init__()
        self.conv = nn.Conv2d(3, 8, 3, padding=1)

    def forward(self, x):
        x = self.conv(x)
        x = x.contiguous()
        b, c, h, w = x.shape
        n = x.size(0)
        _, _, height, width = x.size()
        y = x.view(b, c, -1).permute(0, 2, 1).contiguous()
        y = y.reshape(n, height, width, c).transpose(1, 3)
        first, second = y.chunk(2, dim=1)
        parts = torch.split(y, [2, 6], dim=1)
        z = torch.cat([first * second, parts[0], parts[1]], 1)
        rows = z.unbind(2)
        z = torch.stack(rows[:4], dim=2).flatten(2)
        z = z[:, :, None].expand(-1, -1, 2, -1).repeat(1, 1, 1, 2)
        z = z.squeeze(0).unsqueeze(1)
        if z.dim() == 5 and z.ndim == 5 and z.numel() > 4:
            z = z.view(*z.shape[:2], -1)
        z = z.view(z.size()[0], -1).view(b, 2, -1)
        q, k = z.split(1, dim=1)
        return q.squeeze(1) + k.squeeze(dim=1) * c / h**0.5 + x.mean(dim=(1, 2, 3), keepdim=True).view(-1, 1)


def shapes():
    return ShapeNet(), image()


class InPlaceNet(nn.Module):
    """Operations that write into their tensor."""

    def __init__(self):
        super().__init__()
        self.fc = nn.Linear(6, 6)
        self.relu = nn.ReLU(inplace=True)

    def forward(self, x):
        y = self.fc(x)
        y += x
        y = y * 1.0
        y *= 0.5
        y -= 0.1
        y /= 2.0
        y.add_(x)
        y.mul_(2.0).sub_(0.3)
        y.clamp_(min=-1.0)
        z = y.clone()
        torch.sigmoid_(z)
        y = y + 0.1
        F.relu_(y)
        w = self.fc(x)
        w = w.add_(z, alpha=0.5)
        return self.relu(w) + y - z


def in_place():
    return InPlaceNet(), vectors()


class AssignNet(nn.Module):
    """Writes into slices."""

    def __init__(self):
        super().__init__()
        self.fc = nn.Linear(6, 6)

    def forward(self, x):
        y = self.fc(x)
        z = torch.zeros_like(y)
        z[:, 0] = y[:, 1]
        z[:, 2:4] = y[:, :2] * 2
        z[..., -1] = 1.0
        z[1] += y[0]
        z[:, 4] *= 2
        mask = y > 0.5
        z[mask] = 0.25
        out = x.new_zeros(x.shape[0], 8)
        out[:, 1:7] = z
        out[:, :2].add_(1.0)
        out[0, 3] = y[0, 0]
        out[:, 0].fill_(3.0)
        rows = torch.zeros(2, x.size(0), 6, device=x.device, dtype=x.dtype)
        for i in range(2):
            rows[i] = y * (i + 1)
        shift = x.shape[1] - 6  # as a window that is as large as its image is not shifted
        for begin, end in ((0, 3), (3, 6 - shift), (0, shift)):
            z[:, begin:end] = begin + 2.0
        return out, rows, z


def assigned():
    return AssignNet(), vectors()


class MathNet(nn.Module):
    """einsum, where, masks, padding, interpolation."""

    def __init__(self, width=8):
        super().__init__()
        self.qkv = nn.Linear(width, 3 * width, bias=False)
        self.scale = width**-0.5

    def forward(self, x):
        b, n, c = x.shape
        q, k, v = self.qkv(x).chunk(3, dim=-1)
        attn = torch.einsum("bid,bjd->bij", q, k) * self.scale
        causal = torch.triu(torch.ones(n, n, dtype=torch.bool, device=x.device), diagonal=1)
        attn = attn.masked_fill(causal, float("-inf"))
        attn = attn.softmax(dim=-1)
        x = einsum("b i j, b j d -> b i d", attn, v)
        x = torch.einsum("bid->bdi", x).transpose(1, 2)
        x = torch.where(x > 0, x, x * 0.1)
        x = torch.where(x < 1.0, x, 1.0)
        x = F.pad(x, (0, 0, 1, 1))
        x = F.pad(x, (1, 1), mode="reflect")
        x = F.interpolate(x, scale_factor=2, mode="nearest")
        x = F.interpolate(x[:, None], size=(6, 8), mode="bilinear", align_corners=False)
        lower = torch.tril(x)
        positions = torch.arange(x.shape[-1], device=x.device).float() / math.pi
        steps = torch.linspace(0, 1, steps=x.shape[-1], device=x.device)
        return lower * positions + steps - x.norm(dim=-1, keepdim=True) + torch.full_like(x, 0.5).type_as(x)


def mathematics():
    return MathNet(), tokens()


class ProductNet(nn.Module):
    """What torch.einsum is used for: products of matrices, with vectors, of every pair, sums; and more than one product."""

    def __init__(self, width=8):
        super().__init__()
        self.fc = nn.Linear(width, width)
        self.joints = nn.Parameter(torch.rand(width, 5))
        self.bias = nn.Parameter(torch.rand(1, 5, 6))
        self.pairs = nn.Parameter(torch.rand(2, width, 3))

    def forward(self, x):
        x = self.fc(x)
        y = torch.einsum("nd,bkn->bkd", self.joints, x)
        with_bias = torch.einsum("bkd,bdm->bmk", y, self.bias)  # of one for all
        gate = torch.einsum("bkd, bd -> bk", y, y.mean(1))
        outer = torch.einsum("bk,bm->bkm", gate, with_bias.sum(-1))
        several = torch.einsum("bnd,pdm->bnpm", x, self.pairs)
        return with_bias, outer, torch.einsum("bkm->mb", outer), several, torch.einsum("bkd,bkd->", y, y)


def products():
    return ProductNet(), tokens()


class UpsampleNet(nn.Module):
    """A decoder that brings one feature map to the size of another."""

    def __init__(self):
        super().__init__()
        self.down = nn.Conv2d(3, 4, 3, stride=2, padding=1)
        self.up = nn.ConvTranspose2d(4, 4, 2, stride=2)
        self.out = nn.Conv2d(7, 2, 1)

    def forward(self, x):
        y = self.up(self.down(x))
        diff_h, diff_w = x.size()[2] - y.size()[2], x.size()[3] - y.size()[3]
        y = F.pad(y, [diff_w // 2, diff_w - diff_w // 2, diff_h // 2, diff_h - diff_h // 2])
        y = F.interpolate(y, size=x.shape[2:], mode="bilinear", align_corners=True)
        out = self.out(torch.cat([x, y], dim=1))
        return F.interpolate(out, scale_factor=2.0, mode="bilinear", align_corners=False)


def upsampled():
    return UpsampleNet(), image()


class TypeNet(nn.Module):
    """Types and devices, which MindSpore has otherwise or not at all."""

    def __init__(self):
        super().__init__()
        self.fc = nn.Linear(6, 6)

    def forward(self, x: Tensor) -> Tensor:
        device, dtype = x.device, x.dtype
        y = self.fc(x.to(torch.float32).to(device))
        ids = (y > 0).long().sum(-1)
        z = ids.float()[:, None].to(dtype) + torch.zeros(1, 6, device=device).to(y)
        n = torch.tensor([1.0, 2.0], device=device, dtype=dtype).sum()
        w = z.type(torch.float32).to(device=x.device, dtype=torch.float32) * n
        if w.dtype == torch.float16 or not w.is_floating_point():
            w = w.float()
        if w.is_cuda or w.is_xpu or w.is_nested:
            w = w.cpu()
        return w.detach() + y.double().float()


def types():
    return TypeNet(), vectors()


class PlaceNet(nn.Module):
    """Asks where its tensors are, also without values, and what others say of it."""

    def __init__(self, device: torch.device | None = None):
        super().__init__()
        self.fc = nn.Linear(6, 6)
        self.other = nn.Linear(6, 6)
        self.place = torch.device("cuda", 1) if device is None else device
        self.register_buffer("pos", torch.arange(6.0) / 6)

    def wide(self, x):
        return self.other(x)

    def apart(self, x: Tensor, device):
        return x if x.is_cpu and x.device.type == "cpu" else x.to(device)

    def forward(self, x: Tensor) -> Tensor:
        if not torch.jit.is_scripting() and x.device.type != "meta":
            with torch.autocast(device_type=x.device.type, enabled=False):
                y = self.fc(x) * 2
        else:
            y = self.fc(x)
        device = y.device
        if device.type in ("cuda", "mps") or x.is_meta or x.get_device() >= 0:
            y = y + 1
        if self.pos.device != device or device == "cuda":
            y = y + self.pos
        if x.is_cpu and self.place.type == "cuda" and str(device) == "cpu" and device.index is None:
            y = y * 3
        if torch.backends.mkldnn.is_available() and x.device.type == "meta":
            y = y * 7
        return y if device == torch.device("meta") else self.wide(y)


def places():
    return PlaceNet(), vectors()


class HalvedNet(PlaceNet):
    """Asks for the precision at the place of its tensors."""

    def forward(self, x: Tensor) -> Tensor:
        if torch.is_autocast_enabled(x.device.type):
            x = x.to(torch.get_autocast_dtype(x.device.type))
        return self.fc(x)


def halved():
    return HalvedNet(), vectors()


class PlaceAndKernelNet(PlaceNet):
    """Asks where its tensors are and something else at once, which MindSpore has not."""

    def forward(self, x: Tensor) -> Tensor:
        if x.is_cpu and torch.backends.mkldnn.is_available():
            x = x * 2
        return self.fc(x)


def places_and_kernels():
    return PlaceAndKernelNet(), vectors()


class ContextNet(nn.Module):
    """no_grad, autocast and checkpoint."""

    def __init__(self):
        super().__init__()
        self.fc = nn.Linear(6, 6)
        self.teacher = nn.Linear(6, 6)
        self.use_checkpoint = True

    @torch.no_grad()
    def target(self, x):
        return self.teacher(x)

    def block(self, x, scale):
        return torch.tanh(self.fc(x)) * scale

    def forward(self, x):
        with torch.no_grad():
            t = self.teacher(x)
            t = t.softmax(-1)
        with torch.autocast(device_type="cuda", enabled=False):
            y = self.fc(x)
        with torch.cuda.amp.autocast(enabled=False):
            y = y.float() + t
        if self.use_checkpoint and self.training:
            y = checkpoint(self.block, y, 2.0, use_reentrant=False)
        else:
            y = self.block(y, 2.0)
        return y * self.target(x)


def contexts():
    return ContextNet(), vectors()


class MergeNet(nn.Module):
    """A list over two loops, in a call, as transformers' Swin merges patches; one that has a name."""

    def __init__(self, first=0):
        super().__init__()
        self.first = first  # rows that are left as they are
        self.fc = nn.Linear(12, 5, bias=False)

    def forward(self, x):
        x = torch.cat([x[:, :, : self.first, :], x[:, :, self.first :, :] * 2], dim=2)
        x = x.permute(0, 2, 3, 1)
        x = torch.cat([x[:, row::2, col::2, :] for col in range(2) for row in range(2)], dim=-1)
        steps = [n for n in (1, 2) for _ in range(n)]
        return self.fc(x) * len(steps)


def merged():
    return MergeNet(), image()


class ViewNet(nn.Module):
    """Writes into tensors under another of their names."""

    def __init__(self, width: int = 6):
        super().__init__()
        self.fc = nn.Linear(width, width)

    def forward(self, x):
        y = self.fc(x)
        canvas, mask = torch.zeros(4, 3, 4), torch.ones(4, 3, dtype=torch.bool)
        for row, page, here in zip(y, canvas, mask):
            page[:, :3] = page[:, :3] + row[:3].detach()
            here[1:] = False
        parts = torch.stack([y, 2 * y])
        second = parts[1]
        second *= 3.0
        first = parts[0, :, 1:]
        first.add_(1.0)
        lost = parts[1]
        lost = lost * 100.0  # another tensor, and parts stays
        same = out = parts.sum(0)
        same += lost.sum(0)
        for i, line in enumerate(canvas):
            line[0, 3] = i + 0.5
        shortcut = out
        out += 0.25
        out = out * 2 + shortcut
        return out.sum(1) + parts.sum((0, 2)) + torch.where(mask, canvas.sum(2), 7.0).sum(1), mask


def views():
    return ViewNet().eval(), vectors()


class Twice(nn.Module):
    def scale(self, x):
        x.mul_(2.0)


class Less(nn.Module):
    def scale(self, x):
        x -= 0.5


class GivenTensorNet(nn.Module):
    """Methods and functions that write into the tensors that they are given, and give nothing back."""

    def __init__(self, width: int = 6):
        super().__init__()
        self.fc = nn.Linear(width, width)
        self.places = nn.Parameter(torch.randn(1, width))
        self.least = nn.Parameter(torch.zeros(()))
        self.window = (1, 0)
        self.scales = nn.ModuleList([Twice(), Less()])

    def add_places(self, x: torch.Tensor, length: int) -> None:
        def cut(table: torch.Tensor) -> torch.Tensor:
            return table[:, :length]

        if length == 0:
            return
        x.add_(cut(self.places))

    def through(self, x: torch.Tensor) -> None:
        self.add_places(x, length=x.shape[1])

    def both(self, x, y):
        x.mul_(self.places)
        y += 1

    @staticmethod
    def halve(x):
        x *= 0.5

    def forward(self, x):
        y = self.fc(x)
        self.through(y)
        same = y * 1.0
        other = same
        self.halve(same)
        parts = torch.stack([y, y * 2])
        self.halve(parts[1])
        z = y * 3
        self.both(z, parts)
        fresh = torch.relu(z) * 1.0
        self.halve(fresh + 1)
        for one in self.scales:
            one.scale(fresh)
        pooled = F.avg_pool2d(parts[None], (3, 1), 1, self.window) + F.avg_pool2d(parts[None], 3, 1, (1, 1))
        return other + z + fresh + parts.sum(0) + pooled.sum((0, 1)) + self.least


def given_tensors():
    return GivenTensorNet(), vectors()


class LostTensorNet(GivenTensorNet):
    """Gives something else back than what it writes into, which is read afterwards; and the same, where it is not."""

    def scaled(self, x, y):
        x.mul_(2.0)
        return y + 1

    def forward(self, x):
        y, w = self.fc(x), self.fc(x * 2)
        z = self.scaled(y, x)
        u = self.scaled(w, x)
        w = u * 2
        return z + y + w


def lost_tensors():
    return LostTensorNet(), vectors()


class GivenPartsNet(nn.Module):
    """Functions that write into parts of what they are given, and give nothing back."""

    def __init__(self):
        super().__init__()
        self.fc = nn.Linear(3, 3)

    def hide(self, scores, value=0.0):
        rows, columns = torch.triu_indices(scores.size(1), scores.size(2), offset=1)
        scores[:, rows, columns] = value

    def first(self, table):
        self.hide(table[0:1], -1.0)

    def both(self, x, y):
        x[:, 0] = 0.0
        y[..., 1] += 2.0
        return

    def forward(self, x):
        y, z = self.fc(x), self.fc(x * 2)
        self.hide(y, value=-3.0)
        self.both(y, z)
        w = self.fc(x) + 1
        self.first(w)
        return y + z.exp() + w


def given_parts():
    return GivenPartsNet(), [torch.randn(2, 3, 3)]


class WindowNet(nn.Module):
    """Windows that overlap, by how far a tensor's values lie from each other, and what is chosen by a method."""

    def __init__(self):
        super().__init__()
        self.fc = nn.Linear(3, 4)

    def forward(self, x):
        y = self.fc(x)
        n, count, width = y.shape
        step = list(y.stride())
        windows = y.as_strided((n, count - 1, 2, width), (step[0], step[1], y.stride(1), step[2]))
        lower = windows.new_ones(2, width).tril().bool()
        return torch.full_like(windows, -1.0).where(lower, windows * 2)


def windows():
    return WindowNet(), [torch.randn(2, 5, 3)]


class CastNet(nn.Module):
    """Every way to say to which type a tensor goes."""

    def __init__(self, half: float = 0.5):
        super().__init__()
        self.fc = nn.Linear(6, 6)
        self.half = half

    def wide(self, x, target=None):
        return x.to(target) if target is None else x.to(target).float()

    def forward(self, x):
        by_class = x.type(torch.LongTensor) * self.half
        there = x.type(torch.LongTensor).to(x.device) * self.half
        named = x.type("torch.IntTensor") * self.half
        back = x.double().type(torch.FloatTensor).cpu()
        chosen = x.type(torch.cuda.FloatTensor if torch.cuda.is_available() else torch.FloatTensor)
        maybe = self.wide(x) + self.wide(x, torch.float64)
        return self.fc(x) + by_class + there + named + back + chosen + maybe


def casts():
    torch.manual_seed(1)
    return CastNet(), (3 * torch.randn(4, 6),)


class ClassNet(nn.Module):
    """A variable that is a class of tensors, which nothing in MindSpore is."""

    def __init__(self, kind=torch.LongTensor):
        super().__init__()
        self.fc = nn.Linear(6, 6)
        self.kind = kind

    def forward(self, x):
        return self.fc(x) + x.type(self.kind)


def cast_by_variable():
    return ClassNet(), vectors()


class NumpysNet(nn.Module):
    """NumPy's whole numbers as bounds of slices and as indices."""

    def __init__(self, shape=(2, 2)):
        super().__init__()
        self.fc = nn.Linear(6, 6)
        self.count = np.prod(shape)
        self.sizes = np.array([2, 3])

    def forward(self, x):
        y = self.fc(x)
        return y[:, : self.count], y[:, self.count :], y[np.int64(0), : self.sizes.max()], y[:, self.sizes[0]]


def numpys_bounds():
    return NumpysNet(), vectors()


class SometimesNet(nn.Module):
    """Attention whose weights are given only sometimes."""

    def __init__(self, need: bool = True):
        super().__init__()
        self.attention = nn.MultiheadAttention(8, 2, batch_first=True)
        self.need = need

    def forward(self, x):
        y, weights = self.attention(x, x, x, need_weights=self.need)
        return y if weights is None else y + weights.mean()


def weights_sometimes():
    torch.manual_seed(1)
    return SometimesNet(), tokens()


def weights_never():
    torch.manual_seed(1)
    return SometimesNet(need=False), tokens()


class ByRanges(nn.Module):
    def __init__(self):
        super().__init__()
        self.box = nn.Conv2d(3, 3, 3, padding=1, groups=3, bias=False)
        self.box.weight.data[...] = 1 / 9
        self.layer = nn.Linear(4, 4)
        with torch.no_grad():
            self.layer.weight[...] = torch.eye(4)
            self.layer.bias[...] += 0.5

    def forward(self, x):
        x = self.layer(self.box(x))
        flat, some = x[0, 0].clone(), range(1, 3)
        flat[range(len(flat)), range(len(flat))] = 0
        zeros = torch.zeros(2, 2)
        zeros[...] = flat[0, 0]
        wide = torch.randint(1, flat.ne(0).sum() + 2, (2, 1))
        return x[:, :, some], flat, zeros, wide.float() * 0


def by_ranges():
    return ByRanges(), [torch.rand(2, 3, 4, 4)]
