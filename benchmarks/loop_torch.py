"""Seconds of a training step in torch: loop_torch.py MODEL SIDE BATCH STEPS, with the batches of loop_mindspore.py."""

import json
import sys
import time

import numpy as np
import torch
from msmigrate.training.models import torch_models
from torch import nn

RATE, MOMENTUM, DECAY = 0.01, 0.9, 1e-4
WARM = 3


def main(name: str, side: int, batch: int, steps: int) -> None:
    generator = np.random.default_rng(0)
    images = torch.from_numpy(generator.standard_normal((batch, 3, side, side), dtype=np.float32))
    labels = torch.from_numpy(generator.integers(0, 10, batch))
    model = torch_models.build(name, num_classes=10).train()
    loss_function = nn.CrossEntropyLoss()
    optimizer = torch.optim.SGD(model.parameters(), RATE, MOMENTUM, weight_decay=DECAY)
    seconds = []
    for _ in range(steps + WARM):
        began = time.perf_counter()
        optimizer.zero_grad()
        loss = loss_function(model(images), labels)
        loss.backward()
        optimizer.step()
        loss.item()
        seconds.append(time.perf_counter() - began)
    print(json.dumps({"first": seconds[0], "steps": seconds[WARM:]}), flush=True)


if __name__ == "__main__":
    main(sys.argv[1], *map(int, sys.argv[2:]))
