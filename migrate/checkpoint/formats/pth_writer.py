"""Write what torch.save writes, byte for byte: zip and pickle.

Every tensor is a call of torch._utils._rebuild_tensor_v2 on a storage of its own class, or, for a dtype that has no
such class, of _rebuild_tensor_v3 on untyped bytes; see torch/_tensor.py, and Lib/pickle.py for the opcodes.

    archive/data.pkl                   the names, and of every tensor its storage, shape and strides
    archive/.format_version            "1"
    archive/.storage_alignment         "64": contents begin at multiples of it, so that they can be mapped
    archive/byteorder                  "little"
    archive/data/0, 1, …               the storages
    archive/version                    "3"
    archive/.data/serialization_id     forty digits that tell files apart

Since 2.7 torch can compute the offset of a storage instead of reading it, so the layout is exactly that of
PyTorchStreamWriter and its miniz (caffe2/serialize/inline_container.cc, third_party/miniz): checksums follow the
contents, and 64-bit numbers are stored as miniz does. Only the forty digits differ, which in torch come from the hashes
of the C++ library; here they come from the checksums, so that the same tensors give the same file.
"""

from __future__ import annotations

import os
import struct
import zlib
from collections.abc import Hashable, Iterable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from ....errors import BadCheckpoint
from .byte_copy import BUFFER, Copier, Losses, Progress, chunks, read_range
from .pth_reader import TorchZip
from .pth_tensors import STORAGE_DTYPES
from .reader import COUNTERS, Piece, Shape, product

# dtype -> the class of torch, of those on the CPU
STORAGE_CLASSES = {dtype: name.removeprefix("torch.") for name, dtype in STORAGE_DTYPES.items() if name.count(".") == 1}
BATCH = 1000  # entries that are put into a dict at a time, as pickle does
MODEL = "model"  # where the weights stand in a training checkpoint

# What the file holds besides the weights, by key: dicts, lists and tuples of plain values and of Pieces.
Beside = Mapping[str, Any]


def shared(content: Sequence[Piece], beside: Beside | None = None) -> dict[Hashable, Piece]:
    """The storages of these pieces, in order: key -> a piece that fills it.

    Pieces whose bytes are the same, seen in the same way, have one storage.
    """
    found: dict[Hashable, Piece] = {}
    for piece in (*content, *_pieces(beside)):
        found.setdefault(_storage(piece), piece)
    return found


def _pieces(value: Any) -> Iterator[Piece]:
    """The pieces in dicts, lists and tuples inside one another, in order."""
    if isinstance(value, Piece):
        yield value
    elif isinstance(value, (Mapping, list, tuple)):
        for item in value.values() if isinstance(value, Mapping) else value:
            yield from _pieces(item)


def _storage(piece: Piece) -> Hashable:
    # Tensors without elements all have the same (no) bytes, and still share no storage.
    return (piece.tensor, piece.dtype) if piece.nbytes else (piece.name, piece.tensor)


def pickled(content: Sequence[Piece], beside: Beside | None = None) -> bytes:
    """The pickle of an OrderedDict of these tensors; the storages are numbered in the order of shared().

    beside: if given, the pickle is a dict of these entries with the OrderedDict under `model`.
    """
    numbers = {storage: str(number) for number, storage in enumerate(shared(content, beside))}
    pickle = _Pickle(numbers)
    state = _StateDict(content)
    pickle.value(state if beside is None else {MODEL: state, **beside})
    return bytes(pickle.out + b".")


class _StateDict(NamedTuple):
    """The tensors that are pickled as an OrderedDict."""

    pieces: Sequence[Piece]


