"""The blocks of which nets_torch.py is built; blocks_mindspore.py has their twins under the same names."""

from __future__ import annotations

import torch
from torch import Tensor, nn


class Bottleneck(nn.Module):
    def __init__(self, inputs: int, width: int, stride: int) -> None:
        super().__init__()
        self.conv1 = nn.Conv2d(inputs, width, 1, bias=False)
        self.bn1 = nn.BatchNorm2d(width)
        self.conv2 = nn.Conv2d(width, width, 3, stride, 1, bias=False)
        self.bn2 = nn.BatchNorm2d(width)
        self.conv3 = nn.Conv2d(width, inputs * stride, 1, bias=False)
        self.bn3 = nn.BatchNorm2d(inputs * stride)
        self.relu = nn.ReLU(inplace=True)
        self.downsample = None
        if stride > 1:
            norm = nn.BatchNorm2d(inputs * stride)
            self.downsample = nn.Sequential(nn.Conv2d(inputs, inputs * stride, 1, stride, bias=False), norm)

    def forward(self, x: Tensor) -> Tensor:
        out = self.relu(self.bn1(self.conv1(x)))
        out = self.relu(self.bn2(self.conv2(out)))
        out = self.bn3(self.conv3(out))
        return self.relu(out + (x if self.downsample is None else self.downsample(x)))


class Attention(nn.Module):
    def __init__(self, dim: int, heads: int) -> None:
        super().__init__()
        self.heads, self.scale = heads, (dim // heads) ** -0.5
        self.qkv = nn.Linear(dim, 3 * dim)
        self.softmax = nn.Softmax(dim=-1)
        self.proj = nn.Linear(dim, dim)

    def forward(self, x: Tensor) -> Tensor:
        batch, length, dim = x.shape
        qkv = self.qkv(x).reshape(batch, length, 3, self.heads, dim // self.heads).permute(2, 0, 3, 1, 4)
        query, key, value = qkv[0], qkv[1], qkv[2]
        weights = self.softmax(query @ key.transpose(-2, -1) * self.scale)
        return self.proj((weights @ value).transpose(1, 2).reshape(batch, length, dim))


class Mlp(nn.Module):
    def __init__(self, dim: int, drop: float) -> None:
        super().__init__()
        self.fc1 = nn.Linear(dim, 2 * dim)
        self.act = nn.GELU()
        self.drop = nn.Dropout(drop)
        self.fc2 = nn.Linear(2 * dim, dim)

    def forward(self, x: Tensor) -> Tensor:
        return self.fc2(self.drop(self.act(self.fc1(x))))


class Block(nn.Module):
    def __init__(self, dim: int, heads: int, drop: float) -> None:
        super().__init__()
        self.norm1 = nn.LayerNorm(dim, eps=1e-6)
        self.attn = Attention(dim, heads)
        self.norm2 = nn.LayerNorm(dim, eps=1e-6)
        self.mlp = Mlp(dim, drop)

    def forward(self, x: Tensor) -> Tensor:
        x = x + self.attn(self.norm1(x))
        return x + self.mlp(self.norm2(x))


class SqueezeExcite(nn.Module):
    def __init__(self, channels: int) -> None:
        super().__init__()
        self.avgpool = nn.AdaptiveAvgPool2d(1)
        self.fc1 = nn.Conv2d(channels, 4, 1)
        self.relu = nn.ReLU()
        self.fc2 = nn.Conv2d(4, channels, 1)
        self.gate = nn.Sigmoid()

    def forward(self, x: Tensor) -> Tensor:
        return x * self.gate(self.fc2(self.relu(self.fc1(self.avgpool(x)))))


class Inverted(nn.Module):
    def __init__(self, channels: int) -> None:
        super().__init__()
        self.expand = nn.Conv2d(channels, 2 * channels, 1, bias=False)
        self.bn1 = nn.BatchNorm2d(2 * channels, eps=1e-3, momentum=0.01)
        self.act = nn.SiLU()
        self.depthwise = nn.Conv2d(2 * channels, 2 * channels, 3, 1, 1, groups=2 * channels, bias=False)
        self.bn2 = nn.BatchNorm2d(2 * channels, eps=1e-3, momentum=0.01)
        self.se = SqueezeExcite(2 * channels)
        self.project = nn.Conv2d(2 * channels, channels, 1, bias=False)
        self.bn3 = nn.BatchNorm2d(channels, eps=1e-3, momentum=0.01)

    def forward(self, x: Tensor) -> Tensor:
        out = self.act(self.bn1(self.expand(x)))
        out = self.se(self.act(self.bn2(self.depthwise(out))))
        return x + self.bn3(self.project(out))


class NeXt(nn.Module):
    def __init__(self, channels: int, drop: float) -> None:
        super().__init__()
        self.dwconv = nn.Conv2d(channels, channels, 5, 1, 2, groups=channels)
        self.norm = nn.LayerNorm(channels, eps=1e-6)
        self.pwconv1 = nn.Linear(channels, 2 * channels)
        self.act = nn.GELU()
        self.drop = nn.Dropout(drop)
        self.pwconv2 = nn.Linear(2 * channels, channels)
        self.gamma = nn.Parameter(torch.full((channels,), 0.5))

    def forward(self, x: Tensor) -> Tensor:
        out = self.norm(self.dwconv(x).permute(0, 2, 3, 1))
        out = self.pwconv2(self.drop(self.act(self.pwconv1(out)))) * self.gamma
        return x + out.permute(0, 3, 1, 2)
