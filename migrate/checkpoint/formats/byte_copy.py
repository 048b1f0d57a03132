"""Copy bytes of tensors: unchanged, as shared blocks (reflink), reordered, or cast; compared with their CRCs meanwhile.

Small tensors and headers are gathered in a buffer, since a system call for each would cost more than the bytes.
Large ones are mapped, a window at a time, and written from there: one copy, from the source's page cache to the new
file's; none where the file system can share the blocks. (Reading and writing copies twice. copy_file_range takes half
as long again: it copies page by page, and every page of the source ends up on two pages of the new file, since headers
shift the contents.) After each stretch the kernel is asked to begin writing to the disk, so that the fsync at the end
has little left to wait for.

bfloat16 is the upper half of a float32 (Wang and Kanwar, "BFloat16: The secret to high performance on Cloud TPUs",
2019), rounded to the nearest, ties to even, as torch rounds; NumPy does not have it.

Sharing is ioctl_ficlonerange(2). Both offsets and the length have to be multiples of the file system's block, so a
content can be shared only where it has the same offset within a block in the new file as in the old one.
"""

from __future__ import annotations

import contextlib
import errno
import mmap
import os
import struct
import threading
import zlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

from ....errors import BadCheckpoint
from .reader import ITEM_SIZES, ByteRange, Checksum, Piece, Source, Tensor, Tensors, shown

