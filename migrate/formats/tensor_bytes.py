"""The bytes of a tensor as they go into a new file: copied as they stand where they can be, else reordered or cast."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from .byte_copy import STRETCH, Copier, read_range
from .casts import Losses, cast
from .contents import ByteRange, Piece, Tensor


def chunks(sources: Sequence[int], piece: Piece, losses: Losses | None = None) -> Iterator[ByteRange | bytes]:
    """The content of a piece in order: ranges of the sources, and blocks of some MiB where it has to be made.

    sources: descriptors. losses: is told what a cast to the piece's dtype loses. Raises BadCheckpoint when a source
    ends early.
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
    """Append the content of a piece, and `between` its bytes, position -> what stands before the byte there."""
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
    for position in waiting:  # of a tensor without elements
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
        rest = b""  # of an element that the cut between two spans goes through
        for offset, length, file in tensor.spans:
            for start in range(0, length, STRETCH):
                held = rest + read_range(sources[file], offset + start, min(STRETCH, length - start))
                whole = len(held) // tensor.item_size * tensor.item_size
                rest = held[whole:]
                yield np.frombuffer(held[:whole], kind)
        return
    (span,) = tensor.spans
    elements = np.frombuffer(read_range(sources[span.file], span.offset, span.length), kind)
    axes = [axis for axis, size in enumerate(tensor.shape) if size != 1]  # of others an array may not have as many
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
