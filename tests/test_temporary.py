"""Temporary folders are removed where their process has ended on this machine, and no other folder ever is."""

from __future__ import annotations

import json
import os
import stat
import subprocess
import sys
import time
from dataclasses import asdict, replace
from pathlib import Path

import pytest
from msmigrate import processes, temporary
from msmigrate.errors import BadDestination
from msmigrate.temporary import OWNER, Owner, remove_strays, temporary_folder

DEAD = "msmigrate-parity-0123456789abcdef"


@pytest.fixture(autouse=True)
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """$TMPDIR of this test."""
    monkeypatch.setattr(temporary.tempfile, "gettempdir", lambda: str(tmp_path))
    return tmp_path


def ended() -> Owner:
    """A process that has ended."""
    process = subprocess.Popen(["sleep", "60"])
    fields = processes.stat(process.pid)
    assert fields is not None
    process.kill()
    process.wait()
    return replace(Owner.here(), pid=process.pid, started=fields[processes.STARTED])


def stray(place: Path, owner: Owner, name: str = DEAD) -> Path:
    folder = place / name
    (folder / "run" / "deep").mkdir(parents=True)
    folder.chmod(0o700)
    (folder / "run" / "deep" / "trace").write_text("x")
    (folder / OWNER).write_text(json.dumps(asdict(owner)))
    return folder


def test_a_folder_is_ours_alone_and_gone_with_its_block(place: Path) -> None:
    with temporary_folder("eval") as folder:
        assert folder.parent == place and stat.S_IMODE(folder.stat().st_mode) == 0o700
        (folder / "deep" / "deeper").mkdir(parents=True)
        (folder / "link").symlink_to(place)
        remove_strays(place)
        assert folder.is_dir()
    assert list(place.iterdir()) == []


def test_it_is_gone_after_an_error_and_an_interruption(place: Path) -> None:
    for error in (ValueError, KeyboardInterrupt, processes.Ended(15)):
        with pytest.raises(type(error) if isinstance(error, BaseException) else error), temporary_folder("eval"):
            raise error
    assert list(place.iterdir()) == []


def test_the_next_start_removes_what_a_killed_one_left(place: Path) -> None:
    stray(place, ended())
    with temporary_folder("predict") as folder:
        assert list(place.iterdir()) == [folder]


def test_a_process_that_nobody_has_waited_for_has_ended(place: Path) -> None:
    process = subprocess.Popen(["sleep", "0"])
    while (fields := processes.stat(process.pid)) and fields[processes.STATE] != "Z":
        time.sleep(0.01)
    assert fields is not None
    stray(place, replace(Owner.here(), pid=process.pid, started=fields[processes.STARTED]))
    remove_strays(place)
    process.wait()
    assert list(place.iterdir()) == []


def test_a_number_that_came_again_is_another_process(place: Path) -> None:
    stray(place, replace(Owner.here(), started="1"))
    remove_strays(place)
    assert list(place.iterdir()) == []


OTHERS = {
    "at work": lambda owner: Owner.here(),
    "another machine's": lambda owner: replace(owner, host="elsewhere"),
    "another kernel's": lambda owner: replace(owner, boot="b3a1"),
    "another container's": lambda owner: replace(owner, space="pid:[1]"),
    "nobody knows whose": lambda owner: replace(owner, host="", boot="", space="", started=""),
}


@pytest.mark.parametrize("whose", OTHERS)
def test_another_ones_folder_stays(place: Path, whose: str) -> None:
    folder = stray(place, OTHERS[whose](ended()))
    remove_strays(place)
    assert (folder / "run" / "deep" / "trace").exists()


