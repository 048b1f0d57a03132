"""The zip that `torch.save` writes (since torch 1.6): one pickle, and one stored member for each storage.

    NAME/data.pkl      the objects, with references to storages
    NAME/byteorder     "little" or "big" (since torch 2.1; little before)
    NAME/data/KEY      the raw bytes of one storage

Members are stored, never compressed, so every storage is a byte range of the file. The layout is that of
`torch/csrc/inline_container` (caffe2/serialize); the zip records are those of PKWARE's APPNOTE.
"""

from __future__ import annotations

import os
import struct
import zlib
from collections.abc import Iterator
from typing import BinaryIO, NamedTuple

from ...errors import BadCheckpoint, Unsupported
from . import restricted_pickle
from .contents import MAX_TENSORS, ByteRange, Checksum, read_at, shown
from .restricted_pickle import Loaded
from .torch_state_dict import TorchSource

LOCAL_HEADER = struct.Struct("<4s22xHH")  # signature, …, length of the name, length of the extra field
# signature, …, flags, method, …, checksum, sizes, lengths of name, extra field and comment, …, where it stands
ENTRY = struct.Struct("<4s4xHH4xIIIHHH8xI")
END = struct.Struct("<4s6xHIIH")  # signature, …, members, size and place of the directory, length of the comment
WIDE_END = struct.Struct("<4s28xQQQ")  # the same where 64 bits are needed
WIDE_END_PLACE = struct.Struct("<4s4xQ4x")
WIDE = 0xFFFFFFFF  # a size or place that stands in 64 bits elsewhere
ENCRYPTED, UTF8 = 0x0001, 0x0800
MAX_MEMBERS = MAX_TENSORS + 1000
MAX_DIRECTORY = 48 << 20  # bytes; a member takes about a hundred


class Member(NamedTuple):
    """One file inside the zip, of `size` bytes, whose header stands at `at`; plain: its bytes stand there as they are.

    checksum: the CRC-32 of its bytes, 0 where the writer computed none.
    """

    at: int
    size: int
    checksum: int
    plain: bool


