"""The models of pair_nets_torch.py in MindSpore, as people port them: other names, another order of definition."""

from __future__ import annotations

from typing import Any

import mindspore
import numpy as np
from mindspore import Parameter, Tensor, nn, ops
from mindspore.common.initializer import Normal, initializer
from mindspore.experimental import optim


def conv(inputs: int, outputs: int, kernel: int, stride: int = 1, padding: int = 0, bias: bool = False) -> nn.Conv2d:
    return nn.Conv2d(inputs, outputs, kernel, stride, pad_mode="pad", padding=padding, has_bias=bias)


class Bottle(nn.Cell):
    def __init__(self, inputs: int, outputs: int, stride: int) -> None:
        super().__init__()
        self.bn_b = nn.BatchNorm2d(outputs)
        self.bn_a = nn.BatchNorm2d(outputs)
        self.conv_b = conv(outputs, outputs, 3, 1, 1)
        self.conv_a = conv(inputs, outputs, 3, stride, 1)
        self.relu = nn.ReLU()
        self.down_sample = stride > 1
        if self.down_sample:
            self.down_sample_layer = nn.SequentialCell([conv(inputs, outputs, 1, stride), nn.BatchNorm2d(outputs)])

    def construct(self, x: Tensor) -> Tensor:
        y = self.bn_b(self.conv_b(self.relu(self.bn_a(self.conv_a(x)))))
        identity = self.down_sample_layer(x) if self.down_sample else x
        return self.relu(y + identity)


class Residual(nn.Cell):
    def __init__(self, classes: int = 7) -> None:
        super().__init__()
        self.end_point = nn.Dense(16, classes)
        self.stem = conv(3, 8, 3, 2, 1)
        self.norm = nn.BatchNorm2d(8)
        self.pool = nn.MaxPool2d(3, 2, pad_mode="pad", padding=1)
        self.stage1 = nn.SequentialCell([Bottle(8, 8, 1), Bottle(8, 8, 1)])
        self.stage2 = Bottle(8, 16, 2)

    def construct(self, x: Tensor) -> Tensor:
        x = self.pool(ops.relu(self.norm(self.stem(x))))
        return self.end_point(ops.mean(self.stage2(self.stage1(x)), (2, 3)))


class Branches(nn.Cell):
    def __init__(self) -> None:
        super().__init__()
        self.first = conv(3, 4, 3, padding=1, bias=True)
        self.second = conv(3, 4, 3, padding=1, bias=True)
        self.classifier = nn.Dense(8, 5)

    def construct(self, x: Tensor) -> Tensor:
        second = ops.tanh(self.second(x))
        return self.classifier(ops.mean(ops.cat([self.first(x), second], 1), (2, 3)))


class Tokens(nn.Cell):
    def __init__(self, words: int = 31, width: int = 12, length: int = 6, classes: int = 4) -> None:
        super().__init__()
        self.classifier = nn.Dense(width, classes)
        self.word_embedding = nn.Embedding(words, width)
        self.pos = Parameter(Tensor(np.random.default_rng(0).normal(0, 0.1, (length, width)).astype(np.float32)))
        self.ln = nn.LayerNorm((width,), epsilon=1e-5)
        self.query, self.key, self.value = (nn.Dense(width, width) for _ in range(3))
        self.factor = width**-0.5

    def construct(self, ids: Tensor) -> Tensor:
        x = self.ln(self.word_embedding(ids) + self.pos)
        scores = ops.matmul(self.query(x), self.key(x).swapaxes(1, 2)) * self.factor
        return self.classifier((x + ops.matmul(ops.softmax(scores, -1), self.value(x))).mean(1))


class Biasless(Tokens):
    """Tokens ported with three things wrong: a layer without its bias, a position that does not train, another eps."""

    def __init__(self) -> None:
        super().__init__()
        self.query = nn.Dense(12, 12, has_bias=False)
        self.pos.requires_grad = False
        self.ln = nn.LayerNorm((12,), epsilon=1e-2)


class TwoInputs(nn.Cell):
    def __init__(self) -> None:
        super().__init__()
        self.filters = nn.Conv1d(4, 6, 3, pad_mode="pad", padding=1, has_bias=True)
        self.out = nn.Dense(6, 3)

    def construct(self, x: Tensor, mask: Tensor) -> Tensor:
        y = ops.tanh(self.filters(x)) * ops.cast(mask.expand_dims(1), x.dtype)
        return self.out(y.mean(2))


