"""How two batches of images differ, read from the numbers: another order, a shift, another normalisation."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import permutations

import numpy as np

SHIFTS = (-2, -1, 0, 1, 2)
SAME = 1e-4  # share of the images' spread up to which two are the same


@dataclass(frozen=True)
class ImageDifference:
    """What the numbers say: the fault's id, what it is in words, and the share of the difference that is left."""

    fault: str
    text: str
    left: float


@dataclass(frozen=True)
class OtherBatch:
    """The recorded elements of a batch that another framework made: values, flat, and where each stands."""

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
    """For each of their samples which of ours (N, C, H, W) it is, where each is found exactly once; None otherwise."""
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
    """By how many rows and columns (down, right) their crop of the same picture stands off ours; None for no shift.

    The rows and columns that only one of them has are left out.
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
    """Channel c of theirs is scale[c] times channel source[c] of ours, plus offset[c]."""

    source: tuple[int, ...]
    scale: np.ndarray
    offset: np.ndarray


def affine(of_torch: np.ndarray, of_mindspore: OtherBatch) -> ChannelMap | None:
    """The map of channels, scale and offset that makes ours (N, C, H, W) theirs; None where none does."""
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


def normalisation(found: ChannelMap, mean: Sequence[float], std: Sequence[float]) -> tuple[np.ndarray, np.ndarray]:
    """The mean and the deviation that theirs were normalised with, where ours were with `mean` and `std`.

    Ours is (v - mean) / std with v in [0, 1], theirs (v - m) / s, so scale = std / s and offset = (mean - m) / s.
    """
    source = list(found.source)
    s = np.asarray(std, np.float64)[source] / found.scale
    m = np.asarray(mean, np.float64)[source] - found.offset * s
    return m, s


def read_normalisation(found: ChannelMap, mean: Sequence[float], std: Sequence[float]) -> ImageDifference:
    """What is wrong with the channels, the mean and the deviation."""
    m, s = normalisation(found, mean, std)
    given_m, given_s = np.asarray(mean, np.float64), np.asarray(std, np.float64)
    source = list(found.source)
    turned = source != sorted(source)
    if turned and np.allclose(m, given_m[source], rtol=1e-3, atol=1e-4) and np.allclose(s, given_s[source], rtol=1e-3):
        name = "bgr" if source == sorted(source, reverse=True) else "channels-permuted"
        return ImageDifference(name, f"the channels come in the order {source}, after normalisation", 0.0)
    if turned and np.allclose(m, given_m, rtol=1e-3, atol=1e-4) and np.allclose(s, given_s, rtol=1e-3):
        name = "bgr" if source == sorted(source, reverse=True) else "channels-permuted"
        return ImageDifference(name, f"the channels come in the order {source}", 0.0)
    zero, one = bool(np.all(np.abs(m) < 1e-4)), bool(np.all(np.abs(s - 1) < 1e-4))
    shown = f"mean {_list(m)} and deviation {_list(s)} where the recipe has {_list(given_m)} and {_list(given_s)}"
    for factor, text in ((255.0, "times 255"), (1 / 255.0, "divided by 255")):
        if np.allclose(m, given_m * factor, rtol=2e-3, atol=1e-6) and np.allclose(s, given_s * factor, rtol=2e-3):
            return ImageDifference(
                "normalize-255", f"mean and deviation are on another scale than the images: {text}", 0.0
            )
        if np.allclose(m, given_m, rtol=2e-3, atol=1e-4) and np.allclose(s, given_s * factor, rtol=2e-3):
            return ImageDifference("normalize-255", f"the deviation alone is {text}", 0.0)
    if zero and np.allclose(s, 1 / 255.0, rtol=1e-3):
        return ImageDifference("normalize-255", "the images are on [0, 255], and not normalised", 0.0)
    if zero and one:
        return ImageDifference("normalize-missing", "the images are not normalised", 0.0)
    if zero and np.allclose(s, given_s, rtol=1e-3):
        return ImageDifference("normalize-mean-missing", "the mean is not subtracted", 0.0)
    if one and np.allclose(m, given_m, rtol=1e-3, atol=1e-4):
        return ImageDifference("normalize-std-missing", "the images are not divided by the deviation", 0.0)
    if np.allclose(m, given_m[::-1], rtol=1e-3, atol=1e-4) and np.allclose(s, given_s[::-1], rtol=1e-3) and not turned:
        return ImageDifference("bgr", "mean and deviation are in the order BGR, the images in RGB", 0.0)
    return ImageDifference("normalize-argument", f"normalised with {shown}", 0.0)


def _list(values: np.ndarray) -> str:
    return "[" + ", ".join(f"{value:.5g}" for value in values) + "]"
