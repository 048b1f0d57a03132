"""The batches that a user brings: `.npz` or `.safetensors`, read without running anything that stands in them.

    images or input, labels                    the same in every step
    input, input.1, input.2, …, labels         several inputs
    images1, labels1, images2, labels2, …      a batch for each step; where there are fewer, they come again in turn

Floating inputs are float32, others (tokens) are whole numbers; labels are whole numbers or float32.
"""

from __future__ import annotations

import re
import zipfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, BinaryIO, NamedTuple

import numpy as np
from safetensors import SafetensorError

from ...errors import BadInput, MsmigrateError
from ...input_files import open_regular
from ...printable import quoted
from .array_files import npz_headers, read_npz, read_safetensors, safetensors_headers

INPUT = re.compile(r"(?:images|inputs?)(?P<step>[1-9]\d{0,3})?(?:\.(?P<place>[1-9]\d?))?")
LABELS = re.compile(r"labels(?P<step>[1-9]\d{0,3})?")
WHOLE = re.compile("u?int(8|16|32|64)|bool")
KINDS = ".npz or .safetensors"
SHOULD = "images (or input, input.1, …) and labels, or images1, labels1, images2, …, one for each step"


class Header(NamedTuple):
    """What a file says of an array before its numbers."""

    dtype: str
    shape: tuple[int, ...]


class Step(NamedTuple):
    """The names of a batch: of each input, by its position, and of the labels."""

    inputs: tuple[str, ...]
    labels: str


def read_batches(path: Path, steps: int) -> tuple[list[tuple[np.ndarray, ...]], list[np.ndarray]]:
    """The inputs and the labels of each of `steps` steps. Raises BadInput naming the file and what it lacks."""
    given, arrays = check_batches(path), _arrays(path)
    turns = [given[i % len(given)] for i in range(steps)]
    inputs = [tuple(_whole(arrays[name]) for name in step.inputs) for step in turns]
    return inputs, [_whole(arrays[step.labels]) for step in turns]


def check_batch(path: Path) -> None:
    """Make sure that the user's batches are there, in a file or as `folder:PATH`. Raises BadInput."""
    if str(path).startswith("folder:"):
        from ...training.data.sources import check_place

        check_place(str(path))
    else:
        check_batches(path)


def check_batches(path: Path) -> list[Step]:
    """What the batches of a file are called, by the headers of its arrays alone: no numbers are read.

    Raises BadInput naming the file and what it lacks.
    """
    inputs: dict[int, dict[int, str]] = {}
    labels: dict[int, str] = {}
    for name, header in _headers(path).items():
        _check(path, name, header)
        if found := INPUT.fullmatch(name):
            place = inputs.setdefault(int(found["step"] or 0), {})
            number = int(found["place"] or 0)
            if number in place:
                raise BadInput(f"{path}: {name} says again what another name says")
            place[number] = name
        elif found := LABELS.fullmatch(name):
            labels[int(found["step"] or 0)] = name
    if not inputs or inputs.keys() != labels.keys():
        lacks = sorted(inputs.keys() ^ labels.keys())
        which = f"step {lacks[0]} has only one of them" if lacks and lacks[0] else "it lacks one of them"
        raise BadInput(f"{path}: {which}; expected {SHOULD}")
    if 0 in inputs and len(inputs) > 1:
        raise BadInput(f"{path}: has a batch for every step and one for step {max(inputs)}; number all or none")
    given = []
    for step in sorted(inputs):
        places = inputs[step]
        if sorted(places) != list(range(len(places))):
            raise BadInput(f"{path}: the inputs are numbered {sorted(places)}; expected input, input.1, input.2, …")
        given.append(Step(tuple(places[i] for i in range(len(places))), labels[step]))
    return given


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
    """The file, opened. Raises BadInput where it is no batch, and for whatever is raised while it is read."""
    if path.suffix not in (".npz", ".safetensors"):
        raise BadInput(f"{path}: a batch is a file of {KINDS}, or folder:PATH")
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
    except Exception as error:  # zlib and numpy's header parser have their own
        raise BadInput(f"{path}: is damaged: {type(error).__name__}: {' '.join(str(error).split())[:200]}") from None


def _element(dtype: np.dtype[Any]) -> int:
    """The bytes that an element takes once it is checked: those of whole numbers without a sign become int64."""
    return 8 if dtype.kind in "ub" else dtype.itemsize


def _check(path: Path, name: str, header: Header) -> None:
    if not (INPUT.fullmatch(name) or LABELS.fullmatch(name)):
        raise BadInput(f"{path}: there is {quoted(name)}; expected {SHOULD}")
    if not WHOLE.fullmatch(header.dtype) and header.dtype != "float32":
        raise BadInput(f"{path}: {name} is {header.dtype}; save it as float32 or int64")
    if not header.shape or 0 in header.shape:
        raise BadInput(f"{path}: {name} is empty or a single number; expected a batch")


def _whole(array: np.ndarray) -> np.ndarray:
    return np.ascontiguousarray(array.astype(np.int64) if array.dtype.kind in "ub" else array)
