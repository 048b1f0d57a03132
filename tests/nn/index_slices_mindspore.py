"""What getitem and setitem give for indices that no case of a row can write, in both modes: `python … FILE quick|all`.

Writes an npz: for every index its values and the gradient of their sum of squares, for a write also that of the values.
"""

from __future__ import annotations

import os
import sys
from typing import Any

import numpy as np
from index_slices import COMPILED, INDICES, tensor, written
from msmigrate.workers.worker import prepare_mindspore

prepare_mindspore()

import mindspore as ms  # noqa: E402
from mindspore import ops  # noqa: E402
from msmigrate.nn.functional import getitem, setitem  # noqa: E402


def picked(index: Any, mode: str) -> dict[str, np.ndarray]:
    """The values at an index and the gradient of the sum of their squares."""

    def pick(a: Any) -> Any:
        return getitem(a, index)

    def squares(a: Any) -> Any:
        values = getitem(a, index)
        return ops.sum(values * values)

    a = ms.Tensor(tensor())
    pick, grad = (ms.jit(f) if mode == "graph" else f for f in (pick, ms.grad(squares)))
    return {"values": pick(a).asnumpy(), "grad": grad(a).asnumpy()}


def placed(index: Any, mode: str) -> dict[str, np.ndarray]:
    """The tensor with other values at an index, what became of the first, and both gradients."""

    def place(a: Any, c: Any) -> Any:
        return setitem(a, index, c)

    def squares(a: Any, c: Any) -> Any:
        values = setitem(a, index, c)
        return ops.sum(values * values)

    a, c = ms.Tensor(tensor()), ms.Tensor(written(index))
    place, grad = (ms.jit(f) if mode == "graph" else f for f in (place, ms.grad(squares, (0, 1))))
    result = place(a, c).asnumpy()
    by_tensor, by_values = grad(a, c)
    return {"result": result, "kept": a.asnumpy(), "grad": by_tensor.asnumpy(), "grad_values": by_values.asnumpy()}


if __name__ == "__main__":
    found = {}
    for number, index in enumerate(INDICES):
        for mode in ("pynative", "graph") if number in COMPILED or sys.argv[2] == "all" else ("pynative",):
            for name, run in (("getitem", picked), ("setitem", placed)):
                arrays = run(index, mode)
                found.update({f"{name}/{number}/{mode}/{key}": value for key, value in arrays.items()})
    np.savez(sys.argv[1], **found)
    sys.stdout.flush()
    os._exit(0)
