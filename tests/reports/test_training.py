"""A run as people see it: while it goes on, when it ends, and after it was interrupted and resumed."""

from __future__ import annotations

import io
import json
import math
from pathlib import Path
from typing import Any

import pytest
from msmigrate.printable import clock_text
from msmigrate.reports import training_run
from msmigrate.reports.progress import TrainingProgress, facts
from msmigrate.reports.terminal import Console
from msmigrate.training.run.run_log import finite, history, number, read
from msmigrate.training.run.train_job import Job

PLAN = {"event": "plan", "steps_per_epoch": 4, "epochs": 3, "steps": 12, "images": 128, "first_step": 0}
ODD = [{}, {"step": "x"}, {"step": -1}, {"step": 2, "loss": [1], "epoch": "a"}, {"step": 1, "loss": "nan", "lr": {}}]


def step(number: int, loss: Any = 1.0, **more: Any) -> dict[str, Any]:
    facts = {"lr": 0.1, "images_per_second": 100.0, "waited": 0.015, "seconds_left": 75.0, "loss_scale": None}
    return {"event": "step", "epoch": (number - 1) // 4, "step": number, "loss": loss, **facts, **more}


def validation(number: int, top1: float, ema: float | None = None) -> dict[str, Any]:
    average = None if ema is None else {"loss": 0.4, "top1": ema, "top5": 1.0}
    where = {"event": "validation", "epoch": (number - 1) // 4, "step": number}
    return {**where, "loss": 0.5, "top1": top1, "top5": 0.99, "ema": average}


def timed(*events: dict[str, Any], start: float = 1000.0) -> list[dict[str, Any]]:
    """The events a second apart."""
    return [{"time": start + i, **event} for i, event in enumerate(events)]


def job(folder: Path) -> Job:
    return Job(recipe=Path("/r.yaml"), folder=folder, gate={"parity": "passed"})


def shown(*events: dict[str, Any], terminal: bool = False, every: float = 0.0) -> str:
    out = io.StringIO()
    now = iter(range(1000))
    with TrainingProgress(
        Console(file=out, force_terminal=terminal, width=100), every=every, clock=lambda: float(next(now))
    ) as progress:
        for event in events:
            progress.show(0, event)
        progress.show(1, step(3, 77.0))
        progress.show(1, {"event": "warning", "text": "of another\nprocess"})
    return out.getvalue()


def test_plain_lines_tell_where_training_stands() -> None:
    lines = shown(PLAN, step(1, 2.5), step(2), validation(4, 0.5, 0.625), {"event": "end"}).splitlines()
    assert lines == [
        "epoch 1/3  step 1/12  loss 2.5  lr 0.1  100 img/s  waiting 2%  1:15 left",
        "epoch 1/3  step 2/12  loss 1  lr 0.1  100 img/s  waiting 2%  1:15 left",
        "epoch 1/3  validation: loss 0.5, top-1 50.00%, top-5 99.00%, EMA top-1 62.50%",
        "warning (process 1): of another process",
    ]


def test_plain_lines_come_now_and_then_and_before_each_validation() -> None:
    steps = [step(n) for n in range(1, 9)]
    text = shown(PLAN, *steps[:4], validation(4, 0.5), *steps[4:], validation(8, 0.5), every=100.0)
    starts = [line.split("  ")[1][:8] for line in text.splitlines()[:-1]]
    assert starts == ["step 1/1", "step 4/1", "validati", "step 8/1", "validati"]


def test_a_terminal_gets_a_bar() -> None:
    text = shown(PLAN, step(1), validation(4, 0.5), terminal=True)
    assert "\x1b[" in text and "1/12 loss 1 lr 0.1 100 img/s 1:15 left" in text and "validation: loss 0.5" in text
    longest = step(450_359, 1234.5678, epoch=89, lr=0.000123456, images_per_second=12345.6, seconds_left=190_800.0)
    assert len(f"x epoch 90/90 x {facts(longest, 450_360, short=True)}") <= 80
    assert "waiting 10%" in facts(step(1, waited=0.1), 12, short=True)


def test_a_warning_is_said_once() -> None:
    again = {"event": "warning", "text": "[red]look[/]"}
    assert shown(again, again).count("warning: [red]look[/]") == 1


@pytest.mark.parametrize("terminal", [True, False])
@pytest.mark.parametrize("kind", ["plan", "step", "validation", "warning", "note", "stopped", "error", "end", "else"])
def test_events_that_lack_something_are_shown_as_far_as_they_go(kind: str, terminal: bool) -> None:
    for odd in ODD:
        shown(
            {"event": kind, **odd}, {"event": kind, "text": None, "epochs": "x", "steps": [], **odd}, terminal=terminal
        )
        history([{"event": kind, "time": "late", **odd}])


def test_numbers_that_are_not_finite_are_shown() -> None:
    assert "loss nan  lr 0.1" in facts(step(1, "nan"), None)
    assert "loss inf" in facts(step(1, "inf", seconds_left=None), 12)


@pytest.mark.parametrize(
    ("seconds", "text"), [(0, "0 s"), (59.4, "59 s"), (60, "1:00"), (3725, "1:02:05"), (190_800, "2 d 05:00")]
)
def test_time_left(seconds: float, text: str) -> None:
    assert clock_text(seconds) == text


def test_a_resumed_run_is_one_run() -> None:
    first = timed({"event": "note", "text": "x"}, PLAN, step(4), validation(4, 0.5), step(5), step(6))
    again = timed({**PLAN, "first_step": 4}, step(5, 0.8), step(8), validation(8, 0.75), {"event": "end", "steps": 8})
    found = history([*first, *[{**event, "time": event["time"] + 5000} for event in again]])
    assert [(line.step, line.loss) for line in found.steps] == [(4, 1.0), (5, 0.8), (8, 1.0)]
    assert [line.step for line in found.validations] == [4, 8]
    assert found.seconds == 4 + 4  # and none of the time between
    assert (found.status, found.starts, found.last_step) == ("done", 2, 8)


def test_how_a_run_ended() -> None:
    assert history([PLAN, step(1)]).status == "interrupted"
    assert history([PLAN, {"event": "stopped", "text": "why"}]).status == "stopped"
    assert history([PLAN, {"event": "error", "text": "why"}]).status == "failed"
    assert history([PLAN, {"event": "stopped"}, PLAN, {"event": "end", "steps": 12}]).status == "done"


def test_the_best_may_be_the_moving_average() -> None:
    found = history([PLAN, validation(4, 0.7, 0.6), validation(8, 0.6, 0.9), validation(12, math.nan, 0.8)])
    assert found.best is not None
    line, ema = found.best
    assert (line.step, ema) == (8, True)
    assert history([PLAN, validation(4, math.nan)]).best is None


def test_a_log_is_read_past_its_damage(tmp_path: Path) -> None:
    log = tmp_path / "log.jsonl"
    assert read(log).steps == []
    log.write_bytes(json.dumps(PLAN).encode() + b'\n\xff\xfe\n[1]\n{"event": "step", "step": 1, "lo')
    assert read(log).plan["steps"] == 12 and read(log).steps == []


def test_numbers_of_a_log() -> None:
    assert number("nan") != number("nan") and number("inf") == math.inf and number(2) == 2.0
    for odd in (None, True, [], {}, "x", 10**400):
        assert math.isnan(number(odd))
    assert finite({"a": [math.nan, 1.0, (math.inf,)]}) == {"a": [None, 1.0, [None]]}


def told(content: dict[str, Any]) -> str:
    out = io.StringIO()
    training_run.show_summary(content, Console(file=out, width=80))
    assert all(len(line) <= 80 for line in out.getvalue().splitlines() if not line.startswith(("Check", "  msm")))
    return out.getvalue()


@pytest.fixture
def run(tmp_path: Path) -> Path:
    """A run folder with two checkpoints."""
    (tmp_path / "checkpoints").mkdir()
    for name in ("best.ckpt", "step-00000012.ckpt"):
        (tmp_path / "checkpoints" / name).touch()
    return tmp_path


def test_a_summary_of_a_continued_run_counts_its_own_steps(run: Path) -> None:
    events = [{**PLAN, "first_step": 8}, step(10), step(12)]
    content = training_run.summary(history([*timed(*events), {"event": "end", "time": 1090.0, "steps": 12}]), job(run))
    assert "Trained: steps 9 to 12 in" in told(content)
    assert content["continued_from"] == 8


def test_a_summary_says_what_came_of_it(run: Path) -> None:
    events = [PLAN, step(2, 2.0), step(4), validation(4, 0.5, 0.25), step(8), validation(8, 0.75, 0.5)]
    content = training_run.summary(history([*timed(*events), {"event": "end", "time": 1090.0, "steps": 12}]), job(run))
    text = told(content)
    assert "Trained: 12 steps in 1:30, 100 images/s" in text
    assert "Best: top-1 75.00% after epoch 2" in text
    assert "1.5000" in text and "75.00%" in text and "EMA" in text
    assert f"msmigrate eval {run}/checkpoints/best.ckpt" in text
    assert "not proven" not in text
    assert json.loads(json.dumps(finite(content), allow_nan=False))["epochs"][1]["validation"]["top1"] == 0.75


def test_a_summary_of_a_run_that_was_cut_says_how_to_go_on(run: Path) -> None:
    text = told(training_run.summary(history([PLAN, step(4)]), job(run)))
    assert "Interrupted: 4 of 12 steps" in text
    assert f"msmigrate train /r.yaml --out {run} --resume" in text
    (run / "checkpoints" / "best.ckpt").unlink()
    (run / "checkpoints" / "step-00000012.ckpt").unlink()
    text = told(training_run.summary(history([PLAN, step(4)]), job(run)))
    assert "--resume" not in text and "Checkpoints" not in text


def test_a_summary_of_a_stop_has_its_reason(run: Path) -> None:
    events = [PLAN, step(4), {"event": "stopped", "step": 5, "tensor": "fc", "text": "stopped at step 5: fc is nan"}]
    content = training_run.summary(history(events), job(run))
    assert "stopped at step 5: fc is nan" in told(content)


def test_a_summary_says_that_nobody_proved_the_step(run: Path) -> None:
    unproven = job(run).model_copy(update={"gate": {"parity": "skipped"}})
    assert "The step was not proven" in told(training_run.summary(history([PLAN, step(4)]), unproven))


def test_a_long_run_is_a_short_table(run: Path) -> None:
    events = [{**step(1), "epoch": epoch, "step": epoch + 1} for epoch in range(90)]
    text = told(training_run.summary(history([PLAN, *events]), job(run)))
    assert text.count("…") == 3 and len(text.splitlines()) < 25


def test_a_summary_that_is_stored_is_strict_json(run: Path) -> None:
    content = training_run.summary(history([PLAN, step(4, "nan")]), job(run))
    training_run.write(content, run)

    def refuse(constant: str) -> None:
        raise AssertionError(constant)

    stored = json.loads((run / "summary.json").read_text(), parse_constant=refuse)
    assert stored["epochs"][0]["loss"] is None and stored["status"] == "interrupted"
