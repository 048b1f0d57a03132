"""The directory at the end of a zip, which says where its members stand; nothing in it is believed unchecked.

The records are those of PKWARE's APPNOTE. Python's zipfile makes an object of half a kilobyte of every fifty bytes of a
directory, and of any number of them, so a file that anybody may have sent is looked at here first.
"""

from __future__ import annotations

import os
import struct
from collections.abc import Iterator
from typing import BinaryIO, NamedTuple

from ....errors import BadCheckpoint
from .reader import MAX_TENSORS, read_at

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


def directory(file: BinaryIO, path: str, most: int = MAX_MEMBERS) -> dict[str, Member]:
    """Read a zip's directory: member name -> member; raises BadCheckpoint where it is damaged, or lists too many."""
    damaged = BadCheckpoint(f"{path} begins as a zip but ends too early: truncated or damaged; fetch it again")
    whole = os.fstat(file.fileno()).st_size
    for longest in (0, 0xFFFF):  # of the comment behind it, which hardly any file has
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
        # Two readers could take two different members: nobody writes this by accident.
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