class _Pickle:
    """Opcodes of protocol 2, and the memo: bytes that were written -> their index in it.

    numbers: storage -> its name in the file.
    """

    def __init__(self, numbers: Mapping[Hashable, str]) -> None:
        self.out = bytearray(b"\x80\x02")
        self.numbers = numbers
        self.memo: dict[bytes, int] = {}
        self.count = 0

    def remember(self) -> None:
        self.out += struct.pack("<cB", b"q", self.count) if self.count < 256 else struct.pack("<cI", b"r", self.count)
        self.count += 1

    def again(self, code: bytes) -> None:
        """Write code, or a reference to it where it was written before."""
        place = self.memo.setdefault(code, self.count)
        if place < self.count:
            self.out += struct.pack("<cB", b"h", place) if place < 256 else struct.pack("<cI", b"j", place)
        else:
            self.out += code
            self.remember()

    def text(self, value: str) -> None:
        encoded = value.encode("utf-8", "surrogatepass")  # as pickle does
        self.again(b"X" + struct.pack("<I", len(encoded)) + encoded)

    def name(self, module: str, name: str) -> None:
        self.again(f"c{module}\n{name}\n".encode())

    def integer(self, value: int) -> None:
        if 0 <= value < 1 << 8:
            self.out += struct.pack("<cB", b"K", value)
        elif 0 <= value < 1 << 16:
            self.out += struct.pack("<cH", b"M", value)
        elif -(1 << 31) <= value < 1 << 31:
            self.out += struct.pack("<ci", b"J", value)
        else:
            size = value.bit_length() // 8 + 1
            self.out += struct.pack("<cB", b"\x8a", size) + value.to_bytes(size, "little", signed=True)

    def value(self, value: Any) -> None:
        """Write a tensor, a dict or list of such, or a plain value."""
        if isinstance(value, Piece):
            self.tensor(value)
        elif isinstance(value, _StateDict):
            self.ordered_dict()
            self.items([(piece.name, piece) for piece in value.pieces])
        elif isinstance(value, dict):
            self.out += b"}"
            self.remember()
            self.items(list(value.items()))
        elif isinstance(value, list):
            self.out += b"]"
            self.remember()
            self.batches([[item] for item in value], b"ae")
        elif isinstance(value, tuple):
            self.out += b"("
            for item in value:
                self.value(item)
            self.out += b"t"
            self.remember()
        elif isinstance(value, str):
            self.text(value)
        elif isinstance(value, float):
            self.out += struct.pack(">cd", b"G", value)
        elif value is None or isinstance(value, bool):
            self.out += {None: b"N", True: b"\x88", False: b"\x89"}[value]
        else:
            self.integer(value)

    def items(self, items: Sequence[tuple[Any, Any]]) -> None:
        self.batches(items, b"su")

    def batches(self, groups: Sequence[Sequence[Any]], codes: bytes) -> None:
        """Put the items into the dict or list before them; codes: the opcodes for one item and for several."""
        for start in range(0, len(groups), BATCH):
            batch = groups[start : start + BATCH]
            several = len(batch) > 1
            self.out += b"(" * several
            for group in batch:
                for item in group:
                    self.value(item)
            self.out.append(codes[several])

    def integers(self, values: Shape) -> None:
        """Write a tuple."""
        short = len(values) <= 3
        self.out += b"" if short else b"("
        for value in values:
            self.integer(value)
        self.out += b")\x85\x86\x87"[len(values) : len(values) + 1] if short else b"t"
        if values:
            self.remember()

    def ordered_dict(self) -> None:
        self.name("collections", "OrderedDict")
        self.out += b")R"
        self.remember()

    def tensor(self, piece: Piece) -> None:
        """Write a call that builds a contiguous tensor on its storage."""
        kind = STORAGE_CLASSES.get(piece.dtype)
        self.name("torch._utils", "_rebuild_tensor_v2" if kind else "_rebuild_tensor_v3")
        self.out += b"(("
        self.text("storage")
        self.name(*(("torch", kind) if kind else ("torch.storage", "UntypedStorage")))
        self.text(self.numbers[_storage(piece)])
        self.text("cpu")
        self.integer(product(piece.shape) if kind else piece.nbytes)
        self.out += b"t"
        self.remember()
        self.out += b"QK\0"
        self.integers(piece.shape)
        self.integers(_strides(piece.shape))
        self.out += b"\x89"  # needs no gradient
        self.ordered_dict()  # its hooks
        if not kind:
            self.name("torch", piece.dtype)
        self.out += b"t"
        self.remember()
        self.out += b"R"
        self.remember()


