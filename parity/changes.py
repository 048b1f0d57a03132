"""What a step changed: weights and buffers against those that it started from."""

from __future__ import annotations

import re

import numpy as np

from .trace import ALONE


def kept(array: np.ndarray) -> np.ndarray:
    """A copy of the values, in half the memory where they are float32's in a float64 array, as all starting weights
    are."""
    if array.dtype == np.float64:
        short = array.astype(np.float32)
        if np.array_equal(short, array, equal_nan=True):
            return short
    return array.copy()


def is_change(stage: str, part: str) -> bool:
    """Whether a part holds differences from the starting weights, rather than values."""
    changes = rf"(step\d+|given gradients|given overflows)( buffers)?|given weights ema|{ALONE}"
    return stage == "update" and re.fullmatch(changes, part) is not None


def change(now: np.ndarray, before: np.ndarray) -> np.ndarray:
    """now - before, exactly: the difference of two float32 values is rounded to float64 only."""
    return np.subtract(now, before, dtype=np.float64)
