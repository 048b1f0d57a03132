"""The hidden names under which a file or folder is written beside its target, and what killed processes left there."""

from __future__ import annotations

import contextlib
import fcntl
import os
import re
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


def left(target: Path, kind: str) -> Iterator[Path]:
    """The files and folders of such names for this target whose processes are gone."""
    name = re.compile(re.escape(f".{target.name[:100]}.") + rf"(\d+)-[0-9a-f]{{8}}\.{kind}")
    try:
        paths = list(target.parent.iterdir())
    except OSError:  # a folder that may be written and not read
        return
    for path in paths:
        found = name.fullmatch(path.name)
        if not found or path.is_symlink() or not (path.is_dir() or path.is_file()):
            continue
        if not _runs(int(found[1])) and not _locked(path):
            yield path


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
