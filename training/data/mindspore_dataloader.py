"""An epoch's batches for one process, in DistributedSampler's order, prepared ahead, from the cache if the recipe says
so.

The position of an image, and what is drawn for it, depends on (seed, epoch, index) and nothing else: an epoch that
begins in its middle gives the same batches as the whole epoch from there on, with any number of workers.
"""

from __future__ import annotations

import json
import os
import shutil
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from mindspore import Tensor, dataset
from PIL import Image

from ...errors import BadRecipe, MsmigrateError, WorkerFailed
from ..recipe.part_arguments import as_parts, refuse_random
from ..recipe.schema import Recipe
from . import dataset_cache
from .mindspore_pipeline import FastPrepare, Prepare
from .preprocessing import PreparedImages, reason
from .random_draws import Mix, batch_generator, draw_mix, epoch_order, mix_images, soft_targets
from .sample import encode
from .sources import Arrays, Source

# MindSpore's cache needs one of MindSpore's own sources before it, not one in Python. This one reads a list of files
# and returns their numbers: each line names the same file, one grey pixel, and the image of a number is read after it.
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
        # the cache recognizes a pipeline by its arguments: the list has to have the same path in every epoch
        self._folder = server.folder / str(session)

    @property
    def kept(self) -> int:
        """How many images are in the cache's memory."""
        return int(self._cache.get_stat().num_mem_cached)

    @contextmanager
    def rows(
        self, order: np.ndarray, start: int, end: int, *, seed: int, epoch: int, workers: int, threads: dict[str, Any]
    ) -> Iterator[dataset.Dataset]:
        """The images at the positions `start` to `end` of the order, and their indices, within this block."""
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
        """The list, a line for each image, within this block."""
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


# Threads, not processes: Pillow and NumPy release the interpreter lock while they work, and no image has to be copied
# from one process to another (measured with 224-pixel JPEGs on 2 cores: 580 images a second against 260).
_THREADS: dict[str, Any] = {"python_multiprocessing": False}
# What each stage of a pipeline may have ready. MindSpore's own 16 would be 20 batches ahead, 400 MB of ResNet50's.
_READY = 2


@dataclass(frozen=True)
class Batch:
    """What one step takes.

    images: float32 (N, C, H, W); for arrays the file's, a tuple where it has several inputs. labels: int32 (N,),
    float32 (N, classes) after mixup (in training only) or where the loss takes no classes, or those of the file.
    classes: the plain class of each image, int32 (N,), or the file's labels. indices: of the images in their source,
    int64 (N,). count: how many at the front count; the others only fill the batch, and would be counted twice (in
    evaluation only).
    """

    images: Tensor | tuple[Tensor, ...]
    labels: Tensor
    classes: np.ndarray
    indices: np.ndarray
    count: int


def target(labels: np.ndarray) -> Tensor:
    """Labels as MindSpore's losses take them: float32, or int32."""
    return Tensor(labels.astype(np.float32 if labels.dtype.kind == "f" else np.int32))


