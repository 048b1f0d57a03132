"""Put an exported file where it goes, and what lies beside that of a large net, whole or not at all."""

from __future__ import annotations

import os
import re
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from ..errors import BadDestination
from ..export.beside import beside
from ..migrate.formats.atomic_file import atomic_file, check_destination
from ..migrate.formats.strays import folder_beside, out_of_the_way

OURS = re.compile(r"data_\d+")  # what MindSpore calls the files in the folder of a large MindIR


def check(out: Path, source: Path, *, force: bool) -> Path:
    """Where the file goes. Raises BadDestination where it, or what may lie beside it, cannot be written."""
    target = check_destination(out, source, force=force)
    there = beside(target)
    if not there.exists():
        return target
    if not force:
        raise BadDestination(f"{there} exists, where a large net's numbers go; pass --force to replace it")
    if there.is_dir() is not (target.suffix == ".mindir") or there.is_symlink() or _strange(there):
        raise BadDestination(
            f"{there} is where a large net's numbers go, and no export wrote it: --force does not replace it"
        )
    return target


def _strange(there: Path) -> bool:
    return there.is_dir() and any(not OURS.fullmatch(path.name) or not path.is_file() for path in there.iterdir())


def place(file: Path, target: Path, *, force: bool) -> None:
    """Copy what was verified to where it goes. Raises BadDestination, and then nothing has changed."""
    with (
        _placed_beside(beside(file), beside(target)),
        atomic_file(target, force=force) as descriptor,
        file.open("rb") as source,
        open(descriptor, "wb", closefd=False) as new,
    ):
        shutil.copyfileobj(source, new)


@contextmanager
def _placed_beside(made: Path, there: Path) -> Iterator[None]:
    """Have what lies beside a file in its place; what was there before comes back where the block fails."""
    if not made.exists():
        yield
        return
    try:
        with folder_beside(there) as temporary:
            new = temporary / "new"
            _copy(made, new)
            with out_of_the_way(there):
                new.rename(there)
                yield
    except OSError as error:
        raise BadDestination(f"cannot write {there}: {error.strerror or error}") from error


def _copy(made: Path, new: Path) -> None:
    """With the permissions that new files get, and on the disk when it returns."""
    if made.is_dir():
        new.mkdir()
    for part in made.iterdir() if made.is_dir() else (made,):
        path = new / part.name if made.is_dir() else new
        shutil.copyfile(part, path)
        with path.open("rb") as written:
            os.fsync(written.fileno())
