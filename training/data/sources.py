"""Where a recipe's images come from: photographs, digits, CIFAR, made-up images, or a folder of the user's own.

All but CIFAR and folders need no download. Of scikit-learn only data files are read: importing it takes a second.
"""

from __future__ import annotations

import importlib.util
import io
from dataclasses import dataclass
from pathlib import Path
from typing import Literal, Protocol

import numpy as np
from PIL import Image

from ...errors import BadInput, BadRecipe
from ...input_files import read_text
from ..recipe.check import SYNTHETIC, check_source, synthetic_size
from ..recipe.reader import expanded
from ..recipe.schema import ARRAYS, IN_FOLDERS, Data, Model
from .array_files import check_rows, read_rows
from .image_folder import ImageFolder, class_names
from .sample import Sample, encode, in_steps, picks

SIDE = 32
PIXELS = 3 * SIDE * SIDE
MOST_NAMES = 1 << 16  # bytes of the file of class names
MOST_ROWS = 1_000_000  # of one file, whose labels are held in memory; the sets have at most 50,000
# A PPM's bytes are its pixels after a few words: lossless, nothing to compute, and read by PIL and by MindSpore's
# C++ decoder alike (measured: 21 and 18 microseconds an image, as quick as any other format).
HEADER = b"P6 %d %d 255\n" % (SIDE, SIDE)


@dataclass(frozen=True)
class Layout:
    """How one of the two data sets is stored in its folder.

    A file has rows of one size: the label (CIFAR-100: the coarse, then the fine one), then 3 x 32 x 32 pixels, plane by
    plane. The label that counts is the last byte before the pixels.
    """

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
    """The images of CIFAR-10 or CIFAR-100, in the order of their files; pixels are read when needed.

    training: the training files, otherwise the test file. Class names come from the file of names if it exists, and are
    numbers otherwise.
    Raises BadInput for a file that is missing, is no whole number of rows, or has a label that the data set does not.
    """

    mode: Literal["RGB", "L"] = "RGB"

    def __init__(self, folder: Path, layout: Layout, *, training: bool) -> None:
        self.name = f"{layout.title} in {folder}"
        self.row = layout.label_bytes + PIXELS
        try:
            self.files = [_file_in(folder, name, layout) for name in (layout.training if training else layout.test)]
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
            raise BadInput(f"{file} has become shorter: row {row} is no longer complete")
        data = HEADER + pixels.reshape(3, SIDE, SIDE).transpose(1, 2, 0).tobytes()
        return Sample(data, int(self.labels[index]), f"{file.name} row {row}")


def _file_in(folder: Path, name: str, layout: Layout) -> Path:
    """The file of this name in the folder; raises BadInput with what people usually have instead."""
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
    """The labels of a file, int32 (N,), with every check that is possible on the file."""
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


CLASSES = tuple("0123456789")
DIGITS_SIDE = 8
DARKEST = 16  # the file has counts of ink in 4 x 4 dots: 0 to 16
TRAINING = (
    1437  # rows of digits:train, four fifths as scikit-learn's own example splits them; the last 360 are the test
)
PARTS = {"": slice(None), "train": slice(TRAINING), "test": slice(TRAINING, None)}


class Digits:
    """The digits in the order of scikit-learn's file, as lossless grey PNGs with the digit as label.

    part: '' for all 1797, 'train' for the first 1437, 'test' for the last 360.
    """

    classes = CLASSES
    mode: Literal["RGB", "L"] = "L"

    def __init__(self, part: str = "") -> None:
        self.name = f"digits:{part}" if part else "the digits"
        table = np.loadtxt(scikit_learn_file("data/digits.csv.gz"), delimiter=",", dtype=np.int64)
        self.rows = np.arange(len(table))[PARTS[part]]
        table = table[PARTS[part]]
        self.grey = np.round(table[:, :-1] * (255 / DARKEST)).astype(np.uint8).reshape(-1, DIGITS_SIDE, DIGITS_SIDE)
        self.labels = table[:, -1].astype(np.int32)

    def __len__(self) -> int:
        return len(self.rows)

    def __getitem__(self, index: int) -> Sample:
        data = encode(Image.fromarray(self.grey[index]), "PNG")
        return Sample(data, int(self.labels[index]), f"digit {self.rows[index]}", mode="L")


FILES = ("china.jpg", "flower.jpg")
COUNT = 64  # crops of the source 'photographs' by default
SMALLEST_SIDE = 256
QUALITY = 95


def scikit_learn_file(relative: str) -> Path:
    """The path of a file inside scikit-learn's `datasets`; raises BadInput where it is not installed."""
    found = importlib.util.find_spec("sklearn")
    path = Path(found.origin).parent / "datasets" / relative if found and found.origin else None
    if path is None or not path.is_file():
        raise BadInput(f"scikit-learn's {relative} is needed and missing: pip install scikit-learn")
    return path


