"""A little torch model of the digits, what torch says of the test images, and the model as a checkpoint of ours."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import numpy as np
from msmigrate.training.recipe import reader as recipes

HERE = Path(__file__).parent
RECIPE = HERE / "digits.yaml"
WORDS = ("zero", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine")
IN_TREE = 60  # the first test images, which the tree holds


@dataclass(frozen=True)
class Trained:
    """torch: model.pth, of which torch gives the logits (360, 10) and the mean loss of digits:test. own: the same
    weights as a checkpoint of ours, whose classes are called zero to nine in this order, with other weights as moving
    average, of which torch gives the ema_logits. tree: the first 60 test images, in folders of these names, 000.png to
    059.png. labels: of all 360."""

    torch: Path
    own: Path
    tree: Path
    logits: np.ndarray
    loss: float
    ema_logits: np.ndarray
    labels: np.ndarray


def run(classes: list[str] | None) -> dict[str, object]:
    """What a training run of the recipe writes into its checkpoints."""
    recipe = recipes.load(RECIPE)
    about = {"recipe": recipe.model_dump(mode="json"), "recipe_digest": recipe.digest, "classes": classes}
    return {**about, "step": 45, "epoch": 1, "step_in_epoch": 1, "best_top1": None, "seed": 42, "versions": {}}
