"""Decoded images kept in MindSpore's dataset cache from the first epoch on; what is random comes after it."""

from __future__ import annotations

import json
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
from mindspore import dataset
from PIL import Image

from . import dataset_cache
from .prepared_images import PreparedImages
from .sample import encode

# MindSpore's cache wants a source of its own in front of it, not one in Python. This one reads a list of files and
# gives their numbers: each line names the same file, one grey pixel, and the image of a number is read behind it.
_LIST, _FILE = "list.json", "pixel.png"


class CachedImages:
    """A session of the process's cache server for the images of one source.

    Raises what dataset_cache.server raises.
    """

    def __init__(self, images: PreparedImages) -> None:
        server = dataset_cache.server()
        self._images, self._count = images, len(images.source)
        session = server.session()
        self._cache = dataset.DatasetCache(session_id=session, size=0, port=server.port)
        # the cache knows a pipeline by its arguments: the list has to have the same path in every epoch
        self._folder = server.folder / str(session)

    @property
    def kept(self) -> int:
        """How many images are in the cache's memory."""
        return int(self._cache.get_stat().num_mem_cached)

    @contextmanager
    def rows(
        self, order: np.ndarray, start: int, end: int, *, seed: int, epoch: int, workers: int, threads: dict[str, Any]
    ) -> Iterator[dataset.Dataset]:
        """The images at the places `start` to `end` of the order, and their indices, while the context lasts."""
        images, numbers = self._images, {str(index): index for index in range(self._count)}

        def pixels(_: np.ndarray, index: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
            return images.pixels(int(index)), index

        def image(pixels: np.ndarray, index: np.ndarray) -> tuple[np.ndarray, np.int64]:
            return images.from_pixels(pixels, order, int(index), seed, epoch)

        with self._listed() as numbered:
            rows = dataset.ManifestDataset(
                str(numbered),
                usage="train",
                sampler=dataset.SubsetSampler(order[start:end].tolist()),
                class_indexing=numbers,
                num_parallel_workers=1,
            )
            columns = ["image", "label"]
            rows = rows.map(pixels, columns, columns, num_parallel_workers=workers, cache=self._cache, **threads)
            yield rows.map(image, columns, ["image", "index"], num_parallel_workers=workers, **threads)

    @contextmanager
    def _listed(self) -> Iterator[Path]:
        """The list, a line for each image, while the context lasts."""
        self._folder.mkdir()
        pixel, numbers = self._folder / _FILE, self._folder / _LIST
        try:
            pixel.write_bytes(encode(Image.new("L", (1, 1)), "PNG"))
            with numbers.open("w", encoding="utf-8") as file:
                for index in range(self._count):
                    annotation = [{"name": str(index), "type": "number"}]
                    file.write(json.dumps({"source": str(pixel), "usage": "train", "annotation": annotation}) + "\n")
            yield numbers
        finally:
            shutil.rmtree(self._folder, ignore_errors=True)
