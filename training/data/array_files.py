"""Arrays from files that may come from anyone: batches that a user brings, or the whole data that a net trains on.

Sizes in headers are checked before anything is allocated. NumPy allocates what the header of a .npy says, however short
the file is; a member of an .npz may be a thousand times as large as its compressed bytes; and arrays of Python objects
are pickles, which are not read.

A batch file is `.npz` or `.safetensors`:

    images or input, labels                    the same in every step
    input, input.1, input.2, …, labels         several inputs
    images1, labels1, images2, labels2, …      a batch for each step; where there are fewer, they repeat in order

Floating inputs are float32, others (tokens) are whole numbers; labels are whole numbers or float32. The data of a
recipe (`source: arrays:FILE`) are the first or the second of these, with a row for each example.
"""

from __future__ import annotations

import math
import os
import re
import zipfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, BinaryIO, NamedTuple

import numpy as np
from safetensors import SafetensorError
from safetensors.numpy import load_file

from ...errors import BadInput, MsmigrateError
from ...input_files import open_regular
from ...migrate.checkpoint.formats.pth_reader import directory
from ...migrate.checkpoint.formats.safetensors_file import read_header
from ...printable import quoted
from ..recipe.schema import ARRAY_SUFFIXES

FREE = 128 << 20  # bytes that the arrays of any file may take, however small the file
TIMES = 8  # further bytes for each byte of the file: token numbers compress this well
MOST_ARRAYS = 20_000
HEADERS = {(1, 0): np.lib.format.read_array_header_1_0, (2, 0): np.lib.format.read_array_header_2_0}

Widened = Callable[[np.dtype[Any]], int]  # the bytes that an element will take


def read_npy(file: BinaryIO, size: int) -> np.ndarray:
    """The array in a .npy of `size` bytes, of which nothing has been read; raises ValueError."""
    shape, in_columns, dtype = _header(file, size)
    content = bytearray(math.prod(shape) * dtype.itemsize)
    view = memoryview(content)
    at = 0
    while at < len(content):
        got = file.readinto(view[at:])  # type: ignore[attr-defined]
        if not got:
            raise ValueError("it ends within its array")
        at += got
    file.read(1)  # reading to the end of a zip's member makes zipfile check its checksum
    return np.frombuffer(content, dtype).reshape(shape, order="F" if in_columns else "C")


def npz_headers(file: BinaryIO, path: Path) -> dict[str, tuple[np.dtype[Any], tuple[int, ...]]]:
    """Dtype and shape of each array of an .npz, by name, without its numbers; raises as read_npz does."""
    directory(file, str(path), MOST_ARRAYS)
    found = {}
    with zipfile.ZipFile(file) as archive:
        for entry in archive.infolist():
            if entry.compress_type not in (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED):
                raise ValueError("its members are compressed in a way that NumPy does not write")
            if entry.filename in found:  # its numbers would be counted once, and read twice
                raise ValueError(f"it has two arrays {entry.filename}")
            with archive.open(entry) as member:
                shape, _, dtype = _header(member, entry.file_size)  # type: ignore[arg-type]
            found[entry.filename] = dtype, shape
    return {name.removesuffix(".npy"): header for name, header in found.items()}


def safetensors_headers(file: BinaryIO, path: Path) -> dict[str, tuple[str, tuple[int, ...]]]:
    """The name of the dtype, and the shape, of each array of a safetensors file; raises as read_safetensors does."""
    tensors = read_header(file, str(path)).tensors
    return {name: (tensor.dtype, tuple(tensor.shape)) for name, tensor in tensors.items()}


def read_npz(file: BinaryIO, path: Path, widened: Widened) -> dict[str, np.ndarray]:
    """The arrays of an .npz by name.

    widened: the bytes of an element after the caller's conversion to its own dtype. Raises BadInput for more bytes than
    such a file may take, and what zipfile and NumPy raise where it is damaged.
    """
    headers = npz_headers(file, path).values()
    total = sum(math.prod(shape) * max(widened(dtype), dtype.itemsize) for dtype, shape in headers)
    _check_total(path, total, os.fstat(file.fileno()).st_size)
    found = {}
    with zipfile.ZipFile(file) as archive:
        for entry in archive.infolist():
            with archive.open(entry) as member:
                found[entry.filename.removesuffix(".npy")] = read_npy(member, entry.file_size)  # type: ignore[arg-type]
    return found


