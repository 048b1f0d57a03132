"""What a compiled MindSpore step makes of the gradient of padding: `python benchmarks/graph_padding_mindspore.py`.

Prints, for each way to pad, how far the gradient of five compiled runs is from that of PyNative mode, as a share of the
largest value. The first run is right everywhere.
"""

from __future__ import annotations

import sys
from collections.abc import Callable

import mindspore as ms
import numpy as np
from mindspore import Tensor, nn, ops
from msmigrate.nn import convolution


def function(x: Tensor) -> Tensor:
    """MindSpore's function."""
    return ops.pad(x, (0, 1, 0, 1))


def ours(x: Tensor) -> Tensor:
    """What convert-model writes for F.pad."""
    return convolution.pad(x, (0, 1, 0, 1))


THEIRS: dict[str, Callable[[Tensor], Tensor]] = {
    "ops.pad": function,
    "nn.ZeroPad2d": nn.ZeroPad2d((0, 1, 0, 1)),
    "nn.ConstantPad1d": nn.ConstantPad1d((0, 1), 0.5),
    "nn.ConstantPad2d": nn.ConstantPad2d((0, 1, 0, 1), 0.5),
    "nn.ConstantPad3d": nn.ConstantPad3d((0, 1, 0, 1, 0, 1), 0.5),
    "nn.ReflectionPad2d": nn.ReflectionPad2d((0, 1, 0, 1)),
    "nn.ReplicationPad2d": nn.ReplicationPad2d((0, 1, 0, 1)),
    "ops.Pad": ops.Pad(((0, 0), (0, 0), (0, 1), (0, 1))),
}
OURS: dict[str, Callable[[Tensor], Tensor]] = {
    "F.pad, as convert-model has it": ours,
    "ZeroPad2d, the same": convolution.ZeroPad2d((0, 1, 0, 1)),
    "ConstantPad2d, the same": convolution.ConstantPad2d((0, 1, 0, 1), 0.5),
}


class Net(nn.Cell):
    """A layer, and padding behind it."""

    def __init__(self, way: Callable[[Tensor], Tensor]) -> None:
        super().__init__()
        self.dense, self.way = nn.Dense(8, 8), way

    def construct(self, x: Tensor) -> Tensor:
        """x: (N, C, H, 8)."""
        return self.way(self.dense(x))


def errors(way: Callable[[Tensor], Tensor], runs: int = 5) -> list[float]:
    """The largest difference in each run, as a share of the largest value."""
    net = Net(way)
    weights = list(net.trainable_params())

    def loss(x: Tensor) -> Tensor:
        return (net(x) ** 2).mean()

    plain = ms.value_and_grad(loss, None, weights)
    compiled = ms.jit(plain)
    found = []
    for seed in range(runs):
        x = Tensor(np.random.default_rng(seed).standard_normal((2, 3, 7, 8)).astype(np.float32))
        pairs = [(one.asnumpy(), other.asnumpy()) for one, other in zip(compiled(x)[1], plain(x)[1], strict=True)]
        found.append(max(float(np.abs(a - b).max() / np.abs(b).max()) for a, b in pairs))
    return found


def main() -> int:
    """0 where what convert-model writes is right in every run."""
    found = {name: errors(way) for name, way in {**THEIRS, **OURS}.items()}
    for name, each in found.items():
        print(f"{name:30} {'  '.join(f'{error:8.1e}' for error in each)}")
    return int(max(max(found[name]) for name in OURS) > 1e-5)


if __name__ == "__main__":
    sys.exit(main())
