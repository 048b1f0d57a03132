"""The start that every side shares: what the torch worker leaves for the others in the run's folder.

start.pth            the starting weights; the parent turns them into start.ckpt with convert-ckpt itself
inputs.safetensors   images{i} float32 (N, C, H, W), labels{i} int64 (N,) or float32 (N, K), for each step
"""

from __future__ import annotations

from pathlib import Path

import numpy as np
from safetensors.numpy import load_file, save_file

from ..train.data_sources import samples
from ..train.model_names import num_classes
from ..train.recipe import Recipe
from ..train.sample import Sample
from .record import Inputs

WEIGHTS, CHECKPOINT, INPUTS = "start.pth", "start.ckpt", "inputs.safetensors"
TORCH32, TORCH32_OTHER, TORCH64, MINDSPORE = "torch-fp32", "torch-fp32-other-layout", "torch-fp64", "mindspore-fp32"


def matched(name: str) -> str:
    """The trace whose ReLUs and max-pools chose as MindSpore's did where rounding decides."""
    return f"{name}-matched"


def classes(recipe: Recipe) -> int:
    """How many classes the recipe's model tells apart."""
    return num_classes(recipe.model.name, recipe.model.args)


def step_samples(recipe: Recipe, steps: int) -> list[list[Sample]]:
    """The encoded images of each step."""
    return samples(recipe.data.source, recipe.data.batch, steps, recipe.seed, classes(recipe))


def targets(recipe: Recipe, labels: np.ndarray) -> np.ndarray:
    """What the loss takes for these class labels (N,): themselves, or one-hot float32 rows (N, K)."""
    if not recipe.one_hot:
        return labels
    rows: np.ndarray = np.eye(classes(recipe), dtype=np.float32)[labels]
    return rows


def write_inputs(folder: Path, inputs: Inputs) -> None:
    """Store the batches for the other sides."""
    arrays = {f"images{i}": np.ascontiguousarray(x) for i, x in enumerate(inputs.images)}
    arrays |= {f"labels{i}": y for i, y in enumerate(inputs.labels)}
    save_file(arrays, folder / INPUTS, metadata={"classes": str(inputs.classes)})


def read_inputs(folder: Path, recipe: Recipe) -> Inputs:
    """The batches that the torch worker stored."""
    arrays = load_file(folder / INPUTS)
    steps = len(arrays) // 2
    return Inputs(
        [arrays[f"images{i}"] for i in range(steps)], [arrays[f"labels{i}"] for i in range(steps)], classes(recipe)
    )
