"""What both frameworks' data code asks of a recipe's transforms before it builds them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from ..errors import BadRecipe, Unsupported
from .recipe import Part

# Transforms that draw random numbers although their name does not begin with Random.
_DRAWS = ("AugMix", "AutoAugment", "ColorJitter", "ElasticTransform", "RandAugment", "TrivialAugmentWide")


def parts(transforms: Sequence[Part | dict[str, Any]]) -> list[Part]:
    """The transforms as recipe parts; each may also be a plain {'name': …, 'args': …}."""
    return [Part.model_validate(transform) for transform in transforms]


def refuse_random(transforms: Sequence[Part]) -> None:
    """Raise Unsupported if a transform draws random numbers: no two frameworks draw the same ones."""
    for transform in transforms:
        if transform.name.rpartition(".")[2].startswith(("Random", *_DRAWS)):
            raise Unsupported(
                f"{transform.name} draws from each framework's own generator, so the two batches cannot be compared; "
                "a step that is compared wants fixed transforms, such as Resize and CenterCrop"
            )


def refuse_unfit(images: np.ndarray, dtype: str = "float32") -> None:
    """Raise BadRecipe unless `images` is a batch (N, C, H, W) of `dtype`, which every model takes."""
    if images.ndim != 4 or images.dtype != dtype:
        raise BadRecipe(
            f"the transforms give {images.dtype} {images.shape} and models take {dtype} (N, C, H, W): add ToTensor"
        )
