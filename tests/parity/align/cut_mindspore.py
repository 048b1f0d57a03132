"""The nets of cut_torch.py as others would write them: what is one layer there is several here, and the reverse."""

from __future__ import annotations

from typing import Any

import mindspore
from mindspore import Tensor, nn, ops

WIDTH, HEADS = 8, 2


def attention(q: Tensor, k: Tensor, v: Tensor) -> Tensor:
    q, k, v = (x.reshape(x.shape[0], x.shape[1], HEADS, -1).swapaxes(1, 2) for x in (q, k, v))
    scores = ops.matmul(q, k.swapaxes(2, 3)) * (WIDTH // HEADS) ** -0.5
    x = ops.matmul(ops.softmax(scores, -1), v).swapaxes(1, 2)
    return x.reshape(x.shape[0], x.shape[1], -1)


class Three(nn.Cell):
    """Defined in another order than packed ones have them."""

    def __init__(self) -> None:
        super().__init__()
        self.wo, self.wv, self.wk, self.wq = (nn.Dense(WIDTH, WIDTH) for _ in range(4))

    def construct(self, x: Tensor) -> Tensor:
        return self.wo(attention(self.wq(x), self.wk(x), self.wv(x)))


class Swapped(Three):
    """Wrong: keys are values and values keys."""

    def construct(self, x: Tensor) -> Tensor:
        return self.wo(attention(self.wq(x), self.wv(x), self.wk(x)))


class Scaled(Three):
    """Wrong: queries are doubled."""

    def construct(self, x: Tensor) -> Tensor:
        return self.wo(attention(2 * self.wq(x), self.wk(x), self.wv(x)))


class Untold(nn.Cell):
    """Right, under names that say nothing, in the order key, query, value."""

    def __init__(self) -> None:
        super().__init__()
        self.one, self.two, self.three, self.four = (nn.Dense(WIDTH, WIDTH) for _ in range(4))

    def construct(self, x: Tensor) -> Tensor:
        k, q, v = self.one(x), self.two(x), self.three(x)
        return self.four(attention(q, k, v))


class Packed(nn.Cell):
    def __init__(self) -> None:
        super().__init__()
        self.mix, self.end = nn.Dense(WIDTH, 3 * WIDTH), nn.Dense(WIDTH, WIDTH)

    def construct(self, x: Tensor) -> Tensor:
        return self.end(attention(*ops.chunk(self.mix(x), 3, -1)))


class Turned(Packed):
    """Right, with keys, values and queries in this order."""

    def construct(self, x: Tensor) -> Tensor:
        k, v, q = ops.chunk(self.mix(x), 3, -1)
        return self.end(attention(q, k, v))


class Keyed(nn.Cell):
    def __init__(self) -> None:
        super().__init__()
        self.q, self.k, self.v = (nn.Dense(WIDTH, WIDTH, has_bias=False) for _ in range(3))
        self.out = nn.Dense(WIDTH, WIDTH)

    def construct(self, x: Tensor) -> Tensor:
        return self.out(attention(self.q(x), self.k(x), self.v(x)))


class Block(nn.Cell):
    def __init__(self, kind: type[nn.Cell]) -> None:
        super().__init__()
        self.ln1, self.mixer, self.ln2 = (
            nn.LayerNorm((WIDTH,), epsilon=1e-5),
            kind(),
            nn.LayerNorm((WIDTH,), epsilon=1e-5),
        )
        self.gate, self.up, self.down = nn.Dense(WIDTH, 12), nn.Dense(WIDTH, 12), nn.Dense(12, WIDTH)

    def construct(self, x: Tensor) -> Tensor:
        x = x + self.mixer(self.ln1(x))
        y = self.ln2(x)
        return x + self.down(ops.tanh(self.gate(y)) * self.up(y))


class Net(nn.Cell):
    def __init__(self, *kinds: type[nn.Cell]) -> None:
        super().__init__()
        self.few = nn.Conv2d(3, 3, 8, 8, pad_mode="valid", has_bias=True)
        self.more = nn.Conv2d(3, 5, 8, 8, pad_mode="valid", has_bias=True)
        self.layers = nn.CellList([Block(kind) for kind in kinds])
        self.last, self.out = nn.LayerNorm((WIDTH,), epsilon=1e-5), nn.Dense(WIDTH, 5)

    def construct(self, x: Tensor) -> Tensor:
        x = ops.cat([self.few(x), self.more(x)], 1)
        x = x.reshape(x.shape[0], WIDTH, -1).swapaxes(1, 2)
        for layer in self.layers:
            x = layer(x)
        return self.out(self.last(x).mean(1))


def cut() -> nn.Cell:
    return Net(Three, Keyed)


def three() -> nn.Cell:
    return Net(Three)


def swapped() -> nn.Cell:
    return Net(Swapped)


def scaled() -> nn.Cell:
    return Net(Scaled)


def untold() -> nn.Cell:
    return Net(Untold)


def packed() -> nn.Cell:
    return Net(Packed)


def turned() -> nn.Cell:
    return Net(Turned)


class Rnn(nn.Cell):
    def __init__(self, kind: Any, *layers: int) -> None:
        super().__init__()
        self.parts = nn.CellList([kind(6 if i == 0 else 4, 4, n, batch_first=True) for i, n in enumerate(layers)])
        self.out = nn.Dense(4, 5)

    def construct(self, x: Tensor) -> Tensor:
        x = ops.cat([ops.avg_pool2d(x, 8, 8)[:, :, 0].swapaxes(1, 2)] * 2, 2)
        for part in self.parts:
            x = part(x)[0]
        return self.out(x[:, -1])


def stacked() -> nn.Cell:
    return Rnn(nn.LSTM, 3)


def apart() -> nn.Cell:
    return Rnn(nn.LSTM, 1, 2)


def step() -> Any:
    """As in cut_torch.py."""

    def own(net: nn.Cell, optimizer: Any, images: Tensor, labels: Tensor) -> Any:
        def forward(x: Tensor, y: Tensor) -> Tensor:
            return ops.cross_entropy(net(x), y)

        loss, grads = mindspore.value_and_grad(forward, None, optimizer.parameters)(images, labels)
        optimizer(grads)
        return {"loss": loss, "grads": {p.name: g for p, g in zip(optimizer.parameters, grads, strict=True)}}

    return {"model": cut(), "step": own}
