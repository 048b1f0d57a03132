"""MindSpore's .ckpt, read and written: protobuf messages, aligned headers.

A field is its number and kind in one varint, then a varint, or a length and that many bytes.

Contents are aligned by an extra field of Checkpoint, PADDING, which parsers skip; at most a block before each content.

A `.ckpt` is one protobuf message `Checkpoint`, and since protobuf messages may be concatenated, one per tensor is the
same file (MindSpore itself writes it so). In the schema of `mindspore/train/checkpoint_pb2`:

    Checkpoint { repeated Value value = 1; }
    Value      { string tag = 1; TensorProto tensor = 2; }
    TensorProto{ repeated int64 dims = 1; string tensor_type = 2; bytes tensor_content = 3; }

A tensor larger than 512 MiB is cut into consecutive values of the same tag, each with the full dims. MindSpore's
loader never compares the length of the content with dims and dtype and corrupts its heap when they differ, so
`entries` checks exactly that.

A file that msmigrate writes may end in one more field of Checkpoint, RECORD, which MindSpore's parser skips, as
protobuf's parsers do with unknown fields. It holds what converting back to torch needs (reader.py).
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, BinaryIO, NamedTuple

from ....errors import BadCheckpoint
from .byte_copy import BLOCK, WORTH, Copier, Losses, Progress, can_clone, copy_content, shift
from .reader import (
    MAX_DIM,
    MAX_RANK,
    MAX_RECORD,
    MAX_TENSORS,
    ByteRange,
    Checkpoint,
    Checksum,
    Piece,
    Source,
    Tensor,
    beside_the_net,
    check_count,
    check_name,
    described,
    packed,
    product,
    row_major,
    shown,
    unpacked,
)


def varint(number: int) -> bytes:
    """Encode a non-negative integer in protobuf's groups of seven bits, lowest first."""
    encoded = bytearray()
    while number > 0x7F:
        encoded.append(number & 0x7F | 0x80)
        number >>= 7
    encoded.append(number)
    return bytes(encoded)


def sized(content: bytes) -> bytes:
    """Bytes with their length before them."""
    return varint(len(content)) + content


def field_of(number: int, content: bytes) -> bytes:
    """A field of bytes."""
    return varint(number << 3 | 2) + sized(content)


class Cursor:
    """Reads the file `fd` from `at` up to `end`, and skips what is not needed; trusts no length."""

    def __init__(self, fd: int, path: str, at: int, end: int) -> None:
        self.fd, self.path, self.at, self.end = fd, path, at, end
        self.window, self.start = b"", at

    def read(self, offset: int, length: int) -> bytes:
        try:
            return os.pread(self.fd, length, offset)
        except OSError as error:
            raise BadCheckpoint(f"cannot read {self.path}: {error.strerror}") from None

    def byte(self) -> int:
        index = self.at - self.start
        if not 0 <= index < len(self.window):
            self.window, self.start, index = self.read(self.at, min(4096, self.end - self.at)), self.at, 0
            if not self.window:
                raise self.damaged()
        self.at += 1
        return self.window[index]

    def varint(self) -> int:
        index = self.at - self.start
        if 0 <= index < len(self.window) and self.window[index] < 0x80:  # nearly all of them
            self.at += 1
            return self.window[index]
        number = shift = 0
        while True:
            byte = self.byte()
            number |= (byte & 0x7F) << shift
            if byte < 0x80:
                return number
            shift += 7
            if shift > 63:
                raise self.damaged()

    def key(self, expected: int) -> None:
        if self.byte() != expected:
            raise self.damaged()

    def span(self) -> int:
        """Read a length and return the end of the bytes that follow it."""
        length = self.varint()
        if self.at + length > self.end:
            raise self.damaged()
        return self.at + length

    def bytes_(self, most: int = 1 << 20) -> bytes:
        stop = self.span()
        if stop - self.at > most:
            raise self.damaged()
        start, end = self.at - self.start, stop - self.start
        inside = start >= 0 and end <= len(self.window)
        content = self.window[start:end] if inside else self.read(self.at, stop - self.at)
        self.at = stop
        return content

    def damaged(self) -> BadCheckpoint:
        return BadCheckpoint(f"{self.path} is not a MindSpore checkpoint, or it is damaged at byte {self.at:,}")