class Small(nn.Cell):
    def __init__(self) -> None:
        super().__init__()
        self.filters = nn.Conv2d(3, 6, 3, stride=2, pad_mode="valid", has_bias=True)
        self.bn = nn.BatchNorm2d(6)
        self.out = nn.Dense(6, 5)

    def construct(self, x: Tensor) -> Tensor:
        return self.out(ops.tanh(self.bn(self.filters(x))).mean((2, 3)))


class Auxiliary(Small):
    def __init__(self) -> None:
        super().__init__()
        self.second = nn.Dense(6, 5)

    def construct(self, x: Tensor) -> Any:
        y = ops.tanh(self.bn(self.filters(x))).mean((2, 3))
        return self.out(y), self.second(y)


def parts() -> dict[str, Any]:
    """As in pair_nets_torch.py."""

    def loss(outputs: tuple[Tensor, Tensor], labels: Tensor) -> Tensor:
        return ops.cross_entropy(outputs[0], labels) + 0.4 * ops.cross_entropy(outputs[1], labels)

    return {"model": Auxiliary(), "loss": loss, "optimizer": lambda p: optim.SGD(p, 0.01, momentum=0.9)}


def stepped() -> dict[str, Any]:
    """As in pair_nets_torch.py."""

    def step(net: nn.Cell, optimizer: Any, images: Tensor, labels: Tensor) -> dict[str, Any]:
        names, weights = zip(*((p.name, p) for p in net.trainable_params()), strict=True)

        def forward(x: Tensor, y: Tensor) -> tuple[Tensor, Tensor]:
            logits = net(x)
            return ops.cross_entropy(logits, y) + 1e-3 * net.out.weight.square().sum(), logits

        (loss, logits), grads = mindspore.value_and_grad(forward, None, weights, has_aux=True)(images, labels)
        by_name = dict(zip(names, grads, strict=True))
        optimizer(tuple(by_name[p.name] for p in optimizer.parameters))
        return {"loss": loss, "logits": logits, "grads": by_name}

    return {"model": Small(), "step": step}


class Swapped(nn.Cell):
    """Tokens with torch's names; what is called q is used as the key, and k as the query."""

    def __init__(self, words: int = 31, width: int = 12, length: int = 6, classes: int = 4) -> None:
        super().__init__()
        self.embed = nn.Embedding(words, width)
        self.position = Parameter(Tensor(np.zeros((1, length, width), np.float32)))
        self.norm = nn.LayerNorm((width,), epsilon=1e-5)
        self.q, self.k, self.v = (nn.Dense(width, width) for _ in range(3))
        self.head = nn.Dense(width, classes)

    def construct(self, ids: Tensor) -> Tensor:
        x = self.norm(self.embed(ids) + self.position)
        scores = ops.matmul(self.k(x), self.q(x).swapaxes(1, 2)) * 12**-0.5
        return self.head((x + ops.matmul(ops.softmax(scores, -1), self.v(x))).mean(1))


def loose() -> nn.Cell:
    """Small with one eps that is not torch's."""
    net = Small()
    net.bn = nn.BatchNorm2d(6, eps=1e-3)
    return net


class WithVarianceOfThePopulation(nn.BatchNorm2d):
    """Keeps the variance that it divides by; torch keeps the sample's, of n / (n - 1) times as much."""

    def construct(self, x: Tensor) -> Tensor:
        mean, variance = self.moving_mean, self.moving_variance
        if self.training:
            mean = ops.mean(x, (0, 2, 3))
            variance = ops.mean(ops.square(x - self._spread(mean)), (0, 2, 3))
            for held, new in ((self.moving_mean, mean), (self.moving_variance, variance)):
                ops.assign(held, held * self.momentum + ops.stop_gradient(new) * (1.0 - self.momentum))
        y = (x - self._spread(mean)) / ops.sqrt(self._spread(variance) + self.eps)
        return y * self._spread(self.gamma) + self._spread(self.beta)

    def _spread(self, values: Tensor) -> Tensor:
        return values.reshape(1, -1, 1, 1)


def norms(norm: Any = nn.BatchNorm2d, **args: Any) -> nn.Cell:
    first = [conv(3, 8, 3), norm(8, **args), nn.ReLU(), conv(8, 8, 3), norm(8, **args), nn.ReLU()]
    return nn.SequentialCell([*first, nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Dense(8, 5)])


def momentum_of_norms() -> nn.Cell:
    return norms(momentum=0.1)


