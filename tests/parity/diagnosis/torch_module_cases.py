"""Planted faults in single modules: a torch module computed otherwise, in float32, stands for MindSpore's side.

python torch_module_cases.py      # prints one JSON object: case -> what diagnosis says of it
"""

from __future__ import annotations

import json
import sys
import tempfile
from collections.abc import Callable, Collection
from contextlib import nullcontext
from dataclasses import asdict
from pathlib import Path
from typing import Any
from unittest.mock import patch

import torch
import torch.nn.functional as F
from msmigrate.parity.diagnosis.causes import torch_modules
from msmigrate.parity.diagnosis.causes.torch_modules import ESTIMATE, MUTATIONS, explained, named_by_mode
from msmigrate.parity.diagnosis.causes.torch_precision import NOT_FINITE
from msmigrate.parity.diagnosis.hypotheses import HypothesisRow, everything, module_hypotheses
from msmigrate.parity.diagnosis.mutations.torch_operations import OPERATION
from msmigrate.parity.diagnosis.torch_subjects import (
    ModuleSubject,
    RecordedCall,
    RecordedTensor,
    alone,
    copied,
    noise_of,
)
from msmigrate.parity.replay.module_calls import Made, Recording
from msmigrate.parity.replay.torch_recording import record
from msmigrate.parity.result import Cause, ModuleVerdict
from msmigrate.parity.tensor_verdict import Verdict
from torch import nn

Plant = Callable[[nn.Module], Any]


class Holder(nn.Module):
    """The module, with a little before it, so that its input asks for a gradient."""

    def __init__(self, module: nn.Module) -> None:
        super().__init__()
        self.module = module
        self.scale = nn.Parameter(torch.ones(()))

    def forward(self, *inputs: torch.Tensor) -> Any:
        return self.module(*(x * self.scale if x.is_floating_point() else x for x in inputs))


def stage_of(name: str) -> str:
    return "gradients" if name.endswith(".grad") else "forward" if name.startswith("output") else "update"


def subject(module: nn.Module, inputs: list[torch.Tensor], plant: Plant, folder: Path) -> ModuleSubject:
    """What a run would have recorded of this module, and of one with the fault as MindSpore's."""
    exercise(module)

    def loss(model: nn.Module) -> torch.Tensor:
        found = model(*inputs)
        outputs = [o for o in (found if isinstance(found, tuple) else (found,)) if isinstance(o, torch.Tensor)]
        generator = torch.Generator().manual_seed(1)
        return sum((o * torch.randn(o.shape, generator=generator)).sum() for o in outputs)

    record(folder, copied(Holder(module), torch.float32), loss, {})
    recording = Recording.open(folder)
    given = RecordedCall(recording, next(c for c in recording.calls.values() if c.path == "module"))
    faulty = copied(module, torch.float32)
    faulty = plant(faulty) or faulty
    theirs = alone(faulty, given, torch.float32)
    exact, single = (alone(copied(module), given, dtype) for dtype in (torch.float64, torch.float32))
    expected = {}
    for name, array in theirs.items():
        same = name in exact and exact[name].shape == array.shape
        noise = noise_of(exact[name], [single[name]]) if same else 0.0
        expected[name] = RecordedTensor(stage_of(name), array.reshape(-1), array.shape, False, noise)
    return ModuleSubject("layer1.0.module", module, given, expected, lambda _: nullcontext())


def exercise(module: nn.Module) -> None:
    """Away from ones and zeros."""
    torch.manual_seed(2)
    with torch.no_grad():
        for p in module.parameters():
            p += 0.1 * torch.randn_like(p)
        for b in module.buffers():
            if b.is_floating_point():
                b += 0.3 * torch.rand_like(b)


def diagnosed(
    module: nn.Module, inputs: list[torch.Tensor], plant: Plant, without: list[str], made: Made | None = None
) -> list[dict[str, Any]]:
    with tempfile.TemporaryDirectory() as folder:
        found = subject(module, inputs, plant, Path(folder))
        found.made = made
        kind = type(module).__name__
        verdict = ModuleVerdict(found.path, kind, f"{found.path} ({kind})", Verdict.FAIL, True, 2, 5)

        def others(verbs: Collection[str]) -> list[HypothesisRow]:
            return [row for row in module_hypotheses(verbs) if row.fault not in without]

        with patch.object(torch_modules, "module_hypotheses", others):
            return [asdict(cause) for cause in explained(found, verdict, [])[0]]


def having(**attributes: Any) -> Plant:
    def plant(module: nn.Module) -> None:
        for name, value in attributes.items():
            setattr(module, name, value)

    return plant


def computing(forward: Callable[..., Any]) -> Plant:
    def plant(module: nn.Module) -> None:
        module.__dict__["forward"] = lambda *a, **k: forward(module, *a, **k)

    return plant


