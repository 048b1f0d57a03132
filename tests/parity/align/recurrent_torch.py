"""Recurrent nets in torch; nothing in them is called as in recurrent_mindspore.py."""

import torch
from torch import nn
from torch.nn.utils.rnn import pack_padded_sequence, pad_packed_sequence


class Packed(nn.Module):
    """Sequences of several lengths: the last state, and the mean of all steps."""

    def __init__(
        self, kind: str = "LSTM", layers: int = 2, both: bool = True, first: bool = True, dropout: float = 0.0
    ) -> None:
        super().__init__()
        self.reader = getattr(nn, kind)(6, 8, layers, batch_first=first, bidirectional=both, dropout=dropout)
        self.last = nn.Linear(8 * (1 + both), 4)

    def forward(self, x: torch.Tensor, lengths: torch.Tensor) -> torch.Tensor:
        packed, state = self.reader(pack_padded_sequence(x, lengths, batch_first=True, enforce_sorted=False))
        steps, _ = pad_packed_sequence(packed, batch_first=True, total_length=x.shape[1])
        h = state[0] if isinstance(state, tuple) else state
        return self.last((torch.cat((h[-2], h[-1]), 1) if len(h) % 2 == 0 else h[-1]) + steps.mean(1))


class Given(nn.Module):
    """Time first, with a state to begin with, which the first gives and the second goes on from."""

    def __init__(self, kind: str = "GRU", layers: int = 2, both: bool = True, **options: str) -> None:
        super().__init__()
        self.reader = getattr(nn, kind)(6, 8, layers, bidirectional=both, **options)
        self.writer = getattr(nn, kind)(6, 8, layers, bidirectional=both, bias=False, **options)
        self.last = nn.Linear(8 * (1 + both), 4)
        self.layers, self.many = layers * (1 + both), kind == "LSTM"

    def forward(self, x: torch.Tensor, lengths: torch.Tensor) -> torch.Tensor:
        h = torch.full((self.layers, len(x), 8), 0.3, dtype=x.dtype)
        _, state = self.reader(x.transpose(0, 1), (h, h * 0.5) if self.many else h)
        steps, _ = self.writer(x.flip(1).transpose(0, 1), state)
        return self.last(steps[-1])


class Cells(nn.Module):
    """A cell in a loop; the first step is given no state."""

    def __init__(self, kind: str = "LSTM", **options: str) -> None:
        super().__init__()
        self.step = getattr(nn, f"{kind}Cell")(6, 8, **options)
        self.last = nn.Linear(8, 4)

    def forward(self, x: torch.Tensor, lengths: torch.Tensor) -> torch.Tensor:
        state = self.step(x[:, 0])
        for t in range(1, 4):
            state = self.step(x[:, t], state)
        return self.last(state[0] if isinstance(state, tuple) else state)


class Whole(nn.Module):
    """A layer whose steps the other net makes in loops of cells."""

    def __init__(self, kind: str = "LSTM", both: bool = True) -> None:
        super().__init__()
        self.reader = getattr(nn, kind)(6, 8, 2, batch_first=True, bidirectional=both)
        self.last = nn.Linear(8 * (1 + both), 4)

    def forward(self, x: torch.Tensor, lengths: torch.Tensor) -> torch.Tensor:
        return self.last(self.reader(x)[0].mean(1))
