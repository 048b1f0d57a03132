"""Planted faults in a container's own forward; what diagnosis says of them by the container's wiring, and alone.

python torch_container_cases.py [CASE …]      # prints one JSON object: case -> causes
"""

from __future__ import annotations

import json
import sys
import tempfile
from contextlib import nullcontext
from dataclasses import asdict
from pathlib import Path
from typing import Any

import torch
import torch.nn.functional as F
from msmigrate.parity.diagnosis.causes.torch_modules import explained
from msmigrate.parity.diagnosis.torch_subjects import (
    ContainerSubject,
    ModuleSubject,
    RecordedCall,
    RecordedTensor,
    copied,
    forced_calls,
    noise_of,
)
from msmigrate.parity.replay.module_calls import Recording
from msmigrate.parity.replay.torch_recording import record
from msmigrate.parity.result import ModuleVerdict
from msmigrate.parity.tensor_verdict import Verdict
from torch import nn
from torch_module_cases import Holder, computing, exercise, subject, x


class Block(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.conv1, self.bn1 = nn.Conv2d(6, 6, 3, padding=1), nn.BatchNorm2d(6)
        self.conv2, self.bn2 = nn.Conv2d(6, 6, 3, padding=1), nn.BatchNorm2d(6)
        self.relu = nn.ReLU()

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        identity = x
        out = self.relu(self.bn1(self.conv1(x)))
        out = self.bn2(self.conv2(out))
        out = out + identity
        return self.relu(out)


class Attention(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.qkv, self.proj, self.heads = nn.Linear(12, 36), nn.Linear(12, 12), 2

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        n, length, width = x.shape
        qkv = self.qkv(x).reshape(n, length, 3, self.heads, -1).permute(2, 0, 3, 1, 4)
        q, k, v = qkv.unbind(0)
        scores = q @ k.transpose(-2, -1) * (width // self.heads) ** -0.5
        out = scores.softmax(dim=-1) @ v
        return self.proj(out.transpose(1, 2).reshape(n, length, width))


class Kept(Attention):
    """What follows from the number of heads is kept."""

    def __init__(self) -> None:
        super().__init__()
        self.head_dim, self.scaling = 6, 6**-0.5

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        shape = (*x.shape[:2], 3, self.heads, self.head_dim)
        q, k, v = self.qkv(x).view(shape).permute(2, 0, 3, 1, 4)
        out = (q @ k.mT * self.scaling).softmax(-1) @ v
        return self.proj(out.transpose(1, 2).flatten(2))


def three_heads(m: Any, x: torch.Tensor) -> torch.Tensor:
    q, k, v = (y.unflatten(-1, (3, 4)).transpose(1, 2) for y in m.qkv(x).chunk(3, -1))
    return m.proj(F.scaled_dot_product_attention(q, k, v).transpose(1, 2).flatten(2))


class Apart(nn.Module):
    """Queries, keys and values in three layers."""

    def __init__(self) -> None:
        super().__init__()
        self.q, self.k, self.v, self.out = (nn.Linear(12, 12) for _ in range(4))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        n, length, width = x.shape
        q, k, v = (layer(x).view(n, length, 4, 3).transpose(1, 2) for layer in (self.q, self.k, self.v))
        return self.out(F.scaled_dot_product_attention(q, k, v).transpose(1, 2).reshape(n, length, width))


def apart(fault: str) -> Any:
    def forward(m: Any, x: torch.Tensor) -> torch.Tensor:
        given = (m.q(x), m.k(x), m.v(x))
        if fault == "reshaped":
            q, k, v = (y.reshape(4, 4, 5, 3) for y in given)
        else:
            q, k, v = (y.reshape(4, 5, 3, 4).permute(0, 3, 1, 2) for y in given)
        return m.out(F.scaled_dot_product_attention(q, k, v).transpose(1, 2).reshape(x.shape))

    return computing(forward)


class Reader(nn.Module):
    def __init__(self, batch_first: bool) -> None:
        super().__init__()
        self.rnn, self.head = nn.LSTM(12, 7, batch_first=batch_first), nn.Linear(7, 3)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.head(self.rnn(x)[0])


def read_by_a_loop(m: Any, x: torch.Tensor) -> torch.Tensor:
    """The hidden state is given for the cell's."""
    cell = m.rnn
    hidden = memory = torch.zeros(x.shape[1 - cell.batch_first], 7, dtype=x.dtype)
    found = []
    for step in x.unbind(int(cell.batch_first)):
        own = cell.weight_ih_l0, cell.weight_hh_l0, cell.bias_ih_l0, cell.bias_hh_l0
        hidden, memory = torch.lstm_cell(step, (memory, hidden), *own)
        found.append(hidden)
    return m.head(torch.stack(found, int(cell.batch_first)))


class Scaled(nn.Module):
    """A leaf of the user's own."""

    def __init__(self) -> None:
        super().__init__()
        self.gamma = nn.Parameter(torch.ones(12))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        y = F.gelu(x) * self.gamma
        return y / x.std(dim=-1, keepdim=True)


class Head(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.norm, self.fc = nn.LayerNorm(12), nn.Linear(12, 3)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        x = self.norm(x)
        return self.fc(x[:, 0])


class MeanHead(Head):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.fc(self.norm(x).mean(dim=1))


class SelectHead(Head):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.fc(self.norm(x).select(1, -1))


class StateHead(Head):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.fc(self.norm(x)[-1])


class Stopped(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.a, self.b = nn.Linear(12, 12), nn.Linear(12, 12)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        gate = torch.sigmoid(self.a(x).detach())
        return self.b(x) * gate


class Two(nn.Module):
    """Two layers work on one tensor."""

    def __init__(self) -> None:
        super().__init__()
        self.a, self.b = nn.Linear(12, 12), nn.Linear(12, 12)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        x = x * 2.0
        return self.a(x) + self.b(x)


class Pooled(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.conv, self.fc = nn.Conv2d(6, 4, 3), nn.Linear(4 * 7 * 6, 3)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        x = F.relu(self.conv(x))
        x = torch.flatten(x, 1)
        return self.fc(x)


class Layers(nn.Module):
    """Two branches, with the norm at the beginning of each or behind its addition."""

    def __init__(self, post: bool) -> None:
        super().__init__()
        self.a, self.b, self.post = nn.LayerNorm(12), nn.LayerNorm(12), post
        self.mix, self.grow = nn.Linear(12, 12), nn.Linear(12, 12)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return after(self, x) if self.post else before(self, x)


def after(m: Any, x: torch.Tensor) -> torch.Tensor:
    x = m.a(x + m.mix(x))
    return m.b(x + m.grow(x).relu())


def after_exchanged(m: Any, x: torch.Tensor) -> torch.Tensor:
    """As nets are aligned by what their norms stand in front of."""
    x = m.b(x + m.mix(x))
    return m.a(x + m.grow(x).relu())


def before(m: Any, x: torch.Tensor) -> torch.Tensor:
    x = x + m.mix(m.a(x))
    return x + m.grow(m.b(x)).relu()


class Coded(nn.Module):
    """A branch behind a position code, added to what the code gave."""

    def __init__(self) -> None:
        super().__init__()
        self.code, self.norm, self.mix = nn.Linear(12, 12), nn.LayerNorm(12), nn.Linear(12, 12)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        x = self.code(x)
        return x + self.mix(self.norm(x))


def added_to_its_input(m: Any, x: torch.Tensor) -> torch.Tensor:
    return x + m.mix(m.norm(m.code(x)))


class Text(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.rnn, self.head = nn.LSTM(12, 4, batch_first=True, bidirectional=True), nn.Linear(8, 3)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        hidden = x[..., 0] > 0.5
        y, _ = self.rnn(x)
        scores = y.sum(-1).masked_fill(hidden, -1e4)
        return self.head(torch.softmax(scores, 1)[:, :, None] * y)


def text(fault: str) -> Any:
    def forward(m: Any, x: torch.Tensor) -> torch.Tensor:
        hidden, (y, _) = x[..., 0] > 0.5, m.rnn(x)
        y = torch.cat([y[..., 4:], y[..., :4]], -1) if fault == "directions" else y
        scores = y.sum(-1).masked_fill(~hidden if fault == "mask" else hidden, -1e4)
        return m.head(torch.softmax(scores, 1)[:, :, None] * y)

    return computing(forward)


class Pools(nn.Module):
    """All but one layer are functions."""

    def __init__(self) -> None:
        super().__init__()
        self.weight, self.fc = nn.Parameter(torch.randn(6, 6, 3, 3) * 0.1), nn.Linear(72, 3)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return pools(self, x, "")


def pools(m: Any, x: torch.Tensor, fault: str) -> torch.Tensor:
    small = F.max_pool2d(F.pad(x, (1, 1, 1, 1)), 3, 2) if fault == "zeros" else F.max_pool2d(x, 3, 2, padding=1)
    wide = F.conv2d(small, m.weight, None, padding=2, dilation=2)
    parts = [wide, small, small + wide] if fault == "parts" else [small, wide, small + wide]
    y = torch.cat(parts, 1)
    y = F.adaptive_max_pool2d(y, 2) if fault == "maximum" else F.adaptive_avg_pool2d(y, 2)
    return m.fc(y.flatten(1))


class Inlined(nn.Module):
    """Parts that the other net has no Cells for: a list with an activation, and a gate."""

    def __init__(self) -> None:
        super().__init__()
        self.norm, self.mlp = nn.LayerNorm(12), nn.Sequential(nn.Linear(12, 8), nn.GELU(), nn.Linear(8, 12))
        self.gate = Gate()

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        x = F.pad(x, (0, 0, -1, 0))
        return self.gate(x + 0.4 * self.mlp(self.norm(x)))


class Gate(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.fc = nn.Linear(12, 12)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return x * torch.softmax(self.fc(x.mean(1)), dim=1)[:, None]


def inlined(fault: str) -> Any:
    def forward(m: Any, x: torch.Tensor) -> torch.Tensor:
        x = x[:, :-1] if fault == "crop" else x[:, 1:]
        act = F.gelu(m.mlp[0](m.norm(x)), approximate="tanh" if fault == "gelu" else "none")
        x = x + (0.55 if fault == "number" else 0.4) * m.mlp[2](act)
        return x * torch.softmax(m.gate.fc(x.mean(1)), dim=0 if fault == "axis" else 1)[:, None]

    return computing(forward)


WITHOUT_CELLS = ("module.mlp", "module.mlp.1", "module.gate")


class Masked(nn.Module):
    """What sees what in a batch of sequences of several lengths, and the last step of each."""

    def __init__(self) -> None:
        super().__init__()
        self.q, self.fc = nn.Linear(12, 12), nn.Linear(12, 3)
        self.register_buffer("causal", torch.ones(5, 5, dtype=torch.bool).tril())

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return masked(self, x, "")


def masked(m: Any, x: torch.Tensor, fault: str) -> torch.Tensor:
    lengths = torch.tensor([5, 3, 2, 4])
    there = torch.arange(5) < lengths[:, None]
    off = {"next": 1, "strict": -1}.get(fault, 0)
    seen = (torch.ones(5, 5, dtype=torch.bool).tril(off) if fault else m.causal) & there[:, None]
    seen = there[:, None].expand(4, 5, 5) if fault == "no causal" else seen
    scores = (m.q(x) @ x.mT).masked_fill(~seen, -1e4)
    y = torch.softmax(scores, -1) @ x
    last = {"before": lengths - 2, "of all": torch.full((4,), 4)}.get(fault, lengths - 1)
    return m.fc(y[torch.arange(4), last] + y.mean(1))


def block(order: str) -> Any:
    def forward(m: Any, x: torch.Tensor) -> torch.Tensor:
        first = m.conv1(x)
        if order == "children exchanged":
            out = m.bn1(m.relu(first))
        else:
            out = m.relu(first if order == "bn missing" else m.bn1(first))
        out = m.bn2(m.conv2(out))
        if order == "residual missing":
            return m.relu(out)
        if order == "no last activation":
            return out + x
        if order == "activation before addition":
            return m.relu(out) + x
        if order == "wrong residual":
            return m.relu(out + first)
        return m.relu(out + x)

    return computing(forward)


def attention(fault: str) -> Any:
    def forward(m: Any, x: torch.Tensor) -> torch.Tensor:
        n, length, width = x.shape
        given = m.qkv(x)
        qkv = given.reshape(n, length, 3, m.heads, -1).permute(2, 0, 3, 1, 4)
        q, k, v = qkv.unbind(0)
        if fault == "packed":
            qkv = given.reshape(n, length, m.heads, 3, -1).permute(3, 0, 2, 1, 4)
            q, k, v = qkv.unbind(0)
        if fault == "key and query":
            k, v, q = qkv.unbind(0)
        scores = q @ k.transpose(-2, -1)
        scores = scores if fault == "unscaled" else scores * (width // m.heads) ** -0.5
        out = scores.softmax(dim=-2 if fault == "softmax" else -1) @ v
        out = out if fault == "not transposed" else out.transpose(1, 2)
        return m.proj(out.reshape(n, length, width))

    return computing(forward)


def scaled(fault: str) -> Any:
    def forward(m: Any, x: torch.Tensor) -> torch.Tensor:
        y = F.gelu(x, approximate="tanh" if fault == "gelu" else "none") * m.gamma
        return y / x.std(dim=-1, keepdim=True, correction=0 if fault == "std" else 1)

    return computing(forward)


def stopped(m: Any, x: torch.Tensor) -> torch.Tensor:
    return m.b(x) * torch.sigmoid(m.a(x))


class Diagonal(nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return torch.diag(x[0, 0])


def of_another_shape(m: Any, x: torch.Tensor) -> torch.Tensor:
    return torch.diag_embed(x[0, 0].detach()) + 0.0 * x.sum()


def pooled(m: Any, x: torch.Tensor) -> torch.Tensor:
    return m.fc(F.relu(m.conv(x)).permute(0, 2, 3, 1).flatten(1))


def unknown(m: Any, x: torch.Tensor) -> torch.Tensor:
    out = m.relu(m.bn1(m.conv1(x)))
    return m.relu(m.bn2(m.conv2(out)) + 0.3 * x)


def container(module: nn.Module, inputs: list[torch.Tensor], plant: Any, folder: Path) -> ContainerSubject:
    """The container with its wiring, as the fault leaves it."""
    exercise(module)
    record(folder, copied(Holder(module), torch.float32), lambda m: m(*inputs).square().sum(), {})
    recording = Recording.open(folder)
    given = RecordedCall(recording, next(c for c in recording.calls.values() if c.path == "module"))
    faulty = copied(module, torch.float32)
    plant(faulty)
    empty: dict[str, RecordedTensor] = {}
    inner = forced_calls([*recording.calls.values()], given.call, WITHOUT_CELLS)
    theirs = ContainerSubject("module", faulty, given, empty, lambda _: nullcontext(), inner)
    planted = theirs.computed([Planted(plant)], torch.float32)
    clean = ContainerSubject("module", module, given, empty, lambda _: nullcontext(), inner)
    exact, single = (clean.computed([], dtype) for dtype in (torch.float64, torch.float32))
    expected = {}
    for name, array in planted.items():
        noise = noise_of(exact[name], [single[name]]) if name in exact and exact[name].shape == array.shape else 0.0
        expected[name] = RecordedTensor("forward", array.reshape(-1), array.shape, False, noise)
    return ContainerSubject("module", module, given, expected, lambda _: nullcontext(), inner)


class Planted:
    """The fault as a trial: `computed` copies the module, whose planted forward would be the original's."""

    def __init__(self, plant: Any) -> None:
        self.apply = plant


def cases() -> dict[str, tuple[nn.Module, list[torch.Tensor], Any, bool]]:
    """module, inputs, fault, and whether by the wiring (or alone)."""
    images, tokens = x(4, 6, 9, 8), x(4, 5, 12)
    found: dict[str, tuple[nn.Module, list[torch.Tensor], Any, bool]] = {}
    for order in (
        "clean",
        "children exchanged",
        "bn missing",
        "residual missing",
        "no last activation",
        "activation before addition",
        "wrong residual",
    ):
        found[f"block: {order}"] = (Block(), [images], block(order), True)
    for fault in ("key and query", "packed", "unscaled", "softmax", "not transposed"):
        found[f"attention: {fault}"] = (Attention(), [tokens], attention(fault), True)
    for fault in ("reshaped", "inner"):
        found[f"apart: {fault}"] = (Apart(), [tokens], apart(fault), True)
    found["attention: heads"] = (Attention(), [tokens], computing(three_heads), True)
    found["attention: heads and what follows"] = (Kept(), [tokens], computing(three_heads), False)
    for first in (True, False):
        found[f"reader: states, {first}"] = (Reader(first), [tokens], computing(read_by_a_loop), True)
    for fault in ("gelu", "std"):
        found[f"leaf: {fault}"] = (Scaled(), [tokens], scaled(fault), False)
    found["layers: post-norm"] = (Layers(post=False), [tokens], computing(after), True)
    found["layers: post-norm, exchanged"] = (Layers(post=False), [tokens], computing(after_exchanged), True)
    found["layers: pre-norm"] = (Layers(post=True), [tokens], computing(before), True)
    found["coded: residual of the input"] = (Coded(), [tokens], computing(added_to_its_input), True)
    for fault in ("directions", "mask"):
        found[f"text: {fault}"] = (Text(), [tokens], text(fault), True)
    for fault in ("zeros", "maximum", "parts"):
        found[f"pools: {fault}"] = (Pools(), [images - 1.0], computing(lambda m, x, f=fault: pools(m, x, f)), True)
    for fault in ("gelu", "axis", "crop", "number"):
        found[f"inlined: {fault}"] = (Inlined(), [tokens], inlined(fault), True)
    for fault in ("next", "strict", "no causal", "before", "of all"):
        found[f"masked: {fault}"] = (Masked(), [tokens], computing(lambda m, x, f=fault: masked(m, x, f)), True)
    found["another shape"] = (Diagonal(), [x(2, 3, 8, 8)], computing(of_another_shape), False)
    found["head: mean"] = (Head(), [tokens], computing(lambda m, x: m.fc(m.norm(x).mean(1))), True)
    found["head: last step"] = (MeanHead(), [tokens], computing(lambda m, x: m.fc(m.norm(x)[:, -1])), True)
    found["head: mean of steps"] = (SelectHead(), [tokens], computing(lambda m, x: m.fc(m.norm(x).mean(1))), True)
    found["head: first layer's state"] = (StateHead(), [tokens], computing(lambda m, x: m.fc(m.norm(x)[0])), True)
    found["gradient not stopped"] = (Stopped(), [tokens], computing(stopped), False)
    stops = computing(lambda m, x: m.a(2.0 * x) + m.b(2.0 * x.detach()))
    found["gradient stopped"] = (Two(), [tokens], stops, False)
    found["flatten"] = (Pooled(), [images], computing(pooled), True)
    found["residual missing, alone"] = (Block(), [images], block("residual missing"), False)
    found["unknown"] = (Block(), [images], computing(unknown), True)
    found["sequential exchanged"] = (
        nn.Sequential(nn.Linear(12, 12), nn.LayerNorm(12), nn.GELU()),
        [tokens],
        computing(lambda m, x: m[1](m[2](m[0](x)))),
        True,
    )
    return found


def main(wanted: list[str]) -> None:
    found = {}
    for name, (module, inputs, plant, by_wiring) in cases().items():
        if wanted and name not in wanted:
            continue
        with tempfile.TemporaryDirectory() as folder:
            made: ModuleSubject = (container if by_wiring else subject)(module, inputs, plant, Path(folder))
            kind = type(module).__name__
            verdict = ModuleVerdict("module", kind, f"module ({kind})", Verdict.FAIL, True, 1, 5)
            found[name] = [asdict(cause) for cause in explained(made, verdict, [])[0]]
    print(json.dumps(found, default=float))


if __name__ == "__main__":
    torch.set_num_threads(1)
    main(sys.argv[1:])
