"""Transforms of PIL images as torchvision computes them, where MindSpore's dataset.vision has none or another.

They stand among the operations of a dataset's map, after Decode(to_pil=True), and draw from Python's random, as
MindSpore's own do on PIL images. Imports no framework.
"""

from __future__ import annotations

import math
import random
from collections.abc import Sequence
from typing import Any

import numpy as np
from PIL import Image, ImageOps

RESAMPLING = {"nearest": Image.Resampling.NEAREST, "bilinear": Image.Resampling.BILINEAR}
RESAMPLING["bicubic"] = Image.Resampling.BICUBIC


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
