"""How two tensors, or two batches of images, differ, in numbers and in words."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import permutations

import numpy as np

CLOSE = 1e-3  # a pattern (one ratio, one offset) holds where it leaves no more than this share of the difference
EXPLAINED = 1e-3  # a pattern holds where it leaves at most this share of the difference
SMALL = 1e-5  # elements that differ by less than this share of the tensor's largest element count as equal
FEW = 0.02  # a share of the elements that counts as few
LISTED = 8
SHIFTS = (-2, -1, 0, 1, 2)
SAME = 1e-4  # images that differ by less than this share of their spread are the same


@dataclass(frozen=True)
class Pattern:
    """How two tensors differ in numbers: the best factor, the share of the difference that it leaves, the cosine."""

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
    """Where the differing elements are, if not everywhere."""
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
        what = "channel" if axis == 1 else "position of the last dimension"
        if _left(x + shift[group], y) <= EXPLAINED * total:
            yield f"a constant offset for each {what}, from {shift.min():.3g} to {shift.max():.3g}"
        squares = np.bincount(group, x * x, count)
        factor = np.bincount(group, x * y, count) / np.where(squares > 0, squares, 1.0)
        if _left(factor[group] * x, y) <= EXPLAINED * total:
            yield f"a constant factor for each {what}, from {factor.min():.4g} to {factor.max():.4g}"
        mean = np.bincount(group, x, count) / sizes
        spread = np.bincount(group, (x - mean[group]) ** 2, count)
        slope = np.bincount(group, (x - mean[group]) * (y - y.mean()), count) / np.where(spread > 0, spread, 1.0)
        offset = np.bincount(group, y, count) / sizes - slope * mean
        if _left(slope[group] * x + offset[group], y) <= EXPLAINED * total:
            yield f"a factor and an offset for each {what}: factors from {slope.min():.4g} to {slope.max():.4g}"


@dataclass(frozen=True)
class ImageDifference:
    """The fault that the numbers show: its id, and its description."""

    fault: str
    text: str


@dataclass(frozen=True)
class OtherBatch:
    """The recorded elements of a batch that another framework made: values, flat, and where each is."""

    values: np.ndarray
    at: tuple[np.ndarray, ...]  # sample, channel, row, column of each value
    shape: tuple[int, ...]

    @classmethod
    def of(cls, values: np.ndarray, shape: tuple[int, ...], positions: np.ndarray | None) -> OtherBatch:
        """positions: of the values in the flat batch, None where they are all of it."""
        flat = np.arange(values.size) if positions is None else positions
        return cls(values.astype(np.float64), np.unravel_index(flat, shape), shape)

    @property
    def spread(self) -> float:
        """The standard deviation of all values, 1 for a constant batch."""
        return float(self.values.std()) or 1.0


def order(of_torch: np.ndarray, of_mindspore: OtherBatch) -> list[int] | None:
    """For each of MindSpore's samples which of torch's (N, C, H, W) it is; None unless each is found once."""
    n, *rest = of_mindspore.at
    found = []
    for i in range(len(of_torch)):
        here = n == i
        place = tuple(axis[here] for axis in rest)
        off = [float(np.abs(of_mindspore.values[here] - other[place]).max(initial=0.0)) for other in of_torch]
        best = int(np.argmin(off))
        if off[best] > SAME * of_mindspore.spread:
            return None
        found.append(best)
    return found if sorted(found) == list(range(len(of_torch))) else None


def shifted(of_torch: np.ndarray, of_mindspore: OtherBatch) -> tuple[int, int] | None:
    """By how many rows and columns (down, right) MindSpore's crop of the same picture is off; None for no shift.

    Rows and columns that only one of the two crops has are left out.
    """
    height, width = of_torch.shape[-2:]
    if min(height, width) <= 8:
        return None
    n, c, row, column = of_mindspore.at
    for down in SHIFTS:
        for right in SHIFTS:
            y, x = row + down, column + right
            inside = (y >= 0) & (y < height) & (x >= 0) & (x < width)
            off = of_mindspore.values[inside] - of_torch[n[inside], c[inside], y[inside], x[inside]]
            if (down, right) != (0, 0) and float(np.abs(off).max()) <= SAME * of_mindspore.spread:
                return down, right
    return None


@dataclass(frozen=True)
class ChannelMap:
    """MindSpore's channel c is scale[c] times torch's channel source[c], plus offset[c]."""

    source: tuple[int, ...]
    scale: np.ndarray
    offset: np.ndarray


def affine(of_torch: np.ndarray, of_mindspore: OtherBatch) -> ChannelMap | None:
    """The map of channels, scale and offset from torch's images (N, C, H, W) to MindSpore's; None if there is none."""
    channels = of_torch.shape[1]
    n, c, row, column = of_mindspore.at
    orders = sorted(permutations(range(channels))) if channels <= 4 else [tuple(range(channels))]
    for source in orders:
        scale, offset = np.zeros(channels), np.zeros(channels)
        for channel, k in enumerate(source):
            here = c == channel
            x, y = of_torch[n[here], k, row[here], column[here]].astype(np.float64), of_mindspore.values[here]
            if x.size < 3 or not x.std():
                return None
            scale[channel] = float((x - x.mean()) @ (y - y.mean()) / ((x - x.mean()) @ (x - x.mean())))
            offset[channel] = y.mean() - scale[channel] * x.mean()
            if float(np.abs(scale[channel] * x + offset[channel] - y).max()) > SAME * max(float(y.std()), 1e-30):
                break
        else:
            return ChannelMap(tuple(source), scale, offset)
    return None


def read_normalisation(found: ChannelMap, mean: Sequence[float], std: Sequence[float]) -> ImageDifference:
    """What is wrong with the channels, the mean and the deviation.

    torch's is (v - mean) / std with v in [0, 1], MindSpore's (v - m) / s, so scale = std / s, offset = (mean - m) / s.
    """
    given_m, given_s, source = np.asarray(mean, np.float64), np.asarray(std, np.float64), list(found.source)
    s = given_s[source] / found.scale
    m = given_m[source] - found.offset * s

    def means(expected: np.ndarray) -> bool:
        return np.allclose(m, expected, rtol=1e-3, atol=1e-4)

    def deviates(expected: np.ndarray | float) -> bool:
        return np.allclose(s, expected, rtol=1e-3)

    turned = source != sorted(source)
    for after, reordered in ((", after normalisation", source), ("", sorted(source))) if turned else ():
        if means(given_m[reordered]) and deviates(given_s[reordered]):
            name = "bgr" if source == sorted(source, reverse=True) else "channels-permuted"
            return ImageDifference(name, f"the channels come in the order {source}{after}")
    zero, one = bool(np.all(np.abs(m) < 1e-4)), bool(np.all(np.abs(s - 1) < 1e-4))
    for factor, text in ((255.0, "times 255"), (1 / 255.0, "divided by 255")):
        scaled = np.allclose(s, given_s * factor, rtol=2e-3)
        if scaled and np.allclose(m, given_m * factor, rtol=2e-3, atol=1e-6):
            text = f"mean and deviation are on another scale than the images: {text}"
            return ImageDifference("normalize-255", text)
        if scaled and np.allclose(m, given_m, rtol=2e-3, atol=1e-4):
            return ImageDifference("normalize-255", f"the deviation alone is {text}")
    if zero and deviates(1 / 255.0):
        return ImageDifference("normalize-255", "the images are on [0, 255], and not normalised")
    if zero and one:
        return ImageDifference("normalize-missing", "the images are not normalised")
    if zero and deviates(given_s):
        return ImageDifference("normalize-mean-missing", "the mean is not subtracted")
    if one and means(given_m):
        return ImageDifference("normalize-std-missing", "the images are not divided by the deviation")
    if means(given_m[::-1]) and deviates(given_s[::-1]) and not turned:
        return ImageDifference("bgr", "mean and deviation are in the order BGR, the images in RGB")
    shown = f"mean {listed(m)} and deviation {listed(s)} where the recipe has {listed(given_m)} and {listed(given_s)}"
    return ImageDifference("normalize-argument", f"normalised with {shown}")


def listed(values: np.ndarray) -> str:
    """Numbers as a list in a sentence."""
    return "[" + ", ".join(f"{value:.5g}" for value in values) + "]"
