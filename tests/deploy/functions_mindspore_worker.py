"""Pools called as functions, exported as ONNX in their equal forms. `python functions_mindspore_worker.py FOLDER`
writes N.onnx and N.npz, an input and what MindSpore's own function gives, for every case."""

from __future__ import annotations

import json
import sys
from typing import Any

from msmigrate.workers.worker import leave, prepare_mindspore

prepare_mindspore()

import mindspore  # noqa: E402
import numpy as np  # noqa: E402
from mindspore import Tensor, nn, ops  # noqa: E402
from msmigrate.deploy.mindspore_lowering import functions_for_onnx  # noqa: E402
from msmigrate.deploy.onnx_graph import StandIns  # noqa: E402

CASES: list[tuple[str, dict[str, Any]]] = [
    ("avg_pool2d", {"kernel_size": 3, "stride": 1, "padding": 1}),
    ("avg_pool2d", {"kernel_size": (3, 2), "stride": (2, 1)}),
    ("avg_pool2d", {"kernel_size": 3, "stride": 2, "padding": (1, 1, 0, 0), "count_include_pad": False}),
    ("avg_pool2d", {"kernel_size": 2, "stride": 2, "divisor_override": 3}),
    ("avg_pool2d", {"kernel_size": 2, "stride": 2, "ceil_mode": True}),
    ("avg_pool2d", {"kernel_size": 3, "stride": 2, "padding": 1, "ceil_mode": True, "count_include_pad": False}),
    ("max_pool2d", {"kernel_size": 3, "stride": 2}),
    ("max_pool2d", {"kernel_size": 2}),
    ("max_pool2d", {"kernel_size": 3, "stride": 2, "padding": 1}),
    ("max_pool2d", {"kernel_size": (3, 2), "stride": (2, 2), "padding": (1, 0), "ceil_mode": True}),
]
OWN = {name: getattr(ops, name) for name, _ in CASES}


class Net(nn.Cell):
    def __init__(self, name: str, given: dict[str, Any]) -> None:
        super().__init__()
        self.name, self.given = name, given

    def construct(self, x: Tensor) -> Tensor:
        if self.name == "avg_pool2d":
            return ops.avg_pool2d(x, **self.given)
        return ops.max_pool2d(x, **self.given)


mindspore.set_context(mode=mindspore.GRAPH_MODE)
x = -1 - np.random.default_rng(0).random((2, 2, 8, 7), dtype=np.float32)  # zeros as padding would win
functions_for_onnx(StandIns())
for number, (name, given) in enumerate(CASES):
    np.savez(f"{sys.argv[1]}/{number}.npz", x=x, own=OWN[name](Tensor(x), **given).asnumpy())
    mindspore.export(Net(name, given), Tensor(x), file_name=f"{sys.argv[1]}/{number}.onnx", file_format="ONNX")
print(json.dumps(len(CASES)))
leave()
