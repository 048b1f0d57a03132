"""Torch nets whose twins are in twins_mindspore.py, and as a worker: load checkpoints into one, nothing left over.

    python twins_torch.py FOLDER

Loads every .pth of the folder into twin() with strict=True and writes loaded.json: file name -> name -> digest.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path

import torch
from make_checkpoints_torch import digest
from torch import nn


def twin() -> nn.Module:
    return nn.ModuleDict(
        {
            "conv": nn.Conv2d(3, 4, 3, bias=False),
            "point": nn.Conv2d(4, 4, 1),
            "bn": nn.BatchNorm2d(4),
            "embed": nn.Embedding(6, 4),
            "norm": nn.LayerNorm(4),
            "block": nn.Sequential(nn.Linear(4, 8), nn.ReLU(), nn.Linear(8, 5, bias=False)),
        }
    )


def flat() -> nn.Module:
    """What MindSpore's names and shapes alone do not tell."""
    return nn.ModuleDict({"conv": nn.Conv1d(3, 4, 5), "wide": nn.Conv2d(3, 4, (1, 5)), "act": nn.PReLU(4)})


def main(folder: Path) -> None:
    loaded = {}
    for path in sorted(folder.glob("*.pth")):
        net = twin()
        net.load_state_dict(torch.load(path, weights_only=True), strict=True)
        loaded[path.name] = {name: digest(value) for name, value in net.state_dict().items()}
    (folder / "loaded.json").write_text(json.dumps(loaded))


if __name__ == "__main__":
    main(Path(sys.argv[1]))