def weights(**change: Callable[[torch.Tensor], torch.Tensor]) -> Plant:
    """The fault in the module's own weights; a gradient by them is that of the changed ones, put back."""

    class Changed(nn.Module):
        def __init__(self, inner: nn.Module) -> None:
            super().__init__()
            self.__dict__["inner"] = inner

        def named_parameters(self, *args: Any, **kwargs: Any) -> Any:
            return self.__dict__["inner"].named_parameters()

        def forward(self, *args: Any) -> Any:
            inner = self.__dict__["inner"]
            own = dict(inner.named_parameters())
            return torch.func.functional_call(inner, {n: change.get(n, lambda t: t)(p) for n, p in own.items()}, args)

    return lambda module: Changed(module)


def same_conv(m: nn.Module, x: torch.Tensor) -> torch.Tensor:
    return F.conv2d(F.pad(x, (0, 1, 0, 1)), m.weight, m.bias, m.stride)


def normalised_over_channels(m: nn.Module, x: torch.Tensor) -> torch.Tensor:
    y = (x - x.mean(1, keepdim=True)) / torch.sqrt(x.var(1, correction=0, keepdim=True) + m.eps)
    return y * m.weight + m.bias


def x(*shape: int, scale: float = 1.0) -> torch.Tensor:
    torch.manual_seed(3)
    return torch.randn(shape) * scale


