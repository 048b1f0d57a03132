"""`python export_torch_worker.py RECIPE FOLDER`: weights of the recipe's model that have been moved a little, and what
it makes of the first test images."""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np
import torch
from msmigrate.training.data import torch_pipeline
from msmigrate.training.data.sources import open_source
from msmigrate.training.models import torch_models
from msmigrate.training.recipe import reader as recipes

recipe, folder = recipes.load(Path(sys.argv[1])), Path(sys.argv[2])
torch.manual_seed(0)
torch.set_num_threads(1)
source = open_source("digits:test", 10, training=False)
images, _ = torch_pipeline.batch([source[index] for index in range(6)], recipe.data.transforms)
model = torch_models.build(recipe.model.name, **recipe.model.args)
with torch.no_grad():
    for _ in range(5):
        model.train()(torch.tensor(images) + 0.1 * torch.randn(images.shape))
    logits = model.eval()(torch.tensor(images)).numpy()
torch.save(model.state_dict(), folder / "tiny.pth")
np.savez(folder / "out.npz", images=images, logits=logits)
