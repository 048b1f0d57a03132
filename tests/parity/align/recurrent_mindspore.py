"""The nets of recurrent_torch.py in MindSpore, right and with a mistake."""

from typing import Any

from mindspore import Tensor, nn, ops


class Packed(nn.Cell):
    """Fault: `no lengths`, `gates` in TensorFlow's order, `bias` of one side twice, `directions` swapped."""

    def __init__(
        self,
        kind: str = "LSTM",
        layers: int = 2,
        both: bool = True,
        first: bool = True,
        dropout: float = 0.0,
        fault: str = "",
    ) -> None:
        super().__init__()
        self.memory = getattr(nn, kind)(6, 8, layers, batch_first=first, bidirectional=both, dropout=dropout)
        if fault in ("gates", "bias"):
            self.memory.rnn = Faulty(self.memory.rnn, fault)
        self.verdict = nn.Dense(8 * (1 + both), 4)
        self.first, self.fault = first, fault

    def construct(self, x: Tensor, lengths: Tensor) -> Tensor:
        given = x if self.first else x.swapaxes(0, 1)
        steps, state = self.memory(given) if self.fault == "no lengths" else self.memory(given, None, lengths)
        steps = steps if self.first else steps.swapaxes(0, 1)
        h = state[0] if isinstance(state, tuple) else state
        ends = (h[-1], h[-2]) if self.fault == "directions" else h[-2:]
        return self.verdict((ops.cat((ends[0], ends[1]), 1) if len(h) % 2 == 0 else h[-1]) + steps.mean(1))


class Faulty(nn.Cell):
    """What a recurrent layer runs each of its layers with, on other weights than its own."""

    def __init__(self, right: nn.Cell, fault: str) -> None:
        super().__init__()
        self.right, self.fault = right, fault

    def construct(self, x: Tensor, h: Any, lengths: Tensor, *weights: Tensor) -> Any:
        w_ih, w_hh, b_ih, b_hh = map(turned, weights) if self.fault == "gates" else weights
        return self.right(x, h, lengths, w_ih, w_hh, b_ih * 2 if self.fault == "bias" else b_ih, b_hh)


def turned(weight: Tensor) -> Tensor:
    """Input, cell, forget and output gate for input, forget, cell and output."""
    i, f, g, o = ops.split(weight, weight.shape[0] // 4, 0)
    return ops.cat((i, g, f, o), 0)


class Given(nn.Cell):
    """Fault: the second forgets the first one's state."""

    def __init__(self, kind: str = "GRU", layers: int = 2, both: bool = True, fault: str = "", **options: str) -> None:
        super().__init__()
        self.memory = getattr(nn, kind)(6, 8, layers, bidirectional=both, **options)
        self.mouth = getattr(nn, kind)(6, 8, layers, bidirectional=both, has_bias=False, **options)
        self.verdict = nn.Dense(8 * (1 + both), 4)
        self.layers, self.many, self.fault = layers * (1 + both), kind == "LSTM", fault

    def construct(self, x: Tensor, lengths: Tensor) -> Tensor:
        h = ops.full((self.layers, len(x), 8), 0.3, dtype=x.dtype)
        _, state = self.memory(x.swapaxes(0, 1), (h, h * 0.5) if self.many else h)
        back = ops.flip(x, (1,)).swapaxes(0, 1)
        steps, _ = self.mouth(back) if self.fault == "forgets" else self.mouth(back, state)
        return self.verdict(steps[-1])


class Cells(nn.Cell):
    """The first step begins with zeros, which MindSpore's cells have to be given."""

    def __init__(self, kind: str = "LSTM", **options: str) -> None:
        super().__init__()
        self.beat = getattr(nn, f"{kind}Cell")(6, 8, **options)
        self.verdict = nn.Dense(8, 4)
        self.many = kind == "LSTM"

    def construct(self, x: Tensor, lengths: Tensor) -> Tensor:
        h = ops.zeros((len(x), 8), x.dtype)
        state = (h, h) if self.many else h
        for t in range(4):
            state = self.beat(x[:, t], state)
        return self.verdict(state[0] if self.many else state)


class Whole(nn.Cell):
    """torch's layer as loops of cells, one for each layer and direction."""

    def __init__(self, kind: str = "LSTM", both: bool = True, fault: str = "") -> None:
        super().__init__()
        cell = getattr(nn, f"{kind}Cell")
        self.beats = nn.CellList([cell(6 if n == 0 else 8 * (1 + both), 8) for n in range(2) for _ in range(1 + both)])
        self.verdict = nn.Dense(8 * (1 + both), 4)
        self.both, self.many, self.fault = both, kind == "LSTM", fault

    def construct(self, x: Tensor, lengths: Tensor) -> Tensor:
        for n in range(2):
            found = [self.read(self.beats[n * (1 + self.both) + i], x, back=bool(i)) for i in range(1 + self.both)]
            x = ops.cat(found[::-1] if n and self.fault == "directions" else found, -1)
        return self.verdict(x.mean(1))

    def read(self, beat: nn.Cell, x: Tensor, back: bool) -> Tensor:
        h = ops.zeros((len(x), 8), x.dtype)
        state, found = (h, h) if self.many else h, []
        for t in range(x.shape[1])[:: -1 if back else 1]:
            state = beat(x[:, t], state)
            found.append(state[0] if self.many else state)
        return ops.stack(found[:: -1 if back else 1], 1)
