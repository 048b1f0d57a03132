"""The PyTorch half of the loader's tests: `python loader_torch_worker.py FOLDER` writes torch.json and torch.npz."""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np
from loader_cases import COUNT, EPOCH, RANDOM, SEED, SHARDS
from msmigrate.training.data import torch_pipeline
from msmigrate.training.data.sources import open_source
from torch.utils.data import DataLoader, DistributedSampler
from worker import dump

FOLDER = Path(sys.argv[1])
shards = {}
for case, (training, shuffle, drop_last, world, batch) in enumerate(SHARDS):
    for rank in range(world):
        drop = training and drop_last
        sampler = DistributedSampler(range(COUNT), world, rank, shuffle=training and shuffle, seed=SEED, drop_last=drop)
        sampler.set_epoch(EPOCH)
        loader = DataLoader(range(COUNT), batch_size=batch, sampler=sampler, drop_last=drop)
        shards[f"{case}/{rank}"] = [indices.tolist() for indices in loader]

source = open_source(f"folder:{FOLDER / 'images'}", 3, training=True)
indices = shards["0/0"][1]
images, labels = torch_pipeline.batch(
    [source[index] for index in indices], RANDOM, [(SEED, EPOCH, index) for index in indices]
)
arrays: dict[str, np.ndarray] = {"images": images, "labels": labels}
dump(FOLDER / "torch", {"shards": shards}, arrays)
