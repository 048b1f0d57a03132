"""`fast_transforms: true`: resizing by MindSpore's C++ operator, which is OpenCV's, instead of Pillow's.

The images are then not quite torchvision's any more; parity's data stage says how far they are off, and holds them to
bounds. All else, and what is drawn, is as without it: cropping, flipping and colours cost little, and decoding is equal
to the bit in both and no quicker in C++. Nor is shrinking an image, as measured on an EPYC; enlarging one is.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import lru_cache
from typing import Any

import numpy as np
from mindspore.dataset import vision
from PIL import Image

from ...errors import Unsupported
from ..recipe import Part
from . import pil_transforms
from .draws import Drawn, arguments, pair, short
from .mindspore_data import Prepare

# Of OpenCV's, the closest to Pillow's: averaging over what becomes one pixel, where Pillow weights it by distance.
# PILCUBIC is Pillow's own bicubic, to the bit.
_SHRINKING = {"bilinear": vision.Inter.AREA, "bicubic": vision.Inter.PILCUBIC}
_GROWING = {"bilinear": vision.Inter.LINEAR, "bicubic": vision.Inter.PILCUBIC}


class FastPrepare(Prepare):
    """As Prepare, with resizes by C++. Raises Unsupported for one that takes the nearest pixel: OpenCV takes others."""

    def _made(self) -> list[Part | Callable[[Any], Any]]:
        for part in self.transforms:
            if arguments(part).get("interpolation") == "nearest":
                raise Unsupported(
                    f"data.fast_transforms: {part.name} with interpolation 'nearest' would take other pixels than "
                    "torchvision's: set data.fast_transforms to false"
                )
        return super()._made()

    def _step(self, part: Part) -> Part | Callable[[Any], Any]:
        if short(part) == "Resize":
            return lambda image: _resized(arguments(part), image)
        return super()._step(part)

    def _apply(self, part: Part, drawn: Drawn, image: Any) -> Any:
        if short(part) != "RandomResizedCrop":
            return pil_transforms.apply(part, drawn, image)
        args, (left, top) = arguments(part), (drawn["left"], drawn["top"])
        crop = image.crop((left, top, left + drawn["width"], top + drawn["height"]))
        return to_size(crop, pair(args["size"]), args["interpolation"])


def grey_level(transforms: Sequence[Part]) -> float:
    """What a difference of one of 255 grey levels comes to, at most, behind ToTensor and Normalize."""
    level = 1 / 255
    for part in transforms:
        if short(part) == "Normalize":
            level /= float(np.min(np.atleast_1d(arguments(part)["std"])))
    return level


def to_size(image: Image.Image, size: tuple[int, int], interpolation: str) -> Image.Image:
    """The image in another size (height, width); interpolation 'bilinear' or 'bicubic'."""
    if (image.height, image.width) == size:
        return image
    smaller = size[0] * size[1] < image.height * image.width
    resize = _resize(size, (_SHRINKING if smaller else _GROWING)[interpolation])
    return Image.fromarray(np.asarray(resize(np.asarray(image))))


@lru_cache(maxsize=4096)
def _resize(size: tuple[int, int], interpolation: Any) -> Any:
    return vision.Resize(size, interpolation)


def _resized(args: dict[str, Any], image: Image.Image) -> Image.Image:
    size = args["size"]
    if not isinstance(size, int) and len(size) == 2:
        return to_size(image, pair(size), args["interpolation"])
    shorter = pair(size)[0]  # one number is for the shorter side; torchvision rounds the longer one down
    longer = int(shorter * max(image.size) / min(image.size))
    return to_size(
        image, (longer, shorter) if image.width <= image.height else (shorter, longer), args["interpolation"]
    )