BUFFER = 1 << 20  # bytes gathered before a write; a tensor smaller than SMALL goes through it
SMALL = 64 << 10
WINDOW = 1 << 20  # bytes mapped at a time; while they are, they count as memory of this process
STRETCH = 4 << 20  # bytes between two hints to the disk, and between two reports of progress
FULL = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)  # the disk, a quota or a size limit is reached
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
        """Append `length` bytes of a source from `offset`; raises BadCheckpoint when the source is too short."""
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
            self.unclonable.add(source)  # or it became shorter, and then reading raises the error
            return before
        self._advance(whole)
        return before + whole

    def _copy_mapped(self, source: int, offset: int, length: int) -> int:
        """Copy bytes without accessing them in this process; returns how many, 0 where reading has to find the error.

        An access would kill the process when the source is cut short meanwhile. The kernel, in `pwrite`, stops there
        instead, but reads the rest of the last page as zeros, which is why the size is checked afterwards.
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
            self.unmappable.add(source)  # it cannot be mapped, or the disk fails and reading raises the error
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
            # pages that the next bytes go to are left out: writing to a page that is being flushed would wait.
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


FLOATS = ("float64", "float32", "float16", "bfloat16")
SMALLEST_NORMAL = {"float64": 2.0**-1022, "float32": 2.0**-126, "float16": 2.0**-14, "bfloat16": 2.0**-126}


class Losses:
    """What casts lost, by the name of the new tensor: how many finite numbers became infinite, how many nonzero ones
    became zero, and how many became subnormal, with fewer digits than the format has."""

    def __init__(self) -> None:
        self.overflowed: dict[str, int] = {}
        self.vanished: dict[str, int] = {}
        self.subnormal: dict[str, int] = {}

    def count(self, name: str, before: Any, after: Any, dtype: str) -> None:
        """Compare an array of float64 or float32 with the result of its cast, converted back."""
        import numpy as np

        small = (np.abs(after) < SMALLEST_NORMAL[dtype]) & (after != 0)
        for lost, counts in (
            (np.isfinite(before) & ~np.isfinite(after), self.overflowed),
            ((before != 0) & (after == 0), self.vanished),
            (small & (before != after), self.subnormal),
        ):
            count = int(lost.sum())
            if count:
                counts[name] = counts.get(name, 0) + count


def castable(dtype: str) -> bool:
    """Whether --dtype changes a tensor of this dtype; integers and booleans stay as they are."""
    return dtype in FLOATS


def cast(bits: Any, piece: Piece, losses: Losses | None = None) -> bytes:
    """The bytes of an array cast to the piece's dtype; the array holds the elements' bits as unsigned integers.

    bits: any shape, of the tensor's item size.
    """
    import numpy as np

    with np.errstate(all="ignore"):  # losses are counted instead
        wide = widened(bits, piece.tensor.dtype)
        narrow = _bfloat16(wide) if piece.dtype == "bfloat16" else wide.astype(f"f{ITEM_SIZES[piece.dtype]}")
        if losses is not None and ITEM_SIZES[piece.dtype] <= ITEM_SIZES[piece.tensor.dtype]:
            back = widened(narrow, piece.dtype).astype(wide.dtype)
            losses.count(piece.name, wide, back, piece.dtype)
    return bytes(narrow.tobytes())


def widened(bits: Any, dtype: str) -> Any:
    """The numbers whose bits these are, as float64, or as float32 where that holds them exactly."""
    import numpy as np

    bits = np.ascontiguousarray(bits)
    if dtype == "bfloat16":
        return (bits.view(np.uint16).astype(np.uint32) << 16).view(np.float32)
    found = bits.view(f"f{ITEM_SIZES[dtype]}")
    return found if dtype in ("float64", "float32") else found.astype(np.float32)


def _bfloat16(wide: Any) -> Any:
    """The bits of the nearest bfloat16, ties to even; NaN stays NaN."""
    import numpy as np

    bits = wide.astype(np.float32).view(np.uint32)
    rounded = (bits + (((bits >> 16) & 1) + np.uint32(0x7FFF))) >> 16
    quiet = (bits >> 16) | np.uint32(0x40)
    return np.where(np.isnan(wide), quiet, rounded).astype(np.uint16)


BLOCK = 4096  # bytes; these file systems' default, and with another block size the request is refused
WORTH = 1 << 20  # bytes; below that a copy costs no more than the request
REQUEST = 0x4020940D  # FICLONERANGE
RANGE = struct.Struct("<qQQQ")  # source, its offset, length, offset in the new file


def can_clone(source: int, output: int) -> bool:
    """Whether the output file can share blocks with the source file; it is empty and stays empty."""
    if os.fstat(source).st_size < BLOCK or os.fstat(source).st_dev != os.fstat(output).st_dev:
        return False
    done = clone(source, 0, output, 0, BLOCK)
    os.ftruncate(output, 0)
    return done


def clone(source: int, offset: int, output: int, at: int, length: int) -> bool:
    """Share `length` bytes of `source` from `offset` with `output` from `at`; returns whether that worked.

    All three are multiples of BLOCK.
    """
    try:
        import fcntl

        fcntl.ioctl(output, REQUEST, RANGE.pack(source, offset, length, at))
    except (ImportError, OSError):
        return False
    return True


def shift(offset: int, at: int) -> int:
    """How many bytes to insert before `at`, so that the content there can share the blocks of that at `offset`."""
    return (offset - at) % BLOCK


def chunks(sources: Sequence[int], piece: Piece, losses: Losses | None = None) -> Iterator[ByteRange | bytes]:
    """The content of a piece in order: ranges of the sources, and blocks of some MiB where it has to be computed.

    sources: descriptors. losses: counts what a cast to the piece's dtype loses. Raises BadCheckpoint when a source ends
    early.
    """
    tensor = piece.tensor
    if piece.dtype == tensor.dtype:
        yield from tensor.spans if tensor.contiguous else _gathered(sources, tensor)
        return
    for block in _blocks_of(sources, tensor):
        yield cast(block, piece, losses)


def copy_content(
    copier: Copier, sources: Sequence[int], piece: Piece, between: dict[int, bytes], losses: Losses | None = None
) -> None:
    """Append the content of a piece; between: position in the content -> bytes to insert before the byte there."""
    at = 0
    waiting = sorted(between)
    for chunk in chunks(sources, piece, losses):
        start, left = 0, len(chunk) if isinstance(chunk, bytes) else chunk.length
        while left or (waiting and waiting[0] == at):
            if waiting and waiting[0] == at:
                copier.write(between[waiting.pop(0)])
            step = min(left, waiting[0] - at) if waiting else left
            if isinstance(chunk, bytes):
                copier.write(chunk[start : start + step] if step < len(chunk) else chunk)
            elif step:
                copier.copy(sources[chunk.file], chunk.offset + start, step)
            start, left, at = start + step, left - step, at + step
    for position in waiting:  # where the tensor has no elements
        copier.write(between[position])


def _gathered(sources: Sequence[int], tensor: Tensor) -> Iterator[bytes]:
    for block in _blocks_of(sources, tensor):
        yield block.tobytes()


def _blocks_of(sources: Sequence[int], tensor: Tensor) -> Iterator[Any]:
    """The elements in row-major order, as arrays of unsigned integers of their size, in blocks of some MiB.

    Needs numpy, which the plain path does without. A tensor that is not contiguous needs its span in memory (mapping
    the file would count the same, and a source cut short meanwhile would kill the process).
    """
    import numpy as np

    kind = np.dtype(f"u{tensor.item_size}") if tensor.item_size <= 8 else np.dtype("V16")
    if tensor.contiguous:
        rest = b""  # the beginning of an element that lies in two spans
        for offset, length, file in tensor.spans:
            for start in range(0, length, STRETCH):
                held = rest + read_range(sources[file], offset + start, min(STRETCH, length - start))
                whole = len(held) // tensor.item_size * tensor.item_size
                rest = held[whole:]
                yield np.frombuffer(held[:whole], kind)
        return
    (span,) = tensor.spans
    elements = np.frombuffer(read_range(sources[span.file], span.offset, span.length), kind)
    axes = [axis for axis, size in enumerate(tensor.shape) if size != 1]  # NumPy limits the number of axes
    shape, strides = [tensor.shape[axis] for axis in axes], [tensor.strides[axis] * tensor.item_size for axis in axes]
    view = np.lib.stride_tricks.as_strided(elements, shape, strides, writeable=False)
    yield from _blocks(view)


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


CHECKSUM_BLOCK = 1 << 20  # bytes that are read at a time
LISTED = 3  # names in a message


@contextmanager
def checksums_compared(source: Source, tensors: Tensors, *, whole: bool = False) -> Iterator[Callable[[], int]]:
    """Compare in the background what was described so far, or all of the file, with the checksums that it has.

    The copy itself never reads the bytes: they are mapped, or shared by the file system (byte_copy.py). Here they are
    read a second time, usually from the page cache, which takes a second processor less time than the copy takes the
    first.

    tensors: by their names, for a message. Yields a function that waits for the end and returns how many bytes were
    compared; it raises BadCheckpoint where they do not have the file's checksums.
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
            raise BadCheckpoint(_damage(source.path, work.damaged, tensors()))
        return sum(each.range.length for each in work.checksums)

    try:
        yield finish
    finally:
        work.stopped = True
        thread.join()


