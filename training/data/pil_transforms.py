"""Transforms with PIL and NumPy: torchvision's random ones, done to a PIL image on given draws exactly as torchvision
does, to the bit; and as classes that rows and written recipes name, RandAugment and RandomErasing among them.

The classes are for pipelines written by hand. They are used among the operations of a dataset's map, after
Decode(to_pil=True), and draw as MindSpore's own Python transforms do: from Python's `random`, which MindSpore seeds in
each of its workers. A recipe's pipeline draws from keys instead, see random_draws.py. Imports no framework.
"""

from __future__ import annotations

import math
import random
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
from PIL import Image, ImageEnhance, ImageOps

from ...errors import BadRecipe
from ..recipe.part_arguments import arguments, check, short
from ..recipe.schema import Part
from .random_draws import Drawn, apply_random, pair

RESAMPLING = {
    "nearest": Image.Resampling.NEAREST,
    "bilinear": Image.Resampling.BILINEAR,
    "bicubic": Image.Resampling.BICUBIC,
}


class PILToTensor:
    """The image's bytes, channels first: uint8 (C, H, W)."""

    def __call__(self, image: Image.Image) -> Any:
        pixels = np.asarray(image)
        return np.ascontiguousarray(pixels[None] if pixels.ndim == 2 else pixels.transpose(2, 0, 1))


class RandomAffine:
    """Rotate by `degrees`, move by shares of the size, scale and shear, about the middle of the image or `center`.

    degrees: a range, or a number for (-number, number); shear: the same, or four numbers, the last two for y.
    """

    def __init__(
        self,
        degrees: float | Sequence[float],
        translate: Sequence[float] | None = None,
        scale: Sequence[float] | None = None,
        shear: float | Sequence[float] | None = None,
        interpolation: str = "nearest",
        fill: int | Sequence[int] = 0,
        center: Sequence[float] | None = None,
    ) -> None:
        self.degrees = tuple(degrees) if isinstance(degrees, Sequence) else (-degrees, degrees)
        self.translate, self.scale, self.center = translate, scale, center
        shears = shear if isinstance(shear, Sequence) or shear is None else (-shear, shear)
        self.shear = None if shears is None else (*shears, 0.0, 0.0)[:4]
        self.interpolation, self.fill = RESAMPLING[interpolation], fill

    def __call__(self, image: Image.Image) -> Image.Image:
        width, height = image.size
        angle = math.radians(random.uniform(*self.degrees))
        x = y = 0
        if self.translate is not None:
            across, down = self.translate[0] * width, self.translate[1] * height
            x, y = round(random.uniform(-across, across)), round(random.uniform(-down, down))
        scale = random.uniform(*self.scale) if self.scale is not None else 1.0
        by_x = by_y = 0.0
        if self.shear is not None:
            by_x = math.radians(random.uniform(*self.shear[:2]))
            by_y = math.radians(random.uniform(*self.shear[2:]))
        middle = self.center or (width * 0.5, height * 0.5)
        # the inverse of: shear, scale and rotate about the middle, then move
        a = math.cos(angle - by_y) / math.cos(by_y)
        b = -math.cos(angle - by_y) * math.tan(by_x) / math.cos(by_y) - math.sin(angle)
        c = math.sin(angle - by_y) / math.cos(by_y)
        d = -math.sin(angle - by_y) * math.tan(by_x) / math.cos(by_y) + math.cos(angle)
        a, b, c, d = d / scale, -b / scale, -c / scale, a / scale
        left, top = middle[0] + x, middle[1] + y
        matrix = (a, b, middle[0] - a * left - b * top, c, d, middle[1] - c * left - d * top)
        fill = tuple(self.fill) if isinstance(self.fill, Sequence) else (self.fill,) * len(image.getbands())
        return image.transform(image.size, Image.Transform.AFFINE, matrix, self.interpolation, fillcolor=fill)


