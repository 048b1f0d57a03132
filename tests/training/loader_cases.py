"""The trees of images and the recipes that both workers of the loader's tests use; it imports no framework."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
from msmigrate.training.recipe.schema import Mixup, Recipe
from PIL import Image

COUNT, CLASSES, SEED = 23, 3, 7
DAMAGED = {5: "cut", 6: "not an image", 11: "gone"}

RANDOM = [
    {"name": "RandomResizedCrop", "args": {"size": 24}},
    {"name": "RandomHorizontalFlip"},
    {"name": "ToTensor"},
    {"name": "Normalize", "args": {"mean": [0.485, 0.456, 0.406], "std": [0.229, 0.224, 0.225]}},
]
FIXED = [{"name": "Resize", "args": {"size": [20, 24]}}, {"name": "ToTensor"}]
BROKEN = {
    "several sizes": [{"name": "Resize", "args": {"size": 20}}, {"name": "ToTensor"}],
    "no array": [{"name": "Resize", "args": {"size": [20, 20]}}],
    "normalize before tensor": [{"name": "Resize", "args": {"size": [20, 24]}}, RANDOM[3]],
}


def make_tree(folder: Path) -> None:
    """Smooth images of several sizes in three classes, as PNG files."""
    generator = np.random.default_rng(0)
    for index in range(COUNT):
        small = Image.fromarray(generator.integers(0, 256, (6, 6, 3), dtype=np.uint8))
        place = folder / f"class{index % CLASSES}"
        place.mkdir(parents=True, exist_ok=True)
        small.resize((40 + index, 60 - index), Image.Resampling.BICUBIC).save(place / f"{index:02}.png")


def damage(files: list[str]) -> list[str]:
    """Cut one file short, write text into another, and remove a third; their names."""
    for index, what in DAMAGED.items():
        file = Path(files[index])
        if what == "gone":
            file.unlink()
        else:
            file.write_bytes(file.read_bytes()[:200] if what == "cut" else b"no image")
    return ["/".join(Path(files[index]).parts[-2:]) for index in DAMAGED]


def recipe(*, transforms: list[dict] = RANDOM, loss: str = "CrossEntropyLoss", **more: Any) -> Recipe:
    """A recipe with batches of 4; what is not a key of a recipe itself goes to its data section."""
    own = {key: more.pop(key) for key in ("mixup", "accumulate") if key in more}
    data = {"batch": 4, "transforms": transforms, "eval_transforms": FIXED, **more}
    return Recipe.model_validate(
        {
            "model": {"name": "lenet5", "args": {"num_classes": CLASSES}},
            "optimizer": {"name": "SGD", "args": {"lr": 0.1}},
            "loss": {"name": loss},
            "data": data,
            "seed": SEED,
            **own,
        }
    )


SHARDS = [  # training, shuffle, drop_last, world, batch
    (True, True, True, 1, 4),
    (True, True, False, 1, 4),
    (True, False, True, 2, 4),
    (True, True, True, 3, 4),
    (True, True, False, 2, 5),
    (False, True, True, 1, 10),
    (False, True, True, 2, 4),
    (False, False, False, 5, 3),
]
EPOCH = 2
MIXUP = Mixup(mixup_alpha=0.8, cutmix_alpha=1.0, label_smoothing=0.1)