class Photographs:
    """`count` different crops, alternately of the two photographs, each a JPEG; the same `seed` gives the same bytes.

    The sides of a crop are drawn separately between `size` and the height of its photograph (427), so that a resize has
    fractions to round and a centre crop has odd margins. The labels are 0, 1, 2, … modulo `num_classes`: they have
    nothing to do with the images. A crop is cut when it is needed.
    Raises BadInput if `size` is greater than the photographs.
    """

    mode: Literal["RGB", "L"] = "RGB"

    def __init__(
        self, count: int = COUNT, size: int = SMALLEST_SIDE, *, seed: int = 0, num_classes: int = 1000
    ) -> None:
        self.name = "the photographs"
        self.photographs = [Image.open(io.BytesIO(scikit_learn_file(f"images/{name}").read_bytes())) for name in FILES]
        for photograph in self.photographs:
            photograph.load()  # now, because loading fails when several threads begin it at once
        self.classes = tuple(str(label) for label in range(num_classes))
        self.labels = np.arange(count, dtype=np.int32) % num_classes
        self.boxes = self._boxes(count, size, seed)

    def __len__(self) -> int:
        return len(self.boxes)

    def __getitem__(self, index: int) -> Sample:
        index = range(len(self))[index]
        which, (left, top, width, height) = index % len(FILES), self.boxes[index]
        crop = self.photographs[which].crop((left, top, left + width, top + height))
        name = f"{FILES[which]} {width}x{height} at {left},{top}"
        return Sample(encode(crop, "JPEG", quality=QUALITY), int(self.labels[index]), name)

    def _boxes(self, count: int, size: int, seed: int) -> list[tuple[int, int, int, int]]:
        """Left, top, width and height of every crop; the first ones do not depend on how many there are."""
        generator = np.random.default_rng(seed)
        boxes = []
        for index in range(count):
            photograph, name = self.photographs[index % len(FILES)], FILES[index % len(FILES)]
            largest = min(photograph.size)
            if size > largest:
                raise BadInput(f"crops of {size} pixels do not fit {name}, which is {largest} pixels high")
            width, height = (int(side) for side in generator.integers(size, largest + 1, 2))
            left = int(generator.integers(0, photograph.width - width + 1))
            top = int(generator.integers(0, photograph.height - height + 1))
            boxes.append((left, top, width, height))
        return boxes


def crops(count: int, size: int = SMALLEST_SIDE, *, seed: int, num_classes: int = 1000) -> list[Sample]:
    """The crops of Photographs, all of them at once."""
    source = Photographs(count, size, seed=seed, num_classes=num_classes)
    return [source[index] for index in range(count)]


BLOCKS = 4  # the pattern has 4 x 4 blocks of colour
NOISE = 96  # of 255, to either side
_PATTERNS, _TRAINING, _TEST = range(3)  # which kind of draw, as part of the key


class Synthetic:
    """`count` images of `side` x `side` pixels, labels 0, 1, 2, … modulo `num_classes`, as lossless PPMs.

    An image is its class's pattern, seen through noise of its own. Everything is drawn from fixed keys: the same
    image always has the same bytes. training: training and test images differ, with the same classes.
    """

    mode: Literal["RGB", "L"] = "RGB"

    def __init__(self, count: int, side: int, *, num_classes: int, training: bool) -> None:
        self.name = "the synthetic images"
        self.side = side
        self.stream = _TRAINING if training else _TEST
        self.classes = tuple(str(label) for label in range(num_classes))
        self.labels = np.arange(count, dtype=np.int32) % num_classes
        generator = np.random.Generator(np.random.Philox(key=_PATTERNS))
        self.patterns = generator.integers(0, 256, (num_classes, BLOCKS, BLOCKS, 3), dtype=np.int16)
        self.blocks = np.arange(side) * BLOCKS // side  # the block of each row and column

    def __len__(self) -> int:
        return len(self.labels)

    def __getitem__(self, index: int) -> Sample:
        index, side = range(len(self))[index], self.side
        generator = np.random.Generator(np.random.Philox(key=self.stream + (index << 8)))
        noise = generator.integers(-NOISE, NOISE + 1, (side, side, 3), dtype=np.int16)
        pattern = self.patterns[self.labels[index]][np.ix_(self.blocks, self.blocks)]
        pixels = np.clip(pattern + noise, 0, 255).astype(np.uint8)
        return Sample(
            b"P6 %d %d 255\n" % (side, side) + pixels.tobytes(), int(self.labels[index]), f"synthetic {index}"
        )


class Arrays:
    """The examples of a file of arrays, which a net takes as they are.

    inputs: each (N, …), float32, whole numbers or bool. labels: (N, …), int64 or float32. classes: by number, where the
    labels are classes of the model: whole numbers, one for each example; empty where they are anything else, or where
    `num_classes` is None. Raises BadInput for any other file.
    """

    def __init__(self, file: Path, num_classes: int | None) -> None:
        self.name = str(file)
        self.inputs, self.labels = read_rows(file)
        classes = num_classes if self.labels.ndim == 1 and self.labels.dtype.kind == "i" else None
        self.classes = tuple(str(label) for label in range(classes or 0))

    def __len__(self) -> int:
        return len(self.labels)

    def rows(self, indices: np.ndarray) -> tuple[tuple[np.ndarray, ...], np.ndarray]:
        """The inputs and the labels of these examples."""
        return tuple(each[indices] for each in self.inputs), self.labels[indices]


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


