"""Text and numbers as they are shown: nothing that came out of a file moves the cursor, hides, or reverses a line.

Names of tensors, nodes, classes and files may hold anything: a terminal obeys some characters, and people do not see
others. They are shown as Python writes them in a string: \\x1b, \\u202e.

Numbers, sizes, durations and counts are written in one way each.
"""

from __future__ import annotations

import json
import math
import re
import unicodedata
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import click

DIGITS = 4  # significant digits in a page's data: more than the page shows, in half the bytes
LONGEST = 500  # characters of a file's content in a message

_RUN = re.compile(r"[^\n\t]+")


def printable(text: str) -> str:
    """The text on one line, with what cannot be printed escaped."""
    if text.isprintable():
        return text
    # spaces of any width are harmless, and people write them
    return "".join(
        letter if letter.isprintable() or unicodedata.category(letter) == "Zs" else ascii(letter)[1:-1]
        for letter in text
    )


def shortened(text: str, most: int = LONGEST) -> str:
    """The text, of which only the beginning and the end are kept if it is longer than `most` characters."""
    end = min(150, most // 3)
    return text if len(text) <= most else f"{text[: most - end - 3]} … {text[-end:]}"


def few(names: Sequence[str], most: int = 3) -> str:
    """The first of several names, and how many more there are."""
    return ", ".join(names[:most]) + (f" and {len(names) - most} more" if len(names) > most else "")


def quoted(value: Any, most: int = 80) -> str:
    """A value out of a file as Python writes it, shortened, for a message that says what is wrong with it."""
    try:
        return shortened(repr(value), most)
    except (ValueError, RecursionError):  # thousands of digits, or of brackets, which Python does not write
        return f"a value of the type {type(value).__name__}"


def printable_lines(text: str) -> str:
    """A text of several lines, with what cannot be printed escaped."""
    return _RUN.sub(lambda match: printable(match[0]), text)


def printable_values(value: Any) -> Any:
    """A value in which every string, also in dictionaries, lists and tuples, is as `printable` returns it."""
    if isinstance(value, str):
        return printable(value)
    if isinstance(value, Mapping):
        return {printable_values(key): printable_values(item) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [printable_values(item) for item in value]
    return value


def json_line(content: Any) -> str:
    """JSON on one line, not in ASCII only: just what cannot be printed is escaped."""
    return _escaped(json.dumps(content, ensure_ascii=False))


def json_text(content: Any) -> str:
    """The same on many lines, for a file."""
    return "\n".join(map(_escaped, json.dumps(content, indent=2, ensure_ascii=False).split("\n")))


def _escaped(line: str) -> str:
    return line if line.isprintable() else "".join(c if c.isprintable() else json.dumps(c)[1:-1] for c in line)


@dataclass
class Manner:
    """How this process prints; set by the options that every command has.

    quiet: only results and errors. verbose: every step on a line, and where an error was raised. color: auto (if the
    output is a terminal, and NO_COLOR is not set), always or never.
    """

    quiet: bool = False
    verbose: bool = False
    color: str = "auto"


MANNER = Manner()


def note(text: str) -> None:
    """Print on stderr what is neither result nor error, unless --quiet."""
    if not MANNER.quiet:
        echo(text, err=True)


def echo(text: str, *, err: bool = False) -> None:
    """Print a text of one line or several, whatever it contains; err: on stderr."""
    click.echo(printable_lines(text), err=err)


def shown(value: float | None) -> str:
    """A number in a few characters: three digits, a power of ten where that is shorter; nothing for None and NaN."""
    if value is None or math.isnan(value):
        return ""
    if math.isinf(value):
        return "∞" if value > 0 else "−∞"
    if value == 0.0 or 0.01 <= abs(value) < 1000:
        return f"{value:.3g}"
    return f"{value:.1e}"


def times(value: float | None) -> str:
    """A ratio for a sentence: 0.93, 12.8, 1,650, 710,000, 2.5e+07."""
    if value is None or math.isnan(value) or math.isinf(value) or not 1000 <= abs(value) < 1e6:
        return shown(value)
    return f"{float(f'{value:.3g}'):,.0f}"


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
    """`1 tensor`, `2,048 tensors`; plural: if that is not the noun with an s."""
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
