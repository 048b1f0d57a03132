"""torch.save's files, the zip and the format before torch 1.6: where the pickle and each storage are.

Before 1.6:

    magic number, protocol version, sys_info     a pickle each, to know the file by
    the objects                                  a pickle with references to storages
    the keys of the storages                     a pickled list
    for each key, in this order                  the number of elements (int64, little-endian), and their bytes

So every storage is a byte range of the file. The layout is that of `torch/serialization.py`, `_legacy_save`. The zip:

    NAME/data.pkl      the objects, with references to storages
    NAME/byteorder     "little" or "big" (since torch 2.1; little before)
    NAME/data/KEY      the raw bytes of one storage

Members are stored, never compressed, so every storage is a byte range of the file. The layout is that of
`torch/csrc/inline_container` (caffe2/serialize).

The directory at the end of a zip says where its members are; everything in it is checked. Its records are those of
PKWARE's APPNOTE. Python's zipfile makes an object of half a kilobyte for every fifty bytes of a directory, without a
limit, so a file, which may come from anyone, is checked here first.
"""

from __future__ import annotations

import os
import re
import struct
import zlib
from collections.abc import Iterator, Mapping
from typing import Any, BinaryIO, NamedTuple

from ....errors import BadCheckpoint, Unsupported
from . import restricted_pickle
from .pth_tensors import Storage, storage_item_size
from .pth_weights import TorchSource
from .reader import MAX_TENSORS, ByteRange, Checksum, read_at, shown
from .restricted_pickle import Loaded

MAGIC = 0x1950A86A20F9469CFC6C
BEGINNING = re.compile(  # protocol, perhaps a frame, and the magic number as a LONG1
    rb"\x80[\x02-\x05](\x95.{8})?\x8a\n" + re.escape(MAGIC.to_bytes(10, "little")) + rb"\.", re.DOTALL
)
VERSION = 1001
HEADER = 4096  # bytes that each of the first three pickles fits in
SIZES = {"short": (2,), "int": (4,), "long": (4, 8)}  # of the machine that wrote the file
COUNT = struct.Struct("<q")


def begins(head: bytes) -> bool:
    """Whether a file with these first bytes is from before torch 1.6."""
    return BEGINNING.match(head) is not None


