"""The indices and values that the test of getitem and setitem shares with its MindSpore process; loads no framework."""

from __future__ import annotations

from typing import Any

import numpy as np

ALL = slice(None)
INDICES: list[Any] = [
    (ALL, 1),
    (Ellipsis, -1),
    (ALL, slice(0, 6, 2), slice(1, None), slice(None, None, 2)),  # the step at which MindSpore's own gradient crashes
    slice(0, 1),
    (ALL, slice(1, -1)),
    (ALL, slice(-4, None, 3)),
    (1, Ellipsis, slice(1, 3)),
]
COMPILED = (0, 2, 6)  # the numbers of those that a quick run compiles too: of an integer, of slices, and of both


def tensor() -> np.ndarray:
    """The tensor that is indexed: float32, (2, 6, 4, 3)."""
    return np.random.default_rng(1).normal(size=(2, 6, 4, 3)).astype(np.float32)


def written(index: Any) -> np.ndarray:
    """What is written at an index: float32, in the shape of what stands there."""
    return np.random.default_rng(2).normal(size=tensor()[index].shape).astype(np.float32)
