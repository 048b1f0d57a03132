"""What stderr says while processes work: at once what runs, the first failure once it is known, and that it goes on."""

from __future__ import annotations

import time
from collections.abc import Iterator

import pytest
from msmigrate.printable import MANNER, Manner
from msmigrate.reports import progress
from msmigrate.reports.progress import Work, doing, plain_lines, progressing
from msmigrate.workers.messages import BEGUN, COUNTED, DIVERGED, Event, Progress


@pytest.fixture(autouse=True)
def manner() -> Iterator[Manner]:
    yield MANNER
    vars(MANNER).update(vars(Manner()))


def steps() -> None:
    """Two processes start, and one of them fails."""
    with progressing(("torch", "MindSpore"), "what runs") as on_message:
        on_message("torch", Event(BEGUN))
        on_message("MindSpore", Event(BEGUN))
        on_message("torch", Event(COUNTED, {"tensors": 9}))
        on_message("torch", Progress("torch: training step 1 of 3", done=0, total=3))
        on_message("torch", Event(DIVERGED, {"at": "forward (eval) fc"}))
        time.sleep(0.3)


def test_what_runs_is_said_once_and_the_first_failure_before_the_report(capsys: pytest.CaptureFixture[str]) -> None:
    steps()
    said = capsys.readouterr()
    assert said.out == "" and said.err.splitlines() == [
        "what runs",
        "9 tensors of weights, and what is computed with them",
        "no parity: forward (eval) fc fails; the other failures and the causes follow",
    ]


def test_what_is_being_done_may_change(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, manner: Manner
) -> None:
    monkeypatch.setattr(progress, "EVERY", 0.1)
    manner.verbose = True
    said = iter(range(1, 1000))
    with doing(lambda: f"{next(said)} of many"):
        time.sleep(0.35)
    lines = [line.rpartition(": ")[2] for line in capsys.readouterr().err.splitlines()]
    assert len(lines) > 2 and lines == [f"{n} of many" for n in range(1, len(lines) + 1)]


def test_verbose_says_every_step_and_quiet_nothing(capsys: pytest.CaptureFixture[str], manner: Manner) -> None:
    manner.verbose = True
    steps()
    assert "torch: training step 1 of 3" in capsys.readouterr().err.splitlines()
    manner.verbose, manner.quiet = False, True
    steps()
    assert capsys.readouterr() == ("", "")


def test_where_nothing_moves_a_line_comes_now_and_then(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(progress, "EVERY", 0.1)
    steps()
    lines = capsys.readouterr().err.splitlines()[3:]
    assert len(lines) >= 2 and lines[0].endswith("torch: training step 1 of 3; MindSpore: starting")
    with plain_lines(lambda: ""):
        time.sleep(0.25)
    assert capsys.readouterr().err == ""


def test_the_time_left_is_that_of_the_units_that_are_left(monkeypatch: pytest.MonkeyPatch) -> None:
    now = iter([100.0, 110.0, 120.0, 130.0, 140.0])
    monkeypatch.setattr(progress.time, "monotonic", lambda: next(now))
    work = Work()
    found = []
    for done in (0, 1, 2):
        work.at(Progress(f"MindSpore: module {done + 1} of 12 alone", done=done, total=12))
        found.append(str(work))
    assert found == ["module 1 of 12 alone", "module 2 of 12 alone, 1:50 left", "module 3 of 12 alone, 1:40 left"]
    work.at(Progress("torch: waiting"))
    assert str(work) == "waiting"
    work.at(Progress("torch: training step 1 of 3", done=0, total=3))  # another count begins anew
    assert str(work) == "training step 1 of 3"
