"""Numbers, sizes, durations and counts: one way to write each."""

from __future__ import annotations

import math

DIGITS = 4  # significant digits that the page's data keeps: more than it shows, and half the bytes


def packed(value: float | None) -> float | int | str | None:
    """The number for JSON: four significant digits, whole numbers as such.

    JSON has no infinity, so 'inf' stands for it; NaN becomes None.
    """
    if value is None or math.isnan(value):
        return None
    if math.isinf(value):
        return "inf" if value > 0 else "-inf"
    rounded = float(f"{value:.{DIGITS}g}")
    return int(rounded) if rounded.is_integer() and abs(rounded) < 2**53 else rounded


def count_text(number: int, noun: str, plural: str = "") -> str:
    """`1 tensor`, `2,048 tensors`; plural: where that is not the noun and an s."""
    return f"{number:,} {noun if number == 1 else plural or f'{noun}s'}"


def bytes_text(count: int) -> str:
    """A number of bytes in the units of disks: `102.5 MB`."""
    amount = float(count)
    for unit in ("bytes", "kB", "MB"):
        if amount < 1000:
            return f"{count} bytes" if unit == "bytes" else f"{amount:.1f} {unit}"
        amount /= 1000
    return f"{amount:.2f} GB"


def percent(share: float) -> str:
    """A share of 1 as a percentage."""
    return f"{share:.2%}" if math.isfinite(share) else "unknown"


def clock_text(seconds: float) -> str:
    """`42 s`, `3:20`, `5:03:20`, or `2 d 05:03`."""
    whole_seconds = round(max(seconds, 0.0))
    if whole_seconds < 60:
        return f"{whole_seconds} s"
    minutes, second = divmod(whole_seconds, 60)
    hours, minute = divmod(minutes, 60)
    if hours >= 48:
        return f"{hours // 24} d {hours % 24:02}:{minute:02}"
    return f"{hours}:{minute:02}:{second:02}" if hours else f"{minute}:{second:02}"
