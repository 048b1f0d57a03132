"""Casts between floating-point formats, and what they lose.

bfloat16 is the upper half of a float32 (Wang and Kanwar, "BFloat16: The secret to high performance on Cloud TPUs",
2019), rounded to the nearest, ties to even, as torch rounds; NumPy does not have it.
"""

from __future__ import annotations

from typing import Any

from .contents import ITEM_SIZES, Piece

FLOATS = ("float64", "float32", "float16", "bfloat16")
SMALLEST_NORMAL = {"float64": 2.0**-1022, "float32": 2.0**-126, "float16": 2.0**-14, "bfloat16": 2.0**-126}


class Losses:
    """What casts lost, by the name of the new tensor: how many finite numbers became infinite, how many others than
    zero became zero, and how many became subnormal, with fewer digits than the format has."""

    def __init__(self) -> None:
        self.overflowed: dict[str, int] = {}
        self.vanished: dict[str, int] = {}
        self.subnormal: dict[str, int] = {}

    def count(self, name: str, before: Any, after: Any, dtype: str) -> None:
        """Compare an array of float64 or float32 with what it became, back in its own format."""
        import numpy as np

        small = (np.abs(after) < SMALLEST_NORMAL[dtype]) & (after != 0)
        for found, told in (
            (np.isfinite(before) & ~np.isfinite(after), self.overflowed),
            ((before != 0) & (after == 0), self.vanished),
            (small & (before != after), self.subnormal),
        ):
            count = int(found.sum())
            if count:
                told[name] = told.get(name, 0) + count


def castable(dtype: str) -> bool:
    """Whether --dtype changes a tensor of this dtype; integers and booleans stay as they are."""
    return dtype in FLOATS


def cast(bits: Any, piece: Piece, losses: Losses | None = None) -> bytes:
    """Cast an array of elements, as unsigned integers that hold their bits, to the piece's dtype; its bytes.

    bits: any shape, of the tensor's item size.
    """
    import numpy as np

    with np.errstate(all="ignore"):  # what is lost is counted
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
