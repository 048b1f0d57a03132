"""Worker: save the twin of twins_torch.twin() with mindspore.save_checkpoint, and what it holds.

    python twins_mindspore.py FOLDER

Writes twin.ckpt and saved.json: parameter name -> [shape, dtype, sha256 of the bytes].
"""

from __future__ import annotations

import os

os.environ.setdefault("ONEDNN_MAX_CPU_ISA", "AVX2")

import json
import sys
from pathlib import Path

import mindspore
import numpy as np
from mindspore import nn
from read_checkpoints_mindspore import digest


class Twin(nn.Cell):
    def __init__(self) -> None:
        super().__init__()
        self.conv = nn.Conv2d(3, 4, 3, pad_mode="valid", has_bias=False)
        self.point = nn.Conv2d(4, 4, 1, has_bias=True)
        self.bn = nn.BatchNorm2d(4)
        self.embed = nn.Embedding(6, 4)
        self.norm = nn.LayerNorm((4,))
        self.block = nn.SequentialCell(nn.Dense(4, 8), nn.ReLU(), nn.Dense(8, 5, has_bias=False))


def main(folder: Path) -> None:
    net = Twin()
    random = np.random.default_rng(0)
    for parameter in net.get_parameters():
        parameter.set_data(mindspore.Tensor(random.normal(size=parameter.shape).astype(np.float32)))
    mindspore.save_checkpoint(net, str(folder / "twin.ckpt"))
    held = {parameter.name: digest(parameter) for parameter in net.get_parameters()}
    (folder / "saved.json").write_text(json.dumps(held))
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(0)


if __name__ == "__main__":
    main(Path(sys.argv[1]))