class TorchZip(TorchSource):
    """An open checkpoint file; raises BadCheckpoint when it is not such a zip."""

    format = "torch zip"

    def __init__(self, path: str, file: BinaryIO) -> None:
        super().__init__(path, [file])
        self.file = file
        self.size = os.fstat(file.fileno()).st_size
        self.members = self._directory()
        self.root = self._root()
        self.ranges: dict[str, ByteRange] = {}  # of the members that were asked for
        self._check_byteorder()

    def _directory(self) -> dict[str, Member]:
        """Read the zip's directory: member name -> member."""
        damaged = BadCheckpoint(f"{self.path} begins as a zip but ends too early: truncated or damaged; fetch it again")
        for longest in (0, 0xFFFF):  # of the comment behind it, which hardly any file has
            tail_at = max(0, self.size - END.size - longest)
            tail = self._at(tail_at, self.size - tail_at)
            at = tail.rfind(b"PK\5\6")
            if 0 <= at <= len(tail) - END.size:
                break
        else:
            raise damaged
        _, count, size, start, _ = END.unpack_from(tail, at)
        place = self._at(tail_at + at - WIDE_END_PLACE.size, WIDE_END_PLACE.size) if tail_at + at >= 20 else b""
        if place.startswith(b"PK\6\7"):
            wide = self._at(WIDE_END_PLACE.unpack(place)[1], WIDE_END.size)
            if len(wide) < WIDE_END.size or not wide.startswith(b"PK\6\6"):
                raise damaged
            _, count, size, start = WIDE_END.unpack(wide)
        if start + size > self.size:
            raise damaged
        if count > MAX_MEMBERS or size > MAX_DIRECTORY:
            raise BadCheckpoint(
                f"{self.path} holds {count:,} members, listed in {size:,} bytes; a checkpoint has at most "
                f"{MAX_MEMBERS:,}, in {MAX_DIRECTORY:,}"
            )
        members: dict[str, Member] = {}
        found = 0
        try:
            for name, member in _members(self._at(start, size)):
                members[name] = member
                found += 1
        except (ValueError, struct.error):
            raise damaged from None
        if found != count:
            raise damaged
        if len(members) != count:
            # Two readers could take two different members: nobody writes this by accident.
            raise BadCheckpoint(f"{self.path} holds two members of one name")
        return members

    def _root(self) -> str:
        """Return the folder inside the zip, with its slash."""
        roots = [name[: -len("data.pkl")] for name in self.members if name.endswith("/data.pkl")]
        roots = [root for root in roots if root.count("/") == 1]
        if len(roots) != 1:
            raise BadCheckpoint(f"{self.path} is a zip without torch's data.pkl; it was not written by torch.save")
        if f"{roots[0]}constants.pkl" in self.members:
            raise Unsupported(f"{self.path} is a TorchScript archive; save model.state_dict() with torch.save instead")
        return roots[0]

    def _check_byteorder(self) -> None:
        name = f"{self.root}byteorder"
        if name in self.members and self.read(name, limit=16) != b"little":
            raise Unsupported(f"{self.path} was written on a big-endian machine; load and save it again on another")

    def range(self, name: str) -> ByteRange:
        """Return the byte range of a stored member; raises BadCheckpoint when it is missing or cannot be one."""
        if name in self.ranges:
            return self.ranges[name]
        member = self.members.get(name)
        if member is None:
            raise BadCheckpoint(f"{self.path} lacks its member {shown(name)}; the file is incomplete")
        if not member.plain:
            raise BadCheckpoint(
                f"{self.path}: the member {shown(name)} is compressed or encrypted; torch.save stores members as they "
                "are, so the file was packed again by another tool"
            )
        header = self._at(member.at, LOCAL_HEADER.size)
        if len(header) == LOCAL_HEADER.size:
            signature, name_length, extra_length = LOCAL_HEADER.unpack(header)
            offset = member.at + LOCAL_HEADER.size + name_length + extra_length
            if signature == b"PK\x03\x04" and offset + member.size <= self.size:
                self.ranges[name] = ByteRange(offset, member.size)
                return self.ranges[name]
        raise BadCheckpoint(f"{self.path}: the member {shown(name)} reaches past the end of the file or is damaged")

    def storage(self, key: str) -> ByteRange:
        """Return the byte range of a storage; raises BadCheckpoint when the file lacks it."""
        return self.range(f"{self.root}data/{key}")

    def read(self, name: str, limit: int) -> bytes:
        """Return a small member whole; raises BadCheckpoint when it is larger than `limit` or its checksum is off."""
        offset, length, _ = self.range(name)
        if length > limit:
            raise BadCheckpoint(
                f"{self.path}: the member {shown(name)} holds {length:,} bytes, at most {limit:,} make sense"
            )
        data = self._at(offset, length)
        if len(data) != length:
            raise BadCheckpoint(f"{self.path} became shorter while it was read")
        if self.members[name].checksum not in (0, zlib.crc32(data)):  # 0: torch was told not to compute checksums
            raise BadCheckpoint(f"{self.path}: the checksum of {shown(name)} is wrong; the file is damaged")
        return data

    def _at(self, offset: int, length: int) -> bytes:
        return read_at(self.file, self.path, offset, length)

    def load(self) -> Loaded:
        data = self.read(f"{self.root}data.pkl", restricted_pickle.MAX_PICKLE)
        try:
            return restricted_pickle.read(data)
        except (BadCheckpoint, Unsupported) as error:
            raise type(error)(f"{self.path}: {error}") from None

    def checksums(self, *, whole: bool = False) -> list[Checksum]:
        start = f"{self.root}data/"
        names = self.members if whole else self.ranges
        return [
            Checksum(self.range(name), self.members[name].checksum, name)
            for name in names
            if name.startswith(start) and self.members[name].checksum
        ]


def _members(directory: bytes) -> Iterator[tuple[str, Member]]:
    """The entries of a directory; raises ValueError, struct.error where it is damaged."""
    at = 0
    while at < len(directory):
        signature, flags, method, checksum, packed, size, *lengths, place = ENTRY.unpack_from(directory, at)
        start = at + ENTRY.size
        at = start + sum(lengths)
        if signature != b"PK\1\2" or at > len(directory):
            raise ValueError
        name = directory[start : start + lengths[0]]
        if WIDE in (packed, size, place):
            numbers = _wide(directory[start + lengths[0] : start + lengths[0] + lengths[1]])
            size, packed, place = (next(numbers) if number == WIDE else number for number in (size, packed, place))
        plain = method == 0 and not flags & ENCRYPTED and size == packed
        yield name.decode("utf-8" if flags & UTF8 else "cp437"), Member(place, size, checksum, plain)


def _wide(extra: bytes) -> Iterator[int]:
    """The numbers of 64 bits in a member's extra field, and no more: WIDE itself for what it lacks."""
    at = 0
    while at + 4 <= len(extra):
        kind, length = struct.unpack_from("<HH", extra, at)
        if kind == 1:
            held = extra[at + 4 : at + 4 + length]
            yield from struct.unpack(f"<{len(held) // 8}Q", held[: len(held) // 8 * 8])
            break
        at += 4 + length
    while True:
        yield WIDE