def test_where_proc_says_nothing_no_other_folder_is_touched(place: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = stray(place, replace(ended(), boot="", space="", started=""))
    monkeypatch.setattr(processes, "PROC", place / "none")
    remove_strays(place)
    with temporary_folder("eval"):
        assert folder.exists()


def test_a_folder_without_a_sound_owner_stays(place: Path) -> None:
    dead = asdict(ended())
    texts = ("", "x", "[]", "{}", "[" * 4000, json.dumps({**dead, "pid": "x"}), json.dumps(dead) + " " * 5000)
    for number, text in enumerate(texts):
        (stray(place, ended(), f"msmigrate-eval-{number:016x}") / OWNER).write_text(text)
    for kind in ("link", "pipe", "folder", "none"):
        file = stray(place, ended(), f"msmigrate-eval-{len(list(place.iterdir())):016x}") / OWNER
        file.unlink()
        if kind == "link":
            (place / "owner").write_text(json.dumps(dead))
            file.symlink_to(place / "owner")
        elif kind == "pipe":
            os.mkfifo(file)
        elif kind == "folder":
            file.mkdir()
    before = sorted(place.iterdir())
    remove_strays(place)
    assert sorted(place.iterdir()) == before


@pytest.mark.parametrize("name", ["msmigrate-parity-abcd1234", f"{DEAD}x", f"x{DEAD}", "other", DEAD.upper()])
def test_a_folder_of_another_name_stays(place: Path, name: str) -> None:
    folder = stray(place, ended(), name)
    remove_strays(place)
    assert folder.exists()


def test_links_are_not_followed(place: Path, tmp_path_factory: pytest.TempPathFactory) -> None:
    elsewhere = stray(tmp_path_factory.mktemp("elsewhere"), ended(), "mine")
    (place / DEAD).symlink_to(elsewhere)
    remove_strays(place)
    assert (place / DEAD).is_symlink() and (elsewhere / "run" / "deep" / "trace").exists()
    (place / DEAD).unlink()
    (stray(place, ended()) / "run" / "link").symlink_to(elsewhere)
    (place / DEAD / "link").symlink_to(elsewhere)
    remove_strays(place)
    assert list(place.iterdir()) == [] and (elsewhere / "run" / "deep" / "trace").exists()


@pytest.mark.skipif(os.geteuid() != 0, reason="only root makes files of other users")
def test_another_users_folder_stays(place: Path) -> None:
    theirs = stray(place, ended())
    os.chown(theirs, 1234, 1234)
    named = stray(place, ended(), "msmigrate-eval-0000000000000001")
    os.chown(named / OWNER, 1234, 1234)
    remove_strays(place)
    assert theirs.exists() and named.exists()


def test_a_folder_that_others_may_write_to_stays(place: Path) -> None:
    folder = stray(place, ended())
    folder.chmod(0o770)
    remove_strays(place)
    assert folder.exists()


def test_many_starts_at_once_agree(place: Path) -> None:
    """Each removes strays, none another's folder that is just being made."""
    for number in range(20):
        stray(place, ended(), f"msmigrate-eval-{number:016x}")
    code = f"""if True:
        import sys, tempfile
        tempfile.tempdir = {str(place)!r}
        from msmigrate.temporary import temporary_folder
        for _ in range(40):
            with temporary_folder("eval") as folder:
                (folder / "mine").write_text("x")
                with temporary_folder("eval"):
                    assert (folder / "mine").exists()
    """
    started = [subprocess.Popen([sys.executable, "-c", code], stderr=subprocess.PIPE, text=True) for _ in range(3)]
    assert [process.communicate(timeout=120)[1] for process in started] == [""] * 3
    assert list(place.iterdir()) == []


def test_a_removal_that_is_killed_is_finished_by_the_next(place: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = stray(place, ended())
    monkeypatch.setattr(temporary.shutil, "rmtree", lambda *given, **more: None)
    remove_strays(place)
    assert (folder / OWNER).exists()
    monkeypatch.undo()
    remove_strays(place)
    assert not folder.exists()


def test_where_no_folder_can_be_made(place: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(temporary.tempfile, "gettempdir", lambda: str(place / "none"))
    with (
        pytest.raises(BadDestination, match=r"in .*none: No such file or directory; set TMPDIR"),
        temporary_folder("x"),
    ):
        pass

    def none() -> str:
        raise FileNotFoundError(2, "No usable temporary directory found in ['/tmp']")

    monkeypatch.setattr(temporary.tempfile, "gettempdir", none)
    with pytest.raises(BadDestination, match="there is no folder for temporary files"), temporary_folder("x"):
        pass