def _strides(shape: Shape) -> Shape:
    """The strides of a contiguous tensor, as in torch, also for one without elements."""
    strides, step = [], 1
    for size in reversed(shape):
        strides.append(step)
        step *= max(size, 1)
    return tuple(reversed(strides))


ALIGNMENT = 64  # bytes
WIDE = 0xFFFFFFFF  # from this value on, a size or an offset needs 64 bits
MANY = 0xFFFF  # from this value on, the number of members does
UTF8, DESCRIPTOR = 0x0800, 0x0008  # flags of a member: its name is UTF-8, and its checksum follows the content

LOCAL_HEADER = struct.Struct("<4sHHHHHIIIHH")
ENTRY = struct.Struct("<4sHHHHHHIIIHHHHHII")
END = struct.Struct("<4sHHHHIIH")
WIDE_END = struct.Struct("<4sQHHIIQQQQ")
WIDE_END_PLACE = struct.Struct("<4sIQI")


class Member(NamedTuple):
    """One file inside the zip: its local header is at `at`; sizes in bytes."""

    name: bytes
    size: int
    at: int

    @property
    def wide(self) -> bytes:
        """The extra field with the numbers that do not fit in 32 bits."""
        sizes = [self.size] * 2 if self.size >= WIDE else []
        numbers = [*sizes, *([self.at] if self.at >= WIDE else [])]
        return struct.pack(f"<HH{len(numbers)}Q", 1, 8 * len(numbers), *numbers) if numbers else b""

    @property
    def flags(self) -> int:
        return UTF8 | DESCRIPTOR if self.size else UTF8

    @property
    def header(self) -> bytes:
        """The bytes before the content, with padding so that the content is aligned."""
        fixed = LOCAL_HEADER.size + len(self.name) + len(self.wide) + 4
        padding = -(self.at + fixed) % ALIGNMENT
        extra = self.wide + struct.pack("<2sH", b"FB", padding) + b"Z" * padding
        return LOCAL_HEADER.pack(b"PK\3\4", 0, self.flags, 0, 0, 0, 0, 0, 0, len(self.name), len(extra)) + (
            self.name + extra
        )

    def descriptor(self, checksum: int) -> bytes:
        """The bytes after the content."""
        if not self.size:
            return b""
        return struct.pack("<4sIQQ" if self.wide else "<4sIII", b"PK\7\x08", checksum, self.size, self.size)

    def entry(self, checksum: int) -> bytes:
        """The member in the directory."""
        size, at, wide = _narrow(self.size), _narrow(self.at), self.wide
        lengths = (len(self.name), len(wide), 0)
        packed = ENTRY.pack(b"PK\1\2", 0, 0, self.flags, 0, 0, 0, checksum, size, size, *lengths, 0, 0, 0, at)
        return packed + self.name + wide

    @property
    def end(self) -> int:
        return self.at + len(self.header) + self.size + len(self.descriptor(0))


