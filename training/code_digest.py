"""Which code and which starting weights a proof was made with: a report states them, a training run compares them."""

from __future__ import annotations

import hashlib
from functools import lru_cache
from pathlib import Path

from ..errors import BadCheckpoint, BadInput
from ..input_files import open_regular, read_bytes
from ..mappings import table, user_rows

PACKAGE = Path(__file__).parent.parent
ROOMS = (
    "mappings",
    "nn",
    "optim",
    "migrate",
    "training",
)  # the sources that decide a step: its translation, its weights, and the step itself
SOURCES = (".py", ".yaml")
CHUNK = 1 << 20


def code_digest(package: Path = PACKAGE) -> str:
    """Sixteen hex digits over the installed sources that decide a step; the same wherever they are installed.

    The user's own mapping rows in force count too, by the content of their files, not by name or order, and so do the
    versions of the distributions whose verbs they use. Line ends do not count: a checkout may have changed them.
    Raises BadInput for a file of rows that cannot be read.
    """
    return _digest(package, user_rows.paths())


@lru_cache(maxsize=8)
def _digest(package: Path, own: tuple[Path, ...]) -> str:
    digest = hashlib.sha256()
    files = [file for room in ROOMS for file in (package / room).rglob("*") if file.suffix in SOURCES]
    for file in sorted(files, key=lambda file: file.relative_to(package).as_posix()):
        text = file.read_bytes().replace(b"\r\n", b"\n")
        digest.update(f"{file.relative_to(package).as_posix()}\0{len(text)}\0".encode())
        digest.update(text)
    for content in sorted(_content(file) for file in own):
        digest.update(hashlib.sha256(content).digest())
    if own:
        digest.update("\n".join(user_rows.verbs(table.own_rows())).encode())
    return digest.hexdigest()[:16]


def _content(file: Path) -> bytes:
    try:
        return read_bytes(file, user_rows.MOST).replace(b"\r\n", b"\n")
    except OSError as error:
        raise BadInput(f"{file} cannot be read: {error.strerror or error}") from None


def file_digest(file: Path) -> str:
    """The SHA-256 of a file's bytes, in hex. Raises BadCheckpoint where it cannot be read."""
    digest = hashlib.sha256()
    try:
        with open_regular(file) as opened:
            while chunk := opened.read(CHUNK):
                digest.update(chunk)
    except OSError as error:
        raise BadCheckpoint(f"{file} cannot be read: {error.strerror or error}") from None
    return digest.hexdigest()