PADDING = 0x506D  # the number of the field, which the schema does not use
KEY = varint(PADDING << 3 | 2)
LEAST = len(KEY) + 2  # bytes of an empty field whose length is written in two bytes


def filled_up(heads: Mapping[int, bytes], piece: Piece, at: int) -> dict[int, bytes]:
    """The headers of a piece that begins at `at` of the new file, with padding: position in the content -> header."""
    tensor = piece.tensor
    if piece.dtype != tensor.dtype or not tensor.contiguous or len(tensor.spans) != 1:
        return dict(heads)
    found = {}
    starts = sorted(heads)
    for start, stop in zip(starts, [*starts[1:], piece.nbytes], strict=True):
        head = heads[start]
        if stop - start >= WORTH:
            head = padding(shift(tensor.spans[0].offset + start, at + len(head))) + head
        found[start] = head
        at += len(head) + stop - start
    return found


def padding(count: int) -> bytes:
    """A field of `count` bytes, or of a block more where `count` is too small for a field."""
    if count == 0:
        return b""
    count += BLOCK if count < LEAST else 0
    inside = count - LEAST
    return KEY + bytes([inside & 0x7F | 0x80, inside >> 7]) + bytes(inside)


CHUNK = 512 << 20  # bytes; `SLICE_SIZE` in mindspore/train/serialization.py
RECORD = 0x536D  # the number of our field, which the schema does not use
CRC_MARK = b"crc_num"  # an optional tail: this mark and a checksum of 10 bytes
CRC_TAIL = len(CRC_MARK) + 10
MOST_FIELDS = 2 * MAX_TENSORS  # one for each tensor, and one of padding before it
MOST_PIECES = 10_000  # of one tensor

TYPE_SIZES = {
    name: size
    for size, names in {
        8: "Float64 Int64 UInt64",
        4: "Float32 Int32 UInt32",
        2: "Float16 BFloat16 Int16 UInt16",
        1: "Bool Int8 UInt8",
    }.items()
    for name in names.split()
}
TENSOR_TYPES = {name.lower(): name for name in TYPE_SIZES}  # by torch's name of the dtype


class Value(NamedTuple):
    """One tensor of a checkpoint; `pieces`: (offset, length) in the file of each part of its content."""

    tag: str
    dims: tuple[int, ...]
    tensor_type: str
    pieces: tuple[tuple[int, int], ...]


def header(tag: str, dims: tuple[int, ...], tensor_type: str, length: int) -> bytes:
    """Return the bytes that stand before `length` bytes of content; what follows the content is the next header."""
    tensor = b"".join(b"\x08" + varint(dim) for dim in dims)
    tensor += b"\x12" + sized(tensor_type.encode()) + b"\x1a" + varint(length)
    value = b"\x0a" + sized(tag.encode()) + b"\x12" + varint(len(tensor) + length) + tensor
    return b"\x0a" + varint(len(value) + length) + value


def pieces(nbytes: int) -> Iterator[tuple[int, int]]:
    """Cut a content of `nbytes` into (start, length) as MindSpore does; an empty one is one empty piece."""
    for start in range(0, max(nbytes, 1), CHUNK):
        yield start, min(CHUNK, nbytes - start)


def checksum(fd: int) -> tuple[int, int | None]:
    """Where the content of a checkpoint ends, and its CRC-32 that follows; None where there is none."""
    size = os.fstat(fd).st_size
    tail = os.pread(fd, CRC_TAIL, size - CRC_TAIL) if size >= CRC_TAIL else b""
    if not tail.startswith(CRC_MARK):
        return size, None
    return size - CRC_TAIL, int.from_bytes(tail[len(CRC_MARK) :], "big")


