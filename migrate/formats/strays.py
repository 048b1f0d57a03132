"""The hidden names under which a file or folder is written beside its target, and what killed processes left there."""

from __future__ import annotations

import contextlib
import fcntl
import os
import re
import shutil
from collections.abc import Iterator
from pathlib import Path


def beside(target: Path, kind: str) -> Path:
    """A new hidden name beside the target; kind: its ending."""
    return target.with_name(f".{target.name[:100]}.{os.getpid()}-{os.urandom(4).hex()}.{kind}")


def lock(fd: int) -> None:
    """Say that an open file or folder is still written to, as long as it is open.

    A process is known by its number only within its container; the lock is seen from all of them.
    """
    with contextlib.suppress(OSError):
        fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)


@contextlib.contextmanager
def folder_beside(target: Path) -> Iterator[Path]:
    """A new folder beside the target, to be filled and renamed; what is left of it when the block ends is removed.

    What killed processes left for this target is removed first. Raises OSError where the folder cannot be made.
    """
    for stray in left(target, "tmp"):
        remove(stray)
    folder = beside(target, "tmp")
    opened = None
    try:
        folder.mkdir()
        opened = os.open(folder, os.O_RDONLY | os.O_CLOEXEC)
        lock(opened)
        yield folder
    finally:
        remove(folder)
        if opened is not None:
            os.close(opened)


@contextlib.contextmanager
def out_of_the_way(target: Path) -> Iterator[None]:
    """Have what stands at the target elsewhere while the block puts something new there: back if that fails, else gone.

    Not under the name of a temporary, which the next run would remove: for a moment this may be all there is.
    """
    old = beside(target, "old")
    there = os.path.lexists(target)
    try:
        if there:
            target.rename(old)
        yield
    except BaseException:
        if there and os.path.lexists(old):
            remove(target)
            old.rename(target)
        raise
    for path in (old, *left(target, "old")):
        remove(path)


def remove(path: Path) -> None:
    """Remove a file, or a folder with all that is in it, as far as that can be done."""
    if path.is_dir() and not path.is_symlink():
        shutil.rmtree(path, ignore_errors=True)
    else:
        with contextlib.suppress(OSError):
            path.unlink()


def left(target: Path, kind: str) -> Iterator[Path]:
    """The files and folders of such names for this target whose processes are gone."""
    name = re.compile(re.escape(f".{target.name[:100]}.") + rf"(\d+)-[0-9a-f]{{8}}\.{kind}")
    try:
        paths = list(target.parent.iterdir())
    except OSError:  # a folder that may be written and not read
        return
    for path in paths:
        found = name.fullmatch(path.name)
        if not found or path.is_symlink() or not (path.is_dir() or path.is_file()) or not _ours(path):
            continue
        if not _runs(int(found[1])) and not _locked(path):
            yield path


def _ours(path: Path) -> bool:
    try:
        return path.lstat().st_uid == os.geteuid()
    except OSError:
        return False


def _runs(process: int) -> bool:
    try:
        os.kill(process, 0)
    except (ProcessLookupError, OverflowError):
        return False
    except PermissionError:
        pass
    return True


def _locked(path: Path) -> bool:
    try:
        fd = os.open(path, os.O_RDONLY)
    except OSError:
        return False
    try:
        fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return True
    except OSError:
        return False
    finally:
        os.close(fd)
    return False
