"""The batches that both sides are fed: from the recipe or from the user's file; written by torch's worker, read by
all.

start.pth            the starting weights; the parent turns them into start.ckpt with convert-ckpt itself
start.safetensors    the same for a pair of the user's own, under torch's names: they go in through the alignment
inputs.safetensors   images{i} float32 (N, C, H, W), labels{i} int64 (N,) or float32 (N, K), for each step; mixed, where
                     the recipe mixes batches. For a model of tokens or several inputs images{i}.{k} are its inputs
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
from safetensors.numpy import load_file, save_file

from ...training.data.array_files import read_batches
from ...training.data.random_draws import Key, Mix, batch_generator, draw_mix
from ...training.data.sample import Sample, picks
from ...training.data.sources import open_arrays, samples
from ...training.recipe.schema import Recipe
from ..align.alignment import ALL, Alignment, Scope
from ..align.model_structure import Values
from ..job import ParityJob, as_arrays, batch_file
from ..run_folder import INPUTS

Images = np.ndarray | tuple[np.ndarray, ...]  # what a model takes; several inputs only where the user's own does


@dataclass(frozen=True)
class Inputs:
    """The batches that every side is fed: images[i] (N, C, H, W) and labels[i] of step i + 1; number of classes.

    logits: the shape of the model's output, where it is not (N, classes); values: its numbers. scope: what both sides
    can record.
    """

    images: list[Images]
    labels: list[np.ndarray]
    classes: int
    logits: tuple[int, ...] = ()
    values: Values = Values.ANY
    scope: Scope = ALL

    def of_pair(self, alignment: Alignment) -> Inputs:
        """The same batches, with what is known of what the two models make of them."""
        return replace(self, logits=alignment.logits, values=alignment.values, scope=alignment.scope)


@dataclass(frozen=True)
class Batch:
    """A batch as a framework's own data code makes it: images (N, C, H, W) and class labels (N,); where the recipe
    mixes batches, also the mixed images and the soft targets (N, K)."""

    images: np.ndarray
    labels: np.ndarray
    mixed: np.ndarray | None = None
    soft: np.ndarray | None = None


def classes(recipe: Recipe) -> int:
    """How many classes the recipe's model tells apart."""
    return recipe.model.num_classes


def step_samples(recipe: Recipe, steps: int) -> list[list[Sample]]:
    """The encoded images of each step."""
    return samples(recipe.data.source, recipe.data.batch, steps, recipe.seed, classes(recipe))


def step_keys(recipe: Recipe, step: int) -> list[Key]:
    """The keys that seed the random transforms of step `step`, counted from 0: positions among all steps' images."""
    first = step * recipe.data.batch
    return [(recipe.seed, 0, first + i) for i in range(recipe.data.batch)]


def step_mix(recipe: Recipe, step: int, shape: tuple[int, ...]) -> Mix | None:
    """How the batch of step `step`, counted from 0, of this shape (N, C, H, W) is mixed; None without mixup."""
    if recipe.mixup is None:
        return None
    return draw_mix(recipe.mixup, batch_generator(recipe.seed, 0, step), shape)


def data_batches(
    recipe: Recipe,
    steps: int,
    load: Callable[[list[Sample], list[Key]], tuple[np.ndarray, np.ndarray]],
    mixed: Callable[[np.ndarray, np.ndarray, Mix], tuple[np.ndarray, np.ndarray]],
) -> list[Batch]:
    """The batch of each step as a framework's own code makes it, and mixed where the recipe says so.

    load: (samples, keys) -> images and labels; mixed: (images, labels, mix) -> mixed images and soft targets.
    """
    found = []
    for step, encoded in enumerate(step_samples(recipe, steps)):
        images, labels = load(encoded, step_keys(recipe, step))
        mix = step_mix(recipe, step, images.shape)
        found.append(Batch(images, labels, *(mixed(images, labels, mix) if mix is not None else ())))
    return found


def targets(recipe: Recipe, labels: np.ndarray) -> np.ndarray:
    """What the loss takes for these class labels (N,) of a batch that is not mixed: themselves, or one-hot float32
    rows (N, K)."""
    if not recipe.one_hot:
        return labels
    rows: np.ndarray = np.eye(classes(recipe), dtype=np.float32)[labels]
    return rows


def given_batches(job: ParityJob) -> tuple[list[Images], list[np.ndarray]] | None:
    """The inputs and labels of each step where these are ready-made: the user's file has them, or they are rows of the
    recipe's arrays, drawn from its seed; None where batches are made from images. Raises BadInput for any other
    file."""
    if not as_arrays(job):
        return None
    path, recipe = batch_file(job), job.step_recipe
    if path is not None:
        inputs, labels = read_batches(path, job.steps)
    else:
        source, batch = open_arrays(recipe.data.source, recipe.model), recipe.data.batch
        chosen = np.array(picks(len(source), batch * job.steps, recipe.seed)).reshape(job.steps, batch)
        drawn = [source.rows(rows) for rows in chosen]
        inputs, labels = [each for each, _ in drawn], [each for _, each in drawn]
    return [each if len(each) > 1 else each[0] for each in inputs], labels


def write_inputs(folder: Path, inputs: Inputs) -> None:
    """Store the batches for the other sides."""
    arrays = {
        f"images{i}{f'.{k}' if k else ''}": np.ascontiguousarray(x)
        for i, images in enumerate(inputs.images)
        for k, x in enumerate(images if isinstance(images, tuple) else (images,))
    }
    arrays |= {f"labels{i}": y for i, y in enumerate(inputs.labels)}
    partial = folder / f"{INPUTS}.partial"  # whoever waits for it must not see half of it
    save_file(arrays, partial, metadata={"classes": str(inputs.classes)})
    partial.replace(folder / INPUTS)


def read_inputs(folder: Path, recipe: Recipe) -> Inputs:
    """The batches that the torch worker stored."""
    arrays = load_file(folder / INPUTS)
    steps = sum(name.startswith("labels") for name in arrays)
    places = [1 + sum(name.startswith(f"images{i}.") for name in arrays) for i in range(steps)]
    images: list[Images] = [
        arrays[f"images{i}"]
        if places[i] == 1
        else (arrays[f"images{i}"], *(arrays[f"images{i}.{k}"] for k in range(1, places[i])))
        for i in range(steps)
    ]
    return Inputs(images, [arrays[f"labels{i}"] for i in range(steps)], classes(recipe))
