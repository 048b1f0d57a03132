"""Images that C++ resized (`data.fast_transforms`): a difference that the recipe declares, and how large it may be.

Such images are not torchvision's, by far more than rounding, so they are held to bounds in grey levels of 255 instead
of to torch's noise; the step itself is compared on torchvision's images. What the bounds let through is told in a note.
"""

from __future__ import annotations

import math

import numpy as np

from ..errors import BadTrace
from ..printable import quoted
from .judge import Verdict
from .trace import Entry, Trace

KEY = "grey_level"  # in the head of a trace whose images C++ resized: what one level comes to behind Normalize
NAMES = ("images", "mixed images")
# On 60 crops of photographs, resized to a fifth up to twice their size, the largest difference of a pixel was 40 and
# the mean of an image at most 3.6; without antialiasing they are 147 and 14, one pixel aside over 100 and 5 and more.
# Resizing moves no brightness: there no image was brighter or darker by more than 0.13.
LARGEST, MEAN, BIAS = 64.0, 5.0, 0.5


def declared(trace: Trace, entry: Entry) -> float | None:
    """The size of a grey level where the trace's tensor is of images that C++ resized. Raises BadTrace for nonsense."""
    level = trace.about.get(KEY)
    if level is None or entry.stage != "data" or entry.name not in NAMES:
        return None
    if not isinstance(level, float) or not (math.isfinite(level) and level > 0):
        raise BadTrace(f"{trace.folder / 'trace.json'}: {KEY} is no size of a grey level: {quoted(level)}")
    return level


def verdict(reference: np.ndarray, subject: np.ndarray, level: float) -> tuple[Verdict, str, float]:
    """The verdict on such images, why where it is a fail, and the error as a share of the images' L2 norm."""
    difference = (subject.astype(np.float64) - reference) / level
    error = float(np.linalg.norm(difference)) * level / (float(np.linalg.norm(reference)) or 1.0)
    largest, mean, bias = float(np.abs(difference).max()), float(np.abs(difference).mean()), abs(difference.mean())
    if largest <= LARGEST and mean <= MEAN and bias <= BIAS:
        return Verdict.PASS, "", error
    why = f"fast images {largest:.0f} grey levels from torchvision's ({mean:.1f} on average, brightness {bias:.1f})"
    return Verdict.FAIL, f"{why}; C++ resizing explains {LARGEST:.0f} ({MEAN:g}, {BIAS:g})", error


def notes(reference: Trace, mindspore: Trace) -> list[str]:
    """How far such images are from torchvision's, for the report; nothing where there are none."""
    found = [
        np.abs(mindspore.array(key).astype(np.float64) - reference.array(key)).ravel() / level
        for key, entry in mindspore.entries.items()
        if entry.name == "images" and (level := declared(mindspore, entry)) is not None
        if key in reference.entries and reference.entries[key].shape == entry.shape
    ]
    if not found:
        return []
    levels = np.concatenate(found)
    return [
        f"data.fast_transforms: MindSpore's images are {levels.mean():.1f} of 255 grey levels from torchvision's on "
        f"average and {levels.max():.0f} at most; the step was compared on torchvision's"
    ]
