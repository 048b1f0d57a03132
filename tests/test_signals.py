"""A command that a signal ends leaves no process and no temporary folder; what SIGKILL left, the next start removes."""

from __future__ import annotations

import os
import pty
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from msmigrate import processes
from msmigrate.training import checkpoints

HERE = Path(__file__).parent
DIGITS, TINY = HERE / "workflows" / "digits.yaml", HERE / "parity" / "tiny.yaml"
PATIENCE = 60.0

# Every process that a command starts is this one instead of a framework: it says its number, and waits.
FRAMEWORK = """#!/bin/sh
echo $$ > "$PLACE/$$.new" && mv "$PLACE/$$.new" "$PLACE/$$.pid"
exec sleep 600
"""
COMMAND = "import sys; sys.executable = sys.argv.pop(1); from msmigrate import cli; cli.main()"
CASES: dict[str, tuple[str, ...]] = {
    "parity-step": ("parity-step", str(TINY)),
    "a pair": ("parity-step", str(TINY), "--torch", "torchvision:resnet18", "--batch", "2"),
    "record": ("record", str(TINY), "--framework", "torch", "-o", "out"),
    "convert-model": ("convert-model", "torchvision:resnet18", "-o", "out.py"),
    "analyze": ("analyze", "torchvision:resnet18"),
    "coverage": ("analyze", "--coverage", "torchvision:resnet18", "timm:x"),
    "convert-ckpt": ("convert-ckpt", "x.ckpt", "out.pth", "--model", "torchvision:resnet18"),
    "eval": ("eval", "x.ckpt", "digits:test", "--recipe", str(DIGITS)),
    "predict": ("predict", "x.ckpt", "x.png", "--recipe", str(DIGITS)),
    "export": ("export", "x.ckpt", "--recipe", str(DIGITS), "--format", "mindir", "-o", "out.mindir"),
    "serve": ("serve", "x.ckpt", "--recipe", str(DIGITS)),
    "train": ("train", str(DIGITS), "--out", "out"),
    "doctor": ("doctor",),
}


class Started:
    """A command whose framework processes only wait, in a folder of its own that is $TMPDIR too."""

    def __init__(self, folder: Path, *words: str, **options: object) -> None:
        self.folder, self.temporary = folder, folder / "tmp"
        self.place = folder / f"pids{len(list(folder.glob('pids*')))}"
        self.place.mkdir()
        self.temporary.mkdir(exist_ok=True)
        python = self.place / "python"
        python.write_text(FRAMEWORK)
        python.chmod(0o755)
        checkpoints.write(folder / "x.ckpt", {"w": np.zeros(3, np.float32)}, {})
        (folder / "x.png").touch()
        environment = {**os.environ, "TMPDIR": str(self.temporary), "PLACE": str(self.place)}
        given = {"stdout": subprocess.DEVNULL, "stderr": subprocess.PIPE, "text": True, **options}
        command = [sys.executable, "-c", COMMAND, str(python), *words]
        self.process = subprocess.Popen(command, cwd=folder, env=environment, **given)  # type: ignore[call-overload]

    def workers(self) -> list[int]:
        return [int(file.read_text()) for file in self.place.glob("*.pid")]

    def until(self, so: Callable[[], object]) -> None:
        deadline = time.monotonic() + PATIENCE
        while not so():
            if time.monotonic() > deadline or self.process.poll() is not None:
                self.process.kill()
                pytest.fail(f"it does not come to this: {self.process.communicate()[1]}")
            time.sleep(0.02)

    def ended(self, number: int) -> tuple[int, str]:
        """Send a signal once its first worker is there; the exit code and what it said."""
        self.until(self.workers)
        self.process.send_signal(number)
        _, said = self.process.communicate(timeout=PATIENCE)
        return self.process.returncode, said or ""

    def left(self) -> list[str]:
        """The processes and files that there are still, in a moment."""
        deadline = time.monotonic() + 5
        while (alive := [pid for pid in self.workers() if running(pid)]) and time.monotonic() < deadline:
            time.sleep(0.02)
        files = [path for path in self.folder.iterdir() if not path.name.startswith(("pids", "tmp", "x."))]
        return sorted([*map(str, alive), *(path.name for path in (*files, *self.temporary.iterdir()))])


