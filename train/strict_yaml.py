"""A recipe's YAML: what the reader of all YAML lets through, and no arguments that JSON could not say."""

from __future__ import annotations

import math
import unicodedata
from pathlib import Path
from typing import Any

import yaml

from .. import yaml_reader
from ..errors import BadRecipe
from ..printable import quoted
from ..yaml_reader import line

__all__ = ["line", "odd_text", "read", "refuse_odd"]

LARGEST = 256 * 1024  # bytes; weights for 20 000 classes fit


def read(path: Path) -> tuple[Any, yaml.Node | None]:
    """The recipe file's value, and its tree, which knows the lines (None: an empty file); raises BadRecipe."""
    return yaml_reader.read(path, what="a recipe", most=LARGEST, error=BadRecipe)


def refuse_odd(value: Any, where: str = "") -> None:
    """Raise ValueError unless `value` is made of words, finite numbers, true, false, null, lists and mappings.

    YAML has numbers as keys, and .nan and .inf, besides, which no argument of a recipe takes and JSON cannot say.
    """
    if isinstance(value, dict):
        for key, item in value.items():
            if not isinstance(key, str):
                raise ValueError(f"the key {quoted(key)}{where} is not a word")
            refuse_odd(item, f" in {quoted(key)}")
    elif isinstance(value, (list, tuple)):
        for item in value:
            refuse_odd(item, where)
    elif type(value) is int and abs(value) >= 10**18:  # JSON has such, and no float may be near it
        raise ValueError(f"{quoted(value)}{where} is a whole number of more than 18 digits")
    elif isinstance(value, float) and not math.isfinite(value):
        raise ValueError(f"{value}{where} is not a finite number")
    elif value is not None and not isinstance(value, (bool, int, float, str)):
        raise ValueError(f"{quoted(value)}{where} is neither a number, a word, true, false nor null")


def odd_text(value: Any, loc: tuple[Any, ...] = ()) -> tuple[tuple[Any, ...], str] | None:
    """Where in a tree the first text stands with a control character or half of a character, and that character.

    No name and no path has one, a terminal obeys some, and JSON cannot say the others.
    """
    if isinstance(value, str):
        odd = next((letter for letter in value if unicodedata.category(letter) in ("Cc", "Cs")), None)
        return None if odd is None else (loc, odd)
    if isinstance(value, dict):
        inside = [found for key in value if (found := odd_text(key, (*loc, key)))]
        inside += [found for key, item in value.items() if (found := odd_text(item, (*loc, key)))]
    else:
        items = value if isinstance(value, (list, tuple)) else ()
        inside = [found for index, item in enumerate(items) if (found := odd_text(item, (*loc, index)))]
    return next(iter(inside), None)