def cases() -> dict[str, tuple[nn.Module, list[torch.Tensor], Plant]]:
    images, tokens = x(4, 8, 9, 8), x(4, 6, 16)
    bn, conv, pool = nn.BatchNorm2d(8), nn.Conv2d(8, 8, 3, 2, 1), nn.MaxPool2d(3, 2, 1)
    return {
        "clean": (bn, [images], having()),
        "bn eps 1e-3": (bn, [images], having(eps=1e-3)),
        "bn eps 1.01e-5": (bn, [images * 0.03], having(eps=1.01e-5)),
        "bn eps 3.3e-4": (bn, [images], having(eps=3.3e-4)),
        "bn momentum 0.9": (bn, [images], having(momentum=0.9)),
        "bn momentum 0.37": (bn, [images], having(momentum=0.37)),
        "bn eps and momentum": (bn, [images], having(eps=1e-3, momentum=0.9)),
        "bn eval": (bn, [images], having(training=False)),
        "bn unknown": (bn, [images], computing(lambda m, x: m.__class__.forward(m, x) * 1.02 + 0.1)),
        "conv same": (conv, [x(4, 8, 8, 8)], computing(same_conv)),
        "conv flipped": (conv, [images], weights(weight=lambda w: w.flip(2, 3))),
        "conv dilated": (nn.Conv2d(8, 8, 3, 1, 2, dilation=2), [images], having(padding=(1, 1), dilation=(1, 1))),
        "pool made otherwise": (nn.AvgPool2d(3, 2, 1), [images], having(ceil_mode=True, count_include_pad=False)),
        "conv stride": (nn.Conv2d(8, 8, 3, 1, 1), [images], having(stride=(2, 2))),
        "conv twice the bias": (conv, [images], weights(bias=lambda b: 2 * b)),
        "pool same": (
            pool,
            [x(4, 8, 8, 8)],
            computing(lambda m, x: F.max_pool2d(F.pad(x, (0, 1, 0, 1), value=-torch.inf), 3, 2)),
        ),
        "pool zeros": (pool, [images - 1.0], computing(lambda m, x: F.max_pool2d(F.pad(x, (1, 1, 1, 1)), 3, 2))),
        "pool ceil": (nn.MaxPool2d(2, 2), [images], having(ceil_mode=True)),
        "avgpool": (nn.AvgPool2d(3, 2, 1), [images], having(count_include_pad=False)),
        "ln eps": (nn.LayerNorm(16), [tokens * 0.01], having(eps=1e-7)),
        "ln eps 1e-3": (nn.LayerNorm(16), [tokens], having(eps=1e-3)),
        "ln axes": (nn.LayerNorm(16), [tokens], computing(normalised_over_channels)),
        "gn groups": (nn.GroupNorm(4, 8), [images], having(num_groups=2)),
        "gelu tanh": (nn.GELU(), [tokens], having(approximate="tanh")),
        "quick gelu": (nn.GELU(), [tokens], computing(lambda m, x: x * torch.sigmoid(1.702 * x))),
        "relu6": (nn.ReLU6(), [x(4, 8, scale=4.0)], computing(lambda m, x: F.relu(x))),
        "silu": (nn.SiLU(), [tokens], computing(lambda m, x: F.hardswish(x))),
        "leaky 0.2": (nn.LeakyReLU(), [tokens], having(negative_slope=0.2)),
        "leaky 0.123": (nn.LeakyReLU(), [tokens], having(negative_slope=0.123)),
        "elu": (nn.ELU(0.5), [tokens], having(alpha=1.0)),
        "softmax": (nn.Softmax(1), [tokens], having(dim=-1)),
        "linear transposed": (nn.Linear(16, 16), [tokens], weights(weight=lambda w: w.t())),
        "linear without bias": (nn.Linear(16, 5), [tokens], having(bias=None)),
        "embedding": (nn.Embedding(9, 4, padding_idx=2), [torch.arange(9).view(3, 3)], having(padding_idx=None)),
        "lstm gates": (
            nn.LSTM(16, 5, batch_first=True),
            [tokens],
            weights(**dict.fromkeys(("weight_ih_l0", "weight_hh_l0", "bias_ih_l0", "bias_hh_l0"), gates)),
        ),
        "attention packed": (
            nn.MultiheadAttention(16, 4, batch_first=True),
            [tokens, tokens, tokens],
            weights(in_proj_weight=by_head, in_proj_bias=by_head),
        ),
        "attention unscaled": (
            nn.MultiheadAttention(16, 4, batch_first=True),
            [tokens, tokens, tokens],
            weights(in_proj_weight=doubled_query, in_proj_bias=doubled_query),
        ),
        "attention axis": (
            nn.MultiheadAttention(16, 4, batch_first=True),
            [tokens, tokens, tokens],
            computing(lambda m, *given: attended(m, *given, axis=-2)),
        ),
        "attention heads": (
            nn.MultiheadAttention(16, 2, batch_first=True),
            [tokens, tokens, tokens],
            computing(lambda m, *given: attended(m, *given, cut=False)),
        ),
        "attention count": (nn.MultiheadAttention(16, 4, batch_first=True), [tokens] * 3, having(num_heads=2)),
        "attention causal": (
            nn.MultiheadAttention(16, 2, batch_first=True, bias=False),
            [tokens, tokens, tokens],
            computing(lambda m, q, k, v: type(m).forward(m, q, k, v, attn_mask=torch.ones(6, 6).triu(1).bool())),
        ),
        "attention next": (
            Causal(),
            [tokens],
            computing(lambda m, x: m.attn(x, x, x, attn_mask=torch.ones(6, 6, dtype=torch.bool).triu(2))[0]),
        ),
        "upsample": (nn.Upsample(scale_factor=2, mode="bilinear"), [images], having(align_corners=True)),
        "shuffle": (nn.PixelShuffle(2), [images], computing(depth_to_space)),
        "flatten": (nn.Flatten(), [images], computing(lambda m, x: x.permute(0, 2, 3, 1).flatten(1))),
        "lrn": (nn.LocalResponseNorm(5, 0.01), [images], having(alpha=0.05)),
        "ln eps at the edge": (nn.LayerNorm(16), [3.0 * tokens], having(eps=1e-7)),
        "mish": (nn.Mish(), [60.0 * tokens], computing(lambda m, x: F.mish(x) + 0.0 * torch.exp(x + 8.0))),
        "logsigmoid": (nn.LogSigmoid(), [60.0 * tokens], computing(lambda m, x: torch.log(torch.sigmoid(x)))),
        "conv half": (conv, [images], computing(lambda m, x: F.conv2d(short(x), short(m.weight), m.bias, 2, 1))),
        "conv bias slope": (
            conv,
            [images],
            computing(steeper_bias),
        ),
        "conv scaled": (conv, [images], computing(lambda m, x: 1.001 * type(m).forward(m, x))),
        "relu6 at 6": (nn.ReLU6(), [x(4, 8, scale=9.0).clamp(max=6.0)], computing(lambda m, x: F.relu(x))),
        "unknown function": (nn.Tanh(), [tokens], computing(lambda m, x: torch.sin(x) * 0.9)),
        "one channel": (nn.Tanh(), [images], computing(lambda m, x: torch.tanh(x) * one_hot(x, 3))),
    }


class Causal(nn.Module):
    """Attention that may not look ahead."""

    def __init__(self) -> None:
        super().__init__()
        self.attn = nn.MultiheadAttention(16, 4, batch_first=True)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        mask = torch.ones(x.shape[1], x.shape[1], dtype=torch.bool)
        return self.attn(x, x, x, attn_mask=torch.triu(mask, diagonal=1), need_weights=False)[0]


