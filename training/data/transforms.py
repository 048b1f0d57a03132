"""Transforms of a recipe that take images: which may be drawn, and what they must get."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from ...errors import BadRecipe, Unsupported
from ..recipe.schema import Part
from ..recipe.transforms import is_random


def parts(transforms: Sequence[Part | dict[str, Any]]) -> list[Part]:
    """The transforms as recipe parts; each may also be a plain {'name': …, 'args': …}."""
    return [Part.model_validate(transform) for transform in transforms]


def refuse_random(transforms: Sequence[Part]) -> None:
    """Raise Unsupported if a transform draws random numbers, where images have to be the same every time."""
    for transform in transforms:
        if is_random(transform):
            raise Unsupported(
                f"{transform.name} draws random numbers, and these images are to be the same every time: "
                "use fixed transforms, such as Resize and CenterCrop (data.eval_transforms)"
            )


def refuse_unfit(images: np.ndarray, dtype: str = "float32") -> None:
    """Raise BadRecipe unless `images` is a batch (N, C, H, W) of `dtype`, which every model takes."""
    if images.ndim != 4 or images.dtype != dtype:
        raise BadRecipe(
            f"the transforms give {images.dtype} {images.shape} and models take {dtype} (N, C, H, W): add ToTensor"
        )
