"""What torch and torchvision make of the same images: `python sources_torch_worker.py FOLDER [COUNT]`.

FOLDER/images is a tree with a folder for each class. Writes torch.json and torch.npz; with COUNT only one order of
that many images.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path

import numpy as np
import torch
from torch.utils.data import DistributedSampler
from torchvision import transforms
from torchvision.datasets import ImageFolder

FOLDER = Path(sys.argv[1])
COUNTS = (1, 2, 7, 20, 1797, 50_000)
EPOCHS = (0, 3)
SEEDS = (0, 42, 2**31 - 1)


def order(count: int, world: int, rank: int, shuffle: bool, drop_last: bool, seed: int, epoch: int) -> np.ndarray:
    """The indices of one process."""
    sampler = DistributedSampler(range(count), world, rank, shuffle, seed, drop_last)
    sampler.set_epoch(epoch)
    return np.array(list(sampler), np.int64)


arrays: dict[str, np.ndarray] = {}
facts: dict = {}
if len(sys.argv) > 2:
    count = int(sys.argv[2])
    arrays["order"] = order(count, 1, 0, True, False, 42, 7)
else:
    for count in COUNTS:
        worlds = range(1, 9) if count < 50_000 else (1, 8)
        for world in worlds:
            for rank in range(world) if count < 1000 else (0, world - 1):
                for shuffle in (True, False):
                    for drop_last in (True, False):
                        for seed in SEEDS:
                            for epoch in EPOCHS:
                                case = (count, world, rank, shuffle, drop_last, seed, epoch)
                                arrays[" ".join(map(str, map(int, case)))] = order(*case)

    tree = ImageFolder(FOLDER / "images")
    facts["classes"] = tree.classes
    facts["files"] = [[Path(file).relative_to(FOLDER / "images").as_posix(), label] for file, label in tree.samples]
    for side in (0, 48):
        steps = [transforms.Resize(side)] if side else []
        prepare = transforms.Compose([*steps, transforms.PILToTensor()])
        pixels = torch.cat([prepare(image).flatten(1) for image, _ in tree], dim=1).double()
        facts[f"statistics {side}"] = {
            "pixels": pixels.shape[1],
            "mean": (pixels.mean(1) / 255).tolist(),
            "std": (pixels.std(1, correction=0) / 255).tolist(),
        }

(FOLDER / "torch.json").write_text(json.dumps(facts), encoding="utf-8")
np.savez(FOLDER / "torch.npz", **arrays)
