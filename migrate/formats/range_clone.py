"""Share blocks between two files instead of copying them, where the file system can: XFS, Btrfs and others on Linux.

The request is ioctl_ficlonerange(2). Both places and the length have to be multiples of the file system's block, so a
content can be shared only where it stands as far behind a block's beginning in the new file as in the old one.
"""

from __future__ import annotations

import os
import struct

BLOCK = 4096  # bytes; of these file systems, unless somebody chose otherwise, and then the request is refused
WORTH = 1 << 20  # bytes; below that a copy costs no more than the request
REQUEST = 0x4020940D  # FICLONERANGE
RANGE = struct.Struct("<qQQQ")  # source, its offset, length, offset in the new file


def can_clone(source: int, output: int) -> bool:
    """Whether blocks of the one descriptor's file can be shared with the other's, which is empty and stays so."""
    if os.fstat(source).st_size < BLOCK or os.fstat(source).st_dev != os.fstat(output).st_dev:
        return False
    done = clone(source, 0, output, 0, BLOCK)
    os.ftruncate(output, 0)
    return done


def clone(source: int, offset: int, output: int, at: int, length: int) -> bool:
    """Share `length` bytes of `source` from `offset` with `output` from `at`; whether that was done.

    All three are multiples of BLOCK.
    """
    try:
        import fcntl

        fcntl.ioctl(output, REQUEST, RANGE.pack(source, offset, length, at))
    except (ImportError, OSError):
        return False
    return True


def shift(offset: int, at: int) -> int:
    """How many bytes to put in before `at`, so that what stands there can be a clone of what stands at `offset`."""
    return (offset - at) % BLOCK
