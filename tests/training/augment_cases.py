"""Every random transform on every kind of image, with what was drawn: the cases that torchvision's worker and the tests
share. Imports no framework."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
from msmigrate.training.data import random_draws
from msmigrate.training.recipe.schema import Part
from PIL import Image

IMAGES = {"RGB": (23, 31), "L": (17, 12), "RGB even": (40, 26)}  # mode, and height and width
BINS, STRENGTHS = 31, (0, 1, 4, 9, 16, 23, 30)
MODES = ("nearest", "bilinear", "bicubic")
FILLS = (None, 128, 77.9)
DRAWN_TIMES = 12
DRAWN = {
    "RandomResizedCrop": (
        {"size": 14},
        {"size": [9, 21], "interpolation": "bicubic"},
        {"size": [16], "scale": [0.4, 0.5], "ratio": [0.2, 0.3], "interpolation": "nearest"},
        {"size": 12, "scale": [0.9, 1.0], "ratio": [5.0, 6.0]},  # nothing fits: the centre
        {"size": 12, "scale": [0.9, 1.0], "ratio": [0.1, 0.2]},
    ),
    "RandomCrop": (
        {"size": 11},
        {"size": [20, 18], "padding": 5, "fill": 40},
        {"size": [15, 9], "padding": [2, 3], "padding_mode": "edge"},
        {"size": [14, 10], "padding": [1, 2, 3, 4], "padding_mode": "reflect"},
        {"size": [19, 16], "padding": [4], "padding_mode": "symmetric"},
        {"size": [35, 38], "pad_if_needed": True, "fill": 9},
    ),
    "RandomHorizontalFlip": ({}, {"p": 1.0}),
    "RandomVerticalFlip": ({}, {"p": 1.0}),
    "ColorJitter": (
        {"brightness": 0.4, "contrast": 0.4, "saturation": 0.4, "hue": 0.5},
        {"brightness": 1.5, "contrast": [0.0, 3.0]},
        {"hue": [-0.5, -0.1]},
    ),
    "RandAugment": ({}, {"num_ops": 3, "magnitude": 25, "interpolation": "bilinear", "fill": 100}),
    "RandomErasing": (
        {"p": 1.0},
        {"p": 1.0, "value": -0.7},
        {"p": 1.0, "value": "random"},
        {"p": 0.5, "scale": [0.3, 0.6]},
        {"p": 1.0, "scale": [0.95, 1.0]},  # nothing fits: left as it is
    ),
}


def picture(name: str) -> Image.Image:
    """An image of noise over a gradient, so that every way of reading between pixels shows."""
    height, width = IMAGES[name]
    shape = (height, width, 3) if name.startswith("RGB") else (height, width)
    noise = np.random.default_rng(len(name)).integers(0, 90, shape)
    slope = np.linspace(0, 160, width)[:, None] if len(shape) == 3 else np.linspace(0, 160, width)
    return Image.fromarray((noise + slope).astype(np.uint8))


def array(name: str) -> np.ndarray:
    """The same as float32 (C, H, W)."""
    pixels = np.atleast_3d(np.asarray(picture(name))).transpose(2, 0, 1)
    return np.ascontiguousarray(pixels, dtype=np.float32) / 255


def operations() -> Iterator[tuple[str, Part, dict[str, Any], str]]:
    """RandAugment's operations one by one: key, transform, draws, and the image's name."""
    for image in IMAGES:
        space = random_draws.augmentation_space(BINS, IMAGES[image][::-1])
        for op, (magnitudes, signed) in space.items():
            for strength in STRENGTHS if magnitudes is not None else (0,):
                amount = 0.0 if magnitudes is None else float(magnitudes[strength])
                for magnitude in (amount, -amount) if signed else (amount,):
                    for mode in MODES:
                        for fill in FILLS if mode == "nearest" else FILLS[1:2]:
                            part = Part(name="RandAugment", args={"interpolation": mode, "fill": fill})
                            key = f"{op} {strength} {magnitude:.3f} {mode} {fill} {image}"
                            yield key, part, {"ops": [(op, magnitude)]}, image


def drawn() -> Iterator[tuple[str, Part, dict[str, Any], str]]:
    """Every transform with draws of its own: key, transform, draws, and the image's name."""
    for name, several in DRAWN.items():
        for index, args in enumerate(several):
            part = Part(name=name, args=args)
            for image, (height, width) in IMAGES.items():
                for number in range(DRAWN_TIMES):
                    channels = 3 if image.startswith("RGB") else 1
                    found = random_draws.draw(part, random_draws.generator((5, 1, number)), (width, height), channels)
                    yield f"{name} {index} {number} {image}", part, found, image
    part = Part(name="RandomErasing", args={"p": 1.0, "value": [0.1, 0.2, 0.3]})
    yield "three values", part, random_draws.draw(part, random_draws.generator((5, 1, 0)), (31, 23)), "RGB"
    part = Part(name="RandAugment", args={"fill": [10, 20, 30]})
    yield "three fills", part, {"ops": [("Rotate", 25.0), ("ShearX", 0.3)]}, "RGB"


def cases() -> Iterator[tuple[str, Part, dict[str, Any], Any]]:
    """All of them, with the image itself: a PIL image, or an array where the transform takes arrays."""
    for generate in (operations, drawn):
        for key, part, found, image in generate():
            yield key, part, found, array(image) if part.name == "RandomErasing" else picture(image)
