"""The vision transformer and Swin, name for name the networks of `torch_small`."""

from __future__ import annotations

import math
from collections import OrderedDict
from collections.abc import Sequence

import numpy as np
from mindspore import Parameter, Tensor, nn, ops
from mindspore.common.initializer import Normal, XavierUniform, initializer
from mindspore_layers import (  # type: ignore[import-not-found]  # a neighbour, found where this file is run from
    Permute,
    convolution,
    layer_norm,
    linear,
    normal_linear,
    trunc,
)

CLASSES = 10


def mlp(width: int, hidden: int, weight: str = "xavier") -> nn.SequentialCell:
    """torchvision's MLP of two layers; `weight` is what its weights start from, 'xavier' or 'normal'."""

    def layer(inputs: int, outputs: int) -> nn.Dense:
        init = XavierUniform() if weight == "xavier" else trunc()
        bias = Normal(sigma=1e-6, mean=0.0) if weight == "xavier" else "zeros"
        return linear(inputs, outputs, weight_init=init, bias_init=bias)

    return nn.SequentialCell(
        [layer(width, hidden), nn.GELU(approximate=False), nn.Dropout(p=0.0), layer(hidden, width), nn.Dropout(p=0.0)]
    )


class EncoderBlock(nn.Cell):
    """Attention and two layers, each behind a norm and beside a shortcut; tokens are (N, L, width)."""

    def __init__(self, heads: int, width: int, hidden: int) -> None:
        super().__init__()
        self.ln_1 = layer_norm(width, eps=1e-6)
        self.self_attention = nn.MultiheadAttention(
            width, heads, dropout=0.0, has_bias=True, add_bias_kv=False, add_zero_attn=False, batch_first=True
        )
        # torch starts this bias at zero
        self.self_attention.out_proj.bias.set_data(initializer("zeros", (width,)))
        self.dropout = nn.Dropout(p=0.0)
        self.ln_2 = layer_norm(width, eps=1e-6)
        self.mlp = mlp(width, hidden)

    def construct(self, tokens: Tensor) -> Tensor:
        x = self.ln_1(tokens)
        x = self.dropout(self.self_attention(x, x, x, need_weights=False)[0]) + tokens
        return x + self.mlp(self.ln_2(x))


class Encoder(nn.Cell):
    """The layers over all tokens, with what is added to each for its place."""

    def __init__(self, tokens: int, layers: int, heads: int, width: int, hidden: int) -> None:
        super().__init__()
        self.pos_embedding = Parameter(initializer(Normal(sigma=0.02, mean=0.0), (1, tokens, width)))
        self.dropout = nn.Dropout(p=0.0)
        named = OrderedDict((f"encoder_layer_{i}", EncoderBlock(heads, width, hidden)) for i in range(layers))
        self.layers = nn.SequentialCell(named)
        self.ln = layer_norm(width, eps=1e-6)

    def construct(self, tokens: Tensor) -> Tensor:
        return self.ln(self.layers(self.dropout(tokens + self.pos_embedding)))


