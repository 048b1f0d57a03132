"""What a Cell's method calls, by a name that is its own and a function's of the file, run by operator and compiled.

    python benchmarks/graph_names_mindspore.py

The function doubles its input, and the method `scale` adds 1 to what the function gives. Once the function is called
`scale`, too, and once `doubled`. Prints markdown: what the net gives for x = 1, which is 3, or the compiler's error.
"""

from __future__ import annotations

import os

os.environ.setdefault("ONEDNN_MAX_CPU_ISA", "AVX2")

import mindspore
import numpy as np
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


def result(cell: nn.Cell, mode: int) -> str:
    """What a net gives for 1, or the error."""
    mindspore.set_context(mode=mode)
    try:
        return f"{float(cell(Tensor(np.ones(1, np.float32))).asnumpy()[0]):g}"
    except Exception as error:  # whatever the compiler says
        return f"{type(error).__name__}: {str(error).strip().partition(',')[0]}"


def main() -> None:
    print(f"MindSpore {mindspore.__version__}, CPU\n\n| the function's name | PyNative | compiled |\n|---|---:|---|")
    for name, cell in (("the method's", SameName), ("another", OtherName)):
        print(f"| {name} | {result(cell(), mindspore.PYNATIVE_MODE)} | {result(cell(), mindspore.GRAPH_MODE)} |")


if __name__ == "__main__":
    main()
