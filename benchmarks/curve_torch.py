"""Train the recipe in torch, as one would by hand: curve_torch.py RECIPE SEED STEPS FOLDER [THREADS].

Leaves FOLDER/start.pth (the initial weights), losses.json and predictions.json: the loss of every step, and the classes
of the validation images in order. The batches come in the order of torch's own DistributedSampler. THREADS: how many
compute, which changes nothing but the order in which sums are rounded.
"""

import json
import sys
from pathlib import Path

import numpy as np
import torch
from msmigrate.training.data import torch_pipeline
from msmigrate.training.data.sources import Source, open_source
from msmigrate.training.models import torch_models
from msmigrate.training.recipe import reader as recipes
from msmigrate.training.step.torch_step import TrainStep
from torch.utils.data import DistributedSampler


def tensors(source: Source, transforms: list) -> tuple[torch.Tensor, torch.Tensor]:
    """All images, prepared, and their labels: these sets are small."""
    images, labels = torch_pipeline.batch([source[i] for i in range(len(source))], transforms)
    return torch.from_numpy(images), torch.from_numpy(labels)


def main(recipe_file: Path, seed: int, steps: int, folder: Path) -> None:
    recipe = recipes.load(recipe_file)
    classes = recipe.model.num_classes
    torch.manual_seed(seed)
    model = torch_models.build(recipe.model.name, **recipe.model.args)
    folder.mkdir(parents=True, exist_ok=True)
    torch.save(model.state_dict(), folder / "start.pth")
    source = open_source(recipe.data.source, classes, training=True)
    images, labels = tensors(source, recipe.data.transforms)
    sampler = DistributedSampler(range(len(labels)), num_replicas=1, rank=0, seed=seed)
    step = TrainStep(recipe, model)
    losses: list[float] = []
    for epoch in range(steps):
        sampler.set_epoch(epoch)
        order = np.fromiter(sampler, np.int64)
        for start in range(0, len(order) - recipe.data.batch + 1, recipe.data.batch):
            chosen = order[start : start + recipe.data.batch]
            losses.append(float(step(images[chosen], labels[chosen]).loss))
            if len(losses) == steps:
                break
        if len(losses) == steps:
            break
    assert recipe.data.validation is not None
    images, labels = tensors(open_source(recipe.data.validation, classes, training=False), recipe.data.transforms)
    with torch.no_grad():
        found = model.eval()(images).argmax(1)
    (folder / "losses.json").write_text(json.dumps(losses))
    (folder / "predictions.json").write_text(json.dumps({"top1": float((found == labels).float().mean())}))


if __name__ == "__main__":
    if len(sys.argv) > 5:
        torch.set_num_threads(int(sys.argv[5]))
    main(Path(sys.argv[1]), int(sys.argv[2]), int(sys.argv[3]), Path(sys.argv[4]))