def eps_of_norms() -> nn.Cell:
    return norms(eps=1e-3)


def variance_of_norms() -> nn.Cell:
    return norms(WithVarianceOfThePopulation)


class Alike(nn.Cell):
    """As in pair_nets_torch.py."""

    def __init__(self) -> None:
        super().__init__()
        self.stem = nn.Dense(3, 6)
        self.one = nn.Dense(6, 6, has_bias=False)
        self.two = nn.Dense(6, 6, has_bias=False)
        self.head = nn.Dense(6, 5)

    def construct(self, x: Tensor) -> Tensor:
        x = ops.tanh(self.one(ops.tanh(self.stem(x.mean((2, 3))))))
        return self.head(ops.tanh(self.two(x)))


def grouped(rate: float = 0.02) -> dict[str, Any]:
    """Groups that put the second of two equal layers before the first."""
    net = Alike()

    def optimizer(parameters: list[Parameter]) -> Any:
        ours = [p for p in parameters if p.name.startswith(("stem", "two"))]
        rest = [p for p in parameters if not p.name.startswith(("stem", "two"))]
        groups = [{"params": ours, "lr": rate, "weight_decay": 0.01}, {"params": rest}]
        return nn.SGD(groups, 0.05, momentum=0.9)

    return {"model": net, "optimizer": optimizer}


def misgrouped() -> dict[str, Any]:
    """One group's rate is not torch's."""
    return grouped(0.03)


def handed() -> dict[str, Any]:
    """A step that hands the gradients over in the net's order: the optimizer's is another."""

    def step(net: nn.Cell, optimizer: Any, images: Tensor, labels: Tensor) -> dict[str, Any]:
        weights = net.trainable_params()

        def forward(x: Tensor, y: Tensor) -> tuple[Tensor, Tensor]:
            logits = net(x)
            return ops.cross_entropy(logits, y), logits

        (loss, logits), grads = mindspore.value_and_grad(forward, None, weights, has_aux=True)(images, labels)
        optimizer(grads)
        return {"loss": loss, "logits": logits, "grads": {p.name: g for p, g in zip(weights, grads, strict=True)}}

    return {**grouped(), "step": step}


class HardGate(nn.Cell):
    def __init__(self, shift: float) -> None:
        super().__init__()
        self.relu6, self.shift = nn.ReLU6(), shift

    def construct(self, x: Tensor) -> Tensor:
        return self.relu6(x + self.shift) / 6.0


class HardSwish(nn.Cell):
    def __init__(self) -> None:
        super().__init__()
        self.clip = nn.ReLU6()

    def construct(self, x: Tensor) -> Tensor:
        return x * self.clip(x + 3.0) / 6.0


class MeanOfAll(nn.Cell):
    def __init__(self, times: float) -> None:
        super().__init__()
        self.times = times

    def construct(self, x: Tensor) -> Tensor:
        return ops.mean(x, (2, 3), True) * self.times


class GatedCell(nn.Cell):
    def __init__(self, width: int, shift: float = 3.0, eps: float = 1e-5) -> None:
        super().__init__()
        self.conv, self.bn, self.relu = conv(width, width, 3, 1, 1), nn.BatchNorm2d(width, eps), nn.ReLU()
        self.point, self.hard = nn.Conv2d(width, width, 1, has_bias=True), HardGate(shift)

    def construct(self, x: Tensor) -> Tensor:
        y = self.relu(self.bn(self.conv(x)))
        return x + y * self.hard(self.point(ops.mean(y, (2, 3), True)))


class Rows(nn.Cell):
    """On the points of an image one after the other, and told how high it is."""

    def __init__(self, width: int, epsilon: float) -> None:
        super().__init__()
        self.layer_norm, self.dense = nn.LayerNorm((width,), epsilon=epsilon), nn.Dense(width, width)
        self.swish = HardSwish()

    def construct(self, x: Tensor, height: int) -> Tensor:
        return x + self.swish(self.dense(self.layer_norm(x)))