def compare_checksums(source: Source, tensors: Tensors, *, whole: bool = False) -> int:
    """The same, waiting for the result; returns how many bytes were compared."""
    with checksums_compared(source, tensors, whole=whole) as finish:
        return finish()


class _Comparison:
    """A thread's work and its result: the ranges that are damaged, or why not all could be compared."""

    def __init__(self, descriptors: Sequence[int], checksums: Sequence[Checksum]) -> None:
        self.descriptors, self.checksums = descriptors, checksums
        self.damaged: list[Checksum] = []
        self.failure: BaseException | None = None
        self.stopped = False
        self.block = memoryview(bytearray(CHECKSUM_BLOCK))  # bytes of a file, from `at`
        self.file, self.at, self.filled = -1, 0, 0

    def run(self) -> None:
        try:
            for each in self.checksums:
                if self._crc(each.range) != each.crc:
                    self.damaged.append(each)
        except OSError as error:
            self.failure = BadCheckpoint(f"cannot read the source: {error.strerror}; nothing was written")
        except BaseException as error:  # else an error in a thread would go unnoticed
            self.failure = error

    def _crc(self, where: ByteRange) -> int:
        offset, length, file = where
        crc = 0
        while length:
            block = self._block(file, offset, length)
            crc = zlib.crc32(block, crc)
            offset += len(block)
            length -= len(block)
        return crc

    def _block(self, file: int, offset: int, length: int) -> memoryview:
        """At most `length` bytes; the block read last is used again, since it may hold many small tensors."""
        if self.stopped:
            raise InterruptedError
        start = offset - self.at
        if file != self.file or not 0 <= start <= self.filled - min(length, CHECKSUM_BLOCK):
            self.file, self.at, start = file, offset, 0
            self.filled = os.preadv(self.descriptors[file], [self.block], offset)
            if not self.filled:
                raise BadCheckpoint("the source became shorter while it was read; nothing was written")
        return self.block[start : min(start + length, self.filled)]


def _damage(path: str, damaged: Sequence[Checksum], tensors: Mapping[str, Tensor]) -> str:
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
