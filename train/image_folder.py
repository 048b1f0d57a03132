"""A user's own images: one folder with a folder for each class, as torchvision's ImageFolder reads it."""

from __future__ import annotations

from pathlib import Path

from ..errors import BadInput, BadRecipe
from .sample import Sample, picks

SUFFIXES = frozenset({".jpg", ".jpeg", ".png", ".ppm", ".bmp", ".pgm", ".tif", ".tiff", ".webp"})


def images(folder: Path, count: int, *, seed: int, num_classes: int) -> list[Sample]:
    """`count` images of `folder` in an order drawn from `seed`; all of them come once before one comes twice.

    A label is the place of the class folder's name in the sorted names. Raises BadInput for a folder without classes,
    a class without images or a file that cannot be read, and BadRecipe where a model has too few classes.
    """
    if not folder.is_dir():
        raise BadInput(f"there is no folder {folder}")
    classes = sorted(entry.name for entry in folder.iterdir() if entry.is_dir())
    if not classes:
        raise BadInput(f"{folder} has no folders in it: each class of images wants one, named for the class")
    if len(classes) > num_classes:
        raise BadRecipe(f"{folder} has {len(classes)} classes and the model only {num_classes}")
    labelled = [(path, label) for label, name in enumerate(classes) for path in _files(folder / name)]
    chosen = [labelled[index] for index in picks(len(labelled), count, seed)]
    return [Sample(_read(path), label, path.relative_to(folder).as_posix()) for path, label in chosen]


def _files(folder: Path) -> list[Path]:
    """The image files at any depth below the folder of one class, sorted."""
    found = sorted(path for path in folder.rglob("*") if path.suffix.lower() in SUFFIXES and path.is_file())
    if not found:
        raise BadInput(f"{folder} has no images in it (looked for {', '.join(sorted(SUFFIXES))})")
    return found


def _read(path: Path) -> bytes:
    try:
        return path.read_bytes()
    except OSError as error:
        raise BadInput(f"{path} cannot be read: {error.strerror}") from error
