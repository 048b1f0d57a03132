"""A worker that hangs, floods or runs out of memory is one line; nothing that was started is left, nor half a trace."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from msmigrate.errors import WorkerFailed
from msmigrate.parity.job import ParityJob
from msmigrate.parity.run import parity_step
from msmigrate.training.recipe import reader as recipes

HERE = Path(__file__).parent
RECIPE = HERE / "tiny.yaml"


def fake(way: str) -> list[str]:
    return [sys.executable, str(HERE / "fake_worker.py"), way]


def alive(pid: int) -> bool:
    """Whether a process is there and has not died."""
    try:
        return (Path("/proc") / str(pid) / "stat").read_text().rpartition(")")[2].split()[0] not in "ZX"
    except OSError:
        return False


def left(folder: Path) -> list[str]:
    return [file.name for file in folder.glob("*.pid") if alive(int(file.read_text()))]


def failure(folder: Path, torch: str, mindspore: str, timeout: float | None = 1.0) -> str:
    with pytest.raises(WorkerFailed) as stopped:
        parity_step(
            RECIPE,
            ParityJob(recipes.load(RECIPE), folder, timeout=timeout),
            lambda *_: None,
            fake(torch),
            fake(mindspore),
        )
    assert not left(folder)
    message = str(stopped.value)
    assert "\n" not in message and len(message) < 1200
    return message


def test_a_worker_that_hangs_is_ended_and_said(tmp_path: Path) -> None:
    began = time.monotonic()
    message = failure(tmp_path, "waits for the other", "hangs")
    assert time.monotonic() - began < 15
    assert message == (
        "the MindSpore side has reported nothing for 1 s and was ended, while at 'a step that never ends': the last "
        "thing in its log; if it only needs longer, give a larger --timeout"
    )


def test_who_only_waits_for_the_other_is_not_blamed(tmp_path: Path) -> None:
    assert failure(tmp_path, "hangs", "waits for the other").startswith("the torch side has reported nothing")


def test_where_both_wait_somebody_is_named(tmp_path: Path) -> None:
    assert "side has reported nothing for 1 s" in failure(tmp_path, "waits for the other", "waits for the other")


def test_progress_of_one_is_patience_with_both(tmp_path: Path) -> None:
    message = failure(tmp_path, "waits for the other", "keeps working")  # for three seconds
    assert "the MindSpore side stopped, exit code 7" in message


@pytest.mark.parametrize("way", ["chatters", "chatters without a line"])
def test_garbage_is_no_progress_and_does_not_fill_the_disk(tmp_path: Path, way: str) -> None:
    message = failure(tmp_path, "waits for the other", way)
    assert "the MindSpore side has reported nothing for 1 s" in message
    assert (tmp_path / "mindspore.log").stat().st_size < 11_000_000


def test_a_worker_out_of_memory_says_so(tmp_path: Path) -> None:
    assert "exit code 1 (out of memory?): MemoryError" in failure(tmp_path, "runs out of memory", "waits", None)


def test_what_a_worker_started_ends_with_it(tmp_path: Path) -> None:
    failure(tmp_path, "has children", "waits for the other")
    assert len(list(tmp_path.glob("*.pid"))) == 4 and not left(tmp_path)


def test_a_trace_cut_short_is_removed_and_a_whole_one_stays(tmp_path: Path) -> None:
    failure(tmp_path, "fails midway", "waits")
    assert sorted(path.name for path in tmp_path.iterdir() if path.is_dir()) == ["torch-fp32"]


def start_and_signal(folder: Path, number: int) -> subprocess.Popen[str]:
    """A parity_step in a process of its own that has been sent a signal once its workers were there."""
    code = f"""if True:
        from pathlib import Path
        from msmigrate.parity.run import parity_step
        from msmigrate.parity.job import ParityJob
        from msmigrate.training.recipe import reader as recipes
        recipe = Path({str(RECIPE)!r})
        parity_step(recipe, ParityJob(recipes.load(recipe), Path({str(folder)!r})), lambda *_: None,
                    {fake("has children")}, {fake("waits")})
    """
    process = subprocess.Popen([sys.executable, "-c", code], stderr=subprocess.PIPE, text=True)
    deadline = time.monotonic() + 30
    while len([f for f in folder.glob("*.pid") if f.read_text()]) < 4 and time.monotonic() < deadline:
        time.sleep(0.05)
    process.send_signal(number)
    process.communicate(timeout=30)
    return process


def test_ctrl_c_ends_the_workers_and_their_children(tmp_path: Path) -> None:
    start_and_signal(tmp_path, signal.SIGINT)
    assert len(list(tmp_path.glob("*.pid"))) == 4 and not left(tmp_path)


def test_workers_end_with_a_parent_that_is_killed(tmp_path: Path) -> None:
    start_and_signal(tmp_path, signal.SIGKILL)
    time.sleep(0.5)
    remaining = left(tmp_path)
    for name in remaining:
        os.kill(int((tmp_path / name).read_text()), signal.SIGKILL)
    assert not {"has children.pid", "waits.pid"} & set(remaining)


def test_workers_are_out_of_reach_of_the_terminal(tmp_path: Path) -> None:
    options = ParityJob(recipes.load(RECIPE), tmp_path)
    code = "import os, sys; print('session', os.getsid(0) == os.getpid(), file=sys.stderr); sys.exit(1)"
    with pytest.raises(WorkerFailed, match="session True"):
        parity_step(RECIPE, options, torch_worker=[sys.executable, "-c", code], mindspore_worker=fake("waits"))