def read_safetensors(file: BinaryIO, path: Path, widened: Widened) -> dict[str, np.ndarray]:
    """The arrays of a safetensors file by name; like read_npz, and raises what safetensors raises."""
    header = read_header(file, str(path))
    total = 0
    for tensor in header.tensors.values():
        try:
            total += math.prod(tensor.shape) * max(widened(np.dtype(tensor.dtype)), tensor.item_size)
        except TypeError:  # a dtype that NumPy does not have; the array is refused where it is used
            total += tensor.nbytes
    _check_total(path, total, os.fstat(file.fileno()).st_size)
    return dict(load_file(path))


def _header(file: BinaryIO, size: int) -> tuple[tuple[int, ...], bool, np.dtype[Any]]:
    """Shape, order and dtype, of an array that fills the rest of the file; raises ValueError."""
    version = np.lib.format.read_magic(file)
    read = HEADERS.get(version)
    if read is None:
        raise ValueError(f"it has version {version[0]}.{version[1]} of the format")
    shape, in_columns, dtype = read(file)
    if dtype.hasobject:
        raise ValueError("it has Python objects, which are pickles and are not read")
    nbytes, there = math.prod(shape) * dtype.itemsize, size - file.tell()
    if nbytes != there or any(length < 0 for length in shape):
        says = f"{nbytes:,}" if nbytes < 1 << 60 else "absurdly many"
        raise ValueError(f"its header says {says} bytes of {dtype}, and it holds {there:,}")
    return shape, in_columns, dtype


def _check_total(path: Path, total: int, size: int) -> None:
    most = FREE + TIMES * size
    if total > most:
        raise BadInput(
            f"{path}: its arrays take {total / 1e6:,.0f} MB, and a file of {size / 1e6:,.1f} MB may hold "
            f"{most / 1e6:,.0f} MB; save them uncompressed, with numpy.savez or as .safetensors"
        )


INPUT = re.compile(r"(?:images|inputs?)(?P<step>[1-9]\d{0,3})?(?:\.(?P<place>[1-9]\d?))?")
LABELS = re.compile(r"labels(?P<step>[1-9]\d{0,3})?")
WHOLE = re.compile("u?int(8|16|32|64)|bool")
SHOULD = "images (or input, input.1, …) and labels, or images1, labels1, images2, …, one for each step"


class Header(NamedTuple):
    """The header of an array in a file."""

    dtype: str
    shape: tuple[int, ...]


class Step(NamedTuple):
    """The names of a batch's arrays: the inputs', by position, and the labels'."""

    inputs: tuple[str, ...]
    labels: str


def read_batches(path: Path, steps: int) -> tuple[list[tuple[np.ndarray, ...]], list[np.ndarray]]:
    """The inputs and the labels of each of `steps` steps. Raises BadInput naming the file and what it lacks."""
    given, arrays = check_batches(path), _arrays(path)
    turns = [given[i % len(given)] for i in range(steps)]
    inputs = [tuple(_whole(arrays[name]) for name in step.inputs) for step in turns]
    return inputs, [_whole(arrays[step.labels], "ub") for step in turns]


def read_rows(path: Path) -> tuple[tuple[np.ndarray, ...], np.ndarray]:
    """The inputs and the labels of all examples of a file, a row each. Raises BadInput as check_rows does."""
    step, arrays = check_rows(path), _arrays(path)
    return tuple(_whole(arrays[name]) for name in step.inputs), _whole(arrays[step.labels], "ub")


def read_inputs(path: Path) -> tuple[np.ndarray, ...]:
    """The inputs of all examples of a file, a row each; labels may be missing. Raises BadInput."""
    names = check_inputs(path)
    arrays = _arrays(path)
    return tuple(_whole(arrays[name]) for name in names)


def check_inputs(path: Path) -> tuple[str, ...]:
    """The names of the inputs in a file of examples, from its headers alone. Raises BadInput as check_rows does."""
    headers = _headers(path)
    inputs, _ = _numbered(path, headers)
    if [*inputs] != [0]:
        raise BadInput(f"{path}: expected input, input.1, input.2, …, with a row for each example")
    names = _in_order(path, inputs[0])
    _same_rows(path, names, headers)
    return names


def _same_rows(path: Path, names: tuple[str, ...], headers: dict[str, Header]) -> None:
    first, rows = names[0], headers[names[0]].shape[0]
    other = next((name for name in names if headers[name].shape[0] != rows), None)
    if other is not None:
        raise BadInput(
            f"{path}: {other} has {headers[other].shape[0]} rows and {first} {rows}; an example has one in each"
        )


def check_rows(path: Path) -> Step:
    """The names of the inputs and the labels in a file of examples, from its headers alone.

    Raises BadInput naming the file and what it lacks.
    """
    given, headers = check_batches(path), _headers(path)
    if len(given) > 1:
        raise BadInput(
            f"{path}: has {len(given)} batches; the data of a recipe are one array of all rows: images, labels"
        )
    step = given[0]
    _same_rows(path, (step.labels, *step.inputs), headers)
    return step


