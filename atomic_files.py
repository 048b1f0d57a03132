"""Write a file or a folder so that it appears whole or not at all; check_destination says where it may go.

On Linux the new file has no name until it is complete (O_TMPFILE), so that not even a killed process leaves a partial
one behind. Elsewhere, and on file systems without that, a hidden temporary name in the same folder is used; what a
killed process leaves under it is removed by the next process that writes to the same target.

A folder is filled under a hidden name next to the target, and then takes the target's name. An old folder is exchanged
for the new one in one step where the kernel can, else in two, between which the old one has the name `.NAME.….old`. A
killed process leaves its hidden folder behind, which the next process that writes to the same target removes.
"""

from __future__ import annotations

import contextlib
import errno
import fcntl
import os
import re
import shutil
import stat
from collections.abc import Iterable, Iterator
from pathlib import Path

from .errors import BadDestination

RETRY = (errno.EOPNOTSUPP, errno.EISDIR, errno.EINVAL, errno.ENOENT)  # errors of kernels and file systems without it


def check_destination(destination: Path, source: Path, *, force: bool) -> Path:
    """Return the path to write to (symbolic links resolved), or raise BadDestination with the reason."""
    target = Path(os.path.realpath(destination))
    try:
        if not target.parent.is_dir():
            raise BadDestination(f"the folder of {destination} does not exist; create it first")
        status = target.stat()
    except FileNotFoundError:
        status = None
    except OSError as error:
        raise BadDestination(f"cannot write {destination}: {error.strerror}") from None
    if status is not None:
        if stat.S_ISDIR(status.st_mode):
            raise BadDestination(f"{destination} is a directory; give the name of a file in it")
        if source.exists() and source.samefile(target):
            raise BadDestination(f"{destination} is the source itself")
        if not stat.S_ISREG(status.st_mode):
            raise BadDestination(f"{destination} is not a regular file")
        if not force:
            raise BadDestination(f"{destination} exists; pass --force to replace it")
    if not os.access(target.parent, os.W_OK | os.X_OK):
        raise BadDestination(f"cannot write {destination}: no permission in its folder")
    return target


@contextlib.contextmanager
def atomic_file(target: Path, *, force: bool) -> Iterator[int]:
    """Yield a file descriptor (read and write) to fill; on a clean exit it is fsynced and becomes `target`.

    On any exception, KeyboardInterrupt included, nothing is left and an old `target` stays as it was. OSErrors become
    BadDestination. The mode is 0666 less the umask, as for any new file.
    """
    temporary = beside(target, "tmp")
    try:
        _remove_strays(target)
        fd, named = _open(target.parent, temporary)
        try:
            lock_open(fd)
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
    for path in left_behind(target, "tmp"):
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
    """Rename, or raise FileExistsError; without hard links a file made between the check and the rename is lost."""
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


REPLACEABLE = (".safetensors", ".json", ".bin", ".ckpt", ".md", ".txt")  # how the files of a checkpoint folder end
THERE = (errno.EEXIST, errno.ENOTEMPTY, errno.ENOTDIR, errno.EISDIR)  # errors of a rename onto something that exists
AT_FDCWD, NOREPLACE, EXCHANGE = -100, 1, 2  # of renameat2


def check_folder(destination: Path, sources: Iterable[Path], *, force: bool) -> Path:
    """Return the folder to write (symbolic links resolved), or raise BadDestination with the reason.

    sources: files that are read meanwhile; a folder that contains one of them is not replaced.
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
    """Yield an empty folder to fill; on a clean exit its files are fsynced and it becomes `target`.

    On any exception, KeyboardInterrupt included, nothing is left and an old `target` stays as it was. OSErrors become
    BadDestination, and so does an old `target` that holds anything but the files of a checkpoint.
    """
    temporary = beside(target, "tmp")
    try:
        _remove_stray_folders(target, "tmp")
        temporary.mkdir()
        lock = os.open(temporary, os.O_RDONLY)
        try:
            lock_open(lock)
            yield temporary
            for path in temporary.iterdir():
                _sync(path)
            os.fsync(lock)
            _take_its_place(temporary, target, force=force)
            if force:
                _remove_stray_folders(target, "old")
            with contextlib.suppress(OSError):  # not every file system can fsync a folder
                _sync(target.parent)
        finally:
            if _is(temporary, lock):
                shutil.rmtree(temporary, ignore_errors=True)
            elif temporary.exists():  # interrupted after the exchange: this is the old folder
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
    """Rename `temporary` to `target`; with force, the old folder is removed afterwards."""
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
    # Not under a temporary name, which the next run would remove: until the second step this is the only copy.
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
    """Raise BadDestination if the folder holds anything but files of the kinds that a checkpoint folder has."""
    for path in sorted(folder.iterdir()):
        if not _replaceable(path):
            raise BadDestination(
                f"{folder} holds {path.name!a}, which is no file of a checkpoint, so --force does not replace "
                "the folder; empty it, or give another name"
            )


def _replaceable(path: Path) -> bool:
    return path.name.lower().endswith(REPLACEABLE) and (path.is_symlink() or not path.is_dir())


def _remove(folder: Path) -> None:
    """Remove the checkpoint's files in a folder, and the folder if nothing else is in it."""
    with contextlib.suppress(OSError):
        for path in folder.iterdir():
            if _replaceable(path):
                path.unlink()
        folder.rmdir()


