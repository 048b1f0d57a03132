"""Where a recipe's images come from: photographs, digits, CIFAR, made-up images, or a folder of the user's own."""

from __future__ import annotations

from pathlib import Path
from typing import Literal, Protocol

import numpy as np

from ...errors import BadInput, BadRecipe
from ..recipe.check import SYNTHETIC, check_source, synthetic_size
from ..recipe.reader import expanded
from ..recipe.schema import IN_FOLDERS
from .datasets import CIFAR10, CIFAR100, Cifar, Digits, Photographs, Synthetic, crops
from .image_folder import ImageFolder, class_names
from .sample import Sample, in_steps, picks


class Source(Protocol):
    """Labelled images that are read one at a time, by index, from any thread.

    name: for messages. classes: their names in label order. labels: int32 (N,). mode: what every sample decodes to.
    Indexing raises BadInput naming the file where it cannot be read; that its bytes can be decoded is not checked.
    """

    name: str
    classes: tuple[str, ...]
    labels: np.ndarray
    mode: Literal["RGB", "L"]

    def __len__(self) -> int: ...

    def __getitem__(self, index: int) -> Sample: ...


def open_source(source: str, num_classes: int, *, training: bool) -> Source:
    """The images that `source` names, for a model of `num_classes` classes.

    source: 'photographs' (64 crops), 'digits', 'digits:train' (the first 1437), 'digits:test' (the last 360),
    'synthetic[:COUNT[xSIDE]]', 'folder:PATH', 'cifar10:PATH' or 'cifar100:PATH'. training: CIFAR's training files
    rather than its test file, other synthetic images, and a folder may have no class without images; the other
    sources are the same in either case.

    Raises BadRecipe for another source, or where its labels do not fit the model, and BadInput where the images are
    not there or are damaged as a whole.
    """
    opened = _open(source, num_classes, training)
    if len(opened.classes) > num_classes:
        count = len(opened.classes)
        raise BadRecipe(
            f"{opened.name}: {count} classes, and the model has only {num_classes}: give it num_classes: {count}"
        )
    return opened


def check_place(source: str) -> None:
    """Make sure that the folder is there that a source names, if it names one; its images are not looked for.

    Raises BadRecipe for a source that nobody knows, and BadInput.
    """
    check_source(source)
    kind, _, rest = source.partition(":")
    path = expanded(Path(rest))
    if kind == "folder":
        class_names(path)
    elif f"{kind}:" in IN_FOLDERS and not path.is_dir():
        raise BadInput(f"there is no folder {path}")


def _open(source: str, num_classes: int, training: bool) -> Source:
    check_source(source)
    kind, _, rest = source.partition(":")
    path = expanded(Path(rest))
    if kind == "photographs":
        return Photographs(num_classes=num_classes)
    if kind == "digits":
        return Digits(rest)
    if kind == SYNTHETIC:
        return Synthetic(*synthetic_size(source), num_classes=num_classes, training=training)
    if kind == "folder":
        return ImageFolder(path, allow_empty=not training)
    return Cifar(path, {"cifar10": CIFAR10, "cifar100": CIFAR100}[kind], training=training)


def samples(source: str, batch: int, steps: int, seed: int, num_classes: int = 1000) -> list[list[Sample]]:
    """`steps` batches of `batch` samples each, in an order drawn from `seed`; all come once before one comes twice.

    The same arguments give the same samples; only the JPEGs cut from the photographs, as many as are wanted, may
    differ by rounding between versions of Pillow's JPEG library. source: one of open_source's, as for training; it
    raises what that raises.
    """
    count = batch * steps
    if source == "photographs":
        return in_steps(crops(count, seed=seed, num_classes=num_classes), batch)
    opened = open_source(source, num_classes, training=True)
    return in_steps([opened[index] for index in picks(len(opened), count, seed)], batch)
