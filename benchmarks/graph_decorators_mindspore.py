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

from by_both_modes import show  # type: ignore[import-not-found]
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


def net(decorator: Callable[..., Any]) -> type[nn.Cell]:
    """A net whose method stands under the decorator."""

    class Decorated(nn.Cell):
        @decorator
        def part(self, x: Tensor) -> Tensor:
            """x + 1."""
            return x + 1

        def construct(self, x: Tensor) -> Tensor:
            return self.part(x)

    return Decorated


if __name__ == "__main__":
    show("decorator", (("with functools.wraps", net(doubled)), ("without", net(bare))))
