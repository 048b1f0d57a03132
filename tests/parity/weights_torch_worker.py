"""Load state dicts without the norms' counters, exercise a block of somebody's own, and print what became of each.

python weights_torch_worker.py FOLDER
"""

from __future__ import annotations

import json
import sys
from pathlib import Path

import torch
from msmigrate.errors import BadCheckpoint
from msmigrate.parity.record.torch_worker import exercise, load_checkpoint
from torch import nn

COUNTER = "num_batches_tracked"


class BasicBlock(nn.Sequential):
    """Called as torchvision's, whose last norm is bn2."""


class Tied(nn.Module):
    """One weight under two names, of which MindSpore's checkpoint has the first."""

    def __init__(self) -> None:
        super().__init__()
        self.embed, self.head = nn.Embedding(5, 3), nn.Linear(3, 5, bias=False)
        self.head.weight = self.embed.weight


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
    block = BasicBlock(nn.Conv2d(3, 3, 1), nn.BatchNorm2d(3))
    exercise(block, torch.randn(4, 3, 5, 5))
    found["block"] = str(bool(block[1].running_mean.any()))
    tied = Tied()
    one_name = {name: value + 1 for name, value in tied.state_dict().items() if name != "head.weight"}
    torch.save(one_name, folder / "tied.pth")
    load_checkpoint(tied, folder / "tied.pth")
    found["tied"] = str(torch.equal(tied.head.weight, one_name["embed.weight"]))
    print(json.dumps(found))


if __name__ == "__main__":
    main(Path(sys.argv[1]))
