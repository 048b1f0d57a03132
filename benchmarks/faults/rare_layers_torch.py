"""The sixth torch net: layers and tensor operations that few nets have, each as a leaf module of its own."""

from __future__ import annotations

import torch
import torch.nn.functional as F
from torch import Tensor, nn


class Normalize(nn.Module):
    """Vectors of length one, some of them tiny before."""

    def forward(self, x: Tensor) -> Tensor:
        return F.normalize(x * 1e-3, dim=1)


class Std(nn.Module):
    def forward(self, x: Tensor) -> Tensor:
        return x.std(dim=(2, 3))


class Flat(nn.Module):
    def forward(self, x: Tensor) -> Tensor:
        return torch.flatten(x)


class Grid(nn.Module):
    """Coordinates added to the image, as a net with relative positions makes them."""

    def forward(self, x: Tensor) -> Tensor:
        line = torch.linspace(-1.0, 1.0, 8, dtype=x.dtype)
        rows, columns = torch.meshgrid(line, line, indexing="ij")
        return x + 0.3 * rows - 0.7 * columns


class Diagonal(nn.Module):
    def forward(self, x: Tensor) -> Tensor:
        return torch.diag(x[0, 0])


class Gather(nn.Module):
    """The element of each row that an index names."""

    def forward(self, x: Tensor) -> Tensor:
        rows = x.flatten(2)
        index = (torch.arange(rows.numel()) * 7 % 61).view(rows.shape)
        return torch.gather(rows, 2, index)


class Repeat(nn.Module):
    def forward(self, x: Tensor) -> Tensor:
        return x.mean(dim=(2, 3)).repeat(1, 2)


class Swap(nn.Module):
    def forward(self, x: Tensor) -> Tensor:
        return torch.transpose(x, 2, 3)


class Largest(nn.Module):
    def forward(self, x: Tensor) -> Tensor:
        return x / torch.max(x.abs())


class InPlace(nn.Module):
    def forward(self, x: Tensor) -> Tensor:
        first = x * 2.0
        second = first
        second += 1.0
        return first


class Slice(nn.Module):
    def forward(self, x: Tensor) -> Tensor:
        out = x * 2.0
        view = out[:, :2]
        view += 1.0
        return out


class Bicubic(nn.Module):
    def forward(self, x: Tensor) -> Tensor:
        return F.interpolate(x, size=(12, 12), mode="bicubic", align_corners=False)


class Scaled(nn.Module):
    def forward(self, x: Tensor) -> Tensor:
        return F.interpolate(x, scale_factor=1.7, mode="bilinear", align_corners=False)


class Resized(nn.Module):
    def forward(self, x: Tensor) -> Tensor:
        return F.interpolate(x, size=(16, 16), mode="bilinear", align_corners=False)


class Unfold(nn.Module):
    def forward(self, x: Tensor) -> Tensor:
        return F.unfold(x, 3, padding=1).transpose(1, 2)


class Share(nn.Module):
    """The share of bright elements: a mean of whole numbers."""

    def forward(self, x: Tensor) -> Tensor:
        return (x > 0).long().float().mean(dim=(2, 3))


class Clamp(nn.Module):
    def forward(self, x: Tensor) -> Tensor:
        return x.clamp(-1.0, 1.0)


class Length(nn.Module):
    """The length of each pixel's vector."""

    def forward(self, x: Tensor) -> Tensor:
        return x.norm(dim=1, keepdim=True)


