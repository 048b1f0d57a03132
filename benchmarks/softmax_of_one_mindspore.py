"""Softmax's gradient on MindSpore's CPU where the first one of as many dimensions was over a single value: a table.

    python benchmarks/softmax_of_one_mindspore.py

Each line is a process of its own, which takes the gradient of a softmax over the last axis of these shapes, one after
the other; each is compared with the formula in float64, as a share of the largest value.
"""

from __future__ import annotations

import subprocess
import sys

import mindspore as ms
import numpy as np
from mindspore import Tensor, ops

ORDERS = (("3x4", "3x1", "3x4"), ("3x1", "3x4", "3x7"), ("3x4", "8x1x1", "8x4x4", "3x4"), ("8x4x4", "8x1x1", "8x4x4"))


def off(*shape: int) -> float:
    """How far the gradient of a softmax over the last axis is from its formula."""
    draws = np.random.RandomState(shape[-1])
    x, upstream = (draws.randn(*shape).astype(np.float32) for _ in range(2))
    found = ms.grad(lambda s: (ops.softmax(s, -1) * Tensor(upstream)).sum())(Tensor(x)).asnumpy()
    shares = np.exp(x.astype(np.float64)) / np.exp(x.astype(np.float64)).sum(-1, keepdims=True)
    exact = shares * (upstream - (shares * upstream).sum(-1, keepdims=True))
    return float(np.abs(found - exact).max() / max(np.abs(exact).max(), 1e-6))


if len(sys.argv) > 1:
    each = [f"{off(*map(int, shape.split('x'))):.1g}" for shape in sys.argv[1:]]
    print(f"| {', '.join(sys.argv[1:])} | {', '.join(each)} |")
else:
    print("| shapes, in this order | off by |\n|---|---|", flush=True)
    for order in ORDERS:
        subprocess.run([sys.executable, __file__, *order], check=True)