class VisionTransformer(nn.Cell):
    """torchvision's vision transformer, for images (N, 3, size, size)."""

    def __init__(self, size: int, patch: int, layers: int, heads: int, width: int, hidden: int) -> None:
        super().__init__()
        init = Normal(sigma=1 / math.sqrt(3 * patch * patch), mean=0.0)
        self.conv_proj = convolution(3, width, patch, stride=patch, bias=True, weight_init=init, bias_init="zeros")
        self.class_token = Parameter(initializer("zeros", (1, 1, width)))
        self.encoder = Encoder((size // patch) ** 2 + 1, layers, heads, width, hidden)
        head = linear(width, CLASSES, weight_init="zeros", bias_init="zeros")
        self.heads = nn.SequentialCell(OrderedDict(head=head))

    def construct(self, x: Tensor) -> Tensor:
        x = ops.flatten(self.conv_proj(x), order="C", start_dim=2, end_dim=-1).transpose((0, 2, 1))
        first = ops.broadcast_to(self.class_token, (x.shape[0], 1, x.shape[2]))
        return self.heads(self.encoder(ops.cat((first, x), axis=1))[:, 0])


def roll(x: Tensor, shift: int, axis: int) -> Tensor:
    """`torch.roll`, which MindSpore's CPU has no kernel for: the last `shift` slices (of positive count) come first."""
    size = x.shape[axis]
    return ops.cat((x.narrow(axis, size - shift, shift), x.narrow(axis, 0, size - shift)), axis=axis)


def windows(x: Tensor, window: int) -> Tensor:
    """(N, H, W, C) as (N · windows, window², C)."""
    n, h, w, c = x.shape
    x = x.reshape((n, h // window, window, w // window, window, c)).transpose((0, 1, 3, 2, 4, 5))
    return x.reshape((-1, window * window, c))


def relative_position_index(window: int) -> np.ndarray:
    """Which row of the bias table belongs to each pair of places in a window, flat (window⁴,), int64."""
    rows, columns = np.divmod(np.arange(window * window), window)
    down = rows[:, None] - rows[None, :] + window - 1
    right = columns[:, None] - columns[None, :] + window - 1
    return (down * (2 * window - 1) + right).reshape(-1)


def shift_mask(height: int, width: int, window: int, shift: int) -> np.ndarray:
    """-100 between places that only the shift has brought together: (windows, 1, window², window²), float32."""
    region = np.zeros((height, width), np.float32)
    bands = (slice(0, -window), slice(-window, -shift), slice(-shift, None))
    for i, band in enumerate((h, w) for h in bands for w in bands):
        region[band] = i
    region = region.reshape(height // window, window, width // window, window).transpose(0, 2, 1, 3)
    region = region.reshape(-1, 1, window * window)
    return np.where(region != region.transpose(0, 2, 1), -100.0, 0.0).astype(np.float32)[:, None]


class WindowAttention(nn.Cell):
    """Attention inside windows, of which every second block's are shifted by half a window."""

    def __init__(self, width: int, window: int, shift: int, heads: int) -> None:
        super().__init__()
        self.window, self.shift, self.heads = window, shift, heads
        self.qkv = normal_linear(width, 3 * width, 0.02)
        self.proj = normal_linear(width, width, 0.02)
        self.relative_position_bias_table = Parameter(initializer(trunc(), ((2 * window - 1) ** 2, heads)))
        self.relative_position_index = Parameter(Tensor(relative_position_index(window)), requires_grad=False)

    def construct(self, x: Tensor) -> Tensor:
        n, h, w, c = x.shape
        window, tokens = self.window, self.window**2
        right, down = -w % window, -h % window
        x = ops.pad(x, (0, 0, 0, right, 0, down), mode="constant", value=0.0)
        height, width = h + down, w + right
        shifts = [(axis, self.shift) for axis, size in ((1, height), (2, width)) if self.shift and window < size]
        for axis, shift in shifts:
            x = roll(x, x.shape[axis] - shift, axis)
        x = windows(x, window)
        qkv = self.qkv(x).reshape((-1, tokens, 3, self.heads, c // self.heads)).transpose((2, 0, 3, 1, 4))
        q, k, v = qkv[0] * (c // self.heads) ** -0.5, qkv[1], qkv[2]
        attention = ops.matmul(q, k.swapaxes(-2, -1)) + self.bias(tokens)
        if shifts:
            mask = Tensor(shift_mask(height, width, window, self.shift))
            attention = attention.reshape((n, -1, self.heads, tokens, tokens)) + mask
            attention = attention.reshape((-1, self.heads, tokens, tokens))
        x = ops.matmul(ops.softmax(attention, axis=-1), v).swapaxes(1, 2).reshape((-1, tokens, c))
        x = self.proj(x).reshape((n, height // window, width // window, window, window, c))
        x = x.transpose((0, 1, 3, 2, 4, 5)).reshape((n, height, width, c))
        for axis, shift in shifts:
            x = roll(x, shift, axis)
        return x[:, :h, :w, :]

    def bias(self, tokens: int) -> Tensor:
        """What is added to the attention for the distance of two places: (1, heads, window², window²)."""
        rows = ops.gather(self.relative_position_bias_table, self.relative_position_index, 0)
        return rows.reshape((tokens, tokens, -1)).transpose((2, 0, 1)).expand_dims(0)


class SwinBlock(nn.Cell):
    """Attention inside windows and two layers, each behind a norm and beside a shortcut."""

    def __init__(self, width: int, window: int, shift: int, heads: int) -> None:
        super().__init__()
        self.norm1 = layer_norm(width)
        self.attn = WindowAttention(width, window, shift, heads)
        self.norm2 = layer_norm(width)
        self.mlp = mlp(width, 4 * width, weight="normal")

    def construct(self, x: Tensor) -> Tensor:
        x = x + self.attn(self.norm1(x))
        return x + self.mlp(self.norm2(x))


class PatchMerging(nn.Cell):
    """Each 2 x 2 places of (N, H, W, C) become one of twice the channels."""

    def __init__(self, width: int) -> None:
        super().__init__()
        self.reduction = linear(4 * width, 2 * width, bias=False, weight_init=trunc())
        self.norm = layer_norm(4 * width)

    def construct(self, x: Tensor) -> Tensor:
        n, h, w, c = x.shape
        x = ops.pad(x, (0, 0, 0, w % 2, 0, h % 2), mode="constant", value=0.0)
        n, h, w, c = x.shape
        # strided slices would do, but their gradient crashes on MindSpore's CPU
        x = x.reshape((n, h // 2, 2, w // 2, 2, c)).transpose((0, 1, 3, 4, 2, 5)).reshape((n, h // 2, w // 2, 4 * c))
        return self.reduction(self.norm(x))


class Swin(nn.Cell):
    """torchvision's Swin transformer with patches of 4 x 4, for images (N, 3, H, W)."""

    def __init__(self, width: int, depths: Sequence[int], heads: Sequence[int], window: int) -> None:
        super().__init__()
        embed = convolution(3, width, 4, stride=4, bias=True)
        layers: list[nn.Cell] = [nn.SequentialCell([embed, Permute((0, 2, 3, 1)), layer_norm(width)])]
        for i, (depth, count) in enumerate(zip(depths, heads, strict=True)):
            shifts = [0 if j % 2 == 0 else window // 2 for j in range(depth)]
            layers.append(nn.SequentialCell([SwinBlock(width, window, shift, count) for shift in shifts]))
            if i + 1 < len(depths):
                layers.append(PatchMerging(width))
                width *= 2
        self.features = nn.SequentialCell(layers)
        self.norm = layer_norm(width)
        self.permute = Permute((0, 3, 1, 2))
        self.avgpool = nn.AdaptiveAvgPool2d(output_size=1)
        self.flatten = nn.Flatten(start_dim=1, end_dim=-1)
        self.head = normal_linear(width, CLASSES, 0.02)

    def construct(self, x: Tensor) -> Tensor:
        x = self.permute(self.norm(self.features(x)))
        return self.head(self.flatten(self.avgpool(x)))


def vit() -> VisionTransformer:
    """A vision transformer for images of 64 x 64 with three narrow layers."""
    return VisionTransformer(size=64, patch=16, layers=3, heads=4, width=48, hidden=96)


def swin() -> Swin:
    """A Swin transformer of three narrow stages, with windows of 7 x 7."""
    return Swin(width=16, depths=(2, 2, 2), heads=(2, 4, 8), window=7)
