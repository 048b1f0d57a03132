"""The nets of foreign_torch.py by hand in MindSpore: other names, other cuts; a fault is a keyword."""

from __future__ import annotations

from typing import Any

import mindspore
import numpy as np
from mindspore import Parameter, Tensor, experimental, nn, ops
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


class Unit(nn.Cell):
    """Two convolutions, each in a list with its norm and activation."""

    def __init__(self, inputs: int, outputs: int, own: dict[str, Any], dilation: int = 1) -> None:
        super().__init__()
        act, norm = nn.LeakyReLU(alpha=own["slope"]), nn.GroupNorm(own["gn"], outputs)
        self.first = nn.SequentialCell(conv(inputs, outputs, 3, 1, 1), norm, act)
        self.second = nn.SequentialCell(
            conv(outputs, outputs, 3, 1, dilation, dilation=dilation, group=2, has_bias=True),
            nn.BatchNorm2d(outputs, momentum=own["momentum"], use_batch_statistics=own["batch"]),
            nn.ELU(),
        )

    def construct(self, x: Tensor) -> Tensor:
        return self.second(self.first(x))


class Decoder(nn.Cell):
    def __init__(self, deep: int, skip: int, outputs: int, own: dict[str, Any], skip_last: bool) -> None:
        super().__init__()
        pads = tuple(own["pads"])
        self.deconv = nn.Conv2dTranspose(deep, deep // 2, 3, 2, pad_mode="pad", padding=pads, has_bias=True)
        self.fuse = Unit(deep // 2 + skip, outputs, own)
        self.skip_last, self.corner = skip_last, own["corner"]

    def construct(self, x: Tensor, skip: Tensor) -> Tensor:
        x = self.deconv(x)
        h, w = skip.shape[2], skip.shape[3]
        top, left = (0, 0) if self.corner else ((x.shape[2] - h + 1) // 2, (x.shape[3] - w + 1) // 2)
        x = x[:, :, top : top + h, left : left + w]
        return self.fuse(ops.concat((x, skip) if self.skip_last else (skip, x), 1))


class SegNet(nn.Cell):
    def __init__(self, **wrong: Any) -> None:
        super().__init__()
        own = {"slope": 0.1, "gn": 4, "momentum": 0.9, "batch": None, "pads": (1, 0, 1, 0), "corner": False}
        own |= {"dilation": 2, "skip_last": False, "count": True, "same": False, "axis": 1, "align": True}
        own |= {"rescale": True, "aux": 0.4, "maxed": False, "detach": False, "mode": "bilinear", **wrong}
        self.enc1, self.enc2 = Unit(3, 8, own), Unit(8, 16, own, own["dilation"])
        self.reduce1 = nn.MaxPool2d(3, 2, pad_mode="pad", padding=1, ceil_mode=True)
        self.reduce2 = nn.AvgPool2d(3, 2, pad_mode="pad", padding=1, count_include_pad=own["count"])
        self.enc3 = conv(16, 24, 3, 2, has_bias=True, **({"pad_mode": "same"} if own["same"] else {"padding": 1}))
        self.squeeze, self.act, self.excite = nn.Dense(24, 4), nn.SiLU(), nn.Dense(4, 24)
        self.ctx = conv(16, 24, 1, has_bias=True)
        self.dec1, self.dec2 = Decoder(24, 16, 16, own, own["skip_last"]), Decoder(16, 8, 8, own, False)
        self.predict, self.side = conv(8, 5, 1, has_bias=True), conv(16, 5, 1, has_bias=True)
        self.own = own

    def construct(self, img: Tensor) -> Tensor:
        own = self.own
        e1 = self.enc1(img)
        e2 = self.enc2(self.reduce1(e1))
        e3 = self.enc3(e2)
        squeezed = e3.max((2, 3)) if own["maxed"] else ops.mean(e3, (2, 3))
        gate = ops.softmax(self.excite(self.act(self.squeeze(squeezed))), axis=own["axis"])
        b, c = gate.shape
        e3 = e3 * gate.reshape((b, c, 1, 1))
        e3 = (e3 * c if own["rescale"] else e3) + self.ctx(self.reduce2(e2))
        d = self.dec1(e3, e2)
        out = self.predict(self.dec2(d, e1))
        s = self.side(ops.stop_gradient(d) if own["detach"] else d)
        corners = {} if own["mode"] == "nearest" else {"align_corners": own["align"]}
        return out + own["aux"] * ops.interpolate(s, size=out.shape[2:], mode=own["mode"], **corners)


class MyAdamW(nn.Optimizer):
    def __init__(self, params: Any, fault: str, second: float = 0.99, eps: float = 1e-6) -> None:
        super().__init__(1e-3, params)
        self.m, self.v = (self.parameters.clone(prefix=prefix, init="zeros") for prefix in ("m", "v"))
        self.t = Parameter(Tensor(0, mindspore.int32), name="t")
        self.fault, self.second, self.eps = fault, second, eps

    def construct(self, gradients: Any) -> bool:
        rates, decays = self.get_lr(), self.get_weight_decay()
        ops.assign_add(self.t, Tensor(1, mindspore.int32))
        t = 1e9 if self.fault == "uncorrected" else self.t.astype(mindspore.float32)
        for i, (p, g, m, v) in enumerate(zip(self.parameters, gradients, self.m, self.v, strict=True)):
            rate, decay = rates[i] if self.is_group_lr else rates, decays[i] if self.is_group else decays
            coupled = self.fault == "coupled"
            g = g + decay * p if coupled else g
            ops.assign(m, m * 0.9 + g * 0.1)
            ops.assign(v, v * self.second + g * g * (1 - self.second))
            one, two = m / (1 - 0.9**t), v / (1 - self.second**t)
            root = ops.sqrt(two + self.eps) if self.fault == "inside" else ops.sqrt(two) + self.eps
            ops.assign(p, (p if coupled else p * (1 - rate * decay)) - rate * one / root)
        return True


class Words(nn.Cell):
    def __init__(self, padding: bool) -> None:
        super().__init__()
        self.weight, self.padding = Parameter(initializer(Normal(1.0), (29, 16)), name="weight"), padding

    def construct(self, ids: Tensor) -> Tensor:
        out = ops.gather(self.weight, ids, 0)
        return ops.where((ids == 0).expand_dims(-1), ops.stop_gradient(out), out) if self.padding else out


class MHA(nn.Cell):
    def __init__(self, size: int, heads: int, own: dict[str, Any]) -> None:
        super().__init__()
        self.heads, self.size, self.own = heads, size // heads, own
        self.query, self.key = nn.Dense(size, size), nn.Dense(size, size, has_bias=False)
        self.value, self.dense = nn.Dense(size, size), nn.Dense(size, size)
        self.factor = {"head": self.size**0.5, "none": 1.0, "d": float(self.size)}[own["scale"]]

    def split(self, x: Tensor, b: int, t: int) -> Tensor:
        if self.own["cut"] == "reshape":
            return x.reshape(b, self.heads, t, self.size)
        if self.own["cut"] == "inner":
            return x.reshape(b, t, self.size, self.heads).transpose(0, 3, 1, 2)
        return x.reshape(b, t, self.heads, self.size).transpose(0, 2, 1, 3)

    def construct(self, h: Tensor, padding: Tensor) -> Tensor:
        own, (b, t, d) = self.own, h.shape
        q, k, v = (self.split(layer(h), b, t) for layer in (self.query, self.key, self.value))
        scores = ops.BatchMatMul(transpose_b=True)(q, k) / self.factor
        rows, cols = ops.arange(t).reshape(t, 1), ops.arange(t).reshape(1, t)
        hidden = ops.zeros((1, 1, t, t), mindspore.bool_)
        if own["masked"]:
            hidden = ops.logical_or(hidden, cols > rows + own["offset"])
        if own["padmask"]:
            hidden = ops.logical_or(hidden, padding.reshape(b, 1, 1, t))
        scores = ops.masked_fill(scores, ops.logical_not(hidden) if own["inverted"] else hidden, -1e4)
        o = ops.matmul(ops.softmax(scores, own["axis"]), v)
        return self.dense((o if own["cut"] == "back" else o.transpose(0, 2, 1, 3)).reshape(b, t, d))


class Sub(nn.Cell):
    def __init__(self, size: int, heads: int, own: dict[str, Any]) -> None:
        super().__init__()
        self.mha, self.own = MHA(size, heads, own), own
        self.norm_a, self.norm_b = nn.LayerNorm([size], epsilon=1e-5), nn.LayerNorm([size], epsilon=1e-5)
        self.wide, self.narrow = nn.Dense(size, size * 2), nn.Dense(size * 2, size)

    def ffn(self, x: Tensor) -> Tensor:
        return self.narrow(ops.gelu(self.wide(x), approximate="tanh" if self.own["tanh"] else "none"))

    def construct(self, h: Tensor, padding: Tensor) -> Tensor:
        if self.own["post"]:
            h = self.norm_a(h + self.mha(h, padding))
            return self.norm_b(h + self.ffn(h))
        h = h + self.mha(self.norm_a(h), padding)
        return h + self.ffn(self.norm_b(h))


class Recognizer(nn.Cell):
    def __init__(self, **wrong: Any) -> None:
        super().__init__()
        own = {"padding": True, "post": False, "tanh": False, "causal": False, "momentum": 0.8, "last": "real"}
        own |= {"eps": 1e-6, "scaled": True, "positioned": True, "reverse": False, "scale": "head", "offset": 0}
        own |= {"inverted": False, "axis": -1, "cut": "", "masked": True, "padmask": True, **wrong}
        self.embedding, self.own = Words(own["padding"]), own
        self.position = Parameter(initializer(Normal(0.1), (12, 16)), name="position")
        pads = {"pad_mode": "valid"} if own["causal"] else {"pad_mode": "pad", "padding": 1}
        self.front, self.front_bn = (
            nn.Conv1d(16, 16, 3, has_bias=True, **pads),
            nn.BatchNorm1d(16, momentum=own["momentum"]),
        )
        self.layer0, self.layer1 = Sub(16, 4, own), Sub(16, 4, own)
        self.gru = nn.GRU(16, 10, bidirectional=True, batch_first=True)
        self.final, self.out = nn.LayerNorm([20], epsilon=own["eps"]), nn.Dense(20, 6)

    def construct(self, ids: Tensor) -> Tensor:
        own, padding = self.own, ops.equal(ids, 0)
        h = self.embedding(ids) * 4.0 if own["scaled"] else self.embedding(ids)
        h = (h + self.position if own["positioned"] else h).swapaxes(1, 2)
        h = ops.pad(h, (2, 0)) if own["causal"] else h
        h = ops.relu(self.front_bn(self.front(h))).swapaxes(1, 2)
        h = self.layer1(self.layer0(h, padding), padding)
        seq, _ = self.gru(ops.flip(h, (1,)) if own["reverse"] else h)
        n = ops.logical_not(padding).astype(mindspore.int32).sum(1) - 1
        n = {"real": n, "before": ops.maximum(n - 1, 0), "end": ops.zeros_like(n) + 11}.get(own["last"], n)
        return self.out(self.final(seq.mean(1) if own["last"] == "mean" else seq[ops.arange(seq.shape[0]), n]))


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
        if mean != "by weight":
            each = ops.cross_entropy(logits, targets, weight=weight, reduction="none", **index)
            return each.mean() if mean == "by count" else each.sum() / (targets != 4).astype(mindspore.float32).sum()
        return ops.cross_entropy(logits, targets, weight=weight, **index)

    return {"model": Tagger(**wrong), "loss": loss}


def segment(loss: str = "weights", opt: str = "", **wrong: Any) -> dict[str, Any]:
    weight = Tensor(np.array([0.5, 1.0, 2.0, 1.5, 0.25], np.float32))

    def criterion(logits: Tensor, target: Tensor) -> Tensor:
        target = target.astype(mindspore.int32)
        own = {"weight": None if loss == "unweighted" else weight, "ignore_index": 255}
        if loss not in ("count", "all"):
            return ops.cross_entropy(logits, target, **own)
        each = ops.cross_entropy(logits, target, reduction="none", **own)
        return each.mean() if loss == "all" else each.sum() / (target != 255).astype(mindspore.float32).sum()

    def optimizer(params: Any) -> nn.Optimizer:
        params = list(params)
        decay, rest = [p for p in params if p.ndim > 1], [p for p in params if p.ndim < 2]
        if opt == "one group":
            return MyAdamW([{"params": params, "weight_decay": 0.05}], opt)
        own = {"beta": {"second": 0.999}, "eps": {"eps": 1e-3}}.get(opt, {})
        rate = {} if opt == "no lr" else {"lr": 2e-3}
        groups = [{"params": decay, "weight_decay": 0.05}, {"params": rest, "weight_decay": 0.0, **rate}]
        return MyAdamW(groups, opt, **own)

    return {"model": SegNet(**wrong), "loss": criterion, "optimizer": optimizer}


def speech(opt: str = "", **wrong: Any) -> dict[str, Any]:
    def optimizer(params: Any) -> Any:
        params = list(params)
        decay, rest = [p for p in params if p.ndim > 1], [p for p in params if p.ndim < 2]
        groups = [{"params": decay, "weight_decay": 0.1}, {"params": rest, "weight_decay": 0.0}]
        made = {
            "": lambda: experimental.optim.AdamW(groups, lr=1e-3, eps=1e-6),
            "one group": lambda: experimental.optim.AdamW(params, lr=1e-3, eps=1e-6, weight_decay=0.1),
            "built-in": lambda: nn.AdamWeightDecay(groups, 1e-3, eps=1e-6),
            "adam": lambda: nn.Adam(groups, 1e-3, eps=1e-6),
        }
        return made[opt]()  # another word plants nothing, and stops

    return {"model": Recognizer(**wrong), "optimizer": optimizer}
