"""The search for causes in a process of its own: what it is given, what it answers, and how it fails."""

from __future__ import annotations

import json
import sys
from dataclasses import asdict
from pathlib import Path
from typing import Any

import pytest
from msmigrate.errors import WorkerFailed
from msmigrate.parity.job import ParityJob
from msmigrate.parity.result import Cause, Finding, ModuleVerdict, Report
from msmigrate.parity.run import CAUSES, FAILED, diagnose, read_causes, read_failed, write_causes
from msmigrate.parity.tensor_verdict import Verdict
from msmigrate.training.recipe import reader as recipes
from msmigrate.workers.messages import Message, Progress, ignore

RECIPE = Path(__file__).parent.parent / "tiny.yaml"
SEARCHING = json.dumps({"kind": "progress", "what": "causes: bn1"})
FAILING = {"kind": "failure", "error": "ValueError", "text": "no such thing"}
CAUSE = Cause("forward", "bn1", "ln-eps", "eps is another", "write eps", "at 0.4 of the noise", 0.4, float("inf"))
FINDINGS = [
    Finding("forward", "train", "conv1", 0, Verdict.PASS, ratio=0.5),
    Finding("forward", "train", "bn1", 1, Verdict.FAIL, "off", "BatchNorm2d", (2, 3), 0.1, 1e-7, 4e-7, float("inf")),
    Finding("loss", "step1", "loss", 2, Verdict.NONE, "torch itself"),
]
MODULE = ModuleVerdict("bn1", "BatchNorm2d", "bn1 (BatchNorm2d)", Verdict.FAIL, True, 1, 3, 900.0, "off")


def report() -> Report:
    return Report("r", "d", {}, FINDINGS, modules=[MODULE])


def worker(tmp_path: Path, *lines: str) -> list[str]:
    """A worker of which this is the main; `folder` is the run's."""
    script = tmp_path / "worker.py"
    script.write_text("\n".join(("import json, os, sys, time", "folder = os.path.dirname(sys.argv[1])", *lines)))
    return [sys.executable, str(script)]


def run(tmp_path: Path, *lines: str, told: Any = ignore) -> list[Cause]:
    folder = tmp_path / "run"
    folder.mkdir()
    return diagnose(ParityJob(recipes.load(RECIPE), folder), report(), told, worker(tmp_path, *lines))


def answer(causes: Any) -> str:
    return f"open(folder + '/{CAUSES}', 'w').write({json.dumps(causes)!r})"


def test_what_failed_goes_out_and_causes_come_back(tmp_path: Path) -> None:
    heard: list[tuple[str, Message]] = []
    later = {**asdict(CAUSE), "stage": "update", "before": None}
    causes = run(
        tmp_path,
        f"print({SEARCHING!r})",
        "print('noise')",
        answer([{**asdict(CAUSE), "before": 900.0}, later]),
        told=lambda *what: heard.append(what),
    )
    assert [cause.stage for cause in causes] == ["forward", "update"]  # in the order of the answer, which ranks them
    assert causes[0] == Cause(**{**asdict(CAUSE), "before": 900.0})
    assert heard[0] == ("torch", Progress("causes: bn1")) and len(heard) == 2
    failed = read_failed(tmp_path / "run")
    assert [f.name for f in failed.findings] == ["bn1", "loss"] and failed.modules == [MODULE]
    findings = failed.findings
    assert findings[0].ratio is None and findings[0].shape == (2, 3)  # JSON has no infinity


def test_causes_are_written_whole(tmp_path: Path) -> None:
    write_causes(tmp_path / CAUSES, [CAUSE])
    (read,) = read_causes(tmp_path / CAUSES)
    assert read == Cause(**{**asdict(CAUSE), "before": None})
    assert [path.name for path in tmp_path.iterdir()] == [CAUSES]


@pytest.mark.parametrize(
    ("lines", "said"),
    [
        (["raise SystemExit(3)"], "exit code 3: it said nothing"),
        (["print('out of luck', file=sys.stderr)", "sys.exit(2)"], "exit code 2: out of luck"),
        ([f"print({json.dumps(FAILING)!r})", "sys.exit(2)"], "stopped: no such thing"),
        (["import os, signal", "os.kill(os.getpid(), signal.SIGKILL)"], "killed by signal 9"),
        (["pass"], "causes.json"),
        ([answer({"a": 1})], "should be a valid array"),
        ([answer([{"stage": "forward"}])], "0.place: Field required"),
        ([answer([{**asdict(CAUSE), "before": None, "stage": "afterwards"}])], "no stage"),
        ([answer([{**asdict(CAUSE), "before": None, "text": 5}])], "text: Input should be a valid string"),
        ([answer([{**asdict(CAUSE), "before": None, "text": "x" * 10_000}])], "more than any search finds"),
        ([answer([{**asdict(CAUSE), "before": "high"}])], "before: Input should be a valid number"),
        ([f"open(folder + '/{CAUSES}', 'w').write('[' * 100000)"], "causes.json"),
    ],
)
def test_a_search_that_fails_says_why(lines: list[str], said: str, tmp_path: Path) -> None:
    with pytest.raises(WorkerFailed, match=said.replace("(", r"\(")) as raised:
        run(tmp_path, *lines)
    assert "\n" not in str(raised.value)


def test_a_search_that_hangs_is_ended(tmp_path: Path) -> None:
    folder = tmp_path / "run"
    folder.mkdir()
    hanging = worker(tmp_path, f"print({SEARCHING!r}, flush=True)", "time.sleep(600)")
    with pytest.raises(WorkerFailed, match=r"search for causes stopped: .*nothing for 1 s.*causes: bn1"):
        diagnose(ParityJob(recipes.load(RECIPE), folder, timeout=1.0), report(), worker=hanging)


def test_an_old_answer_is_not_taken_for_a_new_one(tmp_path: Path) -> None:
    folder = tmp_path / "run"
    folder.mkdir()
    write_causes(folder / CAUSES, [CAUSE])
    with pytest.raises(WorkerFailed):
        diagnose(ParityJob(recipes.load(RECIPE), folder), report(), worker=worker(tmp_path, "pass"))


@pytest.mark.parametrize("content", ["", "[]", '{"findings": [{}], "modules": []}', '{"findings": 3, "modules": []}'])
def test_a_damaged_list_of_failures_is_refused(content: str, tmp_path: Path) -> None:
    (tmp_path / FAILED).write_text(content)
    with pytest.raises(WorkerFailed, match=r"failed\.json"):
        read_failed(tmp_path)
