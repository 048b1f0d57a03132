"""The wire format of protobuf, as far as MindSpore's checkpoints need it, without protobuf.

A field is its number and kind in one varint, then a varint, or a length and as many bytes.
"""

from __future__ import annotations

import os

from ...errors import BadCheckpoint


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
    """Reads the file `fd` from `at` up to `end`, and steps over what is not asked for; trusts no length."""

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
        """Read a length and return where what follows ends."""
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
