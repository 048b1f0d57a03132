"""Whether a decorator around a Cell's method has its say, run operator by operator and compiled.

    python benchmarks/graph_decorators_mindspore.py

A method gives x + 1, and a decorator of Python's doubles it; with functools.wraps, as everybody writes it, and without.
Prints markdown: what the net gives for x = 1, which is 4 where the decorator is there, and 2 where it is not.
"""

from __future__ import annotations

import functools
import os
from collections.abc import Callable
from typing import Any

os.environ.setdefault("ONEDNN_MAX_CPU_ISA", "AVX2")

import mindspore
import numpy as np
from mindspore import Tensor, nn


def doubled(method: Callable[..., Any]) -> Callable[..., Any]:
    """Twice what the method gives, under its name."""

    @functools.wraps(method)
    def wrapper(self: nn.Cell, x: Tensor) -> Tensor:
        return 2 * method(self, x)

    return wrapper


def bare(method: Callable[..., Any]) -> Callable[..., Any]:
    """Twice what the method gives."""

    def wrapper(self: nn.Cell, x: Tensor) -> Tensor:
        return 2 * method(self, x)

    return wrapper


def net(decorator: Callable[..., Any]) -> nn.Cell:
    """A net whose method stands under the decorator."""

    class Decorated(nn.Cell):
        @decorator
        def part(self, x: Tensor) -> Tensor:
            """x + 1."""
            return x + 1

        def construct(self, x: Tensor) -> Tensor:
            return self.part(x)

    return Decorated()


def result(cell: nn.Cell, mode: int) -> str:
    """What a net gives for 1, or the error."""
    mindspore.set_context(mode=mode)
    try:
        return f"{float(cell(Tensor(np.ones(1, np.float32))).asnumpy()[0]):g}"
    except Exception as error:  # whatever the compiler says
        return type(error).__name__


def main() -> None:
    print(f"MindSpore {mindspore.__version__}, CPU\n\n| decorator | PyNative | compiled |\n|---|---:|---:|")
    for name, by in (("with functools.wraps", doubled), ("without", bare)):
        print(f"| {name} | {result(net(by), mindspore.PYNATIVE_MODE)} | {result(net(by), mindspore.GRAPH_MODE)} |")


if __name__ == "__main__":
    main()