def attended(
    m: Any, query: torch.Tensor, key: torch.Tensor, value: torch.Tensor, axis: int = -1, cut: bool = True
) -> tuple[torch.Tensor, torch.Tensor]:
    """Attention by hand, batch first."""
    n, length, width = query.shape
    size = width // m.num_heads

    def heads(x: torch.Tensor, weight: torch.Tensor, bias: torch.Tensor) -> torch.Tensor:
        y = x @ weight.t() + bias
        split = y.view(n, length, m.num_heads, size).permute(0, 2, 1, 3)
        return split if cut else y.contiguous().view(n, m.num_heads, length, size)

    parts = zip((query, key, value), m.in_proj_weight.chunk(3), m.in_proj_bias.chunk(3), strict=True)
    q, k, v = (heads(*each) for each in parts)
    weights = torch.softmax(torch.einsum("nhqd,nhkd->nhqk", q, k) / size**0.5, axis)
    joined = torch.einsum("nhqk,nhkd->nhqd", weights, v).permute(0, 2, 1, 3).reshape(n, length, width)
    return m.out_proj(joined), weights.mean(1)


def short(x: torch.Tensor) -> torch.Tensor:
    return x.half().to(x.dtype)


def steeper_bias(m: nn.Module, x: torch.Tensor) -> torch.Tensor:
    return F.conv2d(x, m.weight, 1.3 * m.bias - 0.3 * m.bias.detach(), 2, 1)


def gates(w: torch.Tensor) -> torch.Tensor:
    i, f, g, o = w.chunk(4)
    return torch.cat([i, g, f, o])


def by_head(w: torch.Tensor) -> torch.Tensor:
    return w.reshape(4, 3, -1, *w.shape[1:]).transpose(0, 1).reshape(w.shape)


def doubled_query(w: torch.Tensor) -> torch.Tensor:
    q, k, v = w.chunk(3)
    return torch.cat([2.0 * q, k, v])


def depth_to_space(m: nn.Module, x: torch.Tensor) -> torch.Tensor:
    n, c, h, w = x.shape
    return x.reshape(n, 2, 2, c // 4, h, w).permute(0, 3, 4, 1, 5, 2).reshape(n, c // 4, 2 * h, 2 * w)


def one_hot(x: torch.Tensor, channel: int) -> torch.Tensor:
    factor = torch.ones_like(x)
    factor[:, channel] = 1.5
    return factor


# how MindSpore's Cell was made, where that is known
CONV = {"kernel_size": 3, "stride": 1, "pad_mode": "pad", "padding": 1, "dilation": 1, "group": 1, "has_bias": True}
POOL = {"kernel_size": 3, "stride": 2, "pad_mode": "pad", "padding": 1, "ceil_mode": True, "count_include_pad": False}
MADE = {
    "conv dilated": Made("mindspore.nn.Conv2d", CONV, (), "self.c = nn.Conv2d(8, 8, 3, padding=1)", "net.py, line 4"),
    "pool made otherwise": Made("mindspore.nn.AvgPool2d", POOL),
    "clean": Made("mindspore.nn.BatchNorm2d", {"num_features": 8, "eps": 1e-3}),
    "bn eps 1e-3": Made("mindspore.nn.BatchNorm2d", {"eps": 0.5, "momentum": 0.9}),
}


# the same faults with their rows held out: they have to be placed all the same
HELD_OUT = {
    "gelu tanh": ["gelu-approximate"],
    "embedding": ["embedding-padding-idx-grad"],
    "lrn": ["lrn-alpha"],
    "shuffle": ["depth-to-space"],
}


def modes() -> dict[str, list[str | None]]:
    """Two norms, of which one or both, or none, are said to be in the wrong mode."""
    net = nn.Sequential(nn.BatchNorm2d(2), nn.BatchNorm2d(2)).train()

    def named(*faults: tuple[str, str]) -> list[str | None]:
        causes = [Cause("forward", place, fault, "", "") for place, fault in faults]
        return [cause.fault for cause in named_by_mode(causes, net, {})]

    forgotten = "bn-set-train-missing"
    return {
        "one": named(("1", forgotten)),
        "all": named(("0", forgotten), ("1", forgotten)),
        "trains": named(("0", "bn-use-batch-statistics-true"), ("1", "ln-eps")),
    }


def main(wanted: list[str]) -> None:
    found: dict[str, Any] = {"modes": modes()}
    for name, (module, inputs, plant) in cases().items():
        if not wanted or name in wanted:
            found[name] = diagnosed(module, inputs, plant, [], MADE.get(name))
            if name in HELD_OUT:
                found[f"{name}, held out"] = diagnosed(module, inputs, plant, HELD_OUT[name])
    verbs = {*MUTATIONS, ESTIMATE, OPERATION, NOT_FINITE}
    found["unknown verbs"] = sorted({h.verb for h in everything()} - verbs)
    print(json.dumps(found, default=float))


if __name__ == "__main__":
    torch.set_num_threads(1)
    main(sys.argv[1:])
