"""Zips, MindSpore checkpoints and safetensors files put together with lies in them."""

from __future__ import annotations

import struct
import zlib
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cache
from random import Random
from typing import Any

import fuzz_bytes
from msmigrate.migrate.checkpoint.formats.ckpt import RECORD

LOCAL = ("version", "flags", "method", "time", "date", "crc", "packed", "size", "name_length", "extra_length")
ENTRY = (
    *("made", "version", "flags", "method", "time", "date", "crc", "packed", "size", "name_length", "extra_length"),
    *("comment_length", "disk", "inside", "outside", "offset"),
)
END = ("disk", "first_disk", "here", "count", "size", "offset", "comment_length")
WIDE_END = ("length", "made", "version", "disk", "first_disk", "here", "count", "size", "offset")
NAMES = (
    *(b"../../etc/passwd", b"/etc/passwd", b"archive/data/../data.pkl", b"archive\\data\\0", b"", b"archive/", b"a\0b"),
    *(
        b"archive/constants.pkl",
        b"other/data.pkl",
        b"data.pkl",
        b"a/b/data.pkl",
        b"\xff\xfe",
        b"x" * 5000,
        b"archive/\n",
    ),
)
CODES = {"H": 0xFFFF, "I": 0xFFFFFFFF, "Q": (1 << 64) - 1}


def packed(form: str, names: Sequence[str], values: dict[str, int]) -> bytes:
    """A record of integers, each cut to what its place holds."""
    codes = zip(form, names, strict=True)
    return struct.pack("<" + form, *(values.get(name, 0) & CODES[code] for code, name in codes))


@dataclass
class Member:
    """One file in a zip; local and entry override what its two headers say."""

    name: bytes
    content: bytes
    crc: int | None = None
    local: dict[str, int] = field(default_factory=dict)
    entry: dict[str, int] = field(default_factory=dict)
    extra: bytes = b""
    method: int = 0

    @property
    def told(self) -> dict[str, int]:
        size = len(self.content)
        lengths = {"name_length": len(self.name), "extra_length": len(self.extra), "packed": size, "size": size}
        return {**lengths, "crc": self.crc or zlib.crc32(self.content), "method": self.method, "version": 45}


def zipped(members: Sequence[Member], end: dict[str, int] | None = None, wide: dict[str, int] | None = None) -> bytes:
    """A zip of these; end overrides the end of the directory, wide that for 64 bits, which is left out for None."""
    out = b""
    entries = b""
    for member in members:
        offset = len(out)
        head = packed("HHHHHIIIHH", LOCAL, {**member.told, "extra_length": 0, **member.local})
        out += b"PK\3\4" + head + member.name + member.content
        head = packed("HHHHHHIIIHHHHHII", ENTRY, {**member.told, "offset": offset, **member.entry})
        entries += b"PK\1\2" + head + member.name + member.extra
    count = len(members)
    told = {"here": count, "count": count, "size": len(entries), "offset": len(out)}
    more = b""
    if wide is not None:
        more = b"PK\6\6" + packed("QHHIIQQQQ", WIDE_END, {"length": 44, **told, **wide})
        more += b"PK\6\7" + struct.pack("<IQI", 0, wide.get("place", len(out) + len(entries)) & CODES["Q"], 1)
    return out + entries + more + b"PK\5\6" + packed("HHHHIIH", END, {**told, **(end or {})})


@cache
def deflated(size: int) -> bytes:
    """Zeros, compressed to a thousandth."""
    squeeze = zlib.compressobj(9, zlib.DEFLATED, -15)
    return squeeze.compress(bytes(size)) + squeeze.flush()