class Rare(nn.Module):
    """A net of rare layers around ordinary ones; see nets_torch.Net for the options."""

    def __init__(self, drop: float = 0.0, frozen: bool = False, freeze: bool = False, unused: bool = False) -> None:
        super().__init__()
        self.stem = nn.Conv2d(3, 8, 3, 2, 1, bias=False)
        self.bn = nn.BatchNorm2d(8)
        self.leaky = nn.LeakyReLU(0.1)
        self.pool = nn.MaxPool2d(3, 2, 1)
        self.instance = nn.InstanceNorm2d(8)
        self.lrn = nn.LocalResponseNorm(3, alpha=1e-2)
        self.normalize = Normalize()
        self.mish, self.logsigmoid = nn.Mish(), nn.LogSigmoid()
        self.grid, self.swap, self.inplace, self.slice = Grid(), Swap(), InPlace(), Slice()
        self.bn1 = nn.BatchNorm2d(8)
        self.relu6a, self.relu6b = nn.ReLU6(), nn.ReLU6()
        self.clampa, self.clampb = Clamp(), Clamp()
        self.cut, self.hardswish = nn.Hardtanh(-3.0, 3.0), nn.Hardswish()
        self.relu, self.tied = nn.ReLU(), nn.LeakyReLU(0.1)
        self.length, self.flatstd = Length(), Std()
        self.bn2 = nn.BatchNorm2d(8)
        self.shuffle, self.gathered = nn.PixelShuffle(2), nn.Conv2d(2, 8, 3, 2, 1)
        self.up = nn.ConvTranspose2d(8, 8, 3, 2, 1, output_padding=1)
        self.average = nn.AvgPool2d(3, 2, 1)
        self.bicubic, self.scaled, self.resized = Bicubic(), Scaled(), Resized()
        self.unfold, self.unfolded = Unfold(), nn.Linear(72, 8)
        self.std, self.share, self.repeat = Std(), Share(), Repeat()
        self.flat, self.diagonal, self.gather, self.largest = Flat(), Diagonal(), Gather(), Largest()
        self.table = nn.Embedding(16, 8, padding_idx=0)
        self.valid = nn.Conv2d(8, 16, 3)
        self.register_buffer("mask", torch.linspace(0.5, 1.5, 16))
        self.norm, self.gelu = nn.LayerNorm(16), nn.GELU()
        self.softmax = nn.Softmax(dim=1)
        self.neck, self.alphabeta = nn.Linear(16, 16), nn.Linear(16, 16)
        self.drop = nn.Dropout(drop)
        self.head = nn.Linear(16, 10)
        self.frozen = frozen
        if freeze:
            self.valid.requires_grad_(False)
        if unused:
            self.unused = nn.Linear(8, 8)

    def train(self, mode: bool = True) -> Rare:
        super().train(mode)
        if getattr(self, "frozen", False):
            self.bn1.eval()
        return self

    def forward(self, x: Tensor) -> Tensor:
        images = x
        x = self.pool(self.leaky(self.bn(self.stem(x))))
        x = self.lrn(self.instance(x) + 0.5 * x) + self.normalize(x)
        x = x + 0.01 * self.mish(40.0 * x) + 0.01 * self.logsigmoid(60.0 * x)
        x = self.bn1(self.slice(self.inplace(self.swap(self.grid(x)))))
        x = x + 0.2 * self.ties(x)
        x = self.bn2(x)
        x = x + self.gathered(self.shuffle(x)).repeat_interleave(2, 2).repeat_interleave(2, 3)[:, :, :8, :8]
        x = x + self.average(self.up(x)) + self.average(self.resized(x))
        x = x + self.bicubic(x)[:, :, 2:10, 2:10] + self.scaled(x)[:, :, 2:10, 2:10]
        x = x + self.unfolded(self.unfold(x)).transpose(1, 2).reshape(x.shape)
        x = x * (1.0 + 0.1 * torch.tanh(self.flat(x).mean() + self.diagonal(x).mean() + self.gather(x).mean()))
        return self.classify(self.largest(x), images)

    def ties(self, x: Tensor) -> Tensor:
        """Inputs that lie exactly where a derivative jumps: behind another clipping, and on zeros."""
        out = self.relu6b(self.relu6a(6.0 * x)) + self.clampb(self.clampa(x)) + self.hardswish(self.cut(2.0 * x))
        zeros = self.relu(x)
        out = (
            out
            + self.tied(F.pad(zeros, (0, 1))[:, :, :, 1:] - 0.0)
            + self.length(zeros * (x.mean(dim=1, keepdim=True) > 0))
        )
        dead = torch.tensor([0.0, 0.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0], dtype=x.dtype).view(1, 8, 1, 1)
        return out + self.flatstd(zeros * dead)[:, :, None, None]

    def classify(self, x: Tensor, images: Tensor) -> Tensor:
        pixels = images[:, 0, 3, 4]
        token = ((pixels * 4.0).floor() + 8.0).clamp(0.0, 15.0).long()
        wide = self.valid(x + self.table(token)[:, :, None, None])
        out = wide.mean(dim=(2, 3)) * self.mask + self.repeat(x) + torch.cat([self.std(x), self.share(x)], 1)
        weights = self.softmax(wide.flatten(2).transpose(1, 2))
        out = out + weights.amax(dim=1)
        out = self.gelu(self.norm(self.neck(out)))
        return self.head(self.drop(out + torch.tanh(self.alphabeta(out.detach()))))
