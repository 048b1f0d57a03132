"""Faults in how MindSpore's side prepares its batches."""

from __future__ import annotations

import io
from collections.abc import Callable
from typing import Any
from unittest.mock import patch

import numpy as np
from mindspore_injectors import Places, early_injector
from msmigrate.parity.record import mindspore_worker
from msmigrate.training.data import mindspore_pipeline
from PIL import Image

MEAN, STD = ((0.485, 0.456, 0.406), (0.229, 0.224, 0.225))


def _prepared(image: Callable[[Image.Image], np.ndarray]) -> Any:
    """Every image is prepared by `image`: from the decoded PIL image to float32 (3, 32, 32)."""

    def batch(samples: Any, transforms: Any, keys: Any = None, **kind: Any) -> Any:
        opened = [Image.open(io.BytesIO(sample.data)).convert("RGB") for sample in samples]
        labels = np.array([sample.label for sample in samples], np.int32)
        return np.stack([image(each) for each in opened]).astype(np.float32), labels

    return patch.object(mindspore_pipeline, "batch", batch)


def _resized(image: Image.Image, how: Any = Image.Resampling.BILINEAR) -> Image.Image:
    width, height = image.size
    short = min(width, height)
    return image.resize((int(43 * width / short), int(43 * height / short)), how)


def _without_antialias(image: Image.Image) -> np.ndarray:
    """OpenCV's bilinear: two neighbours, however much the image shrinks."""
    pixels = np.asarray(image, np.float64)
    height, width = pixels.shape[:2]
    short = min(width, height)
    for axis, (size, count) in enumerate(((height, int(43 * height / short)), (width, int(43 * width / short)))):
        at = np.clip((np.arange(count) + 0.5) * size / count - 0.5, 0, size - 1)
        low = np.minimum(at.astype(int), size - 2)
        share = (at - low).reshape([-1, 1, 1] if axis == 0 else [1, -1, 1])
        pixels = pixels.take(low, axis) * (1 - share) + pixels.take(low + 1, axis) * share
    return np.round(pixels).astype(np.uint8)


def _cropped(pixels: np.ndarray, floor: bool = False) -> np.ndarray:
    height, width = pixels.shape[:2]
    margins = [(height - 32) / 2, (width - 32) / 2]
    top, left = (int(m) for m in margins) if floor else (round(m) for m in margins)
    return pixels[top : top + 32, left : left + 32]


def _normalized(pixels: np.ndarray, scale: float = 255.0) -> np.ndarray:
    scaled = pixels.astype(np.float32) / np.float32(scale)
    return ((scaled - np.float32(MEAN)) / np.float32(STD)).transpose(2, 0, 1)


@early_injector
def prepared(places: Places, how: str) -> Any:
    """Images prepared in one of the ways that people take instead."""
    ways: dict[str, Callable[[Image.Image], np.ndarray]] = {
        "no_antialias": lambda image: _normalized(_cropped(_without_antialias(image))),
        "lanczos": lambda image: _normalized(_cropped(np.asarray(_resized(image, Image.Resampling.LANCZOS)))),
        "unscaled": lambda image: _normalized(_cropped(np.asarray(_resized(image))), 1.0),
        "floored": lambda image: _normalized(_cropped(np.asarray(_resized(image)), floor=True)),
        "bgr": lambda image: _normalized(_cropped(np.asarray(_resized(image)))[:, :, ::-1]),
        "as_it_is": lambda image: _normalized(_cropped(np.asarray(_resized(image)))),
        "not_normalized": lambda image: _cropped(np.asarray(_resized(image))).transpose(2, 0, 1) / np.float32(255.0),
    }
    return _prepared(ways[how])


@early_injector
def reordered(places: Places, how: str) -> Any:
    """Batches in another order: shuffled within a step, or the first step's again."""
    real = mindspore_worker.data_batches

    def batches(recipe: Any, steps: int) -> Any:
        found = real(recipe, steps)
        if how == "first_again":
            return [found[0]] * steps
        order = np.array([2, 0, 3, 1])
        return [type(each)(each.images[order], each.labels[order]) for each in found]

    return patch.object(mindspore_worker, "data_batches", batches)
