"""Give memory that was freed back to the system."""

from __future__ import annotations

import ctypes
import gc
import sys


def give_back() -> None:
    """Collect what nothing refers to, and hand the C library's free pages back, where it is glibc.

    torch frees tensors of some MB into the C library's heap, which keeps them: a process that waits for another would
    hold what its last step took.
    """
    gc.collect()
    if sys.platform == "linux":
        trim = getattr(ctypes.CDLL(None), "malloc_trim", None)  # musl has none
        if trim is not None:
            trim(0)
