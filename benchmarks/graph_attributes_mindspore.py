"""What a compiled MindSpore step makes of attributes that a construct sets: `python
benchmarks/graph_attributes_mindspore.py`.

Prints, for a net that goes on with `self.h` and for one that goes on with a name for the same tensor, the size of the
gradient that reaches the layer before, in PyNative mode and compiled; and what a loss says to such an attribute.
"""

from __future__ import annotations

import mindspore as ms
import numpy as np
from mindspore import Tensor, nn, ops


class Attribute(nn.Cell):
    """Sets an attribute, and reads it."""

    def __init__(self) -> None:
        super().__init__()
        self.first, self.second = nn.Dense(3, 4), nn.Dense(4, 2)

    def construct(self, x: Tensor) -> Tensor:
        self.h = ops.tanh(self.first(x))
        return self.second(self.h)


class Name(Attribute):
    """Sets the same attribute, and goes on with a name."""

    def construct(self, x: Tensor) -> Tensor:
        h = ops.tanh(self.first(x))
        self.h = h
        return self.second(h)


class Size(Attribute):
    """Reads a number that it has set."""

    def construct(self, x: Tensor) -> Tensor:
        self.size = x.shape[0]
        return self.second(ops.tanh(self.first(x))).reshape((self.size, -1))


class Alone(Attribute):
    """Gives what it reads."""

    def construct(self, x: Tensor) -> Tensor:
        self.h = ops.tanh(self.first(x))
        return self.h * 2


def reached(net: nn.Cell, compiled: bool) -> str:
    """The largest gradient of the first layer, or the error."""
    x = Tensor(np.random.default_rng(0).standard_normal((5, 3)).astype(np.float32))
    loss = nn.HuberLoss()

    def step(x: Tensor) -> Tensor:
        y = net(x)
        return loss(y, ops.ones((5, 4 if isinstance(net, Alone) else 2)))

    gradient = ms.grad(step, None, net.trainable_params())
    try:
        found = (ms.jit(gradient) if compiled else gradient)(x)
    except Exception as error:
        return str(error).splitlines()[0]
    return f"{float(ops.abs(found[0]).max()):.3g}"


def main() -> None:
    ms.set_seed(0)
    for made in (Attribute, Name, Size, Alone):
        net = made()
        print(f"{made.__name__:10} PyNative {reached(net, False)}, compiled {reached(net, True)}")


if __name__ == "__main__":
    main()