class Composed(nn.Cell):
    """shift, eps, times, epsilon: what may be wrong in a gate, a norm with its activation, the pool, the mixer."""

    def __init__(self, shift: float = 3.0, eps: float = 1e-5, times: float = 1.0, epsilon: float = 1e-5) -> None:
        super().__init__()
        self.begin, self.begin_norm, self.begin_act = conv(3, 8, 3, 2, 1), nn.BatchNorm2d(8), nn.ReLU()
        down = nn.Conv2d(8, 12, 2, 2, has_bias=True)
        self.groups = nn.CellList(
            [nn.CellList([GatedCell(8, shift), GatedCell(8, eps=eps)]), nn.CellList([down, GatedCell(12)])]
        )
        self.rows, self.branch = Rows(12, epsilon), nn.Identity()
        self.gap, self.end_norm, self.head = MeanOfAll(times), nn.LayerNorm((12,), epsilon=1e-5), nn.Dense(12, 5)

    def construct(self, x: Tensor) -> Tensor:
        x = self.begin_act(self.begin_norm(self.begin(x)))
        for group in self.groups:
            for cell in group:
                x = cell(x)
        y = self.rows(x.reshape(*x.shape[:2], -1).transpose(0, 2, 1), x.shape[2])
        y = self.gap(x + self.branch(y.transpose(0, 2, 1).reshape(x.shape)))
        return self.head(self.end_norm(y.reshape(y.shape[0], -1)))


def composed_wrong() -> nn.Cell:
    return Composed(shift=2.0, eps=1e-3, times=1.5, epsilon=1e-3)


