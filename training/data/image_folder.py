"""A tree with a folder for each class: reading it, splitting it into train/ and val/, measuring its channels.

Which image goes where follows from the seed and the image's own path below the tree: the same on every machine, and an
image that is added later moves few of the others.

Mean and standard deviation come from one pass without rounding: every image adds its histogram, whole numbers, so that
neither the order nor the number of images costs a digit; what is rounded is only the result.
https://pytorch.org/vision/stable/generated/torchvision.transforms.Normalize.html takes the two in the scale of
ToTensor, 0 to 1.
"""

from __future__ import annotations

import hashlib
import math
import os
import shutil
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from fractions import Fraction
from pathlib import Path
from typing import Literal

import numpy as np
from PIL import Image

from ...atomic_files import folder_beside
from ...errors import BadDestination, BadInput
from ...input_files import read_bytes
from .sample import Sample, decode

SUFFIXES = (".bmp", ".jpeg", ".jpg", ".pgm", ".png", ".ppm", ".tif", ".tiff", ".webp")  # torchvision's IMG_EXTENSIONS


LARGEST = 1 << 28  # bytes of an image's file


class ImageFolder:
    """The images of a tree with a folder for each class, in the order of torchvision's ImageFolder.

    A label is the position of the class folder's name in the sorted names. Files are listed here and read when needed.
    allow_empty: a class may have no images, as for validation, and keeps its number all the same.
    Raises BadInput for a folder that does not exist, has no classes or no images, or has a class without images.
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
        raise BadInput(f"{folder} has no folders in it: each class of images needs one, named for the class")
    return names


def folders_in(folder: Path) -> list[str]:
    """The sorted names of the folders in `folder`; raises BadInput where that is no folder or cannot be read."""
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


TRAINING, VALIDATION = "train", "val"
PARTS = {"train", "training", "val", "valid", "validation", "test"}
Way = Literal["copy", "link", "symlink"]


@dataclass(frozen=True)
class Split:
    """A split: for each class the images, by their paths below the tree, for train/ and for val/.

    others: how many files of the tree are not images of a class, and are left out.
    """

    folder: Path
    training: dict[str, list[str]]
    validation: dict[str, list[str]]
    others: int

    @property
    def alone(self) -> list[str]:
        """The classes with a single image, which therefore have none in val/."""
        return [name for name, images in self.validation.items() if not images]

    def images(self) -> Iterator[tuple[str, str]]:
        """(train or val, path below the tree) of every image."""
        for part, classes in ((TRAINING, self.training), (VALIDATION, self.validation)):
            for images in classes.values():
                yield from ((part, image) for image in images)


def plan(folder: Path, share: float, seed: int) -> Split:
    """Decide for every image of the tree whether it goes into val/ (the given share of each class) or into train/.

    A class of two images or more has at least one in either part; a single image goes into train/. Raises BadInput for
    a tree that ImageFolder refuses, and for one that has been split already.
    """
    source = ImageFolder(folder)
    if {name.lower() for name in source.classes} <= PARTS:
        raise BadInput(f"{folder} is split already: its folders are {', '.join(source.classes)}, not classes")
    by_class: dict[str, list[str]] = {name: [] for name in source.classes}
    for file, label in zip(source.files, source.labels.tolist(), strict=True):
        by_class[source.classes[label]].append(Path(file).relative_to(folder).as_posix())
    training, validation = {}, {}
    for name, images in by_class.items():
        training[name], validation[name] = _parts(images, share, seed)
    everything = sum(len(names) for _, _, names in os.walk(folder, followlinks=True))
    return Split(folder, training, validation, everything - len(source))


def destination(folder: Path, into: Path | None) -> Path:
    """Where the split goes, links resolved: `into`, or DIR-split next to DIR.

    Raises BadDestination where something exists there already, where it is inside the tree or around it, and where
    nothing can be written.
    """
    try:
        tree = folder.resolve()
        target = (into or tree.with_name(f"{tree.name}-split")).resolve()
        inside, around = target == tree or tree in target.parents, target in tree.parents
        taken = not inside and not around and target.exists() and (not target.is_dir() or any(target.iterdir()))
        homeless = not target.parent.is_dir()
    except OSError as error:
        raise BadDestination(f"cannot write {into or folder}: {error.strerror}") from error
    if inside:
        raise BadDestination(f"{target} is inside {folder}, which must not be changed: choose --into another folder")
    if around:
        raise BadDestination(f"{target} has {folder} inside it: choose --into another folder")
    if taken:
        raise BadDestination(f"{target} exists already and is not replaced: choose --into another folder")
    if homeless:
        raise BadDestination(f"the folder of {target} does not exist; create it first")
    if not os.access(target.parent, os.W_OK | os.X_OK):
        raise BadDestination(f"cannot write {target}: no permission in its folder")
    return target


def carry_out(split: Split, target: Path, how: Way, on_progress: Callable[[int, int], None] | None = None) -> None:
    """Make `target` with train/ and val/ in it; it appears whole or, whatever goes wrong, not at all.

    how: copy the files (with their times), hard-link them, or make symbolic links with absolute paths. on_progress:
    called with the images done and all of them. Raises BadDestination with the system's reason.
    """
    images = list(split.images())
    tree = split.folder.resolve()
    try:
        if how == "copy":
            _refuse_too_much(tree, images, target)
        with folder_beside(target) as partial:
            for part in (TRAINING, VALIDATION):
                for name in split.training:  # in val/ even an empty folder, else the classes after it get other numbers
                    (partial / part / name).mkdir(parents=True)
            for done, (part, image) in enumerate(images, 1):
                place = partial / part / image
                place.parent.mkdir(parents=True, exist_ok=True)
                _put(tree / image, place, how)
                if on_progress is not None:
                    on_progress(done, len(images))
            partial.rename(target)  # replaces an empty folder, and nothing else
    except OSError as error:
        why = error.strerror or str(error)
        if how == "link":
            why += "; where hard links do not reach, use --how copy or --how symlink"
        raise BadDestination(f"cannot make {target}: {why}; nothing was left behind") from error


def _put(source: Path, place: Path, how: Way) -> None:
    if how == "copy":
        shutil.copy2(source, place)
    elif how == "link":
        place.hardlink_to(source.resolve())  # to the file itself, where the tree has a symbolic link
    else:
        place.symlink_to(source)


def _refuse_too_much(tree: Path, images: list[tuple[str, str]], target: Path) -> None:
    """Raise BadDestination where the disk has too little space for a copy: before minutes of copying, not after."""
    wanted = sum((tree / image).stat().st_size for _, image in images)
    free = shutil.disk_usage(target.parent).free
    if wanted > free:
        raise BadDestination(
            f"copying takes {wanted / 1e9:.1f} GB and {target.parent} has {free / 1e9:.1f} GB free: "
            "use --how link or --how symlink, or choose --into another disk"
        )


def _parts(images: list[str], share: float, seed: int) -> tuple[list[str], list[str]]:
    """The images of one class for train/ and for val/, each in the order they came in."""
    wanted = min(max(int(len(images) * share + 0.5), 1), len(images) - 1)
    chosen = set(sorted(images, key=lambda image: _draw(seed, image))[:wanted])
    return [image for image in images if image not in chosen], [image for image in images if image in chosen]


def _draw(seed: int, image: str) -> bytes:
    """A number drawn for the image, by which the images of its class are sorted."""
    return hashlib.sha256(f"{seed}\0{image}".encode("utf-8", "surrogateescape")).digest()


CHANNELS = 3
WHITE = 255  # the largest value of a channel
AT_ONCE = 256  # images that the threads are given at a time, so that not all of a million are queued
Channels = tuple[float, float, float]
VALUES = np.arange(WHITE + 1) / WHITE


@dataclass(frozen=True)
class Corrupt:
    """An image that cannot be read or decoded, by its path below the folder, and why."""

    file: str
    reason: str


@dataclass(frozen=True)
class Statistics:
    """The result of `measure`.

    mean, std: of red, green and blue, 0 to 1, each pixel of each image counted once; std divides by the number of
    pixels. std_of_images: the mean over all images of each one's own std, as ImageNet's 0.229, 0.224 and 0.225 most
    likely are (https://github.com/pytorch/vision/pull/1965); it leaves out how images differ. width, height: smallest
    and largest, as the files have them. folders: number of images by top-level folder; '.' for those in none. pixels:
    as measured, after resizing.
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
    total = np.zeros(CHANNELS * (WHITE + 1), np.int64)
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
    counts = total.reshape(CHANNELS, WHITE + 1)
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
    folders_in(folder)  # raises its error where it is no folder
    found = [Path(file).relative_to(folder).as_posix() for file in image_files(folder)]
    if not found:
        raise BadInput(f"there are no images below {folder}")
    return found


def _each(
    folder: Path, files: list[str], resize: int | None, on_progress: Callable[[int, int], None] | None
) -> Iterator[tuple[str, _Measured | Corrupt]]:
    """The measurements of each file, in order; decoding releases the interpreter lock, so threads share the work."""

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
        # torchvision's _compute_resized_output_size: the longer side is rounded down to a whole number
        short = min(size)
        width, height = (resize if side == short else int(resize * side / short) for side in size)
        image = image.resize((width, height), Image.Resampling.BILINEAR)
    return _Measured(np.array(image.histogram(), np.int64), size)


def _deviations(histogram: np.ndarray) -> np.ndarray:
    """The population standard deviation of each channel of one image, float64 (3,), 0 to 1."""
    counts = histogram.reshape(CHANNELS, WHITE + 1)
    shares = counts / counts.sum(axis=1, keepdims=True)
    centred = VALUES - (shares @ VALUES)[:, None]
    return np.sqrt((shares * centred * centred).sum(axis=1))


def _moments(counts: list[int]) -> tuple[float, float]:
    """Mean and population standard deviation, 0 to 1, of values given as counts of 0 to 255."""
    number = sum(counts)
    first = sum(value * count for value, count in enumerate(counts))
    second = sum(value * value * count for value, count in enumerate(counts))
    variance = Fraction(number * second - first * first, (number * WHITE) ** 2)
    return float(Fraction(first, number * WHITE)), math.sqrt(variance)