def lying_zip(rng: Random, members: list[Member]) -> bytes:
    """A zip with one to three lies about its members or its directory."""
    end: dict[str, int] = {}
    wide: dict[str, int] | None = None
    for _ in range(rng.choice((1, 1, 2, 3))):
        one, other = rng.choice(members), rng.choice(members)
        kind = rng.randrange(14)
        number = fuzz_bytes.integer(rng)
        if kind == 0:  # two members that are the same bytes
            one.entry["offset"] = sum(30 + len(m.name) + len(m.content) for m in members[: members.index(other)])
        elif kind == 1:
            one.entry[rng.choice(ENTRY)] = number
        elif kind == 2:
            one.local[rng.choice(LOCAL)] = number
        elif kind == 3:  # sizes and an offset in 64 bits
            numbers = [fuzz_bytes.integer(rng) & CODES["Q"] for _ in range(3)]
            one.extra = struct.pack("<HHQQQ", 1, 24, *numbers)[: rng.choice((28, 28, 20, 7))]
            one.entry.update(dict.fromkeys(("packed", "size", "offset")[: rng.randrange(4)], 0xFFFFFFFF))
        elif kind == 4:
            members.append(Member(other.name, rng.choice((other.content, b"", b"x"))))
        elif kind == 5:
            one.name = rng.choice((*NAMES, other.name))
        elif kind == 6:
            members.append(Member(rng.choice(NAMES), other.content))
        elif kind == 7:
            size = rng.choice((len(one.content), 20 << 20))
            one.entry["size"] = one.local["size"] = size
            one.content, one.method = deflated(size), 8
        elif kind == 8:
            one.entry["flags"] = one.local["flags"] = rng.choice((1, 8, 0x41, 0x800, 0x2000))
        elif kind == 9:
            end[rng.choice(END)] = number
        elif kind == 10:
            wide = {**(wide or {}), rng.choice((*WIDE_END, "place")): number}
        elif kind == 11:
            members.remove(one)
            members = members or [other]
        elif kind == 12:
            one.crc = rng.getrandbits(32)
        else:  # the end again, in a comment or behind it
            again = zipped(rng.sample(members, len(members) // 2 + 1), {rng.choice(END): number})
            return (
                zipped(members, {"comment_length": rng.choice((len(again), 0, 22))}) + again[-rng.choice((22, 200)) :]
            )
    return zipped(members, end, wide)


# MindSpore's protobuf ---------------------------------------------------------------------------------------------


@dataclass
class Field:
    """A field of a message: its number, its kind, its content or the fields in it; lie is added to its length."""

    number: int
    kind: int
    content: bytes | int | list[Field]
    lie: int = 0

    def encoded(self) -> bytes:
        key = varint(self.number << 3 | self.kind)
        if isinstance(self.content, int):
            return key + varint(self.content)
        body = self.content if isinstance(self.content, bytes) else b"".join(f.encoded() for f in self.content)
        if self.kind in (1, 5):
            return key + body
        return key + varint(max(0, len(body) + self.lie)) + body


def varint(number: int) -> bytes:
    """A varint of any number; a negative one as 64 bits."""
    number = number & CODES["Q"] if number < 0 else number
    found = bytearray()
    while number > 0x7F and len(found) < 3000:
        found.append(number & 0x7F | 0x80)
        number >>= 7
    return bytes(found) + bytes([number & 0x7F])


def value(tag: str, dims: Sequence[int], kind: str, content: bytes) -> Field:
    """One tensor as MindSpore writes it."""
    tensor = [*(Field(1, 0, dim) for dim in dims), Field(2, 2, kind.encode()), Field(3, 2, content)]
    return Field(1, 2, [Field(1, 2, tag.encode()), Field(2, 2, tensor)])


def record(content: bytes) -> Field:
    """What a conversion has noted."""
    return Field(RECORD, 2, content)


def lying_fields(rng: Random, fields: list[Field]) -> bytes:
    """A message with one to three of its fields changed, wherever they stand."""
    for _ in range(rng.choice((1, 1, 2, 3))):
        holders = _holders(fields)
        holder = rng.choice(holders)
        at = rng.randrange(len(holder))
        one, kind = holder[at], rng.randrange(11)
        if kind == 0:
            one.lie = rng.choice((-1, 1, 5, 1000, fuzz_bytes.integer(rng)))
        elif kind == 1:
            del holder[at]
        elif kind == 2:
            holder.insert(rng.randrange(len(holder) + 1), one)
        elif kind == 3:
            one.number = rng.choice((0, 1, 2, 3, 4, 15, 100, RECORD, (1 << 29) - 1, 1 << 40))
        elif kind == 4:
            one.kind = rng.randrange(8)
        elif kind == 5:
            other = rng.choice(rng.choice(holders))
            one.content = other.content if other is not one and not isinstance(other.content, list) else b""
        elif kind == 6 and isinstance(one.content, int):
            one.content = fuzz_bytes.integer(rng) if rng.random() < 0.6 else one.content + rng.choice((-1, 1))
        elif kind == 7:
            holder.insert(at, Field(rng.randrange(6), 0, fuzz_bytes.integer(rng)))
        elif kind == 8:
            wanted = rng.choice((fuzz_bytes.text(rng).encode("utf-8", "surrogatepass"), b"Float64", b"Bool", b"String"))
            one.content = wanted if isinstance(one.content, bytes) else one.content
        elif kind == 9 and isinstance(one.content, int):  # more sizes than any tensor has
            holder[at:at] = [Field(1, 0, rng.choice((1, 2, 1 << 62)))] * rng.choice((60, 64, 1000, 20_000))
        else:
            rng.shuffle(holder)
        fields = fields or [record(b"")]
    return b"".join(f.encoded() for f in fields)


def _holders(fields: list[Field]) -> list[list[Field]]:
    """The message, and all messages in it that are not empty."""
    found, waiting = [], [fields]
    while waiting:
        holder = waiting.pop()
        if holder:
            found.append(holder)
        waiting += [f.content for f in holder if isinstance(f.content, list)]
    return found or [[Field(1, 2, b"")]]


# Safetensors ------------------------------------------------------------------------------------------------------


def safetensors(rng: Random, header: Any, data: bytes, *, lie: bool) -> bytes:
    """A file with this header; a lie is about the length of it or of the data."""
    text = fuzz_bytes.json_text(rng, header)
    length = len(text)
    if lie:
        length = rng.choice((length + 1, length - 1, length + 8, 0, fuzz_bytes.integer(rng), 100_000_000, 100_000_001))
        data = rng.choice((data, data, data[:-1], data + b"\0", b""))
    return struct.pack("<Q", length & CODES["Q"]) + text + data
