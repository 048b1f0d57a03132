"""Copy tensors' bytes from one file to another: in one step where the source can be mapped, in two otherwise.

Small tensors and headers are gathered in a buffer, since a system call for each would cost more than the bytes.
Large ones are mapped, a window at a time, and written from there: one copy, from the source's page cache to the new
file's. (Reading and writing copies twice. copy_file_range takes half as long again: it goes page by page, and every
page of the source ends up on two pages of the new file, since headers shift the contents.) After each stretch the
kernel is told to begin writing to the disk, so that the fsync at the end finds little left to wait for.
"""

from __future__ import annotations

import contextlib
import errno
import mmap
import os
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any

from ...errors import BadCheckpoint

if TYPE_CHECKING:
    from .torch_state_dict import Tensor

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

    def __init__(self, source: int, output: int, size: int, progress: Progress | None = None) -> None:
        self.source, self.output, self.size, self.progress = source, output, size, progress
        self.buffer = bytearray()
        self.at = self.hinted = 0
        self.mappable = True
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

    def copy(self, offset: int, length: int) -> None:
        """Append `length` bytes of the source from `offset`; raises BadCheckpoint when the source ends before."""
        if length < SMALL:
            self.write(_read(self.source, offset, length))
            return
        self.flush()
        while length:
            step = min(length, WINDOW)
            copied = self._copy_mapped(offset, step)
            if not copied:
                block = _read(self.source, offset, step)
                copied = os.pwrite(self.output, block, self.at)
            self._advance(copied)
            offset += copied
            length -= copied

    def _copy_mapped(self, offset: int, length: int) -> int:
        """Copy bytes that this process never looks at; returns how many, 0 when reading has to tell what is wrong.

        Looking at them would kill the process when the source is cut short meanwhile. The kernel, in `pwrite`, stops
        there instead; only the rest of the last page it takes for zeros, which is why the size is asked afterwards.
        """
        if not self.mappable:
            return 0
        before = offset % mmap.ALLOCATIONGRANULARITY
        try:
            with (
                mmap.mmap(self.source, before + length, MAPPED, mmap.PROT_READ, offset=offset - before) as window,
                memoryview(window) as whole,
                whole[before:] as wanted,
            ):
                copied = os.pwrite(self.output, wanted, self.at)
        except ValueError:  # the source is too short
            return 0
        except OSError as error:
            if error.errno in FULL:
                raise
            self.mappable = False  # not this file; or a failing disk, and reading will tell which
            return 0
        return copied if os.fstat(self.source).st_size >= offset + length else 0

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


def _read(fd: int, offset: int, length: int) -> bytes:
    """Read a range of the source whole; raises BadCheckpoint when it ends early or cannot be read."""
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


def gather(fd: int, tensor: Tensor) -> Iterator[bytes]:
    """Yield the bytes of a tensor whose elements do not lie in row-major order, in blocks of a few MiB.

    Needs numpy, which the plain path does without, and the tensor's span in memory (mapping the file would count the
    same, and a source cut short meanwhile would kill the process). Elements move as unsigned integers of their size.
    """
    import numpy as np

    span = np.frombuffer(_read(fd, *tensor.span), np.dtype(f"u{tensor.item_size}"))
    view = np.lib.stride_tricks.as_strided(
        span, tensor.shape, [stride * tensor.item_size for stride in tensor.strides], writeable=False
    )
    for block in _blocks(view):
        yield block.tobytes()


def _blocks(view: Any) -> Iterator[Any]:
    """Cut an array along its first axes into blocks of at most a stretch, in row-major order."""
    if view.nbytes <= STRETCH:
        yield view
        return
    step = STRETCH // (view.nbytes // len(view))
    if step:
        for start in range(0, len(view), step):
            yield view[start : start + step]
    else:
        for row in view:
            yield from _blocks(row)
