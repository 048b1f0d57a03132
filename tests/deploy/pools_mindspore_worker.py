"""Max-pools with padding or rounded up, exported with an open batch in their equal form and loaded: whether each gives
what MindSpore's own pool gives, to the bit, for batches of 3 and of 1. `python pools_mindspore_worker.py FOLDER`."""

from __future__ import annotations

import json
import sys
from pathlib import Path

from msmigrate.workers.worker import leave, prepare_mindspore

prepare_mindspore()

import mindspore  # noqa: E402
import numpy as np  # noqa: E402
from mindspore import Tensor, nn  # noqa: E402
from msmigrate.deploy.mindspore_lowering import FOR_DYNAMIC, rewrite  # noqa: E402
from msmigrate.deploy.onnx_graph import StandIns  # noqa: E402

CASES = ((7, 3, 2, 1, False), (8, 3, 2, 0, True), (7, 3, 2, 0, True), (9, 3, 2, 1, True), (6, 2, 2, 0, True))
mindspore.set_context(mode=mindspore.GRAPH_MODE)
random, same = np.random.default_rng(0), []
for size, kernel, stride, padding, ceil in CASES:
    x = -1 - random.random((3, 2, size, size), dtype=np.float32)  # zeros as padding would win
    nets = [
        nn.SequentialCell([nn.MaxPool2d(kernel, stride, pad_mode="pad", padding=padding, ceil_mode=ceil)])
        for _ in range(2)
    ]
    rewrite(nets[1], FOR_DYNAMIC, StandIns())
    file = f"{sys.argv[1]}/pool.mindir"
    Path(file).unlink(missing_ok=True)
    given = Tensor(shape=[None, 2, size, size], dtype=mindspore.float32)
    mindspore.export(nets[1], given, file_name=file, file_format="MINDIR")
    loaded, expected = nn.GraphCell(mindspore.load(file)), nets[0](Tensor(x)).asnumpy()
    found = [np.array_equal(loaded(Tensor(x[:n])).asnumpy(), expected[:n]) for n in (3, 1)]
    same.append([bool(each) for each in found])
print(json.dumps(same))
leave()
