"""Write a folder so that it appears whole or not at all.

It is filled under a hidden name beside the target, and then takes the target's name. An old folder is exchanged for the
new one in one step where the kernel can, else in two, between which the old one has the name `.NAME.….old`. A killed
process leaves its hidden folder behind; whoever next writes to the same target removes it.
"""

from __future__ import annotations

import contextlib
import errno
import os
import shutil
from collections.abc import Iterable, Iterator
from pathlib import Path

from ...errors import BadDestination
from . import strays
from .strays import beside

REPLACEABLE = (".safetensors", ".json", ".bin", ".ckpt", ".md", ".txt")  # how the files of a checkpoint folder end
THERE = (errno.EEXIST, errno.ENOTEMPTY, errno.ENOTDIR, errno.EISDIR)  # what a rename onto something says
AT_FDCWD, NOREPLACE, EXCHANGE = -100, 1, 2  # of renameat2


def check_folder(destination: Path, sources: Iterable[Path], *, force: bool) -> Path:
    """Return the folder to write (symbolic links resolved), or raise BadDestination with the reason.

    sources: what is read meanwhile; a folder with one of them in it is not replaced.
    """
    target = Path(os.path.realpath(destination))
    try:
        if not target.parent.is_dir():
            raise BadDestination(f"the folder of {destination} does not exist; create it first")
        if target.exists():
            if not target.is_dir():
                raise BadDestination(f"{destination} is a file; give the name of a folder, or of a .safetensors")
            if any(target in (real := Path(os.path.realpath(path)), *real.parents) for path in sources):
                raise BadDestination(f"{destination} is the source itself, or the source is in it")
            if not force:
                raise BadDestination(f"{destination} exists; pass --force to replace it, with all that is in it")
            _check_replaceable(target)
    except OSError as error:
        raise BadDestination(f"cannot write {destination}: {error.strerror}") from None
    if not os.access(target.parent, os.W_OK | os.X_OK):
        raise BadDestination(f"cannot write {destination}: no permission in its folder")
    return target


@contextlib.contextmanager
def atomic_folder(target: Path, *, force: bool) -> Iterator[Path]:
    """Give an empty folder to fill; on a clean exit its files are fsynced and it becomes `target`.

    On any exception, KeyboardInterrupt included, nothing is left and an old `target` stays as it was. OSErrors become
    BadDestination, and so does an old `target` that holds anything but the files of a checkpoint.
    """
    temporary = beside(target, "tmp")
    try:
        _remove_strays(target, "tmp")
        temporary.mkdir()
        lock = os.open(temporary, os.O_RDONLY)
        try:
            strays.lock(lock)
            yield temporary
            for path in temporary.iterdir():
                _sync(path)
            os.fsync(lock)
            _take_its_place(temporary, target, force=force)
            if force:
                _remove_strays(target, "old")
            with contextlib.suppress(OSError):  # a file system may know no fsync of folders
                _sync(target.parent)
        finally:
            if _is(temporary, lock):
                shutil.rmtree(temporary, ignore_errors=True)
            elif temporary.exists():  # interrupted when they had been exchanged: it is the old one
                _remove(temporary)
            os.close(lock)
    except OSError as error:
        if error.errno in THERE:
            raise BadDestination(f"{target} appeared while it was being written; pass --force to replace it") from None
        left = "the old folder is unchanged" if target.exists() else "nothing was left behind"
        raise BadDestination(f"cannot write {target}: {error.strerror or error}; {left}") from None


def _is(path: Path, fd: int) -> bool:
    return path.exists() and os.path.samestat(path.stat(), os.fstat(fd))


def _take_its_place(temporary: Path, target: Path, *, force: bool) -> None:
    """Rename; with force, what stood there is removed afterwards."""
    if not force or not target.exists():
        try:
            if not _renameat2(temporary, target, NOREPLACE):
                if target.exists():
                    raise FileExistsError(errno.EEXIST, "File exists")
                temporary.rename(target)
            return
        except OSError as error:
            if not force or error.errno not in THERE:
                raise
    _check_replaceable(target)
    if _renameat2(temporary, target, EXCHANGE):
        _remove(temporary)
        return
    # Not under the name of a temporary, which the next run would remove: until the second step this is all there is.
    old = beside(target, "old")
    target.rename(old)
    try:
        temporary.rename(target)
    except BaseException:
        old.rename(target)
        raise
    _remove(old)


def _renameat2(old: Path, new: Path, flag: int) -> bool:
    """Rename without replacing, or exchange the two; False where the system or the file system cannot."""
    import ctypes

    try:
        call = ctypes.CDLL(None, use_errno=True).renameat2
    except (OSError, AttributeError):
        return False
    call.argtypes = [ctypes.c_int, ctypes.c_char_p, ctypes.c_int, ctypes.c_char_p, ctypes.c_uint]
    if call(AT_FDCWD, os.fsencode(old), AT_FDCWD, os.fsencode(new), flag) == 0:
        return True
    number = ctypes.get_errno()
    if number in (errno.ENOSYS, errno.EINVAL, errno.EOPNOTSUPP):
        return False
    raise OSError(number, os.strerror(number))


def _check_replaceable(folder: Path) -> None:
    """Raise BadDestination unless all that is in it are files as a checkpoint folder has them."""
    for path in sorted(folder.iterdir()):
        if not _replaceable(path):
            raise BadDestination(
                f"{folder} holds {path.name!a}, which is no file of a checkpoint, so --force does not replace "
                "the folder; empty it, or give another name"
            )


def _replaceable(path: Path) -> bool:
    return path.name.lower().endswith(REPLACEABLE) and (path.is_symlink() or not path.is_dir())


def _remove(folder: Path) -> None:
    """Remove a folder of a checkpoint, as far as it is one."""
    with contextlib.suppress(OSError):
        for path in folder.iterdir():
            if _replaceable(path):
                path.unlink()
        folder.rmdir()


def _remove_strays(target: Path, kind: str) -> None:
    """Remove the folders for this target, as far as they are checkpoints, that killed processes left."""
    for path in strays.left(target, kind):
        if path.is_dir():
            _remove(path)


def _sync(path: Path) -> None:
    fd = os.open(path, os.O_RDONLY)
    try:
        os.fsync(fd)
    finally:
        os.close(fd)