def entries(fd: int, path: str) -> list[Value]:
    """Read the structure of a checkpoint: every tensor with its place, contents unread.

    Raises BadCheckpoint when the file is damaged, a type is unknown, a content is longer or shorter than its dims and
    type say, or a name occurs twice.
    """
    values, _ = structure(fd, path)
    for value in values:
        if value.tensor_type not in TYPE_SIZES:
            raise BadCheckpoint(f"{path}: {shown(value.tag)} has the unknown type {shown(value.tensor_type)!r}")
    return values


def structure(fd: int, path: str) -> tuple[list[Value], bytes]:
    """Every tensor with its place, also of types that msmigrate does not know, and the record (empty: none).

    Raises BadCheckpoint as `entries` does, except for unknown types.
    """
    end, _ = checksum(fd)
    message = _Message(fd, path, 0, end)
    values: list[Value] = []
    cut: list[list[tuple[int, int]]] = []  # the pieces of each
    record = b""
    while message.at < end:
        value = message.checkpoint()
        if isinstance(value, bytes):
            record = value
            continue
        if not values or values[-1].tag != value.tag:
            values.append(value)
            cut.append([])
            check_count(path, len(values))
        if values[-1][1:3] != value[1:3]:
            raise BadCheckpoint(f"{path}: the pieces of {shown(value.tag)} disagree about its shape or type")
        cut[-1] += value.pieces
        if len(cut[-1]) > MOST_PIECES:
            raise BadCheckpoint(f"{path}: {shown(value.tag)} is cut into more than {MOST_PIECES:,} pieces")
    values = [value._replace(pieces=tuple(held)) for value, held in zip(values, cut, strict=True)]
    for value in values:
        expected = TYPE_SIZES.get(value.tensor_type)
        if expected is None:
            continue
        expected *= product(value.dims if value.dims != (0,) else ())  # which MindSpore reads as a single number
        found = sum(length for _, length in value.pieces)
        if found != expected:
            needs = f"{expected:,}" if expected < MAX_DIM else "absurdly many"
            raise BadCheckpoint(
                f"{path}: {shown(value.tag)} holds {found:,} bytes, its shape {value.dims} needs {needs}"
            )
    if len({value.tag for value in values}) != len(values):
        raise BadCheckpoint(f"{path}: a name occurs twice")
    return values, record


# a value, its length, a tag, its length
BEGINNING = re.compile(rb"\x0a[\x80-\xff]{0,9}[\0-\x7f]\x0a([\x80-\xff]{0,9}[\0-\x7f])")


def begins(head: bytes) -> bool:
    """Whether a file with this beginning may be a MindSpore checkpoint; its first byte is also a line break's, as
    before JSON or HTML."""
    if head.startswith(KEY):
        return True
    found = BEGINNING.match(head)
    if found is None or len(found[1]) > 1:  # then it is not text, and the tag may be longer than `head`
        return found is not None
    behind = found.end() + found[1][0]
    return head[behind : behind + 1] == b"\x12"


class MindSporeCheckpoint(Source):
    """An open `.ckpt`."""

    def __init__(self, path: str, file: BinaryIO) -> None:
        super().__init__(path, [file])

    def checksums(self, *, whole: bool = False) -> list[Checksum]:
        end, crc = checksum(self.descriptors[0])
        return [] if crc is None else [Checksum(ByteRange(0, end), crc, "all of it")]

    def checkpoint(self, key: str | None = None) -> Checkpoint:
        if key is not None:
            raise BadCheckpoint(
                f"{self.path} is a MindSpore checkpoint, which has no state dict under --key {shown(key)}"
            )
        values, record = structure(self.descriptors[0], self.path)
        tensors: dict[str, Tensor] = {}
        refused: dict[str, str] = {}
        for value in values:
            name = check_name(self.path, value.tag)
            if value.tensor_type not in TYPE_SIZES:
                refused[name] = f"its type {shown(value.tensor_type)} is not one of a tensor"
                continue
            shape = () if value.dims == (0,) else value.dims
            spans = tuple(ByteRange(*piece) for piece in value.pieces)
            tensors[name] = Tensor(value.tensor_type.lower(), shape, row_major(shape), spans)
        training = beside_the_net(tensors)
        net = {name: tensor for name, tensor in tensors.items() if name not in training}
        if not net:
            raise BadCheckpoint(f"{self.path} holds no tensors")
        found = Checkpoint("mindspore", "MindSpore ckpt", net, refused, record=unpacked(self.path, record))
        return found._replace(others=described(training), training=training or None)


