"""Safetensors, header and content, read and written.

    8 bytes    the length of the header, as a little-endian integer
    header     {"__metadata__": {str: str}, NAME: {"dtype": …, "shape": […], "data_offsets": [begin, end]}, …}
    data       the tensors, one after another without holes; offsets count from here

The header begins with a brace and may end in spaces.

Torch's files have `format: pt` in the metadata, MindSpore's `ms`. Where torch's `save_model` left out a tied tensor,
the metadata has its name, and the name of the tensor that holds its bytes.
"""

from __future__ import annotations

import json
import os
import struct
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, BinaryIO, NamedTuple

from ....errors import BadCheckpoint, Unsupported
from ....input_files import json_value
from .byte_copy import Copier, Losses, Progress, copy_content
from .reader import (
    COUNTERS,
    ITEM_SIZES,
    MAX_DIM,
    MAX_RANK,
    MAX_RECORD,
    PARTS,
    ByteRange,
    Checkpoint,
    Piece,
    Source,
    Tensor,
    beside_the_net,
    check_count,
    check_name,
    described,
    packed,
    product,
    read_at,
    row_major,
    shown,
    unpacked,
    wrapper_prefix,
)

DTYPES = {  # safetensors' name -> torch's; without those of fewer than 8 bits, where several elements share a byte
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
RECORD = "msmigrate"  # the key in the metadata under which the record for the way back is


class Header(NamedTuple):
    """The header of one file: its tensors, by their full names, those of other kinds, and its metadata."""

    tensors: dict[str, Tensor]
    refused: dict[str, str]
    metadata: dict[str, str]
    record: Mapping[str, Any] | None


def begins(head: bytes) -> bool:
    """Whether a file with this beginning is a safetensors file: a plausible length, then a brace."""
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
                refused[name] = f"msmigrate does not read its dtype {shown(dtype)}"
        except BadCheckpoint as error:
            raise BadCheckpoint(f"{path}: {shown(name)}: {error}") from None
        places.append((begin, end, name))
    _check_places(path, places, size - start)
    noted = metadata.get(RECORD, "")
    if len(noted) > MAX_RECORD:
        raise BadCheckpoint(f"{path}: the note of an earlier conversion in it is damaged")
    return Header(tensors, refused, metadata, unpacked(path, noted))


def _json(content: bytes, path: str) -> dict[str, Any]:
    try:
        return dict(strict_json(content))
    except BadCheckpoint as error:
        raise BadCheckpoint(f"{path}: its header {error}") from None


def strict_json(content: bytes) -> Any:
    """The value of JSON text, where it is unambiguous; raises BadCheckpoint, whose message says what is wrong."""
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
        raise BadCheckpoint("its data_offsets are negative, reversed or absurdly large")
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


NAMES = {name: short for short, name in DTYPES.items()}  # by torch's name of the dtype
FORMATS = {"torch": "pt", "mindspore": "ms"}  # the value of `format` in the metadata
ALIGNMENT = 64  # bytes; where the data begins
MINDSPORES = (".gamma", ".beta", ".moving_mean", ".moving_variance", ".embedding_table")  # ends of names


class SafetensorsFile(Source):
    """An open `.safetensors`."""

    def __init__(self, path: str, file: BinaryIO) -> None:
        super().__init__(path, [file])

    def header(self) -> Header:
        """What the file holds, with its names unchanged; raises BadCheckpoint."""
        return read_header(self.files[0], self.path)

    def checkpoint(self, key: str | None = None) -> Checkpoint:
        if key is not None:
            raise BadCheckpoint(
                f"{self.path} is a safetensors file, which has no state dict under --key {shown(key)}; leave --key out"
            )
        return united(self.path, "safetensors", [self.header()])


def united(path: str, called: str, headers: Sequence[Header]) -> Checkpoint:
    """The checkpoint of one file, or of several together, whose names differ.

    Wrappers' prefixes are taken off torch's names, and a name that is only noted as tied gets its tensor. Raises
    BadCheckpoint when there are no tensors, or the files are of both frameworks.
    """
    tensors = {name: tensor for header in headers for name, tensor in header.tensors.items()}
    refused = {name: why for header in headers for name, why in header.refused.items()}
    if not tensors and not refused:
        raise BadCheckpoint(f"{path} holds no tensors")
    formats = {header.metadata.get("format") for header in headers} & set(FORMATS.values())
    if len(formats) > 1:
        raise BadCheckpoint(f"{path}: some of its files say that they are torch's, and some that they are MindSpore's")
    record = _record(headers)
    if record is not None and not formats:
        formats = {"ms"}
    if "ms" in formats or (not formats and any(name.endswith(MINDSPORES) for name in (*tensors, *refused))):
        for name in [name for header in headers for name, value in header.metadata.items() if value == "Int4"]:
            if tensors.pop(name, None) is not None:
                refused[name] = "MindSpore has packed two integers of 4 bits into each of its bytes"
        training = beside_the_net(tensors)
        net = {name: tensor for name, tensor in tensors.items() if name not in training}
        if not net and not refused:
            raise BadCheckpoint(f"{path} holds no tensors of a net, only {', '.join(described(training).values())}")
        others = described(training)
        return Checkpoint("mindspore", called, net, refused, others=others, record=record, training=training or None)
    tensors.update(_aliases(path, headers, tensors, refused))
    prefix = wrapper_prefix((*tensors, *refused))
    counters = {name: "a tensor" for name in COUNTERS if prefix and tensors.pop(name, None) is not None}
    return Checkpoint(
        "torch",
        called,
        {name.removeprefix(prefix): tensor for name, tensor in tensors.items()},
        {name.removeprefix(prefix): why for name, why in refused.items()},
        prefix=prefix,
        others=counters,
        record=record,
    )


def _record(headers: Iterable[Header]) -> dict[str, Any] | None:
    """The records of all files for the way back, as one."""
    records = [header.record for header in headers if header.record is not None]
    if not records:
        return None
    return {
        **records[0],
        **{part: {name: value for record in records for name, value in record[part].items()} for part in PARTS},
    }


def _aliases(
    path: str, headers: Iterable[Header], tensors: Mapping[str, Tensor], refused: Mapping[str, str]
) -> dict[str, Tensor]:
    """Tied tensors that are not stored: name -> the stored tensor."""
    aliases: dict[str, Tensor] = {}
    for header in headers:
        for name, holder in header.metadata.items():
            if name in ("format", RECORD) or name in tensors or name in refused or holder not in tensors:
                continue  # some other metadata
            if aliases.setdefault(check_name(path, name), tensors[holder]) != tensors[holder]:
                raise BadCheckpoint(f"{path}: {shown(name)} is noted as tied to two different tensors")
    return aliases


def tied(content: Sequence[Piece]) -> dict[str, str]:
    """The names whose bytes stand under an earlier name in the same dtype and shape -> that name."""
    holders: dict[Any, str] = {}
    return {
        piece.name: holder
        for piece in content
        if piece.nbytes and (holder := holders.setdefault(piece[1:], piece.name)) != piece.name
    }


def _laid_out(content: Sequence[Piece], framework: str) -> tuple[list[Piece], dict[str, str]]:
    """The pieces in the order of the file, and the tied names that are left out -> the stored one.

    The larger elements come first, so that every tensor begins at a multiple of its elements' size, as in the
    safetensors library; then loaders can use them in place. Header and data have the same order, since MindSpore's
    loader refuses any other. It also needs every tensor there, while torch's convention is to store tied ones once.
    """
    left_out = tied(content) if framework == "torch" else {}
    kept = [piece for piece in content if piece.name not in left_out]
    return sorted(kept, key=lambda piece: -ITEM_SIZES[piece.dtype]), left_out


def header(content: Sequence[Piece], framework: str, record: Mapping[str, Any] | None = None) -> bytes:
    """The bytes before the data; raises Unsupported when they are more than the format allows.

    framework: "torch" or "mindspore", whose names these are.
    """
    pieces, metadata = _laid_out(content, framework)
    if record is not None and framework == "torch":
        raise Unsupported("a safetensors file of torch has no place for a training state; give a name in .pth")
    if any(piece.name == "__metadata__" for piece in content):
        raise Unsupported("a safetensors file cannot hold a tensor called __metadata__; that name is the format's own")
    metadata["format"] = FORMATS[framework]
    names = {piece.name for piece in pieces} if framework == "mindspore" else ()
    if "format" in names:  # MindSpore's loader takes metadata under a tensor's name for its dtype
        del metadata["format"]
        record = record or {}  # a record also says that the file is MindSpore's
    if record is not None:
        if RECORD in names:
            raise Unsupported(f"a safetensors file of MindSpore's cannot hold a tensor called {RECORD}; give a .ckpt")
        metadata[RECORD] = packed(record).decode()
    described: dict[str, Any] = {"__metadata__": metadata}
    at = 0
    for piece in pieces:
        offsets = [at, at := at + piece.nbytes]
        described[piece.name] = {"dtype": NAMES[piece.dtype], "shape": piece.shape, "data_offsets": offsets}
    text = json.dumps(described, ensure_ascii=False, separators=(",", ":")).encode()
    text += b" " * (-(LENGTH.size + len(text)) % ALIGNMENT)
    if len(text) > MAX_HEADER:
        raise Unsupported(f"the header of these tensors takes {len(text):,} bytes, safetensors allows {MAX_HEADER:,}")
    return LENGTH.pack(len(text)) + text


def size(content: Sequence[Piece], framework: str, record: Mapping[str, Any] | None = None) -> int:
    """The size in bytes of a file of these tensors."""
    return len(header(content, framework, record)) + sum(piece.nbytes for piece in _laid_out(content, framework)[0])


def write(
    sources: Sequence[int],
    output: int,
    content: Sequence[Piece],
    *,
    framework: str,
    record: dict[str, Any] | None = None,
    progress: Progress | None = None,
    losses: Losses | None = None,
) -> int:
    """Write a file of these tensors to an empty file; returns its size. See registry.Writer."""
    head = header(content, framework, record)
    pieces, _ = _laid_out(content, framework)
    copier = Copier(output, len(head) + sum(piece.nbytes for piece in pieces), progress)
    copier.write(head)
    for piece in pieces:
        copy_content(copier, sources, piece, {}, losses)
    copier.flush()
    return copier.at


def verify(output: int, path: str, content: Sequence[Piece]) -> None:
    """Read the header of the new file back and compare it with the plan; raises BadCheckpoint."""
    with os.fdopen(os.dup(output), "rb") as file:
        found = read_header(file, path)
    pieces, left_out = _laid_out(content, "torch" if found.metadata.get("format") == "pt" else "mindspore")
    there = [(name, tensor.dtype, tensor.shape) for name, tensor in found.tensors.items()]
    noted = {name: value for name, value in found.metadata.items() if name in left_out}
    if there != [piece[:3] for piece in pieces] or noted != left_out:
        raise BadCheckpoint(f"{path}: what was written is not what was planned; please report this")