class RandomPerspective:
    """With probability `p`, move each corner inwards by up to `distortion_scale` of half the size."""

    def __init__(
        self,
        distortion_scale: float = 0.5,
        p: float = 0.5,
        interpolation: str = "bilinear",
        fill: int | Sequence[int] = 0,
    ) -> None:
        self.distortion_scale, self.p = distortion_scale, p
        self.interpolation, self.fill = RESAMPLING[interpolation], fill

    def __call__(self, image: Image.Image) -> Image.Image:
        if random.random() >= self.p:
            return image
        width, height = image.size
        across = int(self.distortion_scale * (width // 2))
        down = int(self.distortion_scale * (height // 2))
        corners = [(0, 0), (width - 1, 0), (width - 1, height - 1), (0, height - 1)]
        moved = []
        for x, y in corners:
            inwards = random.randint(0, across), random.randint(0, down)
            moved.append((x + inwards[0] if x == 0 else x - inwards[0], y + inwards[1] if y == 0 else y - inwards[1]))
        rows, wanted = [], []
        for (x, y), (u, v) in zip(moved, corners, strict=True):
            rows += [[x, y, 1, 0, 0, 0, -u * x, -u * y], [0, 0, 0, x, y, 1, -v * x, -v * y]]
            wanted += [u, v]
        matrix = np.linalg.solve(np.array(rows, np.float64), np.array(wanted, np.float64)).tolist()
        fill = tuple(self.fill) if isinstance(self.fill, Sequence) else (self.fill,) * len(image.getbands())
        return image.transform(image.size, Image.Transform.PERSPECTIVE, matrix, self.interpolation, fillcolor=fill)


class RandomPosterize:
    """With probability `p`, keep the upper `bits` of each value."""

    def __init__(self, bits: int, p: float = 0.5) -> None:
        self.bits, self.p = bits, p

    def __call__(self, image: Image.Image) -> Image.Image:
        return ImageOps.posterize(image, self.bits) if random.random() < self.p else image


class RandomSolarize:
    """With probability `p`, invert the values from `threshold` on."""

    def __init__(self, threshold: float, p: float = 0.5) -> None:
        self.threshold, self.p = threshold, p

    def __call__(self, image: Image.Image) -> Image.Image:
        return ImageOps.solarize(image, self.threshold) if random.random() < self.p else image  # type: ignore[arg-type]


class RandomAutocontrast:
    """With probability `p`, stretch each channel to the whole range."""

    def __init__(self, p: float = 0.5) -> None:
        self.p = p

    def __call__(self, image: Image.Image) -> Image.Image:
        return ImageOps.autocontrast(image) if random.random() < self.p else image


class RandomEqualize:
    """With probability `p`, equalize each channel's histogram."""

    def __init__(self, p: float = 0.5) -> None:
        self.p = p

    def __call__(self, image: Image.Image) -> Image.Image:
        return ImageOps.equalize(image) if random.random() < self.p else image


def apply(part: Part, drawn: Drawn, image: Any) -> Any:
    """Apply what `draws.draw` drew for this image.

    image: a PIL image of mode RGB or L; for RandomErasing float32 (C, H, W). Returns a new one of the same kind.
    """
    return _APPLY[short(part)](arguments(part), drawn, image)


def _cut(drawn: Drawn, image: Image.Image) -> Image.Image:
    top, left = drawn["top"], drawn["left"]
    return image.crop((left, top, left + drawn["width"], top + drawn["height"]))


def _resized_crop(args: Mapping[str, Any], drawn: Drawn, image: Image.Image) -> Image.Image:
    height, width = pair(args["size"])
    return _cut(drawn, image).resize((width, height), RESAMPLING[args["interpolation"]])


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
    """The value outside the image: a number for all channels or one for each; torchvision cuts off fractions."""
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
        image = augment(name, magnitude, image, RESAMPLING[args["interpolation"]], _fill(args["fill"], image))
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


# the inverse affine matrices, rows (a, b, c), (d, e, f), that follow from torchvision's formula
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


class _Random:
    """A random transform of one image. Raises BadRecipe for arguments from which nothing can be drawn."""

    def __init__(self, **args: Any) -> None:
        self.part = Part(name=type(self).__name__, args={name: _listed(value) for name, value in args.items()})
        check(self.part)

    def __call__(self, image: Any) -> Any:
        generator = np.random.Generator(np.random.Philox(random.getrandbits(128)))
        return apply_random(self.part, apply, image, generator)


class RandAugment(_Random):
    """torchvision's RandAugment for PIL images; `interpolation` by its name, fill None for black."""

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


class RandomErasing(_Random):
    """torchvision's RandomErasing for float32 (C, H, W); `value`: a number, one for each channel, or 'random'."""

    def __init__(
        self,
        p: float = 0.5,
        scale: Sequence[float] = (0.02, 0.33),
        ratio: Sequence[float] = (0.3, 3.3),
        value: float | Sequence[float] | str = 0,
    ) -> None:
        super().__init__(p=p, scale=scale, ratio=ratio, value=value)


def _listed(value: Any) -> Any:
    return list(value) if isinstance(value, tuple) else value
