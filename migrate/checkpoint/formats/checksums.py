"""Compare a file's bytes with the checksums that it has of them, in a thread beside the copying.

The copy itself never looks at the bytes: it is mapped, or shared by the file system (byte_copy.py). Here they are read
a second time, from the page cache as a rule, which takes a second processor less time than the copy takes the first.
"""

from __future__ import annotations

import os
import threading
import zlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager

from ....errors import BadCheckpoint
from .reader import ByteRange, Checksum, Source, Tensor, shown

BLOCK = 1 << 20  # bytes that are read at a time
LISTED = 3  # names in a message

Tensors = Callable[[], Mapping[str, Tensor]]


@contextmanager
def compared(source: Source, tensors: Tensors, *, whole: bool = False) -> Iterator[Callable[[], int]]:
    """Compare in the background what was described so far, or all of the file.

    tensors: by their names, for a message. Gives a function that waits for the end and returns how many bytes were
    compared; it raises BadCheckpoint where they are not what the file's checksums say.
    """
    checksums = sorted(source.checksums(whole=whole), key=lambda each: (each.range.file, each.range.offset))
    work = _Comparison(source.descriptors, checksums)
    thread = threading.Thread(target=work.run, daemon=True)
    thread.start()

    def finish() -> int:
        thread.join()
        if work.failure is not None:
            raise work.failure
        if work.damaged:
            raise BadCheckpoint(_said(source.path, work.damaged, tensors()))
        return sum(each.range.length for each in work.checksums)

    try:
        yield finish
    finally:
        work.stopped = True
        thread.join()


def compare(source: Source, tensors: Tensors, *, whole: bool = False) -> int:
    """The same at once."""
    with compared(source, tensors, whole=whole) as finish:
        return finish()


class _Comparison:
    """What a thread does, and what came of it: the ranges that are damaged, or why not all could be compared."""

    def __init__(self, descriptors: Sequence[int], checksums: Sequence[Checksum]) -> None:
        self.descriptors, self.checksums = descriptors, checksums
        self.damaged: list[Checksum] = []
        self.failure: BaseException | None = None
        self.stopped = False
        self.block = memoryview(bytearray(BLOCK))  # bytes of a file, from `at`
        self.file, self.at, self.filled = -1, 0, 0

    def run(self) -> None:
        try:
            for each in self.checksums:
                if self._crc(each.range) != each.crc:
                    self.damaged.append(each)
        except OSError as error:
            self.failure = BadCheckpoint(f"cannot read the source: {error.strerror}; nothing was written")
        except BaseException as error:  # a thread's own error would go unheard
            self.failure = error

    def _crc(self, where: ByteRange) -> int:
        offset, length, file = where
        found = 0
        while length:
            block = self._block(file, offset, length)
            found = zlib.crc32(block, found)
            offset += len(block)
            length -= len(block)
        return found

    def _block(self, file: int, offset: int, length: int) -> memoryview:
        """Up to so many bytes; a block that was read holds many small tensors."""
        if self.stopped:
            raise InterruptedError
        start = offset - self.at
        if file != self.file or not 0 <= start <= self.filled - min(length, BLOCK):
            self.file, self.at, start = file, offset, 0
            self.filled = os.preadv(self.descriptors[file], [self.block], offset)
            if not self.filled:
                raise BadCheckpoint("the source became shorter while it was read; nothing was written")
        return self.block[start : min(start + length, self.filled)]


def _said(path: str, damaged: Sequence[Checksum], tensors: Mapping[str, Tensor]) -> str:
    """What is damaged, which tensors it holds, and what to do."""
    names = [
        name
        for name, tensor in tensors.items()
        if any(_holds(each.range, span) for each in damaged for span in tensor.spans)
    ]
    places = ", ".join(shown(each.name) for each in damaged[:LISTED])
    more = f" and {len(damaged) - LISTED} more" if len(damaged) > LISTED else ""
    held = ", ".join(map(shown, names[:LISTED])) + (f" and {len(names) - LISTED} more" if len(names) > LISTED else "")
    return (
        f"{path} is damaged: the checksum of {places}{more} is not that of the bytes there"
        f"{f', which are those of {held}' if names else ''}. Copy or download the file again; or take the bytes as "
        f"they are: msmigrate convert-ckpt {path} OUT --no-crc"
    )


def _holds(outer: ByteRange, inner: ByteRange) -> bool:
    return outer.file == inner.file and outer.offset <= inner.offset < outer.offset + max(outer.length, 1)
