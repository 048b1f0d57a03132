"""Headers of a `.ckpt` filled up so that large contents can share the blocks of the source, where the disk can do that.

What fills up is a field of Checkpoint of its own, PADDING, which parsers pass over; up to a block before each content.
"""

from __future__ import annotations

from collections.abc import Mapping

from .contents import Piece
from .protobuf import varint
from .range_clone import BLOCK, WORTH, shift

PADDING = 0x506D  # the number of the field, among those that nobody has named
KEY = varint(PADDING << 3 | 2)
LEAST = len(KEY) + 2  # bytes of a field whose length is written in two


def filled_up(heads: Mapping[int, bytes], piece: Piece, at: int) -> dict[int, bytes]:
    """The headers of a piece (position in the content -> header) that begins at `at` of the new file, filled up."""
    tensor = piece.tensor
    if piece.dtype != tensor.dtype or not tensor.contiguous or len(tensor.spans) != 1:
        return dict(heads)
    found = {}
    starts = sorted(heads)
    for start, stop in zip(starts, [*starts[1:], piece.nbytes], strict=True):
        head = heads[start]
        if stop - start >= WORTH:
            head = padding(shift(tensor.spans[0].offset + start, at + len(head))) + head
        found[start] = head
        at += len(head) + stop - start
    return found


def padding(count: int) -> bytes:
    """A field of `count` bytes, or of a block more where so few are too few for one."""
    if count == 0:
        return b""
    count += BLOCK if count < LEAST else 0
    inside = count - LEAST
    return KEY + bytes([inside & 0x7F | 0x80, inside >> 7]) + bytes(inside)
