"""The images of one epoch, read and prepared one at a time from any thread; damaged images are found here."""

from __future__ import annotations

import re
from collections import deque
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Protocol

import numpy as np

from ...errors import BadInput, BadRecipe, MsmigrateError
from .random_draws import Key
from .sample import Sample, refuse_damaged
from .sources import Source

DAMAGED = np.zeros(1, dtype=np.uint8)  # marks an image that cannot be decoded; pixels of images have 2 or 3 axes


class Prepare(Protocol):
    """Decoding and transforming one image, in one go or in two.

    data: the encoded bytes, uint8 (N,). key: (seed, epoch, index), int64 (3,). pixels: uint8 (H, W, 3) or (H, W).
    The result should be float32 (C, H, W).
    """

    def __call__(self, data: np.ndarray, key: np.ndarray) -> np.ndarray: ...

    def pixels(self, data: np.ndarray) -> np.ndarray: ...

    def from_pixels(self, pixels: np.ndarray, key: np.ndarray) -> np.ndarray: ...


class PreparedImages:
    """A source's images, prepared for a net, with a record of the damaged ones.

    skip: an image that cannot be read or decoded is passed over rather than raised. failure: the last error of a
    thread, since a dataset pipeline passes on only a text of it.
    """

    def __init__(self, source: Source, prepare: Prepare, *, skip: bool) -> None:
        self.source, self.skip = source, skip
        self.failure: MsmigrateError | None = None
        self._prepare = prepare
        self._damaged: dict[int, str] = {}
        self._untold: deque[str] = deque()
        self._shape: tuple[int, ...] | None = None

    def at(self, order: np.ndarray, position: int, seed: int, epoch: int) -> tuple[np.ndarray, np.int64]:
        """The image at a position of the epoch's order, float32 (C, H, W), and its index in the source.

        With skip, a damaged image is replaced by the next undamaged one in the order, up to its end and then from its
        start: so only the position decides, wherever the epoch began. Raises BadInput for a damaged image, or where all
        are damaged, and BadRecipe where the transforms fail or leave images of several sizes.
        """
        with self._failures_kept():
            for place in range(position, position + len(order)):
                index = int(order[place % len(order)])
                if index not in self._damaged:
                    try:
                        return self._one(index, (seed, epoch, index)), np.int64(index)
                    except BadInput as damage:
                        self.note(index, damage)
            raise BadInput(f"none of the {len(order)} images of {self.source.name} can be read and decoded")

    def pixels(self, index: int) -> np.ndarray:
        """The decoded image of an index, for a cache; DAMAGED where it cannot be read or decoded and is skipped."""
        with self._failures_kept():
            try:
                sample = self.source[index]
                data = np.frombuffer(sample.data, dtype=np.uint8)
                return self.guarded(sample.name, lambda: self._prepare.pixels(data), sample)
            except BadInput as damage:
                self.note(index, damage)
                return DAMAGED

    def from_pixels(
        self, pixels: np.ndarray, order: np.ndarray, index: int, seed: int, epoch: int
    ) -> tuple[np.ndarray, np.int64]:
        """The result of `at` for the position of `index` in the order, from pixels that `self.pixels` returned."""
        if pixels.ndim == DAMAGED.ndim:
            return self.at(order, int(np.argmax(order == index)), seed, epoch)
        with self._failures_kept():
            name = f"image {index} of {self.source.name}"
            key = np.array((seed, epoch, index), dtype=np.int64)
            image = self.guarded(name, lambda: self._prepare.from_pixels(pixels, key))
            return self.fit(image, name), np.int64(index)

    @contextmanager
    def _failures_kept(self) -> Iterator[None]:
        try:
            yield
        except MsmigrateError as failure:
            self.failure = failure
            raise

    def note(self, index: int, damage: BadInput) -> None:
        """Record a damaged image; raises `damage` again where images are not skipped or the recipe is at fault."""
        if not self.skip or isinstance(damage, BadRecipe):
            raise damage
        if index not in self._damaged:
            self._damaged[index] = str(damage)
            self._untold.append(f"skipped an image: {damage}")

    def warnings(self) -> list[str]:
        """What was skipped since the last call, one text for each image."""
        return [self._untold.popleft() for _ in range(len(self._untold))]

    def guarded(self, name: str, work: Callable[[], np.ndarray], encoded: Sample | None = None) -> np.ndarray:
        """The result of `work`, which decodes or transforms an image, with its failures as BadInput or BadRecipe."""
        try:
            return work()
        except MsmigrateError:
            raise
        except Exception as failure:  # a transform may fail in any way; the image itself is the likeliest cause
            if encoded is not None:
                refuse_damaged([encoded])
            raise BadRecipe(f"the recipe's transforms failed on {name}: {reason(failure)}") from failure

    def fit(self, image: np.ndarray, name: str) -> np.ndarray:
        """The image, if a net can take it and it has the same size as all others; raises BadRecipe otherwise."""
        if image.dtype != np.float32 or image.ndim != 3:
            raise BadRecipe(
                f"the transforms give {image.dtype} {image.shape} and models take float32 (C, H, W): add ToTensor"
            )
        if self._shape is None:
            self._shape = image.shape
        if image.shape != self._shape:
            sizes = " and ".join(" x ".join(map(str, shape)) for shape in (self._shape, image.shape))
            raise BadRecipe(f"the transforms leave images of several sizes, {sizes} ({name}): add CenterCrop")
        return image

    def _one(self, index: int, key: Key) -> np.ndarray:
        sample = self.source[index]
        data = np.frombuffer(sample.data, dtype=np.uint8)
        image = self.guarded(sample.name, lambda: self._prepare(data, np.array(key, dtype=np.int64)), sample)
        return self.fit(image, sample.name)


def reason(error: Exception) -> str:
    """The line with the reason in MindSpore's report, which also has headings, rules and source lines.

    A failure in Python code ends its call stack with the exception; one in C++ has a line that begins with [ERROR].
    """
    lines = str(error).strip().splitlines() or [type(error).__name__]
    raised = [line for line in lines if re.match(r"[\w.]*(Error|Exception|BadRecipe): ", line)]
    printed = [line.removeprefix("[ERROR] ") for line in lines if line.startswith("[ERROR]")]
    return (raised[-1] if raised else (printed or lines)[0]).removeprefix(f"{BadRecipe.__module__}.BadRecipe: ")
