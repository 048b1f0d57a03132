"""A folder appears whole or not at all, and nothing but a checkpoint's files is ever removed."""

from __future__ import annotations

import ctypes
import errno
import os
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from msmigrate import atomic_files
from msmigrate.atomic_files import check_folder
from msmigrate.errors import BadDestination
from msmigrate.migrate.checkpoint.convert import check_not_read


def listing(folder: Path) -> dict[str, bytes | None]:
    """Everything below a folder: path -> content, None for a folder."""
    return {str(path.relative_to(folder)): path.read_bytes() if path.is_file() else None for path in folder.rglob("*")}


def fill(target: Path, content: bytes = b"new", *, force: bool = False) -> None:
    with atomic_files.atomic_folder(target, force=force) as folder:
        (folder / "a.safetensors").write_bytes(content)


def old_folder(path: Path) -> Path:
    path.mkdir()
    (path / "a.safetensors").write_bytes(b"old")
    (path / "model.safetensors.index.json").write_bytes(b"{}")
    return path


@pytest.fixture(params=["renameat2", "two steps"])
def kernel(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    """With the call that Linux has, and on a file system that does not know it."""
    if request.param == "two steps":
        monkeypatch.setattr(atomic_files, "_renameat2", lambda old, new, flag: False)
    return str(request.param)


@pytest.mark.usefixtures("kernel")
def test_a_new_folder_appears_with_the_ordinary_mode(tmp_path: Path) -> None:
    previous = os.umask(0o027)
    try:
        fill(tmp_path / "x")
    finally:
        os.umask(previous)
    assert listing(tmp_path) == {"x": None, "x/a.safetensors": b"new"}
    assert (tmp_path / "x").stat().st_mode & 0o777 == 0o750


@pytest.mark.usefixtures("kernel")
def test_an_old_folder_is_replaced_whole_when_told_so(tmp_path: Path) -> None:
    fill(old_folder(tmp_path / "x"), force=True)
    assert listing(tmp_path) == {"x": None, "x/a.safetensors": b"new"}


def test_the_exchange_is_one_step_here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """At every moment a complete folder stands under the name: no rename of Python's is used."""

    def never(*_: object) -> None:
        raise AssertionError("two steps")

    monkeypatch.setattr(Path, "rename", never)
    fill(old_folder(tmp_path / "x"), force=True)
    assert (tmp_path / "x" / "a.safetensors").read_bytes() == b"new"


@pytest.mark.usefixtures("kernel")
def test_a_folder_that_appears_meanwhile_is_not_replaced(tmp_path: Path) -> None:
    for rival in (lambda path: old_folder(path), Path.mkdir, Path.touch):
        target = tmp_path / "x"
        with (
            pytest.raises(BadDestination, match="appeared while"),
            atomic_files.atomic_folder(target, force=False) as folder,
        ):
            (folder / "a.safetensors").write_bytes(b"new")
            rival(target)
        assert [path.name for path in tmp_path.iterdir()] == ["x"]
        assert "x/a.safetensors" not in listing(tmp_path) or (target / "a.safetensors").read_bytes() == b"old"
        if target.is_dir():
            for path in target.iterdir():
                path.unlink()
            target.rmdir()


@pytest.mark.usefixtures("kernel")
@pytest.mark.parametrize("old", [False, True])
@pytest.mark.parametrize("kind", [KeyboardInterrupt, MemoryError, OSError(28, "No space left on device")])
def test_an_interruption_leaves_all_as_it_was(tmp_path: Path, old: bool, kind: Any) -> None:
    if old:
        old_folder(tmp_path / "x")
    before = listing(tmp_path)
    wanted = BadDestination if isinstance(kind, OSError) else kind
    with pytest.raises(wanted) as caught, atomic_files.atomic_folder(tmp_path / "x", force=True) as folder:
        (folder / "a.safetensors").write_bytes(b"new")
        raise kind
    assert listing(tmp_path) == before
    if isinstance(kind, OSError):
        assert "No space left" in str(caught.value)
        assert ("the old folder is unchanged" if old else "nothing was left behind") in str(caught.value)


@pytest.mark.parametrize("step", [1, 2])
def test_an_interruption_between_the_two_steps_brings_the_old_folder_back(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, step: int
) -> None:
    monkeypatch.setattr(atomic_files, "_renameat2", lambda old, new, flag: False)
    before = listing(old_folder(tmp_path / "x").parent)
    real, calls = Path.rename, 0

    def interrupted(self: Path, target: Path) -> Path:
        nonlocal calls
        calls += 1
        if calls == step:
            raise KeyboardInterrupt
        return real(self, target)

    monkeypatch.setattr(Path, "rename", interrupted)
    with pytest.raises(KeyboardInterrupt):
        fill(tmp_path / "x", force=True)
    assert listing(tmp_path) == before


def test_an_interruption_after_the_exchange_leaves_the_new_folder_only(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    real, calls = atomic_files._remove, 0

    def interrupted(folder: Path) -> None:
        nonlocal calls
        calls += 1
        if calls == 1:
            raise KeyboardInterrupt
        real(folder)

    monkeypatch.setattr(atomic_files, "_remove", interrupted)
    with pytest.raises(KeyboardInterrupt):
        fill(old_folder(tmp_path / "x"), force=True)
    assert listing(tmp_path) == {"x": None, "x/a.safetensors": b"new"}


@pytest.mark.usefixtures("kernel")
@pytest.mark.parametrize("make", [Path.mkdir, Path.touch])
@pytest.mark.parametrize("name", ["thesis.tex", "data.bin/", ".git"])
def test_a_folder_that_holds_anything_else_is_never_replaced(
    tmp_path: Path, name: str, make: Callable[[Path], None]
) -> None:
    if name.endswith("/") and make is Path.touch:
        name = "notes"
    target = old_folder(tmp_path / "x")
    with (
        pytest.raises(BadDestination, match="is no file of a checkpoint"),
        atomic_files.atomic_folder(target, force=True),
    ):
        make(target / name)  # after the first look
    assert (target / "a.safetensors").read_bytes() == b"old"
    assert (target / name).exists()
    with pytest.raises(BadDestination, match="is no file of a checkpoint, so --force does not replace"):
        check_folder(target, [], force=True)
    assert [path.name for path in tmp_path.iterdir()] == ["x"]


def test_what_somebody_puts_into_the_old_folder_at_the_last_moment_stays(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    real = atomic_files._renameat2

    def late(old: Path, new: Path, flag: int) -> bool:
        (new / "thesis.tex").write_bytes(b"years of work")
        return real(old, new, flag)

    monkeypatch.setattr(atomic_files, "_renameat2", late)
    fill(old_folder(tmp_path / "x"), force=True)
    assert (tmp_path / "x" / "a.safetensors").read_bytes() == b"new"
    (left,) = tmp_path.rglob("thesis.tex")
    assert left.read_bytes() == b"years of work"
    monkeypatch.undo()
    fill(tmp_path / "x", force=True)
    assert left.exists()


def test_only_links_in_an_old_folder_are_removed_not_what_they_point_at(tmp_path: Path) -> None:
    (tmp_path / "blob").write_bytes(b"weights")
    (tmp_path / "data").mkdir()
    (tmp_path / "data" / "y.json").touch()
    target = old_folder(tmp_path / "x")
    (target / "b.safetensors").symlink_to(tmp_path / "blob")
    (target / "c.json").symlink_to(tmp_path / "data")
    fill(target, force=True)
    assert (tmp_path / "blob").exists()
    assert (tmp_path / "data" / "y.json").exists()


KILLED = (
    "import os, signal; from pathlib import Path; "
    "from msmigrate.atomic_files import atomic_folder\n"
    "with atomic_folder(Path('x'), force=False) as folder:\n"
    "    (folder / 'a.safetensors').touch()\n"
    "    print(folder.name, flush=True)\n"
    "    "
)


def test_what_a_killed_process_leaves_the_next_one_removes(tmp_path: Path) -> None:
    script = KILLED + "os.kill(os.getpid(), signal.SIGKILL)"
    done = subprocess.run([sys.executable, "-c", script], cwd=tmp_path, check=False, stdout=subprocess.PIPE, text=True)
    assert done.returncode == -signal.SIGKILL
    stray = tmp_path / done.stdout.strip()
    assert stray.name.startswith(".x.")
    kept = [".y.999999999-00000000.tmp", ".x.999999999-00000000.old", ".x.999999999-0.tmp", ".x.z.tmp", "x.1.tmp"]
    for name in kept:
        (tmp_path / name).mkdir()
    (tmp_path / ".x.999999999-00000001.tmp").touch()  # a file, which is somebody else's business
    fill(tmp_path / "x")
    assert not stray.exists()
    assert {path.name for path in tmp_path.iterdir()} == {*kept, ".x.999999999-00000001.tmp", "x"}


def test_what_a_running_process_writes_stays(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    script = KILLED + "input()"
    with subprocess.Popen(
        [sys.executable, "-c", script], cwd=tmp_path, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as process:
        assert process.stdout is not None
        other = tmp_path / process.stdout.readline().strip()
        fill(tmp_path / "x")
        assert other.is_dir()
        for told in ("_runs", "_locked"):  # of another container the number tells nothing, but the lock does
            with monkeypatch.context() as patch:
                patch.setattr(atomic_files, told, lambda _: False)
                fill(tmp_path / "x", force=True)
            assert other.is_dir()
        process.kill()
    fill(tmp_path / "x", force=True)
    assert [path.name for path in tmp_path.iterdir()] == ["x"]


def test_a_process_of_another_user_runs(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: object) -> None:
        raise PermissionError

    assert atomic_files._runs(os.getpid())
    assert not atomic_files._runs(10**30)
    monkeypatch.setattr(os, "kill", refuse)
    assert atomic_files._runs(1)


@pytest.mark.parametrize(
    ("number", "outcome"), [(errno.ENOSYS, False), (errno.EINVAL, False), (errno.EACCES, PermissionError)]
)
def test_a_kernel_that_cannot_exchange_is_told_from_one_that_will_not(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, number: int, outcome: Any
) -> None:
    class Library:
        class renameat2:  # noqa: N801
            def __new__(cls, *_: object) -> Any:
                ctypes.set_errno(number)
                return -1

    monkeypatch.setattr(ctypes, "CDLL", lambda *_, **__: Library)
    if outcome is False:
        assert atomic_files._renameat2(tmp_path, tmp_path, 2) is False
    else:
        with pytest.raises(outcome):
            atomic_files._renameat2(tmp_path, tmp_path, 2)
    monkeypatch.setattr(ctypes, "CDLL", lambda *_, **__: object())
    assert atomic_files._renameat2(tmp_path, tmp_path, 2) is False


def test_folders_that_cannot_be_written(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    target = old_folder(tmp_path / "x")
    (tmp_path / "file").touch()
    (tmp_path / "link").symlink_to(target)
    for name, sources, force, says in (
        ("absent/x", [], True, "does not exist; create it"),
        ("file", [], True, "is a file; give the name of a folder"),
        ("x", [], False, "exists; pass --force to replace it"),
        ("link", [], False, "exists; pass --force"),
        ("x", [target], True, "is the source itself, or the source is in it"),
        ("link", [target / "a.safetensors"], True, "the source is in it"),
        ("x", [tmp_path / "link" / "a.safetensors"], True, "the source is in it"),
    ):
        with pytest.raises(BadDestination, match=says):
            check_folder(tmp_path / name, sources, force=force)
    assert check_folder(tmp_path / "link", [tmp_path / "file"], force=True) == target.resolve()
    assert check_folder(tmp_path / "new", [], force=False) == (tmp_path / "new").resolve()
    monkeypatch.setattr(os, "access", lambda *_: False)  # tests may run as root, whom no mode stops
    with pytest.raises(BadDestination, match="no permission"):
        check_folder(tmp_path / "new", [], force=False)


def test_what_is_read_is_not_replaced(tmp_path: Path) -> None:
    target = old_folder(tmp_path / "x")
    (tmp_path / "link").symlink_to(target / "a.safetensors")
    for replaced in (target, target / "a.safetensors"):
        with pytest.raises(BadDestination, match=r"would replace .*, which is read"):
            check_not_read(replaced, [str(tmp_path / "link")])
    check_not_read(target / "b.safetensors", [str(tmp_path / "link")])
    check_not_read(tmp_path / "y", [str(target / "a.safetensors")])
