"""What function_choices sees in MindSpore: prints one JSON object, case -> [name, number, class, bits] of each call."""

import json
import os
from typing import Any

from msmigrate.workers import mindspore_environment

mindspore_environment.prepare()

import mindspore  # noqa: E402
import numpy as np  # noqa: E402
from mindspore import Tensor, nn, ops  # noqa: E402
from mindspore.ops import relu  # noqa: E402
from msmigrate.parity.record.mindspore_runner import function_choices  # noqa: E402


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


facts = {
    "all known": seen({"": None, "inner": None, "inner.layer": "ReLU"}),
    "no layer": seen({"": None, "inner": None}),
    "no inner": seen({"": None, "inner.layer": "ReLU"}),
}
print(json.dumps(facts), flush=True)
os._exit(0)