class WrittenOut(nn.Cell):
    """Attention with one layer for query, key and value, as timm has it."""

    def __init__(self, width: int, scale: float) -> None:
        super().__init__()
        self.three, self.out, self.scale = nn.Dense(width, 3 * width), nn.Dense(width, width), scale

    def construct(self, x: Tensor) -> Tensor:
        n, length, width = x.shape
        q, k, v = self.three(x).reshape(n, length, 3, 2, width // 2).transpose(2, 0, 3, 1, 4)
        weights = ops.softmax(ops.matmul(q, k.swapaxes(-1, -2)) * self.scale, -1)
        return self.out(ops.matmul(weights, v).swapaxes(1, 2).reshape(n, length, width))


class Layer(nn.Cell):
    def __init__(self, width: int, scale: float = 6**-0.5, post: bool = False) -> None:
        super().__init__()
        self.ln_a, self.ln_b = (nn.LayerNorm((width,), epsilon=1e-5) for _ in range(2))
        self.at, self.post = WrittenOut(width, scale), post
        self.grow, self.act, self.shrink = nn.Dense(width, 20), nn.Tanh(), nn.Dense(20, width)

    def construct(self, x: Tensor) -> Tensor:
        if self.post:
            x = self.ln_a(x + self.at(x))
            return self.ln_b(x + self.shrink(self.act(self.grow(x))))
        x = x + self.at(self.ln_a(x))
        return x + self.shrink(self.act(self.grow(self.ln_b(x))))


class Loop(nn.Cell):
    def __init__(self, width: int, backwards: bool) -> None:
        super().__init__()
        self.one_step, self.backwards = nn.GRUCell(width, 9), backwards

    def construct(self, x: Tensor) -> Tensor:
        h, found = ops.zeros((x.shape[0], 9), x.dtype), []
        for step in ops.unbind(x, 1)[:: -1 if self.backwards else 1]:
            h = self.one_step(step, h)
            found.append(h)
        return ops.stack(found, 1)


class Fused(nn.Cell):
    def __init__(
        self, eps: float = 1e-5, act: str = "silu", scale: float = 6**-0.5, post: bool = False, backwards: bool = False
    ) -> None:
        super().__init__()
        self.c1, self.n1 = conv(3, 6, 4, 4), nn.BatchNorm2d(6, eps)
        self.c2, self.n2, self.act = conv(6, 12, 2, 2), nn.BatchNorm2d(12), getattr(ops, act)
        self.point = nn.Conv2d(12, 12, 1, has_bias=True)
        self.layers = nn.CellList([Layer(12, scale), Layer(12, post=post)])
        self.loop, self.end_norm = Loop(12, backwards), nn.LayerNorm((9,), epsilon=1e-5)
        self.one, self.two = nn.Dense(9, 5), nn.Dense(9, 5)

    def construct(self, x: Tensor) -> Tensor:
        x = self.point(self.act(self.n2(self.c2(ops.relu(self.n1(self.c1(x)))))))
        x = x.reshape(*x.shape[:2], -1).swapaxes(1, 2)
        for layer in self.layers:
            x = layer(x)
        x = self.end_norm(self.loop(x))
        return (self.one(x[:, -1]) + self.two(x.mean(1))) / 2.0


def fused_wrong() -> nn.Cell:
    return Fused(eps=1e-3, act="relu", scale=1.0, post=True, backwards=True)


class Mixing(nn.Cell):
    """As in pair_nets_torch.py; the positions go through their layer once for all examples."""

    def __init__(self, shared: nn.Cell) -> None:
        super().__init__()
        self.own, self.shared, self.place = nn.Dense(8, 8), shared, nn.Dense(2, 8)
        steps = np.arange(16.0, dtype=np.float32)
        self.places = Tensor(np.stack([steps // 4, steps % 4], -1)[None] / 4)

    def construct(self, x: Tensor) -> Tensor:
        return x + self.own(ops.tanh(self.shared(x))) + self.place(self.places)


class Shared(nn.Cell):
    def __init__(self) -> None:
        super().__init__()
        self.stem, self.mix = nn.Conv2d(3, 8, 8, 8, pad_mode="valid", has_bias=True), nn.Dense(8, 8)
        self.blocks = nn.CellList([Mixing(self.mix) for _ in range(2)])
        self.head = nn.Dense(8, 5)

    def construct(self, x: Tensor) -> Tensor:
        x = self.stem(x)
        x = x.reshape(x.shape[0], 8, -1).swapaxes(1, 2)
        for block in self.blocks:
            x = block(x)
        return self.head(x.mean(1))


class LastBlock(nn.Cell):
    def __init__(self) -> None:
        super().__init__()
        self.dwconv = nn.Conv2d(6, 6, 3, 1, "pad", 1, group=6, has_bias=True)
        self.ln, self.pw1, self.gelu = nn.LayerNorm((6,), epsilon=1e-5), nn.Dense(6, 10), nn.GELU(approximate=False)
        self.pw2 = nn.Dense(10, 6)

    def construct(self, x: Tensor) -> Tensor:
        y = self.ln(self.dwconv(x).transpose(0, 2, 3, 1))
        return x + self.pw2(self.gelu(self.pw1(y))).transpose(0, 3, 1, 2)


class ChannelsFirst(nn.Cell):
    """With the channels last behind the first convolution of a block."""

    def __init__(self) -> None:
        super().__init__()
        self.patches = nn.Conv2d(3, 6, 4, 4, pad_mode="valid", has_bias=True)
        self.layers = nn.SequentialCell([LastBlock() for _ in range(2)])
        self.out = nn.Dense(6, 5)

    def construct(self, x: Tensor) -> Tensor:
        return self.out(self.layers(self.patches(x)).mean((2, 3)))


class Unset(nn.Cell):
    """With values where torch has none."""

    def __init__(self) -> None:
        super().__init__()
        self.stem, self.head = nn.Conv2d(3, 8, 8, 8, pad_mode="valid", has_bias=True), nn.Dense(8, 5)
        self.place = Parameter(ops.zeros((1, 8, 1, 1), mindspore.float32))
        self.wide = Parameter(initializer("normal", (8, 5)))

    def construct(self, x: Tensor) -> Tensor:
        x = (self.stem(x) + self.place).mean((2, 3))
        return self.head(x) + ops.matmul(x, self.wide)


class Bare(nn.Cell):
    """The same but for its second output."""

    def __init__(self) -> None:
        super().__init__()
        self.first, self.second = (Parameter(initializer(Normal(1 / 7), (48, width))) for width in (5, 4))

    def construct(self, x: Tensor) -> tuple[Tensor, Tensor]:
        x = x.reshape(x.shape[0], 3, 4, 8, 4, 8).mean((3, 5)).reshape(x.shape[0], -1)
        return ops.matmul(x, self.first), ops.sigmoid(ops.matmul(x, self.second))


class Spare(Small):
    """What it computes nothing with is frozen."""

    def __init__(self) -> None:
        super().__init__()
        self.spare = conv(6, 6, 1, bias=True)
        self.shift = Parameter(ops.randn(6))
        for parameter in (self.spare.weight, self.spare.bias, self.shift):
            parameter.requires_grad = False

    def construct(self, x: Tensor) -> Tensor:
        return super().construct(ops.stop_gradient(x))


def decayed() -> nn.Cell:
    """The optimizer decays what the net computes nothing with."""
    net = Spare()
    for parameter in (net.spare.weight, net.spare.bias, net.shift):
        parameter.requires_grad = True
    return net


def frozen_too_much() -> nn.Cell:
    """With it something is frozen that torch trains."""
    net = Spare()
    net.out.bias.requires_grad = False
    return net
