"""Write a file so that it appears whole or not at all.

On Linux the new file has no name until it is complete (O_TMPFILE), so that not even a killed process leaves a partial
one behind. Elsewhere, and on file systems without that, a hidden temporary name in the same folder is used; what a
killed process leaves under it, whoever next writes to the same target removes.
"""

from __future__ import annotations

import contextlib
import errno
import os
import stat
from collections.abc import Iterator
from pathlib import Path

from ...errors import BadDestination
from . import strays

RETRY = (errno.EOPNOTSUPP, errno.EISDIR, errno.EINVAL, errno.ENOENT)  # what kernels and file systems without it say


def check_destination(destination: Path, source: Path, *, force: bool) -> Path:
    """Return the path to write to (symbolic links resolved), or raise BadDestination with the reason."""
    target = Path(os.path.realpath(destination))
    try:
        if not target.parent.is_dir():
            raise BadDestination(f"the folder of {destination} does not exist; create it first")
        found = target.stat()
    except FileNotFoundError:
        found = None
    except OSError as error:
        raise BadDestination(f"cannot write {destination}: {error.strerror}") from None
    if found is not None:
        if stat.S_ISDIR(found.st_mode):
            raise BadDestination(f"{destination} is a directory; give the name of a file in it")
        if source.exists() and source.samefile(target):
            raise BadDestination(f"{destination} is the source itself")
        if not stat.S_ISREG(found.st_mode):
            raise BadDestination(f"{destination} is not a regular file")
        if not force:
            raise BadDestination(f"{destination} exists; pass --force to replace it")
    if not os.access(target.parent, os.W_OK | os.X_OK):
        raise BadDestination(f"cannot write {destination}: no permission in its folder")
    return target


@contextlib.contextmanager
def atomic_file(target: Path, *, force: bool) -> Iterator[int]:
    """Give a file descriptor (read and write) to fill; on a clean exit it is fsynced and becomes `target`.

    On any exception, KeyboardInterrupt included, nothing is left and an old `target` stays as it was. OSErrors become
    BadDestination. The mode is 0666 less the umask, as for any new file.
    """
    temporary = strays.beside(target, "tmp")
    try:
        _remove_strays(target)
        fd, named = _open(target.parent, temporary)
        try:
            strays.lock(fd)
            yield fd
            os.fsync(fd)
            if not named and not force:
                link_open(fd, target)  # fails when somebody else made the file meanwhile, which --force would allow
            else:
                if not named:
                    link_open(fd, temporary)
                    named = True
                if force:
                    temporary.replace(target)
                else:
                    _rename_unless_there(temporary, target)
                named = False
            _sync_folder(target.parent)
        finally:
            os.close(fd)
            if named:
                temporary.unlink(missing_ok=True)
    except FileExistsError:
        raise BadDestination(f"{target} appeared while it was being written; pass --force to replace it") from None
    except OSError as error:
        left = "the old file is unchanged" if target.exists() else "nothing was left behind"
        raise BadDestination(f"cannot write {target}: {error.strerror or error}; {left}") from None


def _open(folder: Path, temporary: Path) -> tuple[int, bool]:
    """Return (descriptor, whether it has the temporary name)."""
    if hasattr(os, "O_TMPFILE") and Path("/proc/self/fd").is_dir():
        try:
            return os.open(folder, os.O_TMPFILE | os.O_RDWR | os.O_CLOEXEC, 0o666), False
        except OSError as error:
            if error.errno not in RETRY:
                raise
    return os.open(temporary, os.O_CREAT | os.O_EXCL | os.O_RDWR | os.O_CLOEXEC, 0o666), True


def _remove_strays(target: Path) -> None:
    """Remove the files for this target that killed processes left, and the folders in which MindSpore read them."""
    for path in strays.left(target, "tmp"):
        with contextlib.suppress(OSError):
            if path.is_dir():
                (path / f"checkpoint{target.suffix}").unlink(missing_ok=True)
                path.rmdir()
            else:
                path.unlink()


def link_open(fd: int, path: Path) -> None:
    """Give an open file a name; only with a directory descriptor does Python follow the link under /proc."""
    folder = os.open("/proc/self/fd", os.O_RDONLY)
    try:
        os.link(str(fd), path, src_dir_fd=folder, follow_symlinks=True)
    finally:
        os.close(folder)


def _rename_unless_there(temporary: Path, target: Path) -> None:
    """Rename, or raise FileExistsError; file systems without hard links leave an instant between look and rename."""
    try:
        os.link(temporary, target)
        temporary.unlink()
    except OSError as error:
        if error.errno not in (errno.EPERM, errno.EOPNOTSUPP, errno.ENOSYS):
            raise
        if target.exists():
            raise FileExistsError from None
        temporary.replace(target)


def _sync_folder(folder: Path) -> None:
    """Make the new name durable, where the file system can."""
    with contextlib.suppress(OSError):
        fd = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(fd)
        finally:
            os.close(fd)
