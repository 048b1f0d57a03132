"""A batch of samples through torchvision's transforms."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import torch
from torchvision import transforms as vision

from ..errors import BadRecipe
from .recipe import Part
from .sample import Sample, decode
from .transforms import parts, refuse_random, refuse_unfit


def pipeline(transforms: Sequence[Part | dict[str, Any]]) -> vision.Compose:
    """The transforms as torchvision has them; an interpolation may be given by its name, such as 'bilinear'.

    Raises BadRecipe for a transform that torchvision does not have, or whose arguments it refuses.
    """
    return vision.Compose([_transform(part) for part in parts(transforms)])


def batch(samples: Sequence[Sample], transforms: Sequence[Part | dict[str, Any]]) -> tuple[np.ndarray, np.ndarray]:
    """Decode and transform the samples in order: images float32 (N, C, H, W), labels int64 (N,).

    Under a float64 default dtype the images are float64, exact to it: ToTensor divides in the default dtype.

    Raises BadInput naming a sample that cannot be decoded, Unsupported for a random transform, and BadRecipe where
    the transforms do not end in arrays of one size.
    """
    refuse_random(parts(transforms))
    prepare = pipeline(transforms)
    arrays = [_prepared(sample, prepare) for sample in samples]
    shapes = {array.shape for array in arrays}
    if len(shapes) > 1:
        raise BadRecipe(f"the transforms leave images of several sizes, {sorted(shapes)}: add CenterCrop")
    images = np.stack(arrays)
    refuse_unfit(images, str(torch.get_default_dtype()).removeprefix("torch."))
    return images, np.array([sample.label for sample in samples], dtype=np.int64)


def _prepared(sample: Sample, prepare: vision.Compose) -> np.ndarray:
    image = decode(sample)
    try:
        return np.asarray(prepare(image))
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