def _remove_stray_folders(target: Path, kind: str) -> None:
    """Remove the folders that killed processes left for this target, each as `_remove` does."""
    for path in left_behind(target, kind):
        if path.is_dir():
            _remove(path)


def _sync(path: Path) -> None:
    fd = os.open(path, os.O_RDONLY)
    try:
        os.fsync(fd)
    finally:
        os.close(fd)


def beside(target: Path, kind: str) -> Path:
    """A new hidden name beside the target; kind: its ending."""
    return target.with_name(f".{target.name[:100]}.{os.getpid()}-{os.urandom(4).hex()}.{kind}")


def lock_open(fd: int) -> None:
    """Lock an open file or folder, which shows that it is still being written to, until it is closed.

    A process number is known only within its container; the lock is seen from all of them.
    """
    with contextlib.suppress(OSError):
        fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)


@contextlib.contextmanager
def folder_beside(target: Path) -> Iterator[Path]:
    """A new folder beside the target, to be filled and renamed; what is left of it when the block ends is removed.

    What killed processes left for this target is removed first. Raises OSError where the folder cannot be made.
    """
    for stray in left_behind(target, "tmp"):
        remove(stray)
    folder = beside(target, "tmp")
    opened = None
    try:
        folder.mkdir()
        opened = os.open(folder, os.O_RDONLY | os.O_CLOEXEC)
        lock_open(opened)
        yield folder
    finally:
        remove(folder)
        if opened is not None:
            os.close(opened)


@contextlib.contextmanager
def out_of_the_way(target: Path) -> Iterator[None]:
    """Move the old target aside while the block puts a new one there; if that fails it comes back, else it is removed.

    It does not get a temporary name, which the next run would remove: for a moment it may be the only copy.
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
    for path in (old, *left_behind(target, "old")):
        remove(path)


def remove(path: Path) -> None:
    """Remove a file, or a folder with all that is in it, as far as that can be done."""
    if path.is_dir() and not path.is_symlink():
        shutil.rmtree(path, ignore_errors=True)
    else:
        with contextlib.suppress(OSError):
            path.unlink()


def left_behind(target: Path, kind: str) -> Iterator[Path]:
    """The hidden files and folders for this target whose processes are gone; kind: the ending of their names."""
    name = re.compile(re.escape(f".{target.name[:100]}.") + rf"(\d+)-[0-9a-f]{{8}}\.{kind}")
    try:
        paths = list(target.parent.iterdir())
    except OSError:  # a folder that may be written and not read
        return
    for path in paths:
        match = name.fullmatch(path.name)
        if not match or path.is_symlink() or not (path.is_dir() or path.is_file()) or not _ours(path):
            continue
        if not _runs(int(match[1])) and not _locked(path):
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


def refuse_unwritable(file: Path) -> None:
    """Raise BadDestination where a file cannot be made."""
    if not file.parent.is_dir():
        raise BadDestination(f"{file} cannot be written: there is no folder {file.parent}")
    if file.is_dir():
        raise BadDestination(f"{file} cannot be written: it is a folder")
    if not os.access(file.parent, os.W_OK):
        raise BadDestination(f"{file} cannot be written: no permission for {file.parent}")


def write_whole(text: str, path: Path) -> None:
    """Write text as UTF-8 so that it is at `path` whole or not at all, with the permissions a new file gets.

    What UTF-8 cannot hold (a lone surrogate in a name that came out of a trace) becomes a question mark. Raises
    BadDestination.
    """
    with atomic_file(path, force=True) as descriptor, open(descriptor, "wb", closefd=False) as file:
        file.write(text.encode("utf-8", "replace"))
