"""The distributions that are compared with torchvision's own drawing; shared by its worker and the tests."""

from __future__ import annotations

import numpy as np

TIMES = 1500
IMAGE = (90, 61)  # width, height
SPACES = [(31, (32, 32)), (31, (224, 224)), (31, (31, 23)), (10, (500, 375)), (2, (17, 12)), (11, (333, 250))]
DISTRIBUTIONS = {
    "crop": ("RandomResizedCrop", {"size": 32}),
    "narrow crop": ("RandomResizedCrop", {"size": 32, "scale": [0.5, 0.9], "ratio": [0.3, 0.6]}),
    "place": ("RandomCrop", {"size": [40, 50]}),
    "patch": ("RandomErasing", {"p": 0.7}),
    "tall patch": ("RandomErasing", {"p": 1.0, "scale": [0.1, 0.6], "ratio": [1.5, 3.0], "value": "random"}),
    "jitter": ("ColorJitter", {"brightness": 0.4, "contrast": [0.2, 3.0], "hue": 0.2}),
    "augment": ("RandAugment", {"num_ops": 2, "magnitude": 14}),
}


def box(top: float, left: float, height: float, width: float) -> list[float]:
    """A box with its area and its shape, whose distributions say more than those of its sides."""
    return [float(top), float(left), float(height), float(width), float(height * width), float(height / max(width, 1))]


def numbers_of(erased: np.ndarray, untouched: float = 9.0) -> list[float]:
    """The box of what differs in an array (C, H, W) from `untouched`, and the mean of one channel of
    it; zeros where nothing does."""
    changed = erased != untouched
    rows, columns = np.flatnonzero(changed.any((0, 2))), np.flatnonzero(changed.any((0, 1)))
    if not rows.size:
        return [0.0] * 7
    inside = erased[0, rows[0] : rows[-1] + 1, columns[0] : columns[-1] + 1]
    return [*box(rows[0], columns[0], *inside.shape), float(inside.mean())]
