"""Write a text file that is there whole or not at all."""

from __future__ import annotations

from pathlib import Path

from ..migrate.formats.atomic_file import atomic_file


def write_whole(text: str, path: Path) -> None:
    """Write text as UTF-8 so that it is at `path` whole or not at all, with the permissions a new file gets.

    What UTF-8 cannot hold (a lone surrogate in a name that came out of a trace) becomes a question mark. Raises
    BadDestination.
    """
    with atomic_file(path, force=True) as descriptor, open(descriptor, "wb", closefd=False) as file:
        file.write(text.encode("utf-8", "replace"))
