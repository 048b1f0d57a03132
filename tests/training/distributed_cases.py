"""What two processes train in the tests of many devices, in both frameworks; it imports no framework.

The workers run as scripts, so this file is found beside them; the tests load it by its path.
"""

from __future__ import annotations

import numpy as np
from msmigrate.training.data.sample import decode
from msmigrate.training.data.sources import samples
from step_cases import CLASSES, SOURCES, TOGETHER, Case

WORLD = 2
STEPS = 5
IMAGES = 8  # of one process in a step: BatchNorm over the two of a smaller micro-batch knows only signs
CLIP = {"max_norm": 0.5}  # of a ResNet's gradients, which are larger

# Clipping, accumulation, a loss scale and nesterov at once
SYNC, LOCAL = {**TOGETHER, "clip": CLIP, "sync_batchnorm": True}, {**TOGETHER, "clip": CLIP}
CASES = {
    "lenet": Case(TOGETHER),
    "sync": Case(SYNC),
    "local": Case(LOCAL),
    "resnet sync": Case(SYNC, "resnet_tiny"),
    "resnet local": Case(LOCAL, "resnet_tiny"),
}
SMALL = ("sync", "local")  # on a small net with BatchNorms that each worker writes itself
MODES = ("pynative", "graph")
QUICK = {"lenet": ("pynative",), "sync": ("graph",)}


def modes(name: str, quick: bool) -> tuple[str, ...]:
    """The modes in which MindSpore's ranks train a case."""
    return QUICK.get(name, ()) if quick else MODES


def shares(case: Case) -> list[tuple[np.ndarray, np.ndarray]]:
    """Every step's images, (parts, WORLD, n, C, H, W) float32, and labels, (parts, WORLD, n) int64.

    parts are the micro-batches; a process's batch is [:, rank] and the big one all of it, both with parts first.
    """
    photographs = case.model == "resnet_tiny"
    size = (64, 64) if photographs else (32, 32)  # with fewer, the last BatchNorms stand on a handful of values
    parts = case.recipe.accumulate
    found = []
    for step in samples(SOURCES[case.model], IMAGES * WORLD, STEPS, seed=8, num_classes=CLASSES):
        pixels = np.stack([np.asarray(decode(sample).resize(size), np.float32) for sample in step])
        images = (pixels.transpose(0, 3, 1, 2) if photographs else pixels[:, None]) / np.float32(128) - np.float32(1)
        labels = np.array([sample.label for sample in step], np.int64)
        shape = (parts, WORLD, IMAGES // parts)
        found.append((images.reshape(*shape, *images.shape[1:]), labels.reshape(shape)))
    return found


def joined(array: np.ndarray, rank: int | None) -> np.ndarray:
    """The batch of one rank, or of one process that has all of it."""
    chosen = array if rank is None else array[:, rank : rank + 1]
    return chosen.reshape(-1, *array.shape[3:])


# BatchNorms alone, on each process's own share: shape of the whole input, how many images rank 0 has
LAYERS: dict[str, tuple[tuple[int, ...], int]] = {
    "2d": ((6, 3, 4, 5), 3),
    "1d": ((8, 4), 4),
    "1d long": ((4, 3, 7), 2),
    "unequal": ((7, 3, 4, 4), 2),
}
LAYER_STEPS = 2


def layer_input(name: str) -> tuple[np.ndarray, np.ndarray]:
    """Input and upstream gradient of a BatchNorm over all processes; its first channel's mean is far from zero."""
    shape, _ = LAYERS[name]
    draws = np.random.default_rng(len(name))
    x, upstream = (draws.standard_normal(shape).astype(np.float32) for _ in range(2))
    x[:, 0] = x[:, 0] * np.float32(0.5) + np.float32(300)
    return x, upstream


def share(array: np.ndarray, name: str, rank: int) -> np.ndarray:
    """This rank's images of a layer's input."""
    first = LAYERS[name][1]
    return array[:first] if rank == 0 else array[first:]