def running(pid: int) -> bool:
    fields = processes.stat(pid)
    return fields is not None and fields[processes.STATE] not in "ZX"


# one of each kind of process that a command starts; the others start the same ones
EVERY_TIME = ("parity-step", "convert-model", "convert-ckpt", "train", "serve", "doctor")


@pytest.mark.parametrize(
    "case", [case if case in EVERY_TIME else pytest.param(case, marks=pytest.mark.full) for case in CASES]
)
def test_sigterm_ends_every_command_as_ctrl_c_does(tmp_path: Path, case: str) -> None:
    command = Started(tmp_path, *CASES[case])
    code, said = command.ended(signal.SIGTERM)
    assert (code, said.strip().splitlines()[-1]) == (143, "msmigrate: interrupted by SIGTERM")
    assert "Traceback" not in said
    assert command.left() == []


@pytest.mark.parametrize(("number", "code"), [(signal.SIGINT, 130), (signal.SIGHUP, 129)])
def test_so_do_ctrl_c_and_a_closed_terminal(tmp_path: Path, number: int, code: int) -> None:
    command = Started(tmp_path, *CASES["parity-step"])
    assert command.ended(number)[0] == code
    assert command.left() == []


def test_a_terminal_that_is_gone_does_not_disturb_the_tidying_up(tmp_path: Path) -> None:
    ours, theirs = pty.openpty()
    command = Started(tmp_path, *CASES["parity-step"], stdin=theirs, stdout=theirs, stderr=theirs)
    os.close(theirs)
    command.until(command.workers)
    os.close(ours)  # writing fails from now on
    command.process.send_signal(signal.SIGHUP)
    assert command.process.wait(PATIENCE) == 129
    assert command.left() == []


def test_under_nohup_a_closed_terminal_ends_nothing(tmp_path: Path) -> None:
    command = Started(tmp_path, *CASES["parity-step"], preexec_fn=lambda: signal.signal(signal.SIGHUP, signal.SIG_IGN))
    command.until(command.workers)
    command.process.send_signal(signal.SIGHUP)
    time.sleep(0.5)
    assert command.process.poll() is None
    assert command.ended(signal.SIGTERM)[0] == 143
    assert command.left() == []


def test_a_second_signal_does_not_interrupt_the_tidying_up(tmp_path: Path) -> None:
    command = Started(tmp_path, *CASES["parity-step"])
    command.until(lambda: list(command.temporary.iterdir()) and command.workers())
    (folder,) = command.temporary.iterdir()
    for number in range(3000):
        (folder / f"{number}").touch()
    command.process.send_signal(signal.SIGTERM)
    while command.process.poll() is None:
        command.process.send_signal(signal.SIGTERM)
        command.process.send_signal(signal.SIGHUP)
        time.sleep(0.005)
    assert command.process.communicate()[1].splitlines()[-1].startswith("msmigrate: interrupted by SIG")
    assert command.left() == []


@pytest.mark.parametrize("case", ["parity-step", "export", "record"])
def test_what_kill_9_leaves_the_next_start_removes(tmp_path: Path, case: str) -> None:
    """Its workers end at once."""
    first = Started(tmp_path, *CASES[case])
    assert first.ended(signal.SIGKILL)[0] == -signal.SIGKILL
    left = first.left()
    assert len(left) == 1 and not left[0].isdecimal()
    second = Started(tmp_path, *CASES[case])
    second.until(second.workers)
    assert not [*tmp_path.glob(left[0]), *second.temporary.glob(left[0])]
    assert second.ended(signal.SIGTERM)[0] == 143
    assert second.left() == []


