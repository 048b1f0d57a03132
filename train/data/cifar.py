"""CIFAR-10 and CIFAR-100 in the binary format that their page offers: https://www.cs.toronto.edu/~kriz/cifar.html.

A file is rows of one size: the label (CIFAR-100: the coarse, then the fine one), then 3 x 32 x 32 pixels, plane by
plane.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Literal

import numpy as np

from ...errors import BadInput
from ...input_files import read_text
from .sample import Sample

SIDE = 32
PIXELS = 3 * SIDE * SIDE
MOST_NAMES = 1 << 16  # bytes of the file of class names
MOST_ROWS = 1_000_000  # of one file, whose labels are held in memory; the sets have at most 50,000
# A PPM's bytes are its pixels behind a few words: lossless, nothing to compute, and read by PIL and by MindSpore's
# C++ decoder alike (measured: 21 and 18 microseconds an image, as quick as any other format).
HEADER = b"P6 %d %d 255\n" % (SIDE, SIDE)


@dataclass(frozen=True)
class Layout:
    """How one of the two data sets lies in its folder; the label that counts is the last byte before the pixels."""

    title: str
    training: tuple[str, ...]
    test: tuple[str, ...]
    names: str
    label_bytes: int
    classes: int


CIFAR10 = Layout(
    "CIFAR-10", tuple(f"data_batch_{part}.bin" for part in range(1, 6)), ("test_batch.bin",), "batches.meta.txt", 1, 10
)
CIFAR100 = Layout("CIFAR-100", ("train.bin",), ("test.bin",), "fine_label_names.txt", 2, 100)


class Cifar:
    """The images of CIFAR-10 or CIFAR-100, in the order of their files; pixels are read when asked for.

    training: the training files, otherwise the test file. Class names come from the file of names where it is there,
    and are numbers where it is not.
    Raises BadInput for a file that is missing, is no whole number of rows, or has a label that the data set does not.
    """

    mode: Literal["RGB", "L"] = "RGB"

    def __init__(self, folder: Path, layout: Layout, *, training: bool) -> None:
        self.name = f"{layout.title} in {folder}"
        self.row = layout.label_bytes + PIXELS
        try:
            self.files = [_there(folder, name, layout) for name in (layout.training if training else layout.test)]
            labels = [_labels(file, self.row, layout) for file in self.files]
        except OSError as error:
            raise BadInput(f"{error.filename or folder} cannot be read: {error.strerror or error}") from error
        self.labels = np.concatenate(labels)
        self.starts = np.cumsum([0, *(len(part) for part in labels)])
        self.classes = _class_names(folder / layout.names, layout)

    def __len__(self) -> int:
        return len(self.labels)

    def __getitem__(self, index: int) -> Sample:
        index = range(len(self))[index]
        part = int(np.searchsorted(self.starts, index, side="right")) - 1
        row = index - int(self.starts[part])
        file = self.files[part]
        try:
            pixels = np.fromfile(file, np.uint8, PIXELS, offset=(row + 1) * self.row - PIXELS)
        except OSError as error:
            raise BadInput(f"{file} cannot be read: {error.strerror}") from error
        if len(pixels) != PIXELS:
            raise BadInput(f"{file} has become shorter: row {row} is not whole any more")
        data = HEADER + pixels.reshape(3, SIDE, SIDE).transpose(1, 2, 0).tobytes()
        return Sample(data, int(self.labels[index]), f"{file.name} row {row}")


def _there(folder: Path, name: str, layout: Layout) -> Path:
    """The file; raises BadInput with what people usually have instead."""
    if (folder / name).is_file():
        return folder / name
    if not folder.is_dir():
        raise BadInput(f"there is no folder {folder}")
    below = next((entry for entry in sorted(folder.iterdir()) if (entry / name).is_file()), None)
    if below is not None:
        raise BadInput(f"{folder} has no {name}, but {below} has: give that folder")
    if any((folder / other).exists() for other in (Path(name).stem, "data_batch_1", "train")):
        raise BadInput(f"{folder} has {layout.title}'s Python version: pickles are never read, get the binary one")
    raise BadInput(f"{folder} has no {name}, which {layout.title}'s binary version has")


def _labels(file: Path, row: int, layout: Layout) -> np.ndarray:
    """The labels of a file, int32 (N,), with every check that can be made of it."""
    size = file.stat().st_size
    if size > MOST_ROWS * row:
        raise BadInput(f"{file} has {size:,} bytes, and no file of {layout.title} has more than {MOST_ROWS:,} images")
    if size == 0 or size % row:
        raise BadInput(
            f"{file} has {size} bytes, which is not a whole number of rows of {row} bytes: "
            f"it is cut short or not {layout.title}'s binary version; download it again"
        )
    labels = np.memmap(file, np.uint8, "r", shape=(size // row, row))[:, layout.label_bytes - 1].astype(np.int32)
    wrong = np.flatnonzero(labels >= layout.classes)
    if len(wrong):
        raise BadInput(
            f"{file}: row {wrong[0]} has the label {labels[wrong[0]]}, and {layout.title} has labels from 0 to "
            f"{layout.classes - 1}: it is damaged or another data set"
        )
    return labels


def _class_names(file: Path, layout: Layout) -> tuple[str, ...]:
    """The names in label order, one on each line of the file."""
    try:
        names = tuple(read_text(file, MOST_NAMES).split())
    except FileNotFoundError:
        return tuple(str(label) for label in range(layout.classes))
    except (OSError, ValueError) as error:
        raise BadInput(f"{file} cannot be read: {getattr(error, 'strerror', None) or error}") from error
    if len(names) != layout.classes:
        raise BadInput(f"{file} has {len(names)} names, and {layout.title} has {layout.classes} classes")
    return names
