"""A user's own images: one folder with a folder for each class, as torchvision's ImageFolder reads it."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path
from typing import Literal

import numpy as np

from ...errors import BadInput
from ...input_files import read_bytes
from .sample import Sample

SUFFIXES = (".bmp", ".jpeg", ".jpg", ".pgm", ".png", ".ppm", ".tif", ".tiff", ".webp")  # torchvision's IMG_EXTENSIONS


LARGEST = 1 << 28  # bytes of an image's file


class ImageFolder:
    """The images of a tree with a folder for each class, in the order of torchvision's ImageFolder.

    A label is the place of the class folder's name in the sorted names. Files are listed here and read when asked for.
    allow_empty: a class may have no images, as for validation, and keeps its number all the same.
    Raises BadInput for a folder that is not there, has no classes or no images, or has a class without images.
    """

    mode: Literal["RGB", "L"] = "RGB"

    def __init__(self, folder: Path, *, allow_empty: bool = False) -> None:
        self.folder = folder
        self.name = str(folder)
        self.classes = tuple(class_names(folder))
        files = [list(image_files(folder / name)) for name in self.classes]
        empty = [name for name, found in zip(self.classes, files, strict=True) if not found]
        if len(empty) == len(self.classes) or (empty and not allow_empty):
            more = len(empty) - 1
            others = f", nor {'has 1 other class' if more == 1 else f'have {more} other classes'}" if more else ""
            looked_for = f"looked for {', '.join(SUFFIXES)}"
            raise BadInput(f"{folder / empty[0]} has no images in it ({looked_for}){others}: remove it, or add some")
        self.files = [file for found in files for file in found]
        self.labels = np.repeat(np.arange(len(files), dtype=np.int32), [len(found) for found in files])

    def __len__(self) -> int:
        return len(self.files)

    def __getitem__(self, index: int) -> Sample:
        file = self.files[index]
        name = os.path.relpath(file, self.folder)
        return Sample(read(Path(file)), int(self.labels[index]), Path(name).as_posix())


def class_names(folder: Path) -> list[str]:
    """The sorted names of the folders in `folder`; raises BadInput where there are none."""
    names = folders_in(folder)
    if not names:
        raise BadInput(f"{folder} has no folders in it: each class of images wants one, named for the class")
    return names


def folders_in(folder: Path) -> list[str]:
    """The sorted names of the folders in `folder`; raises BadInput where it is no folder or cannot be read."""
    try:
        return sorted(entry.name for entry in os.scandir(folder) if entry.is_dir())
    except FileNotFoundError:
        raise BadInput(f"there is no folder {folder}") from None
    except OSError as error:
        raise _unreadable(folder, error) from error


def image_files(folder: Path) -> Iterator[str]:
    """The image files at any depth below `folder`, in torchvision's order; symbolic links are followed.

    Raises BadInput for a folder below it that cannot be read, which os.walk alone would pass over.
    """
    for place, _, names in sorted(os.walk(folder, followlinks=True, onerror=_refuse)):
        for name in sorted(names):
            if name.lower().endswith(SUFFIXES):
                yield str(Path(place, name))


def _refuse(error: OSError) -> None:
    raise _unreadable(error.filename, error) from error


def _unreadable(folder: object, error: OSError) -> BadInput:
    return BadInput(f"{folder} cannot be read as a folder: {error.strerror}")


def read(path: Path) -> bytes:
    """The bytes of a file; raises BadInput with the system's reason."""
    try:
        return read_bytes(path, LARGEST)
    except OSError as error:
        raise BadInput(f"{path} cannot be read: {error.strerror}") from error
