"""Print, as JSON, what rows say of MindSpore's CPU that no case of theirs can show, measured: `python …besides.py`."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable
from typing import Any

import mindspore as ms
import numpy as np
from mindspore import nn, ops


def runs(function: Callable[[], Any]) -> bool:
    """Whether there is a kernel; what MindSpore raises where there is none differs."""
    try:
        function().asnumpy()
    except RuntimeError:
        return False
    return True


def values(function: Callable[[Any], Any], x: float) -> tuple[float, float]:
    """A function's value and slope at one place."""
    value, slope = ms.value_and_grad(lambda at: function(at).sum())(ms.Tensor([x], ms.float32))
    return float(value.asnumpy()), float(slope.asnumpy()[0])


def selu(x: Any) -> Any:
    """As SELU's row says to write it."""
    alpha, scale = 1.6732632423543772, 1.0507009873554805
    return scale * (ops.relu(x) + alpha * ops.expm1(ops.minimum(x, ops.zeros_like(x))))


def rms_norm(x: Any, weight: Any, eps: float) -> Any:
    """As RMSNorm's row says to write it."""
    return x * ops.rsqrt(ops.mean(x * x, -1, True) + eps) * weight


def hidden(attention: nn.Cell, mask: np.ndarray, hide: np.ndarray, more: float) -> float:
    """How far `more` at the place that `hide` hides moves the output: not at all, where it is hidden."""
    x = np.random.default_rng(0).normal(size=(3, 1, 4)).astype(np.float32)
    moved = x + more * hide[0][:, None, None].astype(np.float32)
    outputs = [
        attention(ms.Tensor(x), *[ms.Tensor(each)] * 2, ms.Tensor(hide), True, ms.Tensor(mask))[0].asnumpy()
        for each in (x, moved)
    ]
    return float(np.abs(outputs[0] - outputs[1]).max())


def main() -> None:
    image = ms.Tensor(np.ones((1, 2, 3, 3), np.float32))
    up = nn.Conv2dTranspose(2, 1, 3, 2, "pad", 1, output_padding=1, weight_init="ones")(image).asnumpy()
    hide, open_, floats = np.array([[False, False, True]]), np.zeros((3, 3), bool), np.zeros((3, 3), np.float32)
    attention = nn.MultiheadAttention(4, 2)
    norm = nn.InstanceNorm2d(2)
    x = np.random.default_rng(1).normal(size=(2, 5)).astype(np.float32)
    rms = rms_norm(ms.Tensor(x), ms.Tensor(np.full(5, 2.0, np.float32)), 1e-3).asnumpy()
    wanted = 2 * x / np.sqrt((x.astype(np.float64) ** 2).mean(-1, keepdims=True) + 1e-3)
    found = {
        "no such layer": [name for name in ("RMSNorm", "Softplus", "EmbeddingBag") if hasattr(nn, name)],
        "rms_norm runs": runs(lambda: ops.rms_norm(image, ms.Tensor(np.ones(3, np.float32)))[0]),
        "rms_norm by hand": float(np.abs(rms - wanted).max()),
        "InstanceNorm2d runs": runs(lambda: norm(image)),
        "InstanceNorm2d holds": sorted(name for name, _ in norm.parameters_and_names()),
        "SeLU": values(nn.SeLU(), -0.5),
        "SELU by hand": values(selu, -0.5),
        "Tanh beyond 5": values(nn.Tanh(), 5.5),
        "Mish of 80 is finite": bool(np.isfinite(values(nn.Mish(), 80.0)[0])),
        "LogSigmoid of -100 is finite": bool(np.isfinite(values(nn.LogSigmoid(), -100.0)[0])),
        "output_padding": [up[0, 0, -1].tolist(), up[0, 0, 0].tolist()],
        "hidden, masks of bool": hidden(attention, open_, hide, 1.0),
        "hidden, a mask of floats": hidden(attention, floats, hide, 1.0),
    }
    print(json.dumps(found))


if __name__ == "__main__":
    main()
    sys.stdout.flush()
