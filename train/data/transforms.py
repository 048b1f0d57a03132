"""What both frameworks' data code asks of a recipe's transforms before it builds them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from PIL import Image

from ...errors import BadRecipe, Unsupported
from ..random_parts import AFTER_TO_TENSOR, DRAWABLE, can_draw, is_random, short, wrong_side
from ..recipe import Part
from . import draws
from .draws import Drawn, Key

Apply = Callable[[Part, Drawn, Any], Any]


def parts(transforms: Sequence[Part | dict[str, Any]]) -> list[Part]:
    """The transforms as recipe parts; each may also be a plain {'name': …, 'args': …}."""
    return [Part.model_validate(transform) for transform in transforms]


def refuse_undrawn(transforms: Sequence[Part], keys: Sequence[Key] | None) -> None:
    """Raise Unsupported if a transform draws random numbers that the two frameworks cannot be given alike.

    Without keys that is every random transform; with keys, those that `draws` does not know.
    """
    if keys is None:
        refuse_random(transforms)
    for transform in transforms:
        if is_random(transform) and not can_draw(transform):
            raise Unsupported(
                f"{transform.name} draws from each framework's own generator, so the two batches cannot be compared; "
                f"random transforms that can be given the same draws: {', '.join(DRAWABLE)}"
            )


def refuse_random(transforms: Sequence[Part]) -> None:
    """Raise Unsupported if a transform draws random numbers, where images have to be the same every time."""
    for transform in transforms:
        if is_random(transform):
            raise Unsupported(
                f"{transform.name} draws random numbers, and these images are to be the same every time: "
                "use fixed transforms, such as Resize and CenterCrop (data.eval_transforms)"
            )


def apply_random(part: Part, apply: Apply, image: Any, generator: np.random.Generator) -> Any:
    """Draw what a random transform needs for this image, and hand part, draws and image to `apply`.

    Raises BadRecipe where the transform stands on the wrong side of ToTensor: RandomErasing works on its arrays
    (C, H, W), all others work on PIL images.
    """
    if short(part) in AFTER_TO_TENSOR:
        if isinstance(image, Image.Image):
            raise wrong_side(part)
        channels, height, width = image.shape
    elif isinstance(image, Image.Image):
        channels, (width, height) = len(image.getbands()), image.size
    else:
        raise wrong_side(part)
    return apply(part, draws.draw(part, generator, (width, height), channels), image)


def refuse_unfit(images: np.ndarray, dtype: str = "float32") -> None:
    """Raise BadRecipe unless `images` is a batch (N, C, H, W) of `dtype`, which every model takes."""
    if images.ndim != 4 or images.dtype != dtype:
        raise BadRecipe(
            f"the transforms give {images.dtype} {images.shape} and models take {dtype} (N, C, H, W): add ToTensor"
        )
