"""How two tensors differ, in numbers and in words."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np

CLOSE = 1e-3  # a pattern (one ratio, one offset) holds where it leaves no more than this share of the difference
EXPLAINED = 1e-3  # a pattern holds where it leaves at most this share of the difference
SMALL = 1e-5  # elements that differ by less than this share of the tensor's largest are taken to agree
FEW = 0.02  # a share of the elements that counts as few
LISTED = 8


@dataclass(frozen=True)
class Pattern:
    """How two tensors differ in numbers: the best factor and what it leaves of the difference, and the cosine."""

    factor: float
    left: float
    cosine: float

    @property
    def constant(self) -> bool:
        """Whether one factor explains the difference."""
        return self.left <= CLOSE

    def __str__(self) -> str:
        if self.constant:
            return f"MindSpore's is {self.factor:.6g} times torch's"
        return f"cosine {self.cosine:.6f}, best factor {self.factor:.4g}"


def pattern(reference: np.ndarray, subject: np.ndarray) -> Pattern:
    """The factor c that brings c·reference closest to subject, the share of the difference that it leaves, and the
    cosine between the two."""
    x, y = reference.astype(np.float64).reshape(-1), subject.astype(np.float64).reshape(-1)
    xx, yy, xy = float(x @ x), float(y @ y), float(x @ y)
    factor = xy / xx if xx else 0.0
    off = float(np.linalg.norm(y - x))
    left = float(np.linalg.norm(y - factor * x))
    cosine = xy / np.sqrt(xx * yy) if xx and yy else 0.0
    return Pattern(factor, left / off if off else 0.0, float(cosine))


def difference(reference: np.ndarray, subject: np.ndarray, shape: Sequence[int], positions: np.ndarray | None) -> str:
    """The first pattern that holds, most telling first.

    reference, subject: flat, torch's and MindSpore's elements of one tensor of this shape; positions: which elements
    they are, None for all of them.
    """
    x, y = reference.astype(np.float64), subject.astype(np.float64)
    if not np.isfinite(y).all():
        return f"{int((~np.isfinite(y)).sum())} of {y.size} elements are not finite"
    off = np.abs(y - x)
    if not off.any():
        return "equal"
    at = np.unravel_index(np.arange(x.size) if positions is None else positions, tuple(shape) or (1,))
    grid = (x.reshape(shape), y.reshape(shape)) if positions is None and len(shape) else None
    return next(_patterns(x, y, off, at, tuple(shape), grid))


def shapes(expected: Sequence[int], got: Sequence[int]) -> str:
    """How two shapes differ."""
    if math.prod(expected) == math.prod(got):
        kind = (
            "the dimensions in another order" if sorted(expected) == sorted(got) else "the elements grouped otherwise"
        )
        return f"shape {list(got)} instead of {list(expected)}: {kind}"
    return f"shape {list(got)} instead of {list(expected)}"


def _patterns(
    x: np.ndarray,
    y: np.ndarray,
    off: np.ndarray,
    at: tuple[np.ndarray, ...],
    shape: tuple[int, ...],
    grid: tuple[np.ndarray, np.ndarray] | None,
) -> Iterator[str]:
    total = float(np.linalg.norm(y - x))
    if not y.any():
        yield "all zero"
    if not x.any():
        yield f"torch's is all zero, MindSpore's has a norm of {total:.3g}"
    wrong = off > SMALL * float(np.abs(x).max())
    factor = float(x @ y) / float(x @ x)
    if _left(factor * x, y) <= EXPLAINED * total:
        yield f"a constant factor: MindSpore's is {factor:.6g} times torch's"
    shift = float((y - x).mean())
    if x.size > 1 and _left(x + shift, y) <= EXPLAINED * total:
        yield f"a constant offset of {shift:.6g}"
    if grid is not None:
        yield from _moved(*grid, total)
    yield from _somewhere(wrong, at, shape)
    yield from _by_channel(x, y, at, shape, total)
    if not (wrong & (x > 0)).any() and (x > 0).any():
        yield "only elements that torch has at or below zero differ"
    if not (wrong & (x < 0)).any() and (x < 0).any():
        yield "only elements that torch has at or above zero differ"
    share = float(wrong.mean())
    cosine = float(x @ y) / float(np.linalg.norm(x) * np.linalg.norm(y))
    yield f"{share:.0%} of the elements differ; cosine {cosine:.6f}, best factor {factor:.4g}"


def _left(fit: np.ndarray, y: np.ndarray) -> float:
    return float(np.linalg.norm(y - fit))


def _moved(x: np.ndarray, y: np.ndarray, total: float) -> Iterator[str]:
    """The same values at other places."""
    near = EXPLAINED * total
    for axis, size in enumerate(x.shape):
        if size > 1 and _left(np.flip(x, axis), y) <= near:
            yield f"reversed along dimension {axis}"
    for a in range(x.ndim):
        for b in range(a + 1, x.ndim):
            if x.shape[a] == x.shape[b] > 1 and _left(np.swapaxes(x, a, b), y) <= near:
                yield f"dimensions {a} and {b} swapped"
    for axis in range(1 if x.ndim > 2 else 0, x.ndim):
        for step in (1, -1):
            rolled = np.roll(x, step, axis)
            inner = [slice(None)] * x.ndim
            inner[axis] = slice(1, -1)
            if x.shape[axis] > 3 and _left(rolled[tuple(inner)], y[tuple(inner)]) <= near:
                yield f"shifted by {step} along dimension {axis}"
    if _left(np.sort(x, None), np.sort(y, None)) <= near:
        yield "the same values in another order"


def _somewhere(wrong: np.ndarray, at: tuple[np.ndarray, ...], shape: tuple[int, ...]) -> Iterator[str]:
    """Where the elements that differ lie, if not everywhere."""
    if not wrong.any():
        yield "every element by less than a hundred-thousandth of the largest one"
    names = {0: "sample", 1: "channel"} if len(shape) > 1 else {0: "channel"}
    if len(shape) == 4:
        names |= {2: "row", 3: "column"}
        high, wide = shape[2:]
        border = (at[2] == 0) | (at[2] == high - 1) | (at[3] == 0) | (at[3] == wide - 1)
        if min(high, wide) > 2 and not (wrong & ~border).any():
            last = (at[2] == high - 1) | (at[3] == wide - 1)
            yield f"only pixels at the {'lower and right ' if not (wrong & ~last).any() else ''}border differ"
    for axis, size in enumerate(shape):
        hit = np.unique(at[axis][wrong])
        if 0 < hit.size <= size / 2 and size > 1:
            listed = ", ".join(map(str, hit[:LISTED])) + (", …" if hit.size > LISTED else "")
            yield f"only {names.get(axis, f'index of dimension {axis}')} {listed} of {size} differ"
    if wrong.mean() < FEW:
        yield f"only {int(wrong.sum())} of {wrong.size} elements differ"


def _by_channel(
    x: np.ndarray, y: np.ndarray, at: tuple[np.ndarray, ...], shape: tuple[int, ...], total: float
) -> Iterator[str]:
    """One factor or one offset for each channel (or each position of the last dimension)."""
    for axis in dict.fromkeys(a for a in (1, len(shape) - 1) if 0 < a < len(shape)):
        group, count = at[axis], shape[axis]
        if count >= x.size / 2:
            continue
        sizes = np.maximum(np.bincount(group, minlength=count), 1)
        shift = np.bincount(group, y - x, count) / sizes
        said = "channel" if axis == 1 else "position of the last dimension"
        if _left(x + shift[group], y) <= EXPLAINED * total:
            yield f"a constant offset for each {said}, from {shift.min():.3g} to {shift.max():.3g}"
        squares = np.bincount(group, x * x, count)
        factor = np.bincount(group, x * y, count) / np.where(squares > 0, squares, 1.0)
        if _left(factor[group] * x, y) <= EXPLAINED * total:
            yield f"a constant factor for each {said}, from {factor.min():.4g} to {factor.max():.4g}"
        mean = np.bincount(group, x, count) / sizes
        spread = np.bincount(group, (x - mean[group]) ** 2, count)
        slope = np.bincount(group, (x - mean[group]) * (y - y.mean()), count) / np.where(spread > 0, spread, 1.0)
        offset = np.bincount(group, y, count) / sizes - slope * mean
        if _left(slope[group] * x + offset[group], y) <= EXPLAINED * total:
            yield f"a factor and an offset for each {said}: factors from {slope.min():.4g} to {slope.max():.4g}"
