"""Every image of a source once, in order, prepared ahead by threads and gathered into batches."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from itertools import islice
from typing import NamedTuple

import numpy as np

from ...errors import BadInput, BadRecipe
from ..data.data_sources import Source
from ..data.prepared_images import Prepare, PreparedImages

AHEAD = 2  # batches that are prepared while the net works on one
NO_KEY = np.zeros(3, dtype=np.int64)  # nothing is drawn


class Batch(NamedTuple):
    """Up to a batch of images, in the order of their source.

    names, labels int32 (N,), images float32 (N, C, H, W). skipped: index and reason of those that were passed over on
    the way; done: how far into the source this batch reaches.
    """

    names: list[str]
    labels: np.ndarray
    images: np.ndarray
    skipped: list[tuple[int, str]]
    done: int


class _Image(NamedTuple):
    name: str
    label: int
    array: np.ndarray | None
    damage: str = ""


def batches(source: Source, prepare: Prepare, *, size: int, workers: int, skip: bool) -> Iterator[Batch]:
    """The source in batches of `size`, the last one of what is left (it may hold nothing but skipped images).

    workers: threads that read, decode and transform. skip: pass over images that cannot be read or decoded, and tell
    of them; otherwise the first such one is raised as BadInput. Raises BadRecipe where the transforms fail, or leave
    images of several sizes.
    """
    images: list[_Image] = []
    skipped: list[tuple[int, str]] = []
    for index, image in enumerate(_prepared(source, prepare, size, workers)):
        if image.array is not None:
            images.append(image)
        elif skip:
            skipped.append((index, image.damage))
        else:
            raise BadInput(
                f"{source.name}: {image.damage} (data.on_corrupt: skip in the recipe passes over such images)"
            )
        if len(images) == size or index + 1 == len(source):
            yield _batch(images, skipped, index + 1)
            images, skipped = [], []


def _prepared(source: Source, prepare: Prepare, size: int, workers: int) -> Iterator[_Image]:
    """The images in order, with `AHEAD` batches of them under way."""
    indices = iter(range(len(source)))
    images = PreparedImages(source, prepare, skip=False)
    with ThreadPoolExecutor(workers) as pool:
        waiting: deque[Future[_Image]] = deque()
        try:
            while True:
                wanted = AHEAD * size + 1 - len(waiting)
                waiting.extend(pool.submit(_image, images, prepare, index) for index in islice(indices, wanted))
                if not waiting:
                    return
                yield waiting.popleft().result()
        finally:
            for future in waiting:
                future.cancel()


def _image(images: PreparedImages, prepare: Prepare, index: int) -> _Image:
    try:
        sample = images.source[index]
        data = np.frombuffer(sample.data, dtype=np.uint8)
        array = images.guarded(sample.name, lambda: prepare(data, NO_KEY), sample)
        return _Image(sample.name, sample.label, images.fit(array, sample.name))
    except BadRecipe:
        raise
    except BadInput as damage:
        return _Image("", 0, None, str(damage))


def _batch(images: list[_Image], skipped: list[tuple[int, str]], done: int) -> Batch:
    arrays = [image.array for image in images if image.array is not None]
    stacked = np.stack(arrays) if arrays else np.empty((0, 0, 0, 0), dtype=np.float32)
    labels = np.array([image.label for image in images], dtype=np.int32)
    return Batch([image.name for image in images], labels, stacked, skipped, done)
