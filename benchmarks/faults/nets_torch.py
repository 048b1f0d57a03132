"""Five small torch nets of different build, in which the fault benchmark plants its faults; nets_mindspore.py has their
twins under the same names.

Every net takes images float32 (N, 3, 32, 32) and gives logits (N, 10). `drop` is the rate of its Dropout; `frozen`
keeps one BatchNorm in evaluation mode; `freeze` takes the gradient from one layer; `unused` adds a layer that the loss
does not reach.
"""

from __future__ import annotations

from typing import Any

import torch
import torch.nn.functional as F
from beliefs_torch import Beliefs
from blocks_torch import Attention, Block, Bottleneck, Inverted, Mlp, NeXt
from rare_layers_torch import Rare
from torch import Tensor, nn

CLASSES = 10


class Net(nn.Module):
    """What the nets share: options that a fault needs."""

    def options(self, frozen: str = "", freeze: str = "", unused: int = 0) -> None:
        """frozen, freeze: dotted names of a norm and of a layer; unused: channels of the layer without use."""
        self.frozen = frozen
        if freeze:
            self.get_submodule(freeze).requires_grad_(False)
        if unused:
            self.unused = nn.Linear(unused, unused)

    def train(self, mode: bool = True) -> Net:
        super().train(mode)
        if self.frozen:
            self.get_submodule(self.frozen).eval()
        return self


