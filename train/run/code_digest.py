"""Which code, and which starting weights, a proof was made with: what a report says, and a training run compares."""

from __future__ import annotations

import hashlib
from functools import lru_cache
from pathlib import Path

from ...errors import BadCheckpoint

PACKAGE = Path(__file__).parent.parent.parent
ROOMS = ("mappings", "migrate", "train")  # what decides a step: its translation, its weights, and the step itself
SOURCES = (".py", ".yaml")
CHUNK = 1 << 20


@lru_cache(maxsize=1)
def code_digest(package: Path = PACKAGE) -> str:
    """Sixteen hex digits over the installed sources that decide a step; the same wherever they are installed.

    Line ends do not count: a checkout may have changed them.
    """
    digest = hashlib.sha256()
    files = [file for room in ROOMS for file in (package / room).rglob("*") if file.suffix in SOURCES]
    for file in sorted(files, key=lambda file: file.relative_to(package).as_posix()):
        text = file.read_bytes().replace(b"\r\n", b"\n")
        digest.update(f"{file.relative_to(package).as_posix()}\0{len(text)}\0".encode())
        digest.update(text)
    return digest.hexdigest()[:16]


def file_digest(file: Path) -> str:
    """The SHA-256 of a file's bytes, in hex. Raises BadCheckpoint where it cannot be read."""
    digest = hashlib.sha256()
    try:
        with file.open("rb") as opened:
            while chunk := opened.read(CHUNK):
                digest.update(chunk)
    except OSError as error:
        raise BadCheckpoint(f"{file} cannot be read: {error.strerror or error}") from None
    return digest.hexdigest()