# sources that have separate test images under the same name
WITH_TEST_IMAGES = ("cifar10:", "cifar100:", SYNTHETIC)


def open_source(source: str, num_classes: int, *, training: bool) -> Source:
    """The images that `source` names, for a model of `num_classes` classes.

    source: 'photographs' (64 crops), 'digits', 'digits:train' (the first 1437), 'digits:test' (the last 360),
    'synthetic[:COUNT[xSIDE]]', 'folder:PATH', 'cifar10:PATH' or 'cifar100:PATH'. training: CIFAR's training files
    rather than its test file, other synthetic images, and a folder may have no class without images; the other
    sources are the same in either case.

    Raises BadRecipe for another source, or where its labels do not fit the model, and BadInput where the images are
    missing or all of them are damaged.
    """
    opened = _open(source, num_classes, training)
    if len(opened.classes) > num_classes:
        count = len(opened.classes)
        raise BadRecipe(
            f"{opened.name}: {count} classes, and the model has only {num_classes}: give it num_classes: {count}"
        )
    return opened


def open_sources(data: Data, model: Model) -> tuple[Source | Arrays, Source | Arrays | None]:
    """The training data, and the validation data, if there are any.

    Raises what open_source raises; BadInput for a source without images, a label that is no class of the model (its
    loss would read outside the logits), validation images of other classes, and arrays of another kind.
    """
    if data.of_arrays:
        return _open_arrays(data, model)
    num_classes = model.num_classes
    training = open_source(data.source, num_classes, training=True)
    _check_labels(data.source, training, num_classes)
    if len(training.classes) < 2:
        raise BadInput(f"{training.name} has 1 class; telling images apart needs at least two")
    if data.validation is None:
        return training, None
    validation = open_source(data.validation, num_classes, training=False)
    _check_labels(data.validation, validation, num_classes)
    if tuple(validation.classes) != tuple(training.classes):
        raise BadInput(_other_classes(training, validation))
    return training, validation


def open_arrays(source: str, model: Model) -> Arrays:
    """The examples of `arrays:FILE`. Raises BadInput for any other file, and for a label that is no class."""
    opened = Arrays(expanded(Path(source.removeprefix(ARRAYS))), model.known_classes)
    if opened.classes:
        _check_labels(source, opened, len(opened.classes), "row")
    return opened


def _open_arrays(data: Data, model: Model) -> tuple[Arrays, Arrays | None]:
    training = open_arrays(data.source, model)
    if data.validation is None:
        return training, None
    validation = open_arrays(data.validation, model)
    kinds = [[str(array.dtype) for array in (*one.inputs, one.labels)] for one in (training, validation)]
    if kinds[0] != kinds[1]:
        words = [", ".join(kind) for kind in kinds]
        raise BadInput(
            f"{validation.name} has the arrays {words[1]}, and the training data have {words[0]}: give it the same"
        )
    return training, validation


def _check_labels(name: str, source: Source | Arrays, classes: int, what: str = "image") -> None:
    labels = np.asarray(source.labels)
    if not labels.size:
        raise BadInput(f"{name} has no images")
    outside = np.flatnonzero((labels < 0) | (labels >= classes))
    if len(outside):
        raise BadInput(
            f"{name}: {what} {outside[0]} has label {labels[outside[0]]}, and the model's {classes} classes are 0 to "
            f"{classes - 1} ({len(outside)} of {len(labels)} labels are outside): set model.args.num_classes, or "
            "correct the labels"
        )


def _other_classes(training: Source, validation: Source) -> str:
    """The error for other class names: a label is a position in the sorted names, so accuracy would be of the wrong
    classes."""
    missing, more = set(training.classes) - set(validation.classes), set(validation.classes) - set(training.classes)
    what = f"has no class {min(missing)!r}" if missing else f"has a class {min(more)!r} that training has not"
    if not missing and not more:
        what = "has the classes in another order"
    return (
        f"{validation.name} {what} ({len(validation.classes)} classes, training {len(training.classes)}): labels would "
        "mean different classes; give both the same class folders"
    )


def check_place(source: str) -> None:
    """Make sure that the folder or file exists that a source names, if it names one; images are not looked for.

    Raises BadRecipe for an unknown source, and BadInput.
    """
    check_source(source)
    kind, _, rest = source.partition(":")
    path = expanded(Path(rest))
    if kind == "folder":
        class_names(path)
    elif source.startswith(ARRAYS):
        check_rows(path)
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

    The same arguments give the same samples; only the JPEGs cut from the photographs, of which there are as many as
    needed, may differ by rounding between versions of Pillow's JPEG library. source: one of open_source's, as for
    training. Raises what open_source raises.
    """
    count = batch * steps
    if source == "photographs":
        return in_steps(crops(count, seed=seed, num_classes=num_classes), batch)
    opened = open_source(source, num_classes, training=True)
    return in_steps([opened[index] for index in picks(len(opened), count, seed)], batch)
