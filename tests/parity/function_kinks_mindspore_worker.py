"""What function_choices sees in MindSpore: prints one JSON object, case -> [name, number, class, bits] of each call."""

import json
import os
from typing import Any

from msmigrate.workers.worker import prepare_mindspore

prepare_mindspore()

import mindspore  # noqa: E402
import numpy as np  # noqa: E402
from mindspore import Tensor, nn, ops  # noqa: E402
from mindspore.ops import relu  # noqa: E402
from msmigrate.parity.record.mindspore_kinks import function_choices  # noqa: E402


class Inner(nn.Cell):
    """One ReLU as a layer, one as a function, and a hard swish."""

    def __init__(self) -> None:
        super().__init__()
        self.layer = nn.ReLU()

    def construct(self, x: Tensor) -> Tensor:
        return ops.hardswish(ops.relu(self.layer(x) - 1.0) * 5.0)


class Net(nn.Cell):
    """Calls functions before, in and after a Cell that it runs twice."""

    def __init__(self) -> None:
        super().__init__()
        self.inner = Inner()

    def construct(self, x: Tensor) -> Tensor:
        return mindspore.mint.nn.functional.relu(self.inner(self.inner(relu(x))) - 2.0)


def seen(names: dict[str, str | None]) -> list[Any]:
    """What is told of a training pass when torch has the Cells in `names`: torch's path -> torch class."""
    net, told = Net(), []
    cells = dict(net.cells_and_names())
    known = {path: (cells[path], kind) for path, kind in names.items()}
    x = Tensor(np.array([[-1.0, 0.5, 3.0]], np.float32))

    def keep(name: str, number: int, kind: str, made: np.ndarray) -> None:
        told.append([name, number, kind, np.unpackbits(made).tolist()])

    with function_choices(known, keep):
        mindspore.value_and_grad(lambda value: net(value).sum())(x)
    net(x)
    return told


X = Tensor(np.random.default_rng(0).standard_normal((2, 4, 6, 6)).astype(np.float32))
FUNCTIONS = {
    "ops.max_pool2d": lambda x: ops.max_pool2d(x, 2),
    "nn.MaxPool2d": nn.MaxPool2d(2, 2),
    "nn.MaxPool2d padded": nn.MaxPool2d(3, 2, pad_mode="pad", padding=1),
    "nn.MaxPool1d": lambda x: nn.MaxPool1d(2, 2)(x[0]),
    "nn.MaxPool3d": nn.MaxPool3d(2, 2),
    "ops.adaptive_max_pool2d": lambda x: ops.adaptive_max_pool2d(x, 2),
    "ops.max": lambda x: ops.max(x, 1)[0],
    "mint.max": lambda x: mindspore.mint.max(x, dim=1)[0],
    "mint.max by keyword": lambda x: mindspore.mint.max(input=x, dim=1)[0],
    "tensor.max": lambda x: x.max(1)[0],
    "tensor.max along an axis": lambda x: x.max(axis=1),
    "tensor.max of all": lambda x: x.max(),
    "mint.max of two": lambda x: mindspore.mint.max(x, x * 2.0),
    "ops.amax": lambda x: ops.amax(x, (2, 3)),
    "mint.amin": lambda x: mindspore.mint.amin(x, 1),
    "ops.minimum": lambda x: ops.minimum(x, 0.5),
    "ops.clamp": lambda x: ops.clamp(x, 0.0, 0.5),
    "tensor.clamp": lambda x: x.clamp(0.0, 0.5),
    "tensor.clip by keyword": lambda x: x.clip(min=0.0),
    "mint.clamp": lambda x: mindspore.mint.clamp(x, max=0.5),
    "ops.hardtanh": lambda x: ops.hardtanh(x, -0.5, 0.5),
    "ops.leaky_relu": lambda x: ops.leaky_relu(x, 0.1),
    "tensor.abs": lambda x: x.abs(),
    "whole numbers": lambda x: ops.maximum(ops.cast(x, mindspore.int32), 1),
}


def functions() -> dict[str, list[Any]]:
    """Of each function what is told: kind, and whether the whole input is kept, the choice following from it."""
    found: dict[str, list[Any]] = {}
    for name, function in FUNCTIONS.items():
        told = found.setdefault(name, [])

        def keep(_: str, __: int, kind: str, made: np.ndarray, told: list[Any] = told) -> None:
            told.append([kind, made.dtype != np.uint8])

        with function_choices({}, keep):
            mindspore.value_and_grad(lambda x, f=function: f(x).sum())(X)
        assert (X * 1.0).max() is not None  # nothing stays watched
    return found


facts = {
    "all known": seen({"": None, "inner": None, "inner.layer": "ReLU"}),
    "no layer": seen({"": None, "inner": None}),
    "no inner": seen({"": None, "inner.layer": "ReLU"}),
    "functions": functions(),
}
print(json.dumps(facts), flush=True)
os._exit(0)