class TorchLegacy(TorchSource):
    """An open checkpoint from before torch 1.6; raises BadCheckpoint for another file, Unsupported if big-endian."""

    format = "torch before 1.6"

    def __init__(self, path: str, file: BinaryIO) -> None:
        super().__init__(path, [file])
        self.size = os.fstat(file.fileno()).st_size
        magic = self._pickle(0, HEADER)
        version = self._pickle(magic.end, HEADER)
        system = self._pickle(version.end, HEADER)
        if magic.value != MAGIC or version.value != VERSION or type(system.value) is not dict:
            raise BadCheckpoint(f"{path} begins like a file from before torch 1.6, but is not one")
        if system.value.get("little_endian") is False:
            raise Unsupported(f"{path} was written on a big-endian machine; load and save it again on another")
        sizes = system.value.get("type_sizes")
        if system.value.get("little_endian") is not True or not _usual(sizes):
            raise BadCheckpoint(f"{path} was written on a machine whose numbers are of unknown sizes")
        self.content = self._pickle(system.end, restricted_pickle.MAX_PICKLE)
        keys = self._pickle(self.content.end, restricted_pickle.MAX_PICKLE, restricted_pickle.MAX_MEMORY // 4)
        self.storages = self._storages(keys)

    def load(self) -> Loaded:
        return self.content

    def storage(self, key: str) -> ByteRange:
        if key not in self.storages:
            raise BadCheckpoint(f"{self.path} lacks its storage {shown(key)}; the file is incomplete")
        return self.storages[key]

    def _pickle(self, start: int, limit: int, memory: int | None = None) -> Loaded:
        """The pickle that begins at `start`; its `end` is an offset in the file."""
        data = read_at(self.files[0], self.path, start, limit)
        try:
            found = restricted_pickle.read(data, legacy=True, memory=memory)
        except (BadCheckpoint, Unsupported) as error:
            cut = f", unless it is larger than {limit:,} bytes, which none needs to be" if len(data) == limit else ""
            raise type(error)(f"{self.path}: {error}{cut}") from None
        return found._replace(end=start + found.end)

    def _storages(self, keys: Loaded) -> Mapping[str, ByteRange]:
        """Where each storage's bytes stand; raises BadCheckpoint unless they fill the file to its end."""
        known = self.content.storages
        listed = keys.value
        if (
            type(listed) is not list
            or not all(isinstance(key, str) for key in listed)
            or sorted(listed) != sorted(known)
        ):
            raise BadCheckpoint(f"{self.path}: the storages at its end are not those that its tensors refer to")
        found: dict[str, ByteRange] = {}
        at = keys.end
        for key in listed:
            length = self._length(key, known[key], at)
            found[key] = ByteRange(at + COUNT.size, length)
            at += COUNT.size + length
        if at != self.size:
            raise BadCheckpoint(f"{self.path} holds {self.size - at:,} bytes after its last storage; it is damaged")
        return found

    def _length(self, key: str, storage: Storage, at: int) -> int:
        """The size in bytes of the storage whose element count is at offset `at`."""
        count = read_at(self.files[0], self.path, at, COUNT.size)
        try:
            length = storage.numel * storage_item_size(storage.kind)
        except Unsupported as error:
            raise Unsupported(f"{self.path}: {error}") from None
        if len(count) < COUNT.size or at + COUNT.size + max(length, 0) > self.size:
            raise BadCheckpoint(f"{self.path} ends within its storage {shown(key)}: truncated; fetch it again")
        if length < 0 or COUNT.unpack(count)[0] != storage.numel:
            raise BadCheckpoint(
                f"{self.path}: its storage {shown(key)} is not as large as its tensors say; the file is damaged"
            )
        return length


def _usual(sizes: Any) -> bool:
    return sizes is None or (
        type(sizes) is dict and all(sizes.get(name, usual[0]) in usual for name, usual in SIZES.items())
    )


LOCAL_HEADER = struct.Struct("<4s22xHH")  # signature, …, length of the name, length of the extra field


class TorchZip(TorchSource):
    """An open checkpoint file; raises BadCheckpoint when it is not such a zip."""

    format = "torch zip"

    def __init__(self, path: str, file: BinaryIO) -> None:
        super().__init__(path, [file])
        self.file = file
        self.size = os.fstat(file.fileno()).st_size
        self.members = directory(file, path)
        self.root = self._root()
        self.ranges: dict[str, ByteRange] = {}  # of the members that were looked up
        self._check_byteorder()

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
        """Return a small member whole; raises BadCheckpoint when it is larger than `limit` or its checksum is wrong."""
        offset, length, _ = self.range(name)
        if length > limit:
            raise BadCheckpoint(
                f"{self.path}: the member {shown(name)} holds {length:,} bytes, more than the {limit:,} it may have"
            )
        data = self._at(offset, length)
        if len(data) != length:
            raise BadCheckpoint(f"{self.path} became shorter while it was read")
        if self.members[name].checksum not in (0, zlib.crc32(data)):  # 0: torch did not compute checksums
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


# The directory of a zip

# signature, …, flags, method, …, checksum, sizes, lengths of name, extra field and comment, …, offset
ENTRY = struct.Struct("<4s4xHH4xIIIHHH8xI")
END = struct.Struct("<4s6xHIIH")  # signature, …, members, size and offset of the directory, length of the comment
WIDE_END = struct.Struct("<4s28xQQQ")  # the same where 64 bits are needed
WIDE_END_PLACE = struct.Struct("<4s4xQ4x")
WIDE = 0xFFFFFFFF  # stands for a size or offset that is stored in 64 bits elsewhere
ENCRYPTED, UTF8 = 0x0001, 0x0800
MAX_MEMBERS = MAX_TENSORS + 1000
MAX_DIRECTORY = 48 << 20  # bytes; a member takes about a hundred


class Member(NamedTuple):
    """One file inside the zip, of `size` bytes, whose header is at `at`; plain: neither compressed nor encrypted.

    checksum: the CRC-32 of its bytes, 0 where the writer computed none.
    """

    at: int
    size: int
    checksum: int
    plain: bool


def directory(file: BinaryIO, path: str, most: int = MAX_MEMBERS) -> dict[str, Member]:
    """Read a zip's directory: member name -> member; raises BadCheckpoint where it is damaged, or lists too many."""
    damaged = BadCheckpoint(f"{path} begins as a zip but ends too early: truncated or damaged; fetch it again")
    whole = os.fstat(file.fileno()).st_size
    for longest in (0, 0xFFFF):  # bytes of the comment after it, which hardly any file has
        tail_at = max(0, whole - END.size - longest)
        tail = read_at(file, path, tail_at, whole - tail_at)
        at = tail.rfind(b"PK\5\6")
        if 0 <= at <= len(tail) - END.size:
            break
    else:
        raise damaged
    _, count, size, start, _ = END.unpack_from(tail, at)
    place = read_at(file, path, tail_at + at - WIDE_END_PLACE.size, WIDE_END_PLACE.size) if tail_at + at >= 20 else b""
    if place.startswith(b"PK\6\7"):
        wide = read_at(file, path, WIDE_END_PLACE.unpack(place)[1], WIDE_END.size)
        if len(wide) < WIDE_END.size or not wide.startswith(b"PK\6\6"):
            raise damaged
        _, count, size, start = WIDE_END.unpack(wide)
    if start + size > whole:
        raise damaged
    if count > most or size > MAX_DIRECTORY:
        raise BadCheckpoint(
            f"{path} holds {count:,} members, listed in {size:,} bytes; such a file has at most {most:,}, in "
            f"{MAX_DIRECTORY:,}"
        )
    members: dict[str, Member] = {}
    found = 0
    try:
        for name, member in _members(read_at(file, path, start, size)):
            members[name] = member
            found += 1
    except (ValueError, struct.error):
        raise damaged from None
    if found != count:
        raise damaged
    if len(members) != count:
        # Two readers could read different members: no writer does this by accident.
        raise BadCheckpoint(f"{path} holds two members of one name")
    return members


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
    """The 64-bit numbers in a member's extra field, then WIDE for each that it lacks."""
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