def write(
    sources: Sequence[int],
    output: int,
    content: Sequence[Piece],
    *,
    framework: str = "mindspore",
    record: dict[str, Any] | None = None,
    progress: Progress | None = None,
    losses: Losses | None = None,
) -> int:
    """Write a checkpoint of these tensors to an empty file; returns its size. See registry.Writer."""
    assert framework == "mindspore"
    shared = bool(sources) and can_clone(sources[0], output)
    parts: list[tuple[Piece, dict[int, bytes]]] = []
    at = 0
    for piece in content:
        heads = filled_up(_headers(piece), piece, at) if shared else _headers(piece)
        parts.append((piece, heads))
        at += piece.nbytes + sum(map(len, heads.values()))
    tail = b"" if record is None else field_of(RECORD, packed(record))
    copier = Copier(output, at + len(tail), progress)
    for piece, heads in parts:
        copy_content(copier, sources, piece, heads, losses)
    copier.write(tail)
    copier.flush()
    return copier.at


def verify(output: int, path: str, content: Sequence[Piece]) -> None:
    """Read the structure of the new file back and compare it with the plan; raises BadCheckpoint.

    MindSpore's loader trusts lengths blindly, so every file is checked.
    """
    found = [(value.tag, value.dims, value.tensor_type) for value in entries(output, path)]
    if found != [(piece.name, piece.shape, TENSOR_TYPES[piece.dtype]) for piece in content]:
        raise BadCheckpoint(f"{path}: what was written is not what was planned; please report this")


def _headers(piece: Piece) -> dict[int, bytes]:
    """Position in the content -> the header that stands before it."""
    kind = TENSOR_TYPES[piece.dtype]
    return {start: header(piece.name, piece.shape, kind, length) for start, length in pieces(piece.nbytes)}


class _Message(Cursor):
    """A cursor over one `Checkpoint` message that reads headers and skips contents; counts its fields."""

    fields = 0

    def field(self) -> int:
        """The number and kind of the next top-level field; raises BadCheckpoint when there are too many."""
        self.fields += 1
        if self.fields > MOST_FIELDS:
            raise BadCheckpoint(f"{self.path} holds more than {MOST_FIELDS:,} fields; no checkpoint does")
        return self.varint()

    def checkpoint(self) -> Value | bytes:
        """The next value, or the record."""
        field = self.field()
        while field == PADDING << 3 | 2:
            self.at = self.span()
            field = self.field()
        if field == RECORD << 3 | 2:
            return self.bytes_(MAX_RECORD)
        if field != 0x0A:
            raise self.damaged()
        stop = self.span()
        self.key(0x0A)
        tag = self.bytes_().decode(errors="replace")
        self.key(0x12)
        self.span()
        dims: list[int] = []
        tensor_type, piece = "", (0, 0)
        for _ in range(MAX_RANK + 2):  # sizes, a type and a content
            if self.at >= stop:
                break
            field = self.varint()
            if field == 0x08:
                dims.append(self.varint())
            elif field == 0x12:
                tensor_type = self.bytes_().decode(errors="replace")
            elif field == 0x1A:
                content_end = self.span()
                piece = (self.at, content_end - self.at)
                self.at = content_end
            else:
                raise self.damaged()
        if self.at != stop or len(dims) > MAX_RANK or any(dim >= MAX_DIM for dim in dims):
            raise self.damaged()
        return Value(tag, tuple(dims), tensor_type, (piece,))
