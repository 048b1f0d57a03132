"""A batch of samples through torchvision's transforms."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import torch
from torchvision import transforms as vision

from ...errors import BadRecipe
from ..recipe import Part
from . import draws, torch_augment
from .draws import Key
from .sample import Sample, decode
from .transforms import apply_random, parts, refuse_undrawn, refuse_unfit


def prepared(image: Any, transforms: Sequence[Part | Callable[[Any], Any]], key: Key) -> Any:
    """One decoded PIL image through what `pipeline` gave, the random transforms drawing from `key`."""
    generator = draws.generator(key)
    for transform in transforms:
        if isinstance(transform, Part):
            image = apply_random(transform, torch_augment.apply, image, generator)
        else:
            image = transform(image)
    return image


def pipeline(transforms: Sequence[Part | dict[str, Any]]) -> list[Part | Callable[[Any], Any]]:
    """The fixed transforms as torchvision has them, the random ones as they are in the recipe.

    An interpolation may be given by its name, such as 'bilinear'. Raises BadRecipe for a transform that torchvision
    does not have, or whose arguments it refuses.
    """
    made = [(part, _transform(part)) for part in parts(transforms)]  # torchvision also checks the random ones
    return [part if draws.is_random(part) else transform for part, transform in made]


def batch(
    samples: Sequence[Sample], transforms: Sequence[Part | dict[str, Any]], keys: Sequence[Key] | None = None
) -> tuple[np.ndarray, np.ndarray]:
    """Decode and transform the samples in order: images float32 (N, C, H, W), labels int64 (N,).

    keys: (seed, epoch, index) of each sample; random transforms draw from them, and without keys are refused.
    Under a float64 default dtype the images are float64, exact to it: ToTensor divides in the default dtype.

    Raises BadInput naming a sample that cannot be decoded, Unsupported for a random transform that cannot be drawn,
    and BadRecipe where the transforms do not end in arrays of one size.
    """
    refuse_undrawn(parts(transforms), keys)
    known = [(0, 0, 0)] * len(samples) if keys is None else keys
    steps = pipeline(transforms)
    arrays = [_array(sample, steps, key) for sample, key in zip(samples, known, strict=True)]
    shapes = {array.shape for array in arrays}
    if len(shapes) > 1:
        raise BadRecipe(f"the transforms leave images of several sizes, {sorted(shapes)}: add CenterCrop")
    images = np.stack(arrays)
    refuse_unfit(images, str(torch.get_default_dtype()).removeprefix("torch."))
    return images, np.array([sample.label for sample in samples], dtype=np.int64)


def _array(sample: Sample, transforms: Sequence[Part | Callable[[Any], Any]], key: Key) -> np.ndarray:
    image = decode(sample)
    try:
        return np.asarray(prepared(image, transforms, key))
    except (RuntimeError, TypeError, ValueError) as error:
        raise BadRecipe(f"torchvision's transforms failed on {sample.name}: {error}") from error


def _transform(part: Part) -> Callable[[Any], Any]:
    name = part.name.rpartition(".")[2]
    kind = getattr(vision, name, None)
    if kind is None:
        raise BadRecipe(f"torchvision.transforms has no {name}")
    arguments = dict(part.args)
    try:
        if isinstance(arguments.get("interpolation"), str):
            arguments["interpolation"] = vision.InterpolationMode(arguments["interpolation"])
        return kind(**arguments)
    except (TypeError, ValueError) as error:
        raise BadRecipe(f"torchvision.transforms.{name}: {error}") from error