def test_a_run_at_work_keeps_its_folder(tmp_path: Path) -> None:
    first = Started(tmp_path, *CASES["parity-step"])
    first.until(first.workers)
    (mine,) = first.temporary.iterdir()
    second = Started(tmp_path, *CASES["doctor"])
    third = Started(tmp_path, *CASES["parity-step"])
    third.until(lambda: len(list(third.temporary.iterdir())) == 2)
    assert third.ended(signal.SIGTERM)[0] == second.ended(signal.SIGTERM)[0] == 143
    assert [path.name for path in first.temporary.iterdir()] == [mine.name]
    assert first.ended(signal.SIGTERM)[0] == 143
    assert first.left() == []


def test_a_server_that_does_not_stop_is_killed(tmp_path: Path) -> None:
    """Here one that says that it listens, and then knows no signal."""
    code = """if True:
        import sys
        sys.executable = sys.argv.pop(1)
        from msmigrate import cli
        from msmigrate.workflows import export as export_command
        export_command.STOPPED = 1.0
        cli.main()
    """
    stubborn = """if True:
        import json, os, signal, time
        for number in (1, 2, 15):
            signal.signal(number, signal.SIG_IGN)
        for name, facts in ("started", {"pid": os.getpid()}), ("listening", {"port": 1, "methods": []}):
            print(json.dumps({"kind": "event", "name": name, "facts": facts}), flush=True)
        time.sleep(600)
    """
    (tmp_path / "x.mindir").write_bytes(b"\n\x050.2.0\x12\x09MindSpore:\x00")  # an empty graph
    python = tmp_path / "python"
    python.write_text(f"#!{sys.executable}\n{stubborn}")
    python.chmod(0o755)
    command = [sys.executable, "-c", code, str(python), "serve", "x.mindir", "--input", "1x3"]
    pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
    process = subprocess.Popen(command, cwd=tmp_path, env={**os.environ, "TMPDIR": str(tmp_path)}, text=True, **pipes)
    assert process.stdout is not None and "/health" in process.stdout.readline()
    process.send_signal(signal.SIGTERM)
    _, said = process.communicate(timeout=PATIENCE)
    assert process.returncode == 2
    assert said == "msmigrate serve: the server did not stop within 1 s of the signal and was killed\n"
    assert sorted(path.name for path in tmp_path.iterdir()) == ["python", "x.mindir"]


DROPPED = """if True:
    import os, signal, time
    from msmigrate import processes
    class Finalized:
        def __del__(self):
            os.kill(os.getpid(), signal.{name})
            time.sleep(0.01)  # the exception is raised here, and dropped
    with processes.signals_raised():
        try:
            thing = Finalized()
            del thing
            time.sleep(20)
        except KeyboardInterrupt as error:
            print(processes.exit_code(error))
"""


@pytest.mark.parametrize(("name", "code"), [("SIGTERM", 143), ("SIGHUP", 129), ("SIGINT", 130)])
def test_a_signal_that_python_drops_comes_again(name: str, code: int) -> None:
    done = subprocess.run([sys.executable, "-c", DROPPED.format(name=name)], capture_output=True, text=True, timeout=15)
    assert (done.stdout, done.stderr, done.returncode) == (f"{code}\n", "", 0)


FORKED = """if True:
    import logging, os, signal, sys, threading, time
    from msmigrate import processes
    os.register_at_fork(after_in_parent=lambda: (os.kill(os.getpid(), signal.SIGTERM), time.sleep(0.01)))
    try:
        with processes.signals_raised():
            processes.start(["sleep", "600"])
    except KeyboardInterrupt as error:
        taken = threading.Thread(target=lambda: logging.getLogger("x").setLevel(1), daemon=True)
        taken.start()
        taken.join(5)
        children = open(f"/proc/{os.getpid()}/task/{os.getpid()}/children").read()
        print(processes.exit_code(error), taken.is_alive(), children)
"""


def test_a_signal_in_a_fork_waits_for_its_end() -> None:
    done = subprocess.run([sys.executable, "-c", FORKED], capture_output=True, text=True, timeout=15)
    assert (done.stdout, done.stderr) == ("143 False \n", "")
