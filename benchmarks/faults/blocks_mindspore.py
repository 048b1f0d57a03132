"""The MindSpore twins of blocks_torch.py: the same names, every argument written."""

from __future__ import annotations

import numpy as np
from layers_mindspore import Softmax, conv, norm
from mindspore import Parameter, Tensor, nn, ops


class Bottleneck(nn.Cell):
    def __init__(self, inputs: int, width: int, stride: int, frozen: bool = False) -> None:
        super().__init__()
        self.conv1 = conv(inputs, width, 1, has_bias=False)
        self.bn1 = norm(width)
        self.conv2 = conv(width, width, 3, stride, 1, has_bias=False)
        self.bn2 = norm(width, frozen=frozen)
        self.conv3 = conv(width, inputs * stride, 1, has_bias=False)
        self.bn3 = norm(inputs * stride)
        self.relu = nn.ReLU()
        self.downsample = None
        if stride > 1:
            short = conv(inputs, inputs * stride, 1, stride, has_bias=False)
            self.downsample = nn.SequentialCell(short, norm(inputs * stride))

    def construct(self, x: Tensor) -> Tensor:
        out = self.relu(self.bn1(self.conv1(x)))
        out = self.relu(self.bn2(self.conv2(out)))
        out = self.bn3(self.conv3(out))
        return self.relu(out + (x if self.downsample is None else self.downsample(x)))


class Attention(nn.Cell):
    def __init__(self, dim: int, heads: int) -> None:
        super().__init__()
        self.heads, self.scale = heads, (dim // heads) ** -0.5
        self.qkv = nn.Dense(dim, 3 * dim)
        self.softmax = Softmax(-1)
        self.proj = nn.Dense(dim, dim)

    def split(self, qkv: Tensor) -> Tensor:
        """(N, L, 3·D) into query, key and value, each (N, heads, L, D / heads)."""
        batch, length, packed = qkv.shape
        return qkv.reshape(batch, length, 3, self.heads, packed // 3 // self.heads).permute(2, 0, 3, 1, 4)

    def construct(self, x: Tensor) -> Tensor:
        batch, length, dim = x.shape
        qkv = self.split(self.qkv(x))
        query, key, value = qkv[0], qkv[1], qkv[2]
        weights = self.softmax(ops.matmul(query, key.swapaxes(-2, -1)) * self.scale)
        return self.proj(ops.matmul(weights, value).swapaxes(1, 2).reshape(batch, length, dim))


class Mlp(nn.Cell):
    def __init__(self, dim: int, drop: float) -> None:
        super().__init__()
        self.fc1 = nn.Dense(dim, 2 * dim)
        self.act = nn.GELU(approximate=False)
        self.drop = nn.Dropout(p=drop)
        self.fc2 = nn.Dense(2 * dim, dim)

    def construct(self, x: Tensor) -> Tensor:
        return self.fc2(self.drop(self.act(self.fc1(x))))


class Block(nn.Cell):
    def __init__(self, dim: int, heads: int, drop: float) -> None:
        super().__init__()
        self.norm1 = nn.LayerNorm((dim,), epsilon=1e-6)
        self.attn = Attention(dim, heads)
        self.norm2 = nn.LayerNorm((dim,), epsilon=1e-6)
        self.mlp = Mlp(dim, drop)

    def construct(self, x: Tensor) -> Tensor:
        x = x + self.attn(self.norm1(x))
        return x + self.mlp(self.norm2(x))


class SqueezeExcite(nn.Cell):
    def __init__(self, channels: int) -> None:
        super().__init__()
        self.avgpool = nn.AdaptiveAvgPool2d(1)
        self.fc1 = conv(channels, 4, 1)
        self.relu = nn.ReLU()
        self.fc2 = conv(4, channels, 1)
        self.gate = nn.Sigmoid()

    def construct(self, x: Tensor) -> Tensor:
        return x * self.gate(self.fc2(self.relu(self.fc1(self.avgpool(x)))))


class Inverted(nn.Cell):
    def __init__(self, channels: int, frozen: bool) -> None:
        super().__init__()
        wide = 2 * channels
        self.expand = conv(channels, wide, 1, has_bias=False)
        self.bn1 = norm(wide, 1e-3, 0.01)
        self.act = nn.SiLU()
        self.depthwise = conv(wide, wide, 3, 1, 1, group=wide, has_bias=False)
        self.bn2 = norm(wide, 1e-3, 0.01, frozen)
        self.se = SqueezeExcite(wide)
        self.project = conv(wide, channels, 1, has_bias=False)
        self.bn3 = norm(channels, 1e-3, 0.01)

    def construct(self, x: Tensor) -> Tensor:
        out = self.act(self.bn1(self.expand(x)))
        out = self.se(self.act(self.bn2(self.depthwise(out))))
        return x + self.bn3(self.project(out))


class NeXt(nn.Cell):
    def __init__(self, channels: int, drop: float) -> None:
        super().__init__()
        self.dwconv = conv(channels, channels, 5, 1, 2, group=channels)
        self.norm = nn.LayerNorm((channels,), epsilon=1e-6)
        self.pwconv1 = nn.Dense(channels, 2 * channels)
        self.act = nn.GELU(approximate=False)
        self.drop = nn.Dropout(p=drop)
        self.pwconv2 = nn.Dense(2 * channels, channels)
        self.gamma = Parameter(Tensor(np.full((channels,), 0.5, np.float32)))

    def construct(self, x: Tensor) -> Tensor:
        out = self.norm(self.dwconv(x).permute(0, 2, 3, 1))
        out = self.pwconv2(self.drop(self.act(self.pwconv1(out)))) * self.gamma
        return x + out.permute(0, 3, 1, 2)