def check_batches(path: Path) -> list[Step]:
    """The names of the batches in a file, from the headers of its arrays alone: no numbers are read.

    Raises BadInput naming the file and what it lacks.
    """
    inputs, labels = _numbered(path, _headers(path))
    if not inputs or inputs.keys() != labels.keys():
        lacks = sorted(inputs.keys() ^ labels.keys())
        which = f"step {lacks[0]} has only one of them" if lacks and lacks[0] else "it lacks one of them"
        raise BadInput(f"{path}: {which}; expected {SHOULD}")
    if 0 in inputs and len(inputs) > 1:
        raise BadInput(f"{path}: has a batch for every step and one for step {max(inputs)}; number all or none")
    return [Step(_in_order(path, inputs[step]), labels[step]) for step in sorted(inputs)]


def _numbered(path: Path, headers: dict[str, Header]) -> tuple[dict[int, dict[int, str]], dict[int, str]]:
    """The names of the inputs, by step (0: all steps) and position; those of the labels, by step."""
    inputs: dict[int, dict[int, str]] = {}
    labels: dict[int, str] = {}
    for name, header in headers.items():
        _check(path, name, header)
        if found := INPUT.fullmatch(name):
            place = inputs.setdefault(int(found["step"] or 0), {})
            number = int(found["place"] or 0)
            if number in place:
                raise BadInput(f"{path}: {name} means the same as another name")
            place[number] = name
        elif found := LABELS.fullmatch(name):
            labels[int(found["step"] or 0)] = name
    return inputs, labels


def _in_order(path: Path, places: dict[int, str]) -> tuple[str, ...]:
    if sorted(places) != list(range(len(places))):
        raise BadInput(f"{path}: the inputs are numbered {sorted(places)}; expected input, input.1, input.2, …")
    return tuple(places[i] for i in range(len(places)))


def _headers(path: Path) -> dict[str, Header]:
    """Name -> dtype and shape of everything in the file."""
    with _reading(path) as file:
        read = safetensors_headers if path.suffix == ".safetensors" else npz_headers
        return {name: Header(str(dtype), shape) for name, (dtype, shape) in read(file, path).items()}


def _arrays(path: Path) -> dict[str, Any]:
    with _reading(path) as file:
        return (read_safetensors if path.suffix == ".safetensors" else read_npz)(file, path, _element)


@contextmanager
def _reading(path: Path) -> Iterator[BinaryIO]:
    """The file, opened. Raises BadInput where it is no batch, and for any error while it is read."""
    if path.suffix not in ARRAY_SUFFIXES:
        raise BadInput(f"{path}: a batch is a file of {' or '.join(ARRAY_SUFFIXES)}, or folder:PATH")
    try:
        with open_regular(path) as file:
            yield file
    except MsmigrateError:
        raise
    except FileNotFoundError:
        raise BadInput(f"there is no file {path}") from None
    except OSError as error:
        raise BadInput(f"{path}: cannot be read: {error.strerror or error}") from None
    except (ValueError, KeyError, TypeError, SafetensorError, zipfile.BadZipFile, EOFError, MemoryError) as e:
        raise BadInput(f"{path}: cannot be read: {' '.join(str(e).split())[:300]}") from None
    except Exception as error:  # zlib and NumPy's header parser raise classes of their own
        raise BadInput(f"{path}: is damaged: {type(error).__name__}: {' '.join(str(error).split())[:200]}") from None


def _element(dtype: np.dtype[Any]) -> int:
    """The bytes that an element takes after the checks: unsigned whole numbers become int64."""
    return 8 if dtype.kind in "ub" else dtype.itemsize


def _check(path: Path, name: str, header: Header) -> None:
    if not (INPUT.fullmatch(name) or LABELS.fullmatch(name)):
        raise BadInput(f"{path}: has {quoted(name)}; expected {SHOULD}")
    if not WHOLE.fullmatch(header.dtype) and header.dtype != "float32":
        raise BadInput(f"{path}: {name} is {header.dtype}; save it as float32 or int64")
    if not header.shape or 0 in header.shape:
        raise BadInput(f"{path}: {name} is empty or a single number; expected a batch")


def _whole(array: np.ndarray, kinds: str = "u") -> np.ndarray:
    """The array, as int64 if its numbers are of these kinds; an input that is a mask stays one."""
    return np.ascontiguousarray(array.astype(np.int64) if array.dtype.kind in kinds else array)
