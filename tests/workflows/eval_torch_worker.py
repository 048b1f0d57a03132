"""Torch's side of the tests of eval and predict: `python eval_torch_worker.py RECIPE FOLDER`.

Trains the recipe's model a little, and leaves model.pth with its logits of digits:test in torch.npz; and the same for
a second set of weights, which stand for a moving average (`ema/NAME`, ema_logits).
"""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np
import torch
from msmigrate.training.data import torch_pipeline
from msmigrate.training.data.sources import open_source
from msmigrate.training.models import torch_models
from msmigrate.training.recipe import reader as recipes

RECIPE, FOLDER = recipes.load(Path(sys.argv[1])), Path(sys.argv[2])
STEPS, BATCH = 45, 32


def prepared(source: str) -> tuple[torch.Tensor, torch.Tensor]:
    """All images and labels of a source, through torchvision's own transforms."""
    opened = open_source(source, 10, training=False)
    images, labels = torch_pipeline.batch([opened[index] for index in range(len(opened))], RECIPE.data.transforms)
    return torch.tensor(images), torch.tensor(labels)


def logits(model: torch.nn.Module, images: torch.Tensor) -> np.ndarray:
    with torch.no_grad():
        return np.concatenate([model.eval()(part).numpy() for part in images.split(50)])


torch.set_num_threads(1)  # tensors this small gain nothing from more
torch.manual_seed(3)
model = torch_models.build(RECIPE.model.name, **RECIPE.model.args)
images, labels = prepared("digits:train")
optimizer = torch.optim.SGD(model.parameters(), lr=0.02, momentum=0.9)
for step in range(STEPS):
    chosen = slice(BATCH * (step % 44), BATCH * (step % 44) + BATCH)
    optimizer.zero_grad()
    torch.nn.functional.cross_entropy(model(images[chosen]), labels[chosen]).backward()
    optimizer.step()
torch.save({"state_dict": model.state_dict()}, FOLDER / "model.pth")

test, classes = prepared("digits:test")
found = {"logits": logits(model, test)}
found["loss"] = torch.nn.functional.cross_entropy(torch.tensor(found["logits"]).double(), classes).numpy()
for name, value in model.state_dict().items():
    if value.dtype == torch.float32:
        value.mul_(torch.empty_like(value).uniform_(0.8, 1.2))
        found[f"ema/{name}"] = value.numpy().copy()
found["ema_logits"] = logits(model, test)
np.savez(FOLDER / "torch.npz", **found)
