"""What a Cell's method calls, by a name that is its own and a function's of the file, run by operator and compiled.

    python benchmarks/graph_names_mindspore.py

The function doubles its input, and the method `scale` adds 1 to what the function gives. Once the function is called
`scale`, too, and once `doubled`. Prints markdown: what the net gives for x = 1, which is 3, or the compiler's error.
"""

from __future__ import annotations

import os

os.environ.setdefault("ONEDNN_MAX_CPU_ISA", "AVX2")

from by_both_modes import show  # type: ignore[import-not-found]
from mindspore import Tensor, nn


def scale(x: Tensor) -> Tensor:
    """Twice the input."""
    return x * 2


doubled = scale


class SameName(nn.Cell):
    """Its method calls the function of its name."""

    def scale(self, x: Tensor) -> Tensor:
        """1 more than the function gives."""
        return scale(x) + 1

    def construct(self, x: Tensor) -> Tensor:
        return self.scale(x)


class OtherName(nn.Cell):
    """Its method calls the function by another name."""

    def scale(self, x: Tensor) -> Tensor:
        """1 more than the function gives."""
        return doubled(x) + 1

    def construct(self, x: Tensor) -> Tensor:
        return self.scale(x)


if __name__ == "__main__":
    show("the function's name", (("the method's", SameName), ("another", OtherName)))
