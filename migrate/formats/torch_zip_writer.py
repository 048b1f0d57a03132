"""Write a state dict as `torch.save` writes it: the zip that torch_zip.py reads, byte for byte as torch's own.

    archive/data.pkl                   the names, and of every tensor its storage, shape and strides
    archive/.format_version            "1"
    archive/.storage_alignment         "64": contents begin at multiples of it, so that they can be mapped
    archive/byteorder                  "little"
    archive/data/0, 1, …               the storages
    archive/version                    "3"
    archive/.data/serialization_id     forty digits that tell files apart

Since 2.7 torch can compute where a storage stands instead of reading it, so the layout is held to what
PyTorchStreamWriter and its miniz do (caffe2/serialize/inline_container.cc, third_party/miniz): checksums stand behind
the contents, and what needs 64 bits does so in their way. Only the forty digits differ, which in torch come from the
hashes of the C++ library; here they come from the checksums, so that the same tensors give the same file.
"""

from __future__ import annotations

import os
import struct
import zlib
from collections.abc import Iterable, Iterator, Sequence
from typing import Any, NamedTuple

from ...errors import BadCheckpoint
from .byte_copy import BUFFER, Copier, Progress, read_range
from .casts import Losses
from .contents import Piece
from .state_dict_pickle import pickled, shared
from .tensor_bytes import chunks
from .torch_state_dict import COUNTERS
from .torch_zip import TorchZip

ALIGNMENT = 64  # bytes
WIDE = 0xFFFFFFFF  # from here on, a size or an offset needs 64 bits
MANY = 0xFFFF  # and from here on the number of members
UTF8, DESCRIPTOR = 0x0800, 0x0008  # flags of a member: how its name is encoded, and that its checksum stands behind it

LOCAL_HEADER = struct.Struct("<4sHHHHHIIIHH")
ENTRY = struct.Struct("<4sHHHHHHIIIHHHHHII")
END = struct.Struct("<4sHHHHIIH")
WIDE_END = struct.Struct("<4sQHHIIQQQQ")
WIDE_END_PLACE = struct.Struct("<4sIQI")


class Member(NamedTuple):
    """One file inside the zip: its local header stands at `at`; sizes in bytes."""

    name: bytes
    size: int
    at: int

    @property
    def wide(self) -> bytes:
        """What does not fit in 32 bits, as an extra field."""
        sizes = [self.size] * 2 if self.size >= WIDE else []
        numbers = [*sizes, *([self.at] if self.at >= WIDE else [])]
        return struct.pack(f"<HH{len(numbers)}Q", 1, 8 * len(numbers), *numbers) if numbers else b""

    @property
    def flags(self) -> int:
        return UTF8 | DESCRIPTOR if self.size else UTF8

    @property
    def header(self) -> bytes:
        """What stands before the content, filled up so that the content is aligned."""
        fixed = LOCAL_HEADER.size + len(self.name) + len(self.wide) + 4
        padding = -(self.at + fixed) % ALIGNMENT
        extra = self.wide + struct.pack("<2sH", b"FB", padding) + b"Z" * padding
        return LOCAL_HEADER.pack(b"PK\3\4", 0, self.flags, 0, 0, 0, 0, 0, 0, len(self.name), len(extra)) + (
            self.name + extra
        )

    def descriptor(self, checksum: int) -> bytes:
        """What stands behind the content."""
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
    """Write a state dict of these tensors to an empty file; returns its size. See destination.Writer.

    record: what stands beside the state dict, which then is under `model` (state_dict_pickle.py). Tensors that are the
    same bytes, seen in the same way, share a storage, and are tied again when torch loads them.
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
    told = (b"".join(member.name for member in members), struct.pack(f"<{len(checksums)}I", *checksums))
    checksums.append(_add(copier, members[-1], [f"{zlib.crc32(part):020}".encode() for part in told]))
    copier.write(_directory(members, checksums))
    copier.flush()
    return copier.at


def verify(output: int, path: str, content: Sequence[Piece]) -> None:
    """Read the new file back, all but the contents, and compare it with the plan; raises BadCheckpoint."""
    with os.fdopen(os.dup(output), "rb") as file:
        found = TorchZip(path, file).checkpoint()
    passed = COUNTERS if found.prefix else ()  # which the reader takes for no weights
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
    """What stands at the end of the zip."""
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
    """A size or an offset in 32 bits, or all ones when it stands elsewhere in 64."""
    return number if number < WIDE else 0xFFFFFFFF
