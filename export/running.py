"""Arrays in and arrays out, in batches: how every process of an export runs what it has."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path

import numpy as np

Run = Callable[[list[np.ndarray]], list[np.ndarray]]


def in_batches(run: Run, inputs: Sequence[np.ndarray], size: int) -> list[np.ndarray]:
    """What `run` makes of all examples, `size` at a time; each output (M, …) is that of all.

    inputs: of one first axis M, of which size is a divisor, but for a net that takes any batch. Outputs that have no
    axis for examples are those of the first batch.
    """
    starts = range(0, len(inputs[0]), size)
    sizes = [min(size, len(inputs[0]) - start) for start in starts]
    parts = [run([array[start : start + size] for array in inputs]) for start in starts]
    joined = []
    for pieces in zip(*parts, strict=True):
        of_examples = all(piece.ndim and len(piece) == n for piece, n in zip(pieces, sizes, strict=True))
        joined.append(np.concatenate(pieces) if of_examples else pieces[0])
    return joined


def save(path: Path, arrays: Sequence[np.ndarray]) -> None:
    """Store arrays in order."""
    np.savez(path, *[np.ascontiguousarray(array) for array in arrays])


def load(path: Path) -> list[np.ndarray]:
    """Read what save() stored."""
    with np.load(path, allow_pickle=False) as stored:
        return [stored[f"arr_{i}"] for i in range(len(stored.files))]
