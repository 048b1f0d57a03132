"""Faults in what MindSpore's side does to random images and to mixed batches, although it is given the same draws."""

from collections.abc import Callable
from dataclasses import replace
from typing import Any
from unittest.mock import patch

import numpy as np
from msmigrate.training.data import pil_transforms, random_draws
from msmigrate.training.recipe.schema import Part


def _transform(name: str, change: Callable[[Part, dict[str, Any]], tuple[Part, dict[str, Any]]]) -> Any:
    """One random transform with its arguments or its draws changed."""
    real = pil_transforms.apply

    def apply(part: Part, drawn: dict[str, Any], image: Any) -> Any:
        part, drawn = change(part, drawn) if part.name == name else (part, drawn)
        return real(part, drawn, image)

    return patch.object(pil_transforms, "apply", apply)


def interpolation_other() -> Any:
    """Crops resized by nearest neighbours instead of bilinearly."""
    nearest = {"interpolation": "nearest"}
    return _transform(
        "RandomResizedCrop", lambda part, drawn: (part.model_copy(update={"args": {**part.args, **nearest}}), drawn)
    )


def crop_one_off() -> Any:
    """Crops one pixel too wide."""
    return _transform("RandomResizedCrop", lambda part, drawn: (part, {**drawn, "width": drawn["width"] + 1}))


def flip_ignored() -> Any:
    """Nothing is ever flipped."""
    return _transform("RandomHorizontalFlip", lambda part, drawn: (part, {"flip": False}))


def erased_with_zero() -> Any:
    """Erased with 0 where the recipe has a value of its own."""
    return _transform(
        "RandomErasing", lambda part, drawn: (part.model_copy(update={"args": {**part.args, "value": 0}}), drawn)
    )


def key_of_the_neighbour() -> Any:
    """Every image is given the draws of the one after it."""
    real = random_draws.generator
    return patch.object(random_draws, "generator", lambda key: real((key[0], key[1], key[2] + 1)))


def shares_swapped() -> Any:
    """λ to the other image, and 1 - λ to one's own."""
    real = random_draws.mix_images
    return patch.object(random_draws, "mix_images", lambda images, mix: real(images, replace(mix, lam=1.0 - mix.lam)))


def share_slight() -> Any:
    """λ a hundred-thousandth too large."""
    real = random_draws.mix_images
    return patch.object(random_draws, "mix_images", lambda images, mix: real(images, replace(mix, lam=mix.lam + 1e-5)))


def batch_not_reversed() -> Any:
    """Images mixed with their neighbours, where timm mixes with the batch in reverse order."""

    def mix_images(images: np.ndarray, mix: random_draws.Mix) -> np.ndarray:
        return np.float32(mix.lam) * images + np.float32(1 - mix.lam) * np.roll(images, 1, 0)

    return patch.object(random_draws, "mix_images", mix_images)


def targets_not_smoothed() -> Any:
    """Soft targets without the label smoothing."""
    real = random_draws.soft_targets
    return patch.object(random_draws, "soft_targets", lambda y, mix, classes, smoothing: real(y, mix, classes, 0.0))


def targets_not_mixed() -> Any:
    """Mixed images with the labels of one's own."""
    real = random_draws.soft_targets
    return patch.object(random_draws, "soft_targets", lambda y, mix, *rest: real(y, replace(mix, lam=1.0), *rest))
