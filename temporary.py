"""The folders that commands make under $TMPDIR: removed when the command ends, or at the next start if it was killed.

Each holds a file that says whose it is. Only a folder of ours by name, owner and permissions, whose process ran on this
machine and has ended, is removed; $TMPDIR may be shared by users, by containers, and by machines.
"""

from __future__ import annotations

import json
import os
import re
import secrets
import shutil
import socket
import stat
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import asdict, dataclass
from pathlib import Path

from . import processes
from .errors import BadDestination

OWNER = ".owner"
NAME = re.compile(r"msmigrate-[a-z]+-[0-9a-f]{16}")
LONGEST = 4096  # bytes of an owner's file


@dataclass(frozen=True)
class Owner:
    """The process that made a folder. started: when, as /proc counts it, because numbers are used again. boot: the
    kernel's; space: the one the number belongs to, such as a container's."""

    pid: int
    started: str
    host: str
    boot: str
    space: str

    @classmethod
    def here(cls) -> Owner:
        """This process."""
        fields = processes.stat(os.getpid())
        boot, space = processes.PROC / "sys/kernel/random/boot_id", processes.PROC / "self/ns/pid"
        try:
            return cls(
                os.getpid(),
                fields[processes.STARTED] if fields else "",
                socket.gethostname(),
                boot.read_text(encoding="utf-8").strip(),
                str(space.readlink()),
            )
        except OSError:  # without /proc nothing is known of other processes; each then removes only its own folders
            return cls(os.getpid(), "", socket.gethostname(), "", "")

    @classmethod
    def read(cls, folder: int) -> Owner | None:
        """The owner that the file in an open folder names; None for a file that is not one of ours."""
        try:
            file = os.open(OWNER, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC, dir_fd=folder)
        except OSError:
            return None
        try:
            about = os.fstat(file)
            if not stat.S_ISREG(about.st_mode) or about.st_uid != os.geteuid() or about.st_size > LONGEST:
                return None
            content = json.loads(os.read(file, LONGEST))
            return cls(int(content["pid"]), *(str(content[name]) for name in ("started", "host", "boot", "space")))
        except (OSError, ValueError, TypeError, KeyError, RecursionError):
            return None
        finally:
            os.close(file)

    def has_ended(self) -> bool:
        """Whether this is a process of this machine that has ended; False where that cannot be known."""
        here = Owner.here()
        if not here.boot or (self.host, self.boot, self.space) != (here.host, here.boot, here.space):
            return False
        fields = processes.stat(self.pid)
        return fields is None or fields[processes.STARTED] != self.started or fields[processes.STATE] in "ZX"


@contextmanager
def temporary_folder(what: str) -> Iterator[Path]:
    """A new folder under $TMPDIR for this process alone, which is removed when the block ends.

    what: the word in its name. Folders that killed processes of this user have left there are removed first. Raises
    BadDestination where it cannot be made.
    """
    folder = new_name(what)
    try:  # begins before the folder is there, so that no signal comes in between
        make(folder)
        yield folder
    finally:
        _remove(folder)


def new_name(what: str) -> Path:
    """The path of a new folder; those that killed processes have left there are removed. Raises BadDestination."""
    try:
        place = Path(tempfile.gettempdir())
    except OSError as error:
        raise BadDestination(f"there is no folder for temporary files: {error.strerror or error}; set TMPDIR") from None
    remove_strays(place)
    return place / f"msmigrate-{what}-{secrets.token_hex(8)}"


def make(folder: Path) -> None:
    """Make a folder with this name and write into it whose it is. Raises BadDestination."""
    try:
        folder.mkdir(mode=0o700)
        (folder / OWNER).write_text(json.dumps(asdict(Owner.here())), encoding="utf-8")
    except OSError as error:
        why = error.strerror or error
        raise BadDestination(f"no temporary folder can be made in {folder.parent}: {why}; set TMPDIR") from None


def remove_strays(place: Path) -> None:
    """Remove the folders in `place` that killed processes of this user and this machine have left."""
    with suppress(OSError):
        for path in place.iterdir():
            if NAME.fullmatch(path.name) and _is_stray(path):
                _remove(path)


def _is_stray(folder: Path) -> bool:
    try:
        opened = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC)
    except OSError:  # a file, a symbolic link, or another user's
        return False
    try:
        about = os.fstat(opened)
        if about.st_uid != os.geteuid() or stat.S_IMODE(about.st_mode) & 0o077:
            return False
        owner = Owner.read(opened)
        return owner is not None and owner.has_ended()
    finally:
        os.close(opened)


def _remove(folder: Path) -> None:
    """Remove a folder, the owner's file last, so that the next start finishes what is interrupted here."""
    with suppress(OSError):
        for path in folder.iterdir():
            if path.is_dir() and not path.is_symlink():
                shutil.rmtree(path, ignore_errors=True)
            elif path.name != OWNER:
                path.unlink(missing_ok=True)
        shutil.rmtree(folder, ignore_errors=True)
