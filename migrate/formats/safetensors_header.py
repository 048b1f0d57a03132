"""The header of a safetensors file, which says where every tensor stands; nothing in it is believed unchecked.

    8 bytes    the length of the header, as a little-endian integer
    header     {"__metadata__": {str: str}, NAME: {"dtype": …, "shape": […], "data_offsets": [begin, end]}, …}
    data       the tensors, one after another without holes; offsets count from here

The header begins with a brace and may end in spaces.
"""

from __future__ import annotations

import os
import struct
from collections.abc import Mapping
from typing import Any, BinaryIO, NamedTuple

from ...errors import BadCheckpoint
from ...input_files import json_value
from .contents import (
    ITEM_SIZES,
    MAX_DIM,
    MAX_RANK,
    ByteRange,
    Tensor,
    check_count,
    check_name,
    product,
    read_at,
    row_major,
    shown,
)
from .record import MAX_RECORD, unpacked

DTYPES = {  # safetensors' name -> torch's; not those of fewer than 8 bits, of which several share a byte
    "F64": "float64",
    "F32": "float32",
    "F16": "float16",
    "BF16": "bfloat16",
    "F8_E4M3": "float8_e4m3fn",
    "F8_E4M3FNUZ": "float8_e4m3fnuz",
    "F8_E5M2": "float8_e5m2",
    "F8_E5M2FNUZ": "float8_e5m2fnuz",
    "F8_E8M0": "float8_e8m0fnu",
    "C64": "complex64",
    "I64": "int64",
    "I32": "int32",
    "I16": "int16",
    "I8": "int8",
    "U64": "uint64",
    "U32": "uint32",
    "U16": "uint16",
    "U8": "uint8",
    "BOOL": "bool",
}
LENGTH = struct.Struct("<Q")
MAX_HEADER = 40_000_000  # bytes; a tensor takes about 120. (The safetensors library goes up to 100,000,000.)
RECORD = "msmigrate"  # the key in the metadata of what record.py notes


class Header(NamedTuple):
    """What one file says of itself: its tensors, by their full names, those of other kinds, and its metadata."""

    tensors: dict[str, Tensor]
    refused: dict[str, str]
    metadata: dict[str, str]
    record: Mapping[str, Any] | None


def begins(head: bytes) -> bool:
    """Whether a file that begins so is a safetensors file: a length that makes sense, then a brace."""
    return head[8:9] == b"{" and LENGTH.unpack(head[:8])[0] <= MAX_HEADER


def read_header(file: BinaryIO, path: str) -> Header:
    """Read a file's header and check every number in it, contents unread; raises BadCheckpoint."""
    size = os.fstat(file.fileno()).st_size
    head = read_at(file, path, 0, LENGTH.size)
    length = LENGTH.unpack(head)[0] if len(head) == LENGTH.size else 0
    if length > MAX_HEADER:
        raise BadCheckpoint(f"{path}: its header should have {length:,} bytes, and may have {MAX_HEADER:,}")
    start = LENGTH.size + length
    if start > size:
        raise BadCheckpoint(
            f"{path} is a safetensors file that ends in its header, after {size:,} of at least {start:,} bytes; "
            "fetch it again"
        )
    found = _json(read_at(file, path, LENGTH.size, length), path)
    metadata = found.pop("__metadata__", {})
    if type(metadata) is not dict or any(type(value) is not str for value in metadata.values()):
        raise BadCheckpoint(f"{path}: its metadata is not a table of strings")
    check_count(path, len(found))
    tensors: dict[str, Tensor] = {}
    refused: dict[str, str] = {}
    places: list[tuple[int, int, str]] = []
    for name, info in found.items():
        check_name(path, name)
        try:
            begin, end = _offsets(info)
            dtype, shape = _kind(info)
            if dtype in DTYPES:
                tensors[name] = _tensor(DTYPES[dtype], shape, begin, end, start)
            else:
                refused[name] = f"its dtype {shown(dtype)} is none that msmigrate reads"
        except BadCheckpoint as error:
            raise BadCheckpoint(f"{path}: {shown(name)}: {error}") from None
        places.append((begin, end, name))
    _check_places(path, places, size - start)
    noted = metadata.get(RECORD, "")
    if len(noted) > MAX_RECORD:
        raise BadCheckpoint(f"{path}: what an earlier conversion noted in it is damaged")
    return Header(tensors, refused, metadata, unpacked(path, noted))


def _json(content: bytes, path: str) -> dict[str, Any]:
    try:
        return dict(strict_json(content))
    except BadCheckpoint as error:
        raise BadCheckpoint(f"{path}: its header {error}") from None


def strict_json(content: bytes) -> Any:
    """What JSON text means, if it means one thing; raises BadCheckpoint, which says what the text does."""
    try:
        return json_value(content)
    except ValueError as error:
        raise BadCheckpoint(f"is {error}; the file is damaged") from None


def _kind(info: Mapping[str, Any]) -> tuple[str, tuple[int, ...]]:
    dtype, shape = info.get("dtype"), info.get("shape")
    if type(dtype) is not str:
        raise BadCheckpoint("its dtype is no string")
    if type(shape) is not list or any(type(size) is not int for size in shape):
        raise BadCheckpoint("its shape is not a list of integers")
    if len(shape) > MAX_RANK or any(not 0 <= size < MAX_DIM for size in shape):
        raise BadCheckpoint("its shape is negative or absurdly large")
    return dtype, tuple(shape)


def _offsets(info: Any) -> tuple[int, int]:
    if type(info) is not dict:
        raise BadCheckpoint("its description is no JSON object")
    offsets = info.get("data_offsets")
    if type(offsets) is not list or len(offsets) != 2 or any(type(offset) is not int for offset in offsets):
        raise BadCheckpoint("its data_offsets are not two integers")
    begin, end = offsets
    if not 0 <= begin <= end < MAX_DIM:
        raise BadCheckpoint("its data_offsets are negative, turned round or absurdly large")
    return begin, end


def _tensor(dtype: str, shape: tuple[int, ...], begin: int, end: int, start: int) -> Tensor:
    expected = product(shape) * ITEM_SIZES[dtype]
    if expected != end - begin:
        needed = f"{expected:,} bytes" if expected < MAX_DIM else "absurdly many bytes"
        raise BadCheckpoint(f"its shape {shape} in {dtype} needs {needed}, its data_offsets give it {end - begin:,}")
    return Tensor(dtype, shape, row_major(shape), (ByteRange(start + begin, end - begin),))


def _check_places(path: str, places: list[tuple[int, int, str]], size: int) -> None:
    """Raise BadCheckpoint unless the tensors cover the data without holes, each byte once."""
    places.sort()
    end = max((end for _, end, _ in places), default=0)
    if end != size:
        why = "the file was cut short; fetch it again" if end > size else "the rest belongs to no tensor"
        raise BadCheckpoint(f"{path}: its header describes {end:,} bytes of data and it holds {size:,}; {why}")
    at, before = 0, ""
    for begin, end, name in places:
        if begin > at:
            raise BadCheckpoint(f"{path}: a hole in the data before {shown(name)}: bytes {at:,} to {begin:,}")
        if begin < at:
            raise BadCheckpoint(f"{path}: {shown(name)} overlaps {shown(before)}, by {at - begin:,} bytes")
        at, before = end, name
