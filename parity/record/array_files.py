"""Arrays out of files that anybody may have written: what a header says is checked before that much is allocated.

NumPy allocates what the header of a .npy says, whatever there is; a member of an .npz may be a thousand times as large
as its compressed bytes; and arrays of Python objects are pickles, which are not read.
"""

from __future__ import annotations

import math
import os
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np
from safetensors.numpy import load_file

from ...errors import BadInput
from ...migrate.checkpoint.formats.pth_reader import directory
from ...migrate.checkpoint.formats.safetensors_file import read_header

FREE = 128 << 20  # bytes that the arrays of a file may take, however small it is
TIMES = 8  # and for each of the file's bytes: token numbers compress so
MOST_ARRAYS = 20_000
HEADERS = {(1, 0): np.lib.format.read_array_header_1_0, (2, 0): np.lib.format.read_array_header_2_0}

Widened = Callable[[np.dtype[Any]], int]  # the bytes that an element is going to take


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
    file.read(1)  # at its end, a zip's member is compared with its checksum
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

    widened: what an element takes once the caller has brought it to its own dtype. Raises BadInput for more than
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
    """The arrays of a safetensors file by name; as read_npz, and raises what safetensors raises."""
    header = read_header(file, str(path))
    total = 0
    for tensor in header.tensors.values():
        try:
            total += math.prod(tensor.shape) * max(widened(np.dtype(tensor.dtype)), tensor.item_size)
        except TypeError:  # a dtype that NumPy does not have, which is refused by whoever wants the array
            total += tensor.nbytes
    _check_total(path, total, os.fstat(file.fileno()).st_size)
    return dict(load_file(path))


def _header(file: BinaryIO, size: int) -> tuple[tuple[int, ...], bool, np.dtype[Any]]:
    """Shape, order and dtype, of an array that fills the rest of the file; raises ValueError."""
    version = np.lib.format.read_magic(file)
    read = HEADERS.get(version)
    if read is None:
        raise ValueError(f"it is of version {version[0]}.{version[1]} of the format")
    shape, in_columns, dtype = read(file)
    if dtype.hasobject:
        raise ValueError("it is of Python objects, which are pickles and are not read")
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
