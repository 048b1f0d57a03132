"""Random transforms on MindSpore's side, with what was drawn already known: PIL and NumPy, no framework.

MindSpore's own random transforms draw inside C++ or from Python's global generator, and so can be given nothing; these
do to a PIL image exactly what torchvision does to it, to the bit.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
from PIL import Image, ImageEnhance, ImageOps

from ...errors import BadRecipe
from ..random_parts import arguments, short
from ..recipe import Part
from .draws import Drawn, pair

INTERPOLATIONS = {
    "nearest": Image.Resampling.NEAREST,
    "bilinear": Image.Resampling.BILINEAR,
    "bicubic": Image.Resampling.BICUBIC,
}


def apply(part: Part, drawn: Drawn, image: Any) -> Any:
    """Do to `image` what `draws.draw` drew for it.

    image: a PIL image of mode RGB or L; for RandomErasing float32 (C, H, W). A new one of that kind is given back.
    """
    return _APPLY[short(part)](arguments(part), drawn, image)


def _interpolation(args: Mapping[str, Any]) -> Image.Resampling:
    return INTERPOLATIONS[args["interpolation"]]


def _cut(drawn: Drawn, image: Image.Image) -> Image.Image:
    top, left = drawn["top"], drawn["left"]
    return image.crop((left, top, left + drawn["width"], top + drawn["height"]))


def _resized_crop(args: Mapping[str, Any], drawn: Drawn, image: Image.Image) -> Image.Image:
    height, width = pair(args["size"])
    return _cut(drawn, image).resize((width, height), _interpolation(args))


def _crop(args: Mapping[str, Any], drawn: Drawn, image: Image.Image) -> Image.Image:
    for border in drawn["pads"]:
        image = _padded(args, border, image)
    return _cut(drawn, image)


def _padded(args: Mapping[str, Any], border: tuple[int, int, int, int], image: Image.Image) -> Image.Image:
    if args["padding_mode"] == "constant":
        return ImageOps.expand(image, border=border, fill=_fill(args["fill"], image))
    left, top, right, bottom = border
    pixels = np.asarray(image)
    widths = [(top, bottom), (left, right), (0, 0)][: pixels.ndim]
    return Image.fromarray(np.pad(pixels, widths, mode=args["padding_mode"]))


def _fill(fill: Any, image: Image.Image) -> Any:
    """What stands where no image is: a number for all channels or one for each; torchvision cuts fractions off."""
    bands = len(image.getbands())
    numbers = [0] if fill is None else [fill] if isinstance(fill, (int, float)) else list(fill)
    if len(numbers) not in (1, bands):
        raise BadRecipe(f"fill has {len(numbers)} numbers and the image {bands} channels")
    whole = tuple(int(number) for number in numbers * (bands // len(numbers)))
    return whole if bands > 1 else whole[0]


def _flipped(args: Mapping[str, Any], drawn: Drawn, image: Image.Image) -> Image.Image:
    return image.transpose(Image.Transpose.FLIP_LEFT_RIGHT) if drawn["flip"] else image


def _flipped_over(args: Mapping[str, Any], drawn: Drawn, image: Image.Image) -> Image.Image:
    return image.transpose(Image.Transpose.FLIP_TOP_BOTTOM) if drawn["flip"] else image


def _jittered(args: Mapping[str, Any], drawn: Drawn, image: Image.Image) -> Image.Image:
    enhancers = (ImageEnhance.Brightness, ImageEnhance.Contrast, ImageEnhance.Color)
    for which in drawn["order"]:
        factor = drawn["factors"][which]
        if factor is not None:
            image = _hue_shifted(image, factor) if which == 3 else enhancers[which](image).enhance(factor)
    return image


def _hue_shifted(image: Image.Image, shift: float) -> Image.Image:
    """The hue turned by `shift` of the circle, as torchvision does: in whole 255ths, around 256."""
    if image.mode == "L":
        return image
    hue, saturation, value = image.convert("HSV").split()
    turned = np.asarray(hue) + np.int32(shift * 255).astype(np.uint8)
    return Image.merge("HSV", (Image.fromarray(turned), saturation, value)).convert(image.mode)


def _augmented(args: Mapping[str, Any], drawn: Drawn, image: Image.Image) -> Image.Image:
    for name, magnitude in drawn["ops"]:
        image = augment(name, magnitude, image, _interpolation(args), _fill(args["fill"], image))
    return image


def augment(name: str, magnitude: float, image: Image.Image, interpolation: Image.Resampling, fill: Any) -> Image.Image:
    """One operation of RandAugment; `fill` is an int, or one for each channel."""
    if name in _MATRICES:
        matrix = _MATRICES[name](magnitude)
        return image.transform(image.size, Image.Transform.AFFINE, matrix, interpolation, fillcolor=fill)
    if name == "Rotate":
        return image.rotate(magnitude, interpolation, fillcolor=fill)
    if name in _ENHANCERS:
        return _ENHANCERS[name](image).enhance(1.0 + magnitude)
    if name == "Posterize":
        return ImageOps.posterize(image, int(magnitude))
    if name == "Solarize":
        return ImageOps.solarize(image, magnitude)  # type: ignore[arg-type] # a fraction is compared like any number
    return {"Identity": lambda same: same, "AutoContrast": ImageOps.autocontrast, "Equalize": ImageOps.equalize}[name](
        image
    )


def _shear(magnitude: float) -> float:
    """The shear in radians by the way torchvision takes: to degrees and back."""
    return math.radians(math.degrees(math.atan(magnitude)))


# the inverse affine matrices, rows (a, b, c), (d, e, f), that torchvision's formula comes to
_MATRICES: dict[str, Callable[[float], tuple[float, ...]]] = {
    "ShearX": lambda m: (1.0, math.tan(_shear(m)), 0.0, 0.0, 1.0, 0.0),
    "ShearY": lambda m: (1.0, 0.0, 0.0, math.sin(_shear(m)) / math.cos(_shear(m)), 1.0, 0.0),
    "TranslateX": lambda m: (1.0, 0.0, -float(int(m)), 0.0, 1.0, 0.0),
    "TranslateY": lambda m: (1.0, 0.0, 0.0, 0.0, 1.0, -float(int(m))),
}
_ENHANCERS = {
    "Brightness": ImageEnhance.Brightness,
    "Color": ImageEnhance.Color,
    "Contrast": ImageEnhance.Contrast,
    "Sharpness": ImageEnhance.Sharpness,
}


def _erased(args: Mapping[str, Any], drawn: Drawn, image: np.ndarray) -> np.ndarray:
    if drawn["box"] is None:
        return image
    top, left, height, width = drawn["box"]
    erased = image.copy()
    patch = drawn["noise"] if drawn["noise"] is not None else patch_value(args["value"], len(image))
    erased[:, top : top + height, left : left + width] = patch
    return erased


def patch_value(value: Any, channels: int) -> np.ndarray:
    """RandomErasing's `value`, a number or one for each channel, as (1 or C, 1, 1); BadRecipe for another count."""
    values = np.atleast_1d(np.asarray(value, dtype=np.float64))
    if len(values) not in (1, channels):
        raise BadRecipe(f"RandomErasing: value has {len(values)} numbers and the image {channels} channels")
    return values[:, None, None]


_APPLY: dict[str, Callable[[Mapping[str, Any], Drawn, Any], Any]] = {
    "ColorJitter": _jittered,
    "RandAugment": _augmented,
    "RandomCrop": _crop,
    "RandomErasing": _erased,
    "RandomHorizontalFlip": _flipped,
    "RandomResizedCrop": _resized_crop,
    "RandomVerticalFlip": _flipped_over,
}
