"""Copy tensors' bytes from one file to another: in one step where the source can be mapped, in two otherwise.

Small tensors and headers are gathered in a buffer, since a system call for each would cost more than the bytes.
Large ones are mapped, a window at a time, and written from there: one copy, from the source's page cache to the new
file's; none where the file system can share the blocks (range_clone.py). (Reading and writing copies twice.
copy_file_range takes half as long again: it goes page by page, and every page of the source ends up on two pages of the
new file, since headers shift the contents.) After each stretch the kernel is told to begin writing to the disk, so that
the fsync at the end finds little left to wait for.
"""

from __future__ import annotations

import contextlib
import errno
import mmap
import os
from collections.abc import Callable

from ...errors import BadCheckpoint
from .range_clone import BLOCK, WORTH, clone, shift

BUFFER = 1 << 20  # bytes gathered before a write; a tensor smaller than SMALL goes through it
SMALL = 64 << 10
WINDOW = 1 << 20  # bytes mapped at a time; while they are, they count as memory of this process
STRETCH = 4 << 20  # bytes between two hints to the disk, and between two reports of progress
FULL = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)  # what a disk, a quota and a limit say
MAPPED = mmap.MAP_SHARED | getattr(mmap, "MAP_POPULATE", 0)  # all pages at once, where the system can

Progress = Callable[[int, int], None]  # called with the bytes written so far, and those to be written in all


class Copier:
    """Writes to `output` in order; `size` bytes in all are announced to the file system first.

    Reserving them makes a full disk fail before the first byte, and saves the file system from growing the file.
    """

    def __init__(self, output: int, size: int, progress: Progress | None = None) -> None:
        self.output, self.size, self.progress = output, size, progress
        self.buffer = bytearray()
        self.at = self.hinted = 0
        self.unmappable: set[int] = set()  # sources
        self.unclonable: set[int] = set()
        if size and hasattr(os, "posix_fallocate"):
            try:
                os.posix_fallocate(output, 0, size)
            except OSError as error:
                if error.errno not in (errno.EOPNOTSUPP, errno.EINVAL, errno.ENOSYS):
                    raise

    def write(self, data: bytes | memoryview) -> None:
        """Append bytes from memory."""
        self.buffer += data
        if len(self.buffer) >= BUFFER:
            self.flush()

    def copy(self, source: int, offset: int, length: int) -> None:
        """Append `length` bytes of a source from `offset`; raises BadCheckpoint when the source ends before."""
        if length < SMALL:
            self.write(read_range(source, offset, length))
            return
        self.flush()
        if length >= WORTH and not shift(offset, self.at) and source not in self.unclonable:
            shared = self._clone(source, offset, length)
            offset, length = offset + shared, length - shared
        while length:
            step = min(length, WINDOW)
            copied = self._copy_mapped(source, offset, step)
            if not copied:
                block = read_range(source, offset, step)
                copied = os.pwrite(self.output, block, self.at)
            self._advance(copied)
            offset += copied
            length -= copied

    def _clone(self, source: int, offset: int, length: int) -> int:
        """Append as much as can be shared with the source instead of copied; returns how many bytes were appended."""
        before = -offset % BLOCK
        whole = (length - before) // BLOCK * BLOCK
        if before:
            self.write(read_range(source, offset, before))
            self.flush()
        if os.fstat(source).st_size < offset + before + whole or not clone(
            source, offset + before, self.output, self.at, whole
        ):
            self.unclonable.add(source)  # or it became shorter, and reading will tell
            return before
        self._advance(whole)
        return before + whole

    def _copy_mapped(self, source: int, offset: int, length: int) -> int:
        """Copy bytes that this process never looks at; returns how many, 0 when reading has to tell what is wrong.

        Looking at them would kill the process when the source is cut short meanwhile. The kernel, in `pwrite`, stops
        there instead; only the rest of the last page it takes for zeros, which is why the size is asked afterwards.
        """
        if source in self.unmappable:
            return 0
        before = offset % mmap.ALLOCATIONGRANULARITY
        try:
            with (
                mmap.mmap(source, before + length, MAPPED, mmap.PROT_READ, offset=offset - before) as window,
                memoryview(window) as whole,
                whole[before:] as wanted,
            ):
                copied = os.pwrite(self.output, wanted, self.at)
        except ValueError:  # the source is too short
            return 0
        except OSError as error:
            if error.errno in FULL:
                raise
            self.unmappable.add(source)  # not this file; or a failing disk, and reading will tell which
            return 0
        return copied if os.fstat(source).st_size >= offset + length else 0

    def flush(self) -> None:
        """Write what the buffer holds."""
        view = memoryview(self.buffer)
        while view:
            written = os.pwrite(self.output, view, self.at)
            self._advance(written)
            view = view[written:]
        view.release()
        self.buffer = bytearray()

    def _advance(self, count: int) -> None:
        self.at += count
        if self.progress:
            self.progress(self.at, self.size)
        whole = self.at // STRETCH * STRETCH
        if whole > self.hinted and hasattr(os, "posix_fadvise"):
            # DONTNEED on dirty pages starts their way to the disk and returns at once; they stay in the cache. The
            # pages that the next bytes go to are left out: writing to a page on its way waits for its arrival.
            with contextlib.suppress(OSError):
                os.posix_fadvise(self.output, self.hinted, whole - self.hinted, os.POSIX_FADV_DONTNEED)
            self.hinted = whole


def read_range(fd: int, offset: int, length: int) -> bytes:
    """Read a range of a source whole; raises BadCheckpoint when it ends early or cannot be read."""
    data = b""
    while len(data) < length:
        try:
            more = os.pread(fd, length - len(data), offset + len(data))
        except OSError as error:
            raise BadCheckpoint(f"cannot read the source: {error.strerror}; nothing was written") from None
        if not more:
            raise BadCheckpoint("the source became shorter while it was read; nothing was written")
        data = data + more if data else more
    return data
