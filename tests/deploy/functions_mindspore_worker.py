"""Pools, paddings and resizing, called as functions or as layers, exported as ONNX in their equal forms.

`python functions_mindspore_worker.py FOLDER` writes N.onnx and N.npz: an input, and what MindSpore gives, for each.
"""

from __future__ import annotations

import json
import sys
from typing import Any

from msmigrate.workers.worker import leave, prepare_mindspore

prepare_mindspore()

import mindspore  # noqa: E402
import numpy as np  # noqa: E402
from mindspore import Tensor, nn, ops  # noqa: E402
from msmigrate.deploy.mindspore_lowering import FOR_ONNX, functions_for_onnx, rewrite  # noqa: E402
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
    ("pad", {"padding": (1, 2, 0, 3), "mode": "reflect"}),
    ("pad", {"padding": (2, 0, 1, 4), "mode": "replicate"}),
    ("pad", {"padding": (3, 1, 0, 2), "mode": "circular"}),
    ("interpolate", {"size": (16, 14), "mode": "bilinear", "align_corners": True}),
    ("interpolate", {"size": (5, 9), "mode": "bilinear"}),
    ("interpolate", {"size": (16, 14), "mode": "nearest"}),
    ("interpolate", {"scale_factor": 2.0, "mode": "bilinear", "recompute_scale_factor": True}),
]
LAYERS = [nn.ReflectionPad2d((1, 2, 0, 3)), nn.ReplicationPad2d((2, 0, 1, 4)), nn.ReflectionPad2d(2)]
LAYERS += [nn.Upsample(size=(11, 14), mode="bilinear", align_corners=False)]
OWN = {name: getattr(ops, name) for name, _ in CASES}


class Net(nn.Cell):
    def __init__(self, name: str, given: dict[str, Any]) -> None:
        super().__init__()
        self.name, self.given = name, given

    def construct(self, x: Tensor) -> Tensor:
        if self.name == "avg_pool2d":
            return ops.avg_pool2d(x, **self.given)
        if self.name == "pad":
            return ops.pad(x, **self.given)
        if self.name == "interpolate":
            return ops.interpolate(x, **self.given)
        return ops.max_pool2d(x, **self.given)


mindspore.set_context(mode=mindspore.GRAPH_MODE)
x = -1 - np.random.default_rng(0).random((2, 2, 8, 7), dtype=np.float32)  # zeros as padding would win
nets = [nn.SequentialCell(layer, nn.ReLU()) for layer in LAYERS]
own = [layer(Tensor(x)).asnumpy() for layer in LAYERS]
functions_for_onnx(StandIns())
for number, (name, given) in enumerate(CASES):
    np.savez(f"{sys.argv[1]}/{number}.npz", x=x, own=OWN[name](Tensor(x), **given).asnumpy())
    mindspore.export(Net(name, given), Tensor(x), file_name=f"{sys.argv[1]}/{number}.onnx", file_format="ONNX")
for number, net in enumerate(nets, len(CASES)):
    rewrite(net, FOR_ONNX, StandIns())
    np.savez(f"{sys.argv[1]}/{number}.npz", x=-x, own=-own[number - len(CASES)])  # below zero ReLU leaves nothing
    mindspore.export(net, Tensor(-x), file_name=f"{sys.argv[1]}/{number}.onnx", file_format="ONNX")
print(json.dumps(len(CASES) + len(LAYERS)))
leave()
