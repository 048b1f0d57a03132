"""The MindSpore twins of nets_torch.py: the same names, every argument written."""

from __future__ import annotations

from typing import Any

import mindspore
import numpy as np
from beliefs_mindspore import Beliefs
from blocks_mindspore import Attention, Block, Bottleneck, Inverted, Mlp, NeXt
from layers_mindspore import (
    Embedding,
    Hardswish,
    LeakyReLU,
    Softmax,
    average_pool,
    buffer,
    conv,
    max_pool,
    norm,
    transposed,
)
from mindspore import Parameter, Tensor, nn, ops
from rare_layers_mindspore import Rare

CLASSES = 10


def options(net: Any, freeze: str = "", unused: int = 0) -> None:
    """See nets_torch.Net.options."""
    if freeze:
        for parameter in dict(net.cells_and_names())[freeze].get_parameters():
            parameter.requires_grad = False
    if unused:
        net.unused = nn.Dense(unused, unused)


def tokens(images: Tensor, count: int) -> Tensor:
    """int32 (N, count) in 0 … 15 from pixels."""
    pixels = ops.stop_gradient(images)[:, 0, :: 32 // count, 5]
    return (ops.floor(pixels * 4.0) + 8.0).clamp(0.0, 15.0).astype(mindspore.int32)


class ResNet(nn.Cell):
    def __init__(self, drop: float = 0.0, frozen: bool = False, freeze: bool = False, unused: bool = False) -> None:
        super().__init__()
        self.conv1 = conv(3, 8, 3, 2, 1, has_bias=False)
        self.bn1 = norm(8)
        self.relu = nn.ReLU()
        self.maxpool = max_pool()
        self.layer1 = nn.SequentialCell(Bottleneck(8, 4, 1, frozen), Bottleneck(8, 4, 1))
        self.layer2 = nn.SequentialCell(Bottleneck(8, 8, 2))
        self.valid = conv(16, 16, 3)
        self.avgpool = nn.AdaptiveAvgPool2d((1, 1))
        self.flatten = nn.Flatten()
        self.neck = nn.Dense(16, 16)
        self.drop = nn.Dropout(p=drop)
        self.fc = nn.Dense(16, CLASSES)
        options(self, "layer1.0.conv2" if freeze else "", 8 if unused else 0)

    def construct(self, x: Tensor) -> Tensor:
        x = self.maxpool(self.relu(self.bn1(self.conv1(x))))
        x = self.layer2(self.layer1(x))
        x = self.flatten(self.avgpool(self.valid(x)))
        return self.fc(self.drop(self.neck(x)))


class ViT(nn.Cell):
    def __init__(self, drop: float = 0.0, freeze: bool = False, unused: bool = False) -> None:
        super().__init__()
        self.patch = conv(3, 16, 4, 4)
        self.pool = average_pool(3, 2, 1)
        self.cls_token = Parameter(Tensor(np.random.default_rng().standard_normal((1, 1, 16)).astype(np.float32)))
        self.position = Embedding(17, 16)
        self.blocks = nn.SequentialCell(Block(16, 4, drop), Block(16, 4, drop))
        self.norm = nn.LayerNorm((16,), epsilon=1e-6)
        self.alphabeta = nn.Dense(16, 16)
        self.head = nn.Dense(16, CLASSES)
        options(self, "blocks.0.attn.proj" if freeze else "", 8 if unused else 0)

    def construct(self, x: Tensor) -> Tensor:
        x = self.pool(self.patch(x))
        x = x.reshape(x.shape[0], 16, -1).swapaxes(1, 2)
        token = self.cls_token.broadcast_to((x.shape[0], 1, 16))
        x = ops.cat((token, x.astype(token.dtype)), 1)  # torch's cat takes both to the wider dtype
        x = x + self.position(Tensor(np.arange(17, dtype=np.int32)))
        x = self.norm(self.blocks(x))
        return self.head(x[:, 0] + self.alphabeta(x.mean(1)))


class Mobile(nn.Cell):
    def __init__(self, drop: float = 0.0, frozen: bool = False, freeze: bool = False, unused: bool = False) -> None:
        super().__init__()
        self.stem = conv(3, 8, 3, 2, 1, has_bias=False)
        self.bn = norm(8)
        self.pool = max_pool()
        self.act = Hardswish()
        self.inverted = Inverted(8, frozen)
        self.next = NeXt(8, drop)
        self.down = average_pool(2, 2)
        self.norm = nn.GroupNorm(2, 8, eps=1e-5)
        self.valid = conv(8, 16, 3)
        self.leaky = LeakyReLU()
        self.mask = buffer(np.linspace(0.5, 1.5, 16))
        self.alphabeta = nn.Dense(16, 16)
        self.head = nn.Dense(16, CLASSES)
        self.stop = ops.stop_gradient
        options(self, "next.pwconv1" if freeze else "", 8 if unused else 0)

    def construct(self, x: Tensor) -> Tensor:
        x = self.act(self.pool(self.bn(self.stem(x))))
        x = self.down(self.next(self.inverted(x)))
        x = self.leaky(self.valid(self.norm(x))).mean((2, 3)) * self.mask
        return self.head(x + ops.tanh(self.alphabeta(self.stop(x))))


class Text(nn.Cell):
    def __init__(
        self, drop: float = 0.0, freeze: bool = False, unused: bool = False, tied: bool = False, lengths: bool = False
    ) -> None:
        super().__init__()
        self.lengths = lengths
        self.embedding = Embedding(16, 16, 8)
        self.project = nn.Dense(96, 16)
        self.lstm = nn.LSTM(16, 16, batch_first=True)
        self.norm = nn.LayerNorm((16,), epsilon=1e-5)
        self.attn = Attention(16, 2)
        self.gru = nn.GRU(16, 16, batch_first=True)
        self.score = nn.Dense(16, 1, has_bias=False)
        self.softmax = Softmax(1)
        self.mlp = Mlp(16, drop)
        self.leaky = LeakyReLU()
        self.alphabeta = nn.Dense(16, 16)
        self.head = nn.Dense(16, 16 if tied else CLASSES, has_bias=not tied)
        if tied:
            self.head.weight = self.embedding.embedding_table
        self.stop = ops.stop_gradient
        options(self, "project" if freeze else "", 8 if unused else 0)

    def construct(self, x: Tensor) -> Tensor:
        rows = x.reshape(-1, 3, 8, 4, 32)[:, :, :, 0].permute(0, 2, 1, 3).reshape(x.shape[0], 8, 96)
        sequence = self.embedding(tokens(x, 8)) + self.project(rows)
        sequence = self.lstm(sequence)[0]
        last = sequence[:, 4] if self.lengths else sequence[:, -1]
        sequence = self.norm(sequence)
        sequence = self.gru(sequence + self.attn(sequence))[0]
        pooled = (self.softmax(self.score(sequence)) * sequence).sum(1)
        out = self.leaky(self.alphabeta(pooled + last)) + self.mlp(self.stop(pooled))
        return self.head(out)[:, :CLASSES]


class UNet(nn.Cell):
    def __init__(self, drop: float = 0.0, frozen: bool = False, freeze: bool = False, unused: bool = False) -> None:
        super().__init__()
        self.first = conv(3, 8, 3, 1, 1, has_bias=False)
        self.bn1 = norm(8)
        self.leaky = LeakyReLU(0.1)
        self.pool = max_pool()
        self.smooth = average_pool(3, 1, 1)
        self.down = conv(8, 16, 3, 2, 1, has_bias=False)
        self.bn2 = norm(16, frozen=frozen)
        self.up = transposed(16, 8)
        self.time = Embedding(16, 8)
        self.merge = conv(16, 8, 3, 1, 1, has_bias=False)
        self.bn3 = norm(8)
        self.prelu = nn.PReLU(8)
        self.upsample = nn.Upsample(scale_factor=2.0, mode="bilinear", align_corners=False, recompute_scale_factor=True)
        self.wide = nn.Conv2dTranspose(8, 8, 3, 2, pad_mode="valid", has_bias=True)
        self.shuffle = nn.PixelShuffle(2)
        self.valid = conv(2, 16, 3)
        self.drop = nn.Dropout(p=drop)
        self.neck = nn.Dense(16, 16)
        self.head = nn.Dense(16, CLASSES)
        self.stop = ops.stop_gradient
        self.pad = ops.pad
        options(self, "merge" if freeze else "", 8 if unused else 0)

    def construct(self, x: Tensor) -> Tensor:
        skip = self.pool(self.bn1(self.first(x)))
        low = self.leaky(self.bn2(self.down(self.smooth(skip))))
        up = self.up(low) + self.time(tokens(x, 1))[:, 0].reshape(-1, 8, 1, 1)
        both = ops.cat((up, self.stop(skip).astype(up.dtype)), 1)
        out = self.prelu(self.bn3(self.merge(both)))
        quarter = out.reshape(-1, 8, 8, 2, 8, 2)[:, :, :, 0, :, 0]
        wide = self.wide(self.pad(quarter, (1, 0, 2, 1)))[:, :, :16, :16]
        out = wide + out + self.upsample(low)[:, :8]
        out = self.valid(self.shuffle(self.smooth(out)))
        out = self.neck(self.drop(out.mean((2, 3))))
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
