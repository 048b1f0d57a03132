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


class Wraps(nn.Cell):
    """A method whose decorator says what it wraps."""

    @doubled
    def part(self, x: Tensor) -> Tensor:
        """x + 1."""
        return x + 1

    def construct(self, x: Tensor) -> Tensor:
        return self.part(x)


class Bare(nn.Cell):
    """A method whose decorator does not."""

    @bare
    def part(self, x: Tensor) -> Tensor:
        """x + 1."""
        return x + 1

    def construct(self, x: Tensor) -> Tensor:
        return self.part(x)


def result(net: nn.Cell, mode: int) -> str:
    """What a net gives for 1, or the error."""
    mindspore.set_context(mode=mode)
    try:
        return f"{float(net(Tensor(np.ones(1, np.float32))).asnumpy()[0]):g}"
    except Exception as error:  # whatever the compiler says
        return type(error).__name__


def main() -> None:
    print(f"MindSpore {mindspore.__version__}, CPU\n\n| decorator | PyNative | compiled |\n|---|---:|---:|")
    for name, kind in (("with functools.wraps", Wraps), ("without", Bare)):
        print(f"| {name} | {result(kind(), mindspore.PYNATIVE_MODE)} | {result(kind(), mindspore.GRAPH_MODE)} |")


if __name__ == "__main__":
    main()
