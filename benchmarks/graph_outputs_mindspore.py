"""Whether gradients pass through what a net returns, run operator by operator and compiled.

    python benchmarks/graph_outputs_mindspore.py

A dense layer's output leaves the net in a tuple, a list, a dictionary, a named tuple or a dataclass; the loss reads it
there. Prints markdown: the largest gradient of the layer's weights in both modes. The two should be one number.
"""

from __future__ import annotations

import os
from collections import namedtuple
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

os.environ.setdefault("ONEDNN_MAX_CPU_ISA", "AVX2")

import mindspore
import numpy as np
from mindspore import Tensor, nn

Named = namedtuple("Named", ["first", "second"])  # as people write it


@dataclass
class Data:
    """A dataclass, as models of language return it."""

    first: Any
    second: Any


class Net(nn.Cell):
    """Returns its output, and twice that, in some form."""

    def __init__(self, form: str) -> None:
        super().__init__()
        self.fc = nn.Dense(4, 3, weight_init="ones")
        self.form = form

    def construct(self, x: Tensor) -> Any:
        y = self.fc(x)
        if self.form == "tuple":
            return (y, y * 2)
        if self.form == "list":
            return [y, y * 2]
        if self.form == "dict":
            return {"first": y, "second": y * 2}
        if self.form == "named tuple":
            return Named(y, y * 2)
        return Data(y, y * 2)


def by_index(outputs: Any) -> Tensor:
    """The loss of what has a first item."""
    return (outputs[0] ** 2).mean()


def by_key(outputs: Any) -> Tensor:
    """The loss of what has a key."""
    return (outputs["first"] ** 2).mean()


def by_name(outputs: Any) -> Tensor:
    """The loss of what has a field."""
    return (outputs.first**2).mean()


LOSSES = {"tuple": by_index, "list": by_index, "dict": by_key, "named tuple": by_name, "dataclass": by_name}


def gradients_of(net: Net, loss: Callable[[Any], Tensor]) -> Callable[[Tensor], Any]:
    """The function of a batch that gives the gradients of the layer's weight and bias."""
    net.set_train()

    def forward(x: Tensor) -> Tensor:
        return loss(net(x))

    both = mindspore.value_and_grad(forward, None, net.trainable_params())

    def gradients(x: Tensor) -> Any:
        _, found = both(x)
        return found

    return gradients


def main() -> None:
    x = Tensor(np.arange(20, dtype=np.float32).reshape(5, 4) / 20)
    print(f"MindSpore {mindspore.__version__}, CPU\n\n| output | PyNative | compiled |\n|---|---:|---:|")
    for form, loss in LOSSES.items():
        gradients = gradients_of(Net(form), loss)
        largest = [float(np.abs(of(x)[0].asnumpy()).max()) for of in (gradients, mindspore.jit(gradients))]
        print(f"| {form} | {largest[0]:.6g} | {largest[1]:.6g} |")


if __name__ == "__main__":
    main()