def tokens(images: Tensor, count: int) -> Tensor:
    """int64 (N, count) in 0 … 15 from pixels; multiplying by a power of two is exact in every precision."""
    pixels = images[:, 0, :: 32 // count, 5]
    return ((pixels * 4.0).floor() + 8.0).clamp(0.0, 15.0).long()


class ResNet(Net):
    def __init__(self, drop: float = 0.0, frozen: bool = False, freeze: bool = False, unused: bool = False) -> None:
        super().__init__()
        self.conv1 = nn.Conv2d(3, 8, 3, 2, 1, bias=False)
        self.bn1 = nn.BatchNorm2d(8)
        self.relu = nn.ReLU(inplace=True)
        self.maxpool = nn.MaxPool2d(3, 2, 1)
        self.layer1 = nn.Sequential(Bottleneck(8, 4, 1), Bottleneck(8, 4, 1))
        self.layer2 = nn.Sequential(Bottleneck(8, 8, 2))
        self.valid = nn.Conv2d(16, 16, 3)
        self.avgpool = nn.AdaptiveAvgPool2d((1, 1))
        self.flatten = nn.Flatten()
        self.neck = nn.Linear(16, 16)
        self.drop = nn.Dropout(drop)
        self.fc = nn.Linear(16, CLASSES)
        self.options("layer1.0.bn2" if frozen else "", "layer1.0.conv2" if freeze else "", 8 if unused else 0)

    def forward(self, x: Tensor) -> Tensor:
        x = self.maxpool(self.relu(self.bn1(self.conv1(x))))
        x = self.layer2(self.layer1(x))
        x = self.flatten(self.avgpool(self.valid(x)))
        return self.fc(self.drop(self.neck(x)))


class ViT(Net):
    def __init__(self, drop: float = 0.0, freeze: bool = False, unused: bool = False) -> None:
        super().__init__()
        self.patch = nn.Conv2d(3, 16, 4, 4)
        self.pool = nn.AvgPool2d(3, 2, 1)
        self.cls_token = nn.Parameter(torch.randn(1, 1, 16))
        self.position = nn.Embedding(17, 16)
        self.blocks = nn.Sequential(Block(16, 4, drop), Block(16, 4, drop))
        self.norm = nn.LayerNorm(16, eps=1e-6)
        self.alphabeta = nn.Linear(16, 16)
        self.head = nn.Linear(16, CLASSES)
        self.options("", "blocks.0.attn.proj" if freeze else "", 8 if unused else 0)

    def forward(self, x: Tensor) -> Tensor:
        x = self.pool(self.patch(x)).flatten(2).transpose(1, 2)
        x = torch.cat([self.cls_token.expand(x.shape[0], -1, -1), x], dim=1)
        x = x + self.position(torch.arange(17))
        x = self.norm(self.blocks(x))
        return self.head(x[:, 0] + self.alphabeta(x.mean(dim=1)))


class Mobile(Net):
    def __init__(self, drop: float = 0.0, frozen: bool = False, freeze: bool = False, unused: bool = False) -> None:
        super().__init__()
        self.stem = nn.Conv2d(3, 8, 3, 2, 1, bias=False)
        self.bn = nn.BatchNorm2d(8)
        self.pool = nn.MaxPool2d(3, 2, 1)
        self.act = nn.Hardswish()
        self.inverted = Inverted(8)
        self.next = NeXt(8, drop)
        self.down = nn.AvgPool2d(2, 2)
        self.norm = nn.GroupNorm(2, 8)
        self.valid = nn.Conv2d(8, 16, 3)
        self.leaky = nn.LeakyReLU()
        self.register_buffer("mask", torch.linspace(0.5, 1.5, 16))
        self.alphabeta = nn.Linear(16, 16)
        self.head = nn.Linear(16, CLASSES)
        self.options("inverted.bn2" if frozen else "", "next.pwconv1" if freeze else "", 8 if unused else 0)

    def forward(self, x: Tensor) -> Tensor:
        x = self.act(self.pool(self.bn(self.stem(x))))
        x = self.down(self.next(self.inverted(x)))
        x = self.leaky(self.valid(self.norm(x))).mean(dim=(2, 3)) * self.mask
        return self.head(x + torch.tanh(self.alphabeta(x.detach())))


class Text(Net):
    """Rows of the image as a sequence, with tokens drawn from its pixels; `lengths`: only so many steps count."""

    def __init__(
        self, drop: float = 0.0, freeze: bool = False, unused: bool = False, tied: bool = False, lengths: bool = False
    ) -> None:
        super().__init__()
        self.lengths = lengths
        self.embedding = nn.Embedding(16, 16, padding_idx=8)
        self.project = nn.Linear(96, 16)
        self.lstm = nn.LSTM(16, 16, batch_first=True)
        self.norm = nn.LayerNorm(16)
        self.attn = Attention(16, 2)
        self.gru = nn.GRU(16, 16, batch_first=True)
        self.score = nn.Linear(16, 1, bias=False)
        self.softmax = nn.Softmax(dim=1)
        self.mlp = Mlp(16, drop)
        self.leaky = nn.LeakyReLU()
        self.alphabeta = nn.Linear(16, 16)
        self.head = nn.Linear(16, 16 if tied else CLASSES, bias=not tied)
        if tied:
            self.head.weight = self.embedding.weight
        self.options("", "project" if freeze else "", 8 if unused else 0)

    def forward(self, x: Tensor) -> Tensor:
        rows = x[:, :, ::4].permute(0, 2, 1, 3).reshape(x.shape[0], 8, 96)
        sequence = self.embedding(tokens(x, 8)) + self.project(rows)
        sequence = self.lstm(sequence)[0]
        last = sequence[:, 4] if self.lengths else sequence[:, -1]
        sequence = self.norm(sequence)
        sequence = self.gru(sequence + self.attn(sequence))[0]
        pooled = (self.softmax(self.score(sequence)) * sequence).sum(dim=1)
        out = self.leaky(self.alphabeta(pooled + last)) + self.mlp(pooled.detach())
        return self.head(out)[:, :CLASSES]


class UNet(Net):
    def __init__(self, drop: float = 0.0, frozen: bool = False, freeze: bool = False, unused: bool = False) -> None:
        super().__init__()
        self.first = nn.Conv2d(3, 8, 3, 1, 1, bias=False)
        self.bn1 = nn.BatchNorm2d(8)
        self.leaky = nn.LeakyReLU(0.1)
        self.pool = nn.MaxPool2d(3, 2, 1)
        self.smooth = nn.AvgPool2d(3, 1, 1)
        self.down = nn.Conv2d(8, 16, 3, 2, 1, bias=False)
        self.bn2 = nn.BatchNorm2d(16)
        self.up = nn.ConvTranspose2d(16, 8, 3, 2, 1, output_padding=1)
        self.time = nn.Embedding(16, 8)
        self.merge = nn.Conv2d(16, 8, 3, 1, 1, bias=False)
        self.bn3 = nn.BatchNorm2d(8)
        self.prelu = nn.PReLU(8)
        self.upsample = nn.Upsample(scale_factor=2, mode="bilinear", align_corners=False)
        self.wide = nn.ConvTranspose2d(8, 8, 3, 2)
        self.shuffle = nn.PixelShuffle(2)
        self.valid = nn.Conv2d(2, 16, 3)
        self.drop = nn.Dropout(drop)
        self.neck = nn.Linear(16, 16)
        self.head = nn.Linear(16, CLASSES)
        self.options("bn2" if frozen else "", "merge" if freeze else "", 8 if unused else 0)

    def forward(self, x: Tensor) -> Tensor:
        skip = self.pool(self.bn1(self.first(x)))
        low = self.leaky(self.bn2(self.down(self.smooth(skip))))
        up = self.up(low) + self.time(tokens(x, 1))[:, 0, :, None, None]
        out = self.prelu(self.bn3(self.merge(torch.cat([up, skip.detach()], dim=1))))
        wide = self.wide(F.pad(out[:, :, ::2, ::2], (1, 0, 2, 1)))[:, :, :16, :16]
        out = wide + out + self.upsample(low)[:, :8]
        out = self.valid(self.shuffle(self.smooth(out)))
        out = self.neck(self.drop(out.mean(dim=(2, 3))))
        return self.head(out)


NETS: dict[str, Any] = {
    "resnet": ResNet,
    "vit": ViT,
    "mobile": Mobile,
    "text": Text,
    "unet": UNet,
    "rare": Rare,
    "beliefs": Beliefs,
}
