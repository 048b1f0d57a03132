"""The nets of foreign_torch.py by hand in MindSpore: other names, other cuts; a fault is a keyword."""

from __future__ import annotations

from typing import Any

import mindspore
import numpy as np
from mindspore import Parameter, Tensor, nn, ops
from mindspore.common.initializer import Normal, XavierUniform, initializer


def conv(inputs: int, outputs: int, kernel: int, stride: int = 1, padding: int = 0, **more: Any) -> nn.Conv2d:
    return nn.Conv2d(inputs, outputs, kernel, stride, **{"pad_mode": "pad", "padding": padding, **more})


class Attention(nn.Cell):
    """torch's MultiheadAttention, written out."""

    def __init__(
        self, dim: int, heads: int, scale: str = "head", axis: int = -1, cut: str = "heads last", order: str = "qkv"
    ) -> None:
        super().__init__()
        self.heads, self.size, self.axis, self.cut, self.order = heads, dim // heads, axis, cut, order
        self.scale = {"head": self.size**-0.5, "none": 1.0, "width": dim**-0.5, "size": 1.0 / self.size}[scale]
        self.in_proj_weight = Parameter(initializer(XavierUniform(), (3 * dim, dim)), name="in_proj_weight")
        self.in_proj_bias = Parameter(initializer("zeros", (3 * dim,)), name="in_proj_bias")
        self.out_proj = nn.Dense(dim, dim, bias_init="zeros")

    def parted(self, x: Tensor) -> Tensor:
        n, length, dim = x.shape
        if self.cut == "heads first":
            return x.reshape(n, self.heads, length, dim // self.heads)
        return x.reshape(n, length, self.heads, dim // self.heads).swapaxes(1, 2)

    def construct(self, query: Tensor, key: Tensor, value: Tensor) -> Tensor:
        n, length, dim = query.shape
        weights, biases = ops.split(self.in_proj_weight, dim), ops.split(self.in_proj_bias, dim)
        part = dict(zip(self.order, zip(weights, biases, strict=True), strict=True))
        query, key, value = (
            self.parted(ops.dense(x, *part[name])) for name, x in zip("qkv", (query, key, value), strict=True)
        )
        weights = ops.softmax(ops.matmul(query, key.swapaxes(-1, -2)) * self.scale, self.axis)
        return self.out_proj(ops.matmul(weights, value).swapaxes(1, 2).reshape(n, length, dim))


class Layer(nn.Cell):
    def __init__(
        self, dim: int, heads: int, eps: float, post: bool, tanh: bool, residual: bool, **attention: Any
    ) -> None:
        super().__init__()
        self.post, self.residual = post, residual
        self.attention = Attention(dim, heads, **attention)
        self.ln_a = nn.LayerNorm((dim,), epsilon=eps)
        self.ln_b = nn.LayerNorm((dim,), epsilon=eps)
        self.grow = nn.Dense(dim, 2 * dim)
        self.gelu = nn.GELU(approximate=tanh)
        self.shrink = nn.Dense(2 * dim, dim)

    def construct(self, x: Tensor) -> Tensor:
        if self.post:
            x = self.ln_a(x + self.attention(x, x, x))
            return self.ln_b(x + self.shrink(self.gelu(self.grow(x))))
        y = self.ln_a(x)
        x = x + self.attention(y, y, y)
        y = self.shrink(self.gelu(self.grow(self.ln_b(x))))
        return x + y if self.residual else y


class Composite(nn.Cell):
    def __init__(
        self,
        momentum: float = 0.9,
        norm_eps: float = 1e-5,
        dilation: int = 2,
        act: type = nn.ReLU,
        same: bool = False,
        pad_counts: bool = True,
        eps: float = 1e-5,
        post: bool = False,
        tanh: bool = False,
        residual: bool = True,
        most: bool = False,
        **attention: Any,
    ) -> None:
        super().__init__()
        self.conv_a = conv(3, 12, 3, 2, **({"pad_mode": "same"} if same else {"padding": 1}))
        self.bn_a = nn.BatchNorm2d(12, eps=1e-5, momentum=momentum)
        self.conv_b = conv(12, 24, 3, 1, dilation, dilation=dilation, group=3)
        self.bn_b = nn.BatchNorm2d(24, eps=norm_eps, momentum=0.9)
        self.act_a, self.act_b = nn.ReLU(), act()
        self.average = nn.AvgPool2d(3, 2, pad_mode="pad", padding=1, count_include_pad=pad_counts)
        self.conv_c = conv(24, 24, 2, 2, has_bias=True)
        written = (24, 4, eps, post, tanh)
        self.layers = nn.CellList([Layer(*written, residual=r, **attention) for r in (True, residual)])
        self.last_ln = nn.LayerNorm((24,), epsilon=1e-5)
        self.classifier = nn.Dense(24, 10)
        self.most = most

    def construct(self, x: Tensor) -> Tensor:
        x = self.act_a(self.bn_a(self.conv_a(x)))
        x = self.act_b(self.bn_b(self.conv_b(x)))
        x = self.conv_c(self.average(x))
        n, channels, _, _ = x.shape
        x = x.reshape(n, channels, -1).swapaxes(1, 2)
        for layer in self.layers:
            x = layer(x)
        x = self.last_ln(x)
        return self.classifier(ops.amax(x, 1) if self.most else x.mean(1))


class Functional(nn.Cell):
    """What torch's net has as functions are Cells, but for the interpolation."""

    def __init__(
        self,
        slope: float = 0.2,
        zeros: bool = False,
        batch_statistics: bool | None = None,
        groups: int = 4,
        act: type = nn.SiLU,
        corners: bool = False,
        rule: str = "bilinear",
        swapped: bool = False,
        pad_counts: bool = False,
        ceil: bool = False,
        channels_last: bool = False,
        tanh: bool = False,
        axis: int = 1,
        largest: bool = False,
        up: str = "values",
    ) -> None:
        super().__init__()
        self.conv_in = conv(3, 8, 3, 1, 1, has_bias=True)
        self.bn_in = nn.BatchNorm2d(8, eps=1e-5, momentum=0.9, use_batch_statistics=batch_statistics)
        self.leaky = nn.LeakyReLU(alpha=slope)
        self.pad = nn.ConstantPad2d(1, 0.0) if zeros else nn.Identity()
        self.largest = nn.MaxPool2d(3, 2, pad_mode="valid") if zeros else nn.MaxPool2d(3, 2, pad_mode="pad", padding=1)
        self.conv_down = conv(8, 16, 3, 2, 1, has_bias=True)
        self.group_norm = nn.GroupNorm(groups, 16, eps=1e-5)
        self.swish = act()
        if up == "same":
            self.conv_up = nn.Conv2dTranspose(16, 8, 3, 2, pad_mode="same", has_bias=True)
        elif up == "zeros":
            self.conv_up = nn.Conv2dTranspose(16, 8, 3, 2, pad_mode="pad", padding=1, output_padding=1, has_bias=True)
        else:
            self.conv_up = nn.Conv2dTranspose(16, 8, 3, 2, pad_mode="pad", padding=(1, 0, 1, 0), has_bias=True)
        self.corners, self.rule, self.swapped = corners, rule, swapped
        self.average = nn.AvgPool2d(3, 2, pad_mode="pad", padding=1, count_include_pad=pad_counts, ceil_mode=ceil)
        self.shrink = nn.AdaptiveMaxPool2d(2) if largest else nn.AdaptiveAvgPool2d(2)
        self.channels_last, self.axis = channels_last, axis
        self.dense = nn.Dense(128, 32)
        self.gelu = nn.GELU(approximate=tanh)
        self.classifier = nn.Dense(32, 10)

    def construct(self, x: Tensor) -> Tensor:
        x = self.leaky(self.bn_in(self.conv_in(x)))
        small = self.largest(self.pad(x))
        deep = self.swish(self.group_norm(self.conv_down(small)))
        size = (2 * deep.shape[2], 2 * deep.shape[3])
        corners = {"align_corners": self.corners} if self.rule == "bilinear" else {}
        large = ops.interpolate(deep, size=size, mode=self.rule, **corners)
        up = self.conv_up(deep)
        x = ops.cat([large, up, small] if self.swapped else [up, large, small], 1)
        x = self.shrink(self.average(x))
        x = x.permute(0, 2, 3, 1) if self.channels_last else x
        x = x.reshape(x.shape[0], -1)
        x = x / ops.sqrt((x * x).sum(self.axis, keepdims=True)) * 4.0
        return self.classifier(self.gelu(self.dense(x)))


class Padded(nn.Embedding):
    """torch's row of the padding, which gets no gradient."""

    def construct(self, ids: Tensor) -> Tensor:
        x = super().construct(ids)
        kept = (ids != 0).astype(mindspore.float32).expand_dims(-1)
        return x * kept + ops.stop_gradient(x) * (1.0 - kept)


class Tagger(nn.Cell):
    def __init__(
        self,
        padding: bool = True,
        exchanged: bool = False,
        squashed: bool = True,
        eps: float = 1e-5,
        time_first: bool = False,
        step: str = "all",
    ) -> None:
        super().__init__()
        self.table = (Padded if padding else nn.Embedding)(31, 12, embedding_table=Normal(1.0))
        self.lstm = nn.LSTM(12, 10, batch_first=True, bidirectional=True)
        self.gru = nn.GRU(20, 16, batch_first=not time_first)
        self.ln = nn.LayerNorm((16,), epsilon=eps)
        self.classifier = nn.Dense(16, 5)
        self.exchanged, self.squashed, self.step = exchanged, squashed, step

    def construct(self, ids: Tensor) -> Tensor:
        x, _ = self.lstm(self.table(ids))
        if self.exchanged:
            x = ops.cat([x[..., 10:], x[..., :10]], -1)
        x, _ = self.gru(ops.tanh(x) if self.squashed else x)
        x = {"all": x, "last": x[:, -1], "first": x[:, 0], "mean": x.mean(1)}[self.step]
        return self.classifier(self.ln(x))


class Bottle(nn.Cell):
    def __init__(
        self, width: int, wide: int, eps: float, momentum: float, first: str, second: str, residual: bool
    ) -> None:
        super().__init__()
        self.point, self.bn_a = conv(width, wide, 1), nn.BatchNorm2d(wide, eps=1e-5, momentum=momentum)
        self.spread, self.bn_b = conv(wide, wide, 3, 1, 1, group=wide), nn.BatchNorm2d(wide, eps=eps)
        self.back, self.bn_c = conv(wide, width, 1), nn.BatchNorm2d(width)
        self.first, self.second, self.residual = ACTS[first], ACTS[second], residual

    def construct(self, x: Tensor) -> Tensor:
        y = self.first(self.bn_a(self.point(x)))
        y = self.second(self.bn_b(self.spread(y)))
        y = self.bn_c(self.back(y))
        return x + y if self.residual else y


ACTS = {
    "hardswish": ops.hardswish,
    "relu6": ops.relu6,
    "relu": ops.relu,
    "silu": ops.silu,
    "none": lambda x: x,
}


class Transformer(nn.Cell):
    """Attention is MindSpore's own."""

    def __init__(self, width: int, heads: int, eps: float, tanh: bool, before: bool) -> None:
        super().__init__()
        self.mix = nn.MultiheadAttention(width, heads, batch_first=True)
        self.ln_1, self.ln_2 = nn.LayerNorm((width,), epsilon=eps), nn.LayerNorm((width,), epsilon=1e-5)
        self.up, self.gelu, self.down = nn.Dense(width, 2 * width), nn.GELU(tanh), nn.Dense(2 * width, width)
        self.before = before

    def attend(self, x: Tensor) -> Tensor:
        return self.mix(x, x, x, need_weights=False)[0]

    def construct(self, x: Tensor) -> Tensor:
        if self.before:
            x = x + self.attend(self.ln_1(x))
            return x + self.down(self.gelu(self.up(self.ln_2(x))))
        x = self.ln_1(x + self.attend(x))
        return self.ln_2(x + self.down(self.gelu(self.up(x))))


class Fused(nn.Cell):
    """The activations are functions, and the LSTM's steps a loop."""

    def __init__(
        self,
        eps: float = 1e-5,
        momentum: float = 0.9,
        start: str = "silu",
        first: str = "hardswish",
        second: str = "relu6",
        residual: bool = True,
        heads: int = 4,
        ln_eps: float = 1e-5,
        tanh: bool = False,
        before: bool = False,
        backwards: bool = False,
        exchanged: bool = False,
        last_eps: float = 1e-5,
        added: bool = False,
    ) -> None:
        super().__init__()
        self.begin, self.begin_bn, self.start = conv(3, 8, 4, 4), nn.BatchNorm2d(8), ACTS[start]
        usual = (1e-5, 0.9, "hardswish", "relu6", True)
        self.bottles = nn.CellList([Bottle(8, 20, *usual), Bottle(8, 20, eps, momentum, first, second, residual)])
        self.cut = conv(8, 16, 2, 2, has_bias=True)
        self.encoder = nn.CellList(
            [Transformer(16, 4, 1e-5, tanh, before), Transformer(16, heads, ln_eps, tanh, before)]
        )
        self.step, self.ln = nn.LSTMCell(16, 14), nn.LayerNorm((14,), epsilon=last_eps)
        self.head_a, self.head_b = nn.Dense(14, 10), nn.Dense(16, 10)
        self.backwards, self.exchanged, self.added = backwards, exchanged, added

    def construct(self, x: Tensor) -> Tensor:
        x = self.start(self.begin_bn(self.begin(x)))
        for cell in self.bottles:
            x = cell(x)
        x = self.cut(x)
        x = x.reshape(*x.shape[:2], -1).swapaxes(1, 2)
        for layer in self.encoder:
            x = layer(x)
        zeros = ops.zeros((x.shape[0], 14), x.dtype)
        state, found = (zeros, zeros), []
        for step in ops.unbind(x, 1)[:: -1 if self.backwards else 1]:
            state = self.step(step, state[::-1] if self.exchanged else state)
            found.append(state[0])
        y = self.head_a(self.ln(ops.stack(found, 1)).mean(1)) + self.head_b(x[:, 0])
        return y if self.added else y / 2.0


def composite(act: str = "ReLU", **wrong: Any) -> nn.Cell:
    return Composite(act=getattr(nn, act), **wrong)


def fused(**wrong: Any) -> nn.Cell:
    return Fused(**wrong)


def functional(act: str = "SiLU", **wrong: Any) -> nn.Cell:
    return Functional(act=getattr(nn, act), **wrong)


def recurrent(**wrong: Any) -> nn.Cell:
    return Tagger(**{"step": "last", **wrong})


def tagger(mean: str = "by weight", ignore: bool = True, weighted: bool = True, **wrong: Any) -> dict[str, Any]:
    weight = Tensor(np.array([1.0, 0.5, 2.0, 1.5, 0.25], np.float32)) if weighted else None
    index = {"ignore_index": 4} if ignore else {}

    def loss(tags: Tensor, labels: Tensor) -> Tensor:
        logits, targets = tags.reshape(-1, 5), labels.reshape(-1).astype(mindspore.int32)
        if mean == "by count":
            each = ops.cross_entropy(logits, targets, weight=weight, reduction="none", **index)
            return each.mean()
        return ops.cross_entropy(logits, targets, weight=weight, **index)

    return {"model": Tagger(**wrong), "loss": loss}
