"""What small nets give for x = 1, run operator by operator and compiled: the table of benchmarks of the compiler."""

from __future__ import annotations

from collections.abc import Iterable

import mindspore
import numpy as np
from mindspore import Tensor, nn


def show(what: str, nets: Iterable[tuple[str, type[nn.Cell]]]) -> None:
    """Print markdown: a row for each named net, what it gives in PyNative and compiled, or the error."""
    print(f"MindSpore {mindspore.__version__}, CPU\n\n| {what} | PyNative | compiled |\n|---|---:|---|")
    for name, net in nets:
        print(f"| {name} | {_result(net(), mindspore.PYNATIVE_MODE)} | {_result(net(), mindspore.GRAPH_MODE)} |")


def _result(cell: nn.Cell, mode: int) -> str:
    mindspore.set_context(mode=mode)
    try:
        return f"{float(cell(Tensor(np.ones(1, np.float32))).asnumpy()[0]):g}"
    except Exception as error:  # whatever the compiler says
        return f"{type(error).__name__}: {str(error).strip().partition(',')[0]}"
