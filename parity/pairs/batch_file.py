"""The batches that a user brings: `.npz` or `.safetensors`, read without running anything that stands in them.

    images or input, labels                    the same in every step
    input, input.1, input.2, …, labels         several inputs
    images1, labels1, images2, labels2, …      a batch for each step; where there are fewer, they come again in turn

Floating inputs are float32, others (tokens) are whole numbers; labels are whole numbers or float32.
"""

from __future__ import annotations

import re
import zipfile
from pathlib import Path
from typing import Any

import numpy as np
from safetensors import SafetensorError

from ...errors import BadInput, MsmigrateError
from ...input_files import open_regular
from ..array_files import read_npz, read_safetensors

INPUT = re.compile(r"(?:images|inputs?)(?P<step>[1-9]\d{0,3})?(?:\.(?P<place>[1-9]\d?))?")
LABELS = re.compile(r"labels(?P<step>[1-9]\d{0,3})?")
KINDS = ".npz or .safetensors"
SHOULD = "images (or input, input.1, …) and labels, or images1, labels1, images2, …, one for each step"


def read_batches(path: Path, steps: int) -> tuple[list[tuple[np.ndarray, ...]], list[np.ndarray]]:
    """The inputs and the labels of each of `steps` steps. Raises BadInput naming the file and what it lacks."""
    inputs: dict[int, dict[int, np.ndarray]] = {}
    labels: dict[int, np.ndarray] = {}
    for name, array in _arrays(path).items():
        if found := INPUT.fullmatch(name):
            place = inputs.setdefault(int(found["step"] or 0), {})
            number = int(found["place"] or 0)
            if number in place:
                raise BadInput(f"{path}: {name} says again what another name says")
            place[number] = _checked(path, name, array, floats=("float32",))
        elif found := LABELS.fullmatch(name):
            labels[int(found["step"] or 0)] = _checked(path, name, array, floats=("float32",))
        else:
            raise BadInput(f"{path}: there is {name!r}; expected {SHOULD}")
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
        given.append((tuple(places[i] for i in range(len(places))), labels[step]))
    turns = [given[i % len(given)] for i in range(steps)]
    return [each for each, _ in turns], [each for _, each in turns]


def _arrays(path: Path) -> dict[str, Any]:
    if path.suffix not in (".npz", ".safetensors"):
        raise BadInput(f"{path}: a batch is a file of {KINDS}, or folder:PATH")
    read = read_safetensors if path.suffix == ".safetensors" else read_npz
    try:
        with open_regular(path) as file:
            return read(file, path, _element)
    except MsmigrateError:
        raise
    except FileNotFoundError:
        raise BadInput(f"there is no file {path}") from None
    except (OSError, ValueError, KeyError, TypeError, SafetensorError, zipfile.BadZipFile, EOFError, MemoryError) as e:
        raise BadInput(f"{path}: cannot be read: {' '.join(str(e).split())[:300]}") from None
    except Exception as error:  # zlib and numpy's header parser have their own
        raise BadInput(f"{path}: is damaged: {type(error).__name__}: {' '.join(str(error).split())[:200]}") from None


def _element(dtype: np.dtype[Any]) -> int:
    """The bytes that an element takes once it is checked: those of whole numbers without a sign become int64."""
    return 8 if dtype.kind in "ub" else dtype.itemsize


def _checked(path: Path, name: str, array: Any, floats: tuple[str, ...]) -> np.ndarray:
    if not isinstance(array, np.ndarray) or (array.dtype.kind not in "iub" and str(array.dtype) not in floats):
        raise BadInput(
            f"{path}: {name} is {getattr(array, 'dtype', type(array).__name__)}; save it as float32 or int64"
        )
    if not array.size or not array.ndim:
        raise BadInput(f"{path}: {name} is empty or a single number; expected a batch")
    if array.dtype.kind in "ub":
        array = array.astype(np.int64)
    return np.ascontiguousarray(array)
