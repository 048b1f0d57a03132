"""What layers compute once their settings are changed by `change_layer`, in one mode: the first argument."""

from __future__ import annotations

import json
import sys

import mindspore as ms
import numpy as np
from mindspore import nn
from msmigrate.nn import Dropout2d, DropPath, change_layer

NORMS = {1: nn.BatchNorm1d, 2: nn.BatchNorm2d, 3: nn.BatchNorm3d}


def main() -> None:
    ms.set_context(mode=ms.GRAPH_MODE if sys.argv[1] == "graph" else ms.PYNATIVE_MODE)
    found: dict[str, float] = {}
    for axes, cls in NORMS.items():
        x = np.arange(1, 1 + 8 * 2**axes, dtype=np.float32).reshape((4, 2) + (2,) * axes)
        norm, fresh = cls(2), cls(2)
        for one in (norm, fresh):
            change_layer(one, eps=1.0)
            change_layer(one, momentum=0.25)
        norm.set_train()
        norm(ms.Tensor(x))
        moving = next(p for name, p in norm.parameters_and_names() if name.endswith("moving_mean"))
        found[f"{axes} momentum"] = float(moving.asnumpy()[0] / x[:, 0].mean())
        fresh.set_train(False)
        found[f"{axes} eps"] = float((fresh(ms.Tensor(x)).asnumpy() / x).mean())
    norm = nn.LayerNorm((2,), epsilon=1e-5)
    change_layer(norm, eps=1.0)
    found["layer norm"] = float(norm(ms.Tensor([[1.0, 3.0]])).asnumpy()[0, 1])
    slope = nn.LeakyReLU(alpha=0.1)
    change_layer(slope, negative_slope=0.5)
    found["slope"] = float(slope(ms.Tensor([-1.0])).asnumpy()[0])
    for layer, name in ((nn.Dropout(p=0.1), "p"), (Dropout2d(0.1), "p"), (DropPath(0.1), "drop_prob")):
        change_layer(layer, **{name: 0.75})
        layer.set_train()
        drawn = layer(ms.ops.ones((4000, 1, 1, 1)) if name == "drop_prob" else ms.ops.ones((50, 80, 1, 1))).asnumpy()
        found[f"{type(layer).__name__} share"] = float((drawn == 0).mean())
        found[f"{type(layer).__name__} scale"] = float(drawn.max())
    try:
        change_layer(nn.Conv2d(1, 1, 1), stride=2)
    except AttributeError as error:
        print(error, file=sys.stderr)
        found["refused"] = 1.0
    cell = nn.Cell()
    named = {key for cls in type(cell).__mro__ for key, value in vars(cls).items() if isinstance(value, property)}
    own = sorted(key for key in {*named, *vars(cell)} - {"training"} if not key.startswith("_"))
    cell.set_train(False)
    print(json.dumps([found, own, cell.phase]))


if __name__ == "__main__":
    main()
