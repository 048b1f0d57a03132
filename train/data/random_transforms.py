"""The random transforms that MindSpore does not have as torchvision has them, as classes for a dataset's map.

They are for pipelines written by hand, and draw as MindSpore's own Python transforms do: from Python's `random`, which
MindSpore seeds in each of its workers. A recipe's pipeline draws from keys instead, see `draws`.
"""

from __future__ import annotations

import random
from collections.abc import Sequence
from typing import Any

import numpy as np
from PIL import Image

from .. import argument_checks
from ..recipe import Part
from . import pil_transforms
from .transforms import apply_random


class _Random:
    """A random transform of one image. Raises BadRecipe for arguments that nothing can be drawn from."""

    def __init__(self, **args: Any) -> None:
        self.part = Part(name=type(self).__name__, args={name: _listed(value) for name, value in args.items()})
        argument_checks.check(self.part)

    def __call__(self, image: Any) -> Any:
        generator = np.random.Generator(np.random.Philox(random.getrandbits(128)))
        return apply_random(self.part, pil_transforms.apply, image, generator)


class RandAugment(_Random):
    """torchvision's RandAugment of PIL images; `interpolation` by its name, fill None for black."""

    def __init__(
        self,
        num_ops: int = 2,
        magnitude: int = 9,
        num_magnitude_bins: int = 31,
        interpolation: str = "nearest",
        fill: float | Sequence[float] | None = None,
    ) -> None:
        super().__init__(
            num_ops=num_ops,
            magnitude=magnitude,
            num_magnitude_bins=num_magnitude_bins,
            interpolation=interpolation,
            fill=fill,
        )

    def __call__(self, image: Image.Image) -> Image.Image:
        """The augmented PIL image, of the same mode and size."""
        augmented: Image.Image = super().__call__(image)
        return augmented


class RandomErasing(_Random):
    """torchvision's RandomErasing of float32 (C, H, W); `value`: a number, one for each channel, or 'random'."""

    def __init__(
        self,
        p: float = 0.5,
        scale: Sequence[float] = (0.02, 0.33),
        ratio: Sequence[float] = (0.3, 3.3),
        value: float | Sequence[float] | str = 0,
    ) -> None:
        super().__init__(p=p, scale=scale, ratio=ratio, value=value)

    def __call__(self, image: np.ndarray) -> np.ndarray:
        """The image with one patch erased, or as it is; float32 (C, H, W)."""
        erased: np.ndarray = super().__call__(image)
        return erased


def _listed(value: Any) -> Any:
    return list(value) if isinstance(value, tuple) else value