def write(
    sources: Sequence[int],
    output: int,
    content: Sequence[Piece],
    *,
    framework: str = "torch",
    record: dict[str, Any] | None = None,
    progress: Progress | None = None,
    losses: Losses | None = None,
) -> int:
    """Write a state dict of these tensors to an empty file; returns its size. See registry.Writer.

    record: the entries besides the state dict, which then is under `model`. Tensors that are the same bytes, seen in
    the same way, share a storage, and are tied again when torch loads them.
    """
    assert framework == "torch"
    stored = list(shared(content, record).values())
    before: list[tuple[str, bytes | Piece]] = [
        ("data.pkl", pickled(content, record)),
        (".format_version", b"1"),
        (".storage_alignment", str(ALIGNMENT).encode()),
        ("byteorder", b"little"),
    ]
    parts = [*before, *((f"data/{key}", piece) for key, piece in enumerate(stored)), ("version", b"3\n")]
    members = _laid_out((name, _size(part)) for name, part in [*parts, (".data/serialization_id", bytes(40))])
    copier = Copier(output, _total(members), progress)
    checksums: list[int] = []
    for member, (_, part) in zip(members, parts, strict=False):
        checksums.append(_add(copier, member, _blocks(sources, part, losses)))
    identity = (b"".join(member.name for member in members), struct.pack(f"<{len(checksums)}I", *checksums))
    checksums.append(_add(copier, members[-1], [f"{zlib.crc32(part):020}".encode() for part in identity]))
    copier.write(_directory(members, checksums))
    copier.flush()
    return copier.at


def verify(output: int, path: str, content: Sequence[Piece]) -> None:
    """Read the new file back, all but the contents, and compare it with the plan; raises BadCheckpoint."""
    with os.fdopen(os.dup(output), "rb") as file:
        found = TorchZip(path, file).checkpoint()
    passed = COUNTERS if found.prefix else ()  # which the reader does not count as weights
    wanted = [piece[:3] for piece in content if piece.name not in passed]
    if [(found.prefix + name, *tensor[:2]) for name, tensor in found.tensors.items()] != wanted:
        raise BadCheckpoint(f"{path}: what was written is not what was planned; please report this")


def _laid_out(parts: Iterable[tuple[str, int]]) -> list[Member]:
    members: list[Member] = []
    for name, size in parts:
        members.append(Member(f"archive/{name}".encode(), size, members[-1].end if members else 0))
    return members


def _size(part: bytes | Piece) -> int:
    return len(part) if isinstance(part, bytes) else part.nbytes


def _total(members: Sequence[Member]) -> int:
    """The size of the whole file."""
    return members[-1].end + len(_directory(members, [0] * len(members)))


def _blocks(sources: Sequence[int], part: bytes | Piece, losses: Losses | None) -> Iterator[bytes]:
    """A content, some MiB at a time."""
    if isinstance(part, bytes):
        yield part
        return
    for chunk in chunks(sources, part, losses):
        if isinstance(chunk, bytes):
            yield chunk
            continue
        for start in range(0, chunk.length, BUFFER):
            yield read_range(sources[chunk.file], chunk.offset + start, min(BUFFER, chunk.length - start))


def _add(copier: Copier, member: Member, blocks: Iterable[bytes]) -> int:
    """Append a member; returns the checksum of its content."""
    copier.write(member.header)
    checksum = 0
    for block in blocks:
        checksum = zlib.crc32(block, checksum)
        copier.write(block)
    copier.write(member.descriptor(checksum))
    return checksum


def _directory(members: Sequence[Member], checksums: Sequence[int]) -> bytes:
    """The directory at the end of the zip."""
    entries = b"".join(member.entry(checksum) for member, checksum in zip(members, checksums, strict=True))
    at, count, size = members[-1].end, len(members), len(entries)
    return b"".join(
        (
            entries,
            WIDE_END.pack(b"PK\6\6", WIDE_END.size - 12, 0x031E, 45, 0, 0, count, count, size, at),
            WIDE_END_PLACE.pack(b"PK\6\7", 0, at + size, 1),
            END.pack(b"PK\5\6", 0, 0, min(count, MANY), min(count, MANY), _narrow(size), _narrow(at), 0),
        )
    )


def _narrow(number: int) -> int:
    """A size or an offset in 32 bits, or all ones when it is stored in 64 bits elsewhere."""
    return number if number < WIDE else 0xFFFFFFFF
