"""Mean and standard deviation of each channel over all images below a folder, in one pass and without rounding.

Every image adds its histogram, whole numbers, so that neither the order nor the number of images costs a digit; what
is rounded is only the result. https://pytorch.org/vision/stable/generated/torchvision.transforms.Normalize.html takes
the two in the scale of ToTensor, 0 to 1.
"""

from __future__ import annotations

import math
import os
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from fractions import Fraction
from pathlib import Path
from typing import Literal

import numpy as np
from PIL import Image

from ...errors import BadInput
from .image_folder import folders_in, image_files, read
from .sample import Sample, decode

CHANNELS = 3
LARGEST = 255
AT_ONCE = 256  # images that the threads are given at a time, so that a million of them are not queued up
Channels = tuple[float, float, float]
VALUES = np.arange(LARGEST + 1) / LARGEST


@dataclass(frozen=True)
class Corrupt:
    """An image that cannot be read or decoded, by its path below the folder, and why."""

    file: str
    reason: str


@dataclass(frozen=True)
class Statistics:
    """What `measure` found.

    mean, std: of red, green and blue, 0 to 1, each pixel of each image counted once; std divides by the number of
    pixels. std_of_images: the mean over all images of each one's own std, as ImageNet's 0.229, 0.224 and 0.225 most
    likely are (https://github.com/pytorch/vision/pull/1965); it leaves out how images differ. width, height: smallest
    and largest, as the files have them. folders: images by the folder next below; '.' has those that lie in none.
    pixels: as measured, after resizing.
    """

    images: int
    pixels: int
    mean: Channels
    std: Channels
    std_of_images: Channels
    width: tuple[int, int]
    height: tuple[int, int]
    folders: dict[str, int]
    corrupt: list[Corrupt]


@dataclass(frozen=True)
class _Measured:
    histogram: np.ndarray  # int64 (768,): 256 counts for each channel
    size: tuple[int, int]


def measure(
    folder: Path,
    *,
    resize: int | None = None,
    on_corrupt: Literal["fail", "skip"] = "fail",
    on_progress: Callable[[int, int], None] | None = None,
) -> Statistics:
    """Decode all images below `folder` as training does, to RGB, and sum up their channels.

    resize: the length of the shorter side that every image is brought to first, as torchvision's Resize does.
    on_progress: called with the images done and all of them. on_corrupt: 'skip' leaves out the images that cannot be
    decoded and lists them. Raises BadInput where there is no image, none that can be decoded, or, with 'fail', for the
    first one that cannot be.
    """
    files = _files(folder)
    total = np.zeros(CHANNELS * (LARGEST + 1), np.int64)
    corrupt: list[Corrupt] = []
    sizes: list[tuple[int, int]] = []
    deviations = np.zeros(CHANNELS)
    folders = dict.fromkeys(folders_in(folder), 0)
    for file, found in _each(folder, files, resize, on_progress):
        if isinstance(found, Corrupt):
            if on_corrupt == "fail":
                raise BadInput(
                    f"{folder / found.file} {found.reason}; repair or remove it, or pass it over with --on-corrupt skip"
                )
            corrupt.append(found)
            continue
        total += found.histogram
        deviations += _deviations(found.histogram)
        sizes.append(found.size)
        below, separator, _ = file.partition("/")
        place = below if separator else "."
        folders[place] = folders.get(place, 0) + 1
    if not sizes:
        raise BadInput(f"none of the {len(files)} images below {folder} can be decoded; the first: {corrupt[0].reason}")
    counts = total.reshape(CHANNELS, LARGEST + 1)
    moments = [_moments(channel) for channel in counts.tolist()]
    own = (deviations / len(sizes)).tolist()
    widths, heights = zip(*sizes, strict=True)
    return Statistics(
        images=len(sizes),
        pixels=int(counts[0].sum()),
        mean=(moments[0][0], moments[1][0], moments[2][0]),
        std=(moments[0][1], moments[1][1], moments[2][1]),
        std_of_images=(own[0], own[1], own[2]),
        width=(min(widths), max(widths)),
        height=(min(heights), max(heights)),
        folders=folders,
        corrupt=corrupt,
    )


def corrupt_images(folder: Path, on_progress: Callable[[int, int], None] | None = None) -> tuple[int, list[Corrupt]]:
    """How many images there are below `folder`, and those that cannot be decoded; raises BadInput without images."""
    files = _files(folder)
    found = [result for _, result in _each(folder, files, None, on_progress)]
    return len(files), [result for result in found if isinstance(result, Corrupt)]


def _files(folder: Path) -> list[str]:
    """The images' paths below `folder`."""
    folders_in(folder)  # where it is none, that is what is said
    found = [Path(file).relative_to(folder).as_posix() for file in image_files(folder)]
    if not found:
        raise BadInput(f"there are no images below {folder}")
    return found


def _each(
    folder: Path, files: list[str], resize: int | None, on_progress: Callable[[int, int], None] | None
) -> Iterator[tuple[str, _Measured | Corrupt]]:
    """What each file holds, in order; decoding lets the interpreter go, so threads share the work."""

    def one(file: str) -> _Measured | Corrupt:
        try:
            return _histogram(decode(Sample(read(folder / file), 0, file)), resize)
        except BadInput as error:
            reason = str(error).removeprefix(f"{folder / file} ").removeprefix(f"{file} ")
            return Corrupt(file, reason)

    with ThreadPoolExecutor(len(os.sched_getaffinity(0))) as threads:
        for start in range(0, len(files), AT_ONCE):
            block = files[start : start + AT_ONCE]
            for place, (file, found) in enumerate(zip(block, threads.map(one, block), strict=True), start + 1):
                yield file, found
                if on_progress is not None:
                    on_progress(place, len(files))


def _histogram(image: Image.Image, resize: int | None) -> _Measured:
    size = image.size
    if resize is not None:
        # torchvision's _compute_resized_output_size: the longer side is cut to a whole number
        short = min(size)
        width, height = (resize if side == short else int(resize * side / short) for side in size)
        image = image.resize((width, height), Image.Resampling.BILINEAR)
    return _Measured(np.array(image.histogram(), np.int64), size)


def _deviations(histogram: np.ndarray) -> np.ndarray:
    """The population standard deviation of each channel of one image, float64 (3,), 0 to 1."""
    counts = histogram.reshape(CHANNELS, LARGEST + 1)
    shares = counts / counts.sum(axis=1, keepdims=True)
    centred = VALUES - (shares @ VALUES)[:, None]
    return np.sqrt((shares * centred * centred).sum(axis=1))


def _moments(counts: list[int]) -> tuple[float, float]:
    """Mean and population standard deviation, 0 to 1, of values given by how often each of 0 to 255 comes."""
    number = sum(counts)
    first = sum(value * count for value, count in enumerate(counts))
    second = sum(value * value * count for value, count in enumerate(counts))
    variance = Fraction(number * second - first * first, (number * LARGEST) ** 2)
    return float(Fraction(first, number * LARGEST)), math.sqrt(variance)
