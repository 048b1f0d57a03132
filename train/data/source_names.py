"""The names a recipe has for its images: whether there are such images is for data_sources to find out."""

from __future__ import annotations

import difflib

from ...errors import BadRecipe
from ..recipe import FOLDER, IN_FOLDERS

SYNTHETIC = "synthetic"
SOURCES = ("photographs", "digits", "digits:train", "digits:test", SYNTHETIC)
KNOWN = (*SOURCES[:-1], f"{SYNTHETIC}[:COUNT[xSIDE]]", *(f"{kind}PATH" for kind in IN_FOLDERS))
COUNT, SIDE = 1024, 64  # of the synthetic images, where the name does not say
LARGEST = {"COUNT": 10_000_000, "SIDE": 4096}


def check(source: str) -> None:
    """Raise BadRecipe unless `source` is the name of a source, with the closest known name."""
    kind, colon, rest = source.partition(":")
    if source in SOURCES:
        return
    if kind + colon in IN_FOLDERS:
        if not rest or "\0" in rest:
            raise BadRecipe(f"{source!r} names no place: {kind}:PATH, with the path of a folder")
        return
    if kind == SYNTHETIC:
        synthetic_size(source)
        return
    raise BadRecipe(f"there is no source {source!r}; {_hint(source)}")


def synthetic_size(source: str) -> tuple[int, int]:
    """Count and side of 'synthetic:COUNTxSIDE', whose ends may be left out; raises BadRecipe for other words."""
    words = source.partition(":")[2]
    count, cross, side = words.partition("x")
    parts = ({"COUNT": count} if ":" in source else {}) | ({"SIDE": side} if cross else {})
    for part, word in parts.items():
        if not (word.isascii() and word.isdigit() and len(word) < 12 and 1 <= int(word) <= LARGEST[part]):
            raise BadRecipe(
                f"{source!r} is not {SYNTHETIC}[:COUNT[xSIDE]], such as {SYNTHETIC}:{COUNT}x{SIDE}: "
                f"{part} is a whole number from 1 to {LARGEST[part]}, not {word!r}"
            )
    return int(parts.get("COUNT", COUNT)), int(parts.get("SIDE", SIDE))


def _hint(source: str) -> str:
    """The closest known name, or all of them."""
    kind, colon, _ = source.lower().partition(":")
    near = difflib.get_close_matches(source.lower(), SOURCES, n=1)
    if colon:
        kinds = difflib.get_close_matches(kind + colon, [*IN_FOLDERS, f"{SYNTHETIC}:"], n=1)
        near = near or [found + source.partition(":")[2] for found in kinds]
    elif "/" in source or source.startswith(("~", ".")):
        near = [f"{FOLDER}{source}"]
    return f"did you mean {near[0]!r}?" if near else f"known: {', '.join(KNOWN)}"
