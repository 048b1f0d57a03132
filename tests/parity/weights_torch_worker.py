"""Load state dicts without the norms' counters, and print what became of each.

python weights_torch_worker.py FOLDER
"""

from __future__ import annotations

import json
import sys
from pathlib import Path

import torch
from msmigrate.errors import BadCheckpoint
from msmigrate.parity.torch_weights import load_checkpoint
from torch import nn

COUNTER = "num_batches_tracked"


def main(folder: Path) -> None:
    found = {}
    for name, momentum in (("usual", 0.1), ("cumulative", None)):
        norm = nn.BatchNorm2d(3, momentum=momentum)
        nn.init.uniform_(norm.weight)
        state = {f"module.0.{key}": value for key, value in norm.state_dict().items() if key != COUNTER}
        torch.save({"model": state}, folder / f"{name}.pth")
        model = nn.Sequential(nn.BatchNorm2d(3, momentum=momentum))
        try:
            load_checkpoint(model, folder / f"{name}.pth")
            found[name] = str(torch.equal(model[0].weight, norm.weight))
        except BadCheckpoint as error:
            found[name] = str(error)
    print(json.dumps(found))


if __name__ == "__main__":
    main(Path(sys.argv[1]))