class Loader:
    """The batches of a source for one process, epoch by epoch.

    training: shuffled and augmented as the recipe says, mixed where it says mixup; otherwise in order, with
    eval_transforms in batches of eval_batch, and every image counted once over all processes. seed: instead of the
    recipe's. warn: called with a line for everything that was skipped (on_corrupt: skip) or differs from the recipe.

    steps_per_epoch, images_per_epoch: of one epoch in this process. waited: the seconds spent waiting for batches so
    far.

    The last batch of an epoch may be smaller: in evaluation, and in training with drop_last false, where it has to
    divide into `accumulate` micro-batches; a compiled step is then compiled once more for it.
    Raises BadRecipe where that is not so, where the images are fewer than a batch, and for transforms that no net can
    take; Unsupported for random transforms that cannot be drawn, and any in evaluation.
    """

    def __init__(
        self,
        source: Source | Arrays,
        recipe: Recipe,
        *,
        training: bool,
        rank: int = 0,
        world: int = 1,
        seed: int | None = None,
        warn: Callable[[str], None] | None = None,
    ) -> None:
        data = recipe.data
        self.source, self.recipe, self.training = source, recipe, training
        self.rank, self.world, self.seed = rank, world, recipe.seed if seed is None else seed
        self.batch = data.batch if training or data.eval_batch is None else data.eval_batch
        self.waited = 0.0
        self._warn = warn or (lambda text: None)
        self._workers = min(data.workers, os.cpu_count() or 1)  # MindSpore refuses more
        if training and self._workers < data.workers:
            self._warn(f"data.workers is {data.workers} and this machine has {self._workers} cores: that many work")
        self._drop = training and data.drop_last
        self._classes = recipe.model.num_classes
        mine = len(source) // world if self._drop else -(-len(source) // world)
        whole, rest = divmod(mine, self.batch)
        self._refuse(mine, rest)
        self.steps_per_epoch = whole if self._drop or not rest else whole + 1
        self.images_per_epoch = whole * self.batch if self._drop else mine
        transforms = as_parts(data.transforms if training or data.eval_transforms is None else data.eval_transforms)
        if not training:
            refuse_random(transforms)
        self._cached: CachedImages | None = None
        if isinstance(source, Arrays):
            return
        prepare = (FastPrepare if data.fast_transforms else Prepare)(transforms, source.mode)
        self._images = PreparedImages(source, prepare, skip=data.on_corrupt == "skip")

    def epoch(self, epoch: int, start: int = 0) -> Iterator[Batch]:
        """The batches of an epoch from its step `start` on; leaving early ends the pipeline's threads.

        Raises BadInput naming an image that is damaged (on_corrupt: fail) and BadRecipe where the transforms fail or
        leave images of several sizes.
        """
        order = epoch_order(
            len(self.source),
            seed=self.seed,
            epoch=epoch,
            shuffle=self.training and self.recipe.data.shuffle,
            drop_last=self._drop,
            rank=self.rank,
            world=self.world,
        )
        if start >= self.steps_per_epoch:
            return
        if isinstance(self.source, Arrays):
            yield from self._of_arrays(self.source, order, start)
            return
        with self._rows(order, epoch, start) as rows:
            batches = self._started(self._batched(rows, epoch, start))
            try:
                for step in range(start, self.steps_per_epoch):
                    images, indices = self._next(batches)
                    for text in self._images.warnings():
                        self._warn(text)
                    yield self._batch(images, indices.asnumpy(), order, epoch, step)
            finally:
                batches.stop()

    def _of_arrays(self, source: Arrays, order: np.ndarray, start: int) -> Iterator[Batch]:
        """The batches of an epoch over rows in memory, as they are."""
        for step in range(start, self.steps_per_epoch):
            places = np.arange(step * self.batch, min((step + 1) * self.batch, len(order)))
            indices = order[places]
            inputs, labels = source.rows(indices)
            count = int((places * self.world + self.rank < len(source)).sum()) if not self.training else len(places)
            images = tuple(Tensor(each) for each in inputs)
            yield Batch(images if len(images) > 1 else images[0], target(labels), labels, indices, count)

    @contextmanager
    def _rows(self, order: np.ndarray, epoch: int, start: int) -> Iterator[dataset.Dataset]:
        """The images at the positions of the order from step `start` on, and their indices."""
        images, workers = self._images, self._workers
        first, end = start * self.batch, min(self.steps_per_epoch * self.batch, len(order))
        if self.recipe.data.cache:
            self._cached = self._cached or CachedImages(images)
            with self._cached.rows(
                order, first, end, seed=self.seed, epoch=epoch, workers=workers, threads=_THREADS
            ) as rows:
                yield rows
            return

        # functions, not methods: MindSpore copies the object that a method belongs to, with all that it holds
        def image(place: np.ndarray) -> tuple[np.ndarray, np.int64]:
            return images.at(order, int(place), self.seed, epoch)

        places = dataset.GeneratorDataset(
            _Places(first, end), ["place"], shuffle=False, num_parallel_workers=1, **_THREADS
        )
        yield places.map(image, ["place"], ["image", "index"], num_parallel_workers=workers, **_THREADS)

    def _batched(self, rows: dataset.Dataset, epoch: int, start: int) -> dataset.Dataset:
        """The rows in batches, mixed where the recipe says so."""

        def mixed(image: list[np.ndarray], index: list[np.ndarray], info: Any) -> tuple[np.ndarray, np.ndarray]:
            batch = np.stack(image)
            return mix_images(batch, self._mix(batch.shape, epoch, start + info.get_batch_num())), np.stack(index)

        mixing = {"per_batch_map": mixed, "input_columns": ["image", "index"]} if self._mixes else {}
        return rows.batch(self.batch, drop_remainder=False, num_parallel_workers=1, **mixing)

    def _started(self, batches: dataset.Dataset) -> Any:
        """An iterator over the batches, whose threads run from here on."""
        before = dataset.config.get_prefetch_size()
        dataset.config.set_prefetch_size(_READY)  # global, so restored below: other pipelines must not change
        try:
            return batches.create_tuple_iterator(num_epochs=1)
        except RuntimeError as error:
            raise self._failure(error) from error
        finally:
            dataset.config.set_prefetch_size(before)

    def _next(self, batches: Any) -> tuple[Tensor, Tensor]:
        began = time.perf_counter()
        try:
            return next(batches)
        except RuntimeError as error:
            raise self._failure(error) from error
        finally:
            self.waited += time.perf_counter() - began

    def _failure(self, error: RuntimeError) -> MsmigrateError:
        """The error that a thread raised, of which MindSpore passes on only a text; for its own errors, that text."""
        return self._images.failure or WorkerFailed(f"MindSpore's dataset pipeline stopped: {reason(error)}")

    def _batch(self, images: Tensor, indices: np.ndarray, order: np.ndarray, epoch: int, step: int) -> Batch:
        """The batch with its labels; in evaluation with the number of images at the front that count."""
        assert not isinstance(self.source, Arrays)
        count = len(indices)
        if not self.training:
            places = np.arange(step * self.batch, step * self.batch + count)
            counted = (places * self.world + self.rank < len(self.source)) & (indices == order[places])
            count = int(counted.sum())
            if not counted[:count].all():
                front = np.argsort(~counted, kind="stable")
                images, indices = Tensor(images.asnumpy()[front]), indices[front]
        classes = self.source.labels[indices]
        if self._mixes:
            assert self.recipe.mixup is not None
            mix, smoothing = self._mix(images.shape, epoch, step), self.recipe.mixup.label_smoothing
            labels = soft_targets(classes, mix, self._classes, smoothing)
        elif self.recipe.rows:
            labels = soft_targets(classes, Mix(False), self._classes, 0.0)
        else:
            labels = classes
        return Batch(images, Tensor(labels), classes, indices, count)

    @property
    def _mixes(self) -> bool:
        return self.training and self.recipe.mixup is not None

    def _mix(self, shape: tuple[int, ...], epoch: int, step: int) -> Mix:
        assert self.recipe.mixup is not None
        return draw_mix(self.recipe.mixup, batch_generator(self.seed, epoch, step, self.rank), shape)

    def _refuse(self, mine: int, rest: int) -> None:
        """Raise BadRecipe where the images of this process cannot be divided into batches that the step takes."""
        if not self.training:
            return
        if mine < self.batch:
            each = f" for each of {self.world} processes" if self.world > 1 else ""
            raise BadRecipe(
                f"data.batch is {self.batch} and {self.source.name} has only {mine} images{each}: "
                f"set data.batch to at most {max(mine, 1)}, or add images"
            )
        accumulate = self.recipe.accumulate
        if not self._drop and rest % accumulate:
            raise BadRecipe(
                f"data.drop_last is false and the last batch of an epoch has {rest} images, which do not divide into "
                f"accumulate {accumulate} micro-batches: set data.drop_last to true"
            )


class _Places:
    """The positions from `start` up to `end`, as rows of a dataset."""

    def __init__(self, start: int, end: int) -> None:
        self._places = range(start, end)

    def __len__(self) -> int:
        return len(self._places)

    def __getitem__(self, row: int) -> tuple[np.int64]:
        return (np.int64(self._places[row]),)
