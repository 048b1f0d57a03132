"""`msmigrate train` from the outside, with a launcher that only pretends: what is settled, refused, proven and said."""

from __future__ import annotations

import fcntl
import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from msmigrate.errors import BadCheckpoint, BadDestination, BadInput, MsmigrateError, Unsupported, WorkerFailed
from msmigrate.option_fields import STDOUT
from msmigrate.parity.options import STAGES
from msmigrate.parity.result import Finding, MadeWith, Report
from msmigrate.parity.tensor_verdict import Verdict
from msmigrate.processes import signals_raised
from msmigrate.reports import training_run
from msmigrate.reports.parity_json import write_json
from msmigrate.training import checkpoints
from msmigrate.training.options import Spread
from msmigrate.training.recipe import reader as recipes
from msmigrate.training.run.train_job import Job, job_file
from msmigrate.workers.messages import Result, encode
from msmigrate.workflows import parity_gate
from msmigrate.workflows import train as train_command
from msmigrate.workflows.parity_gate import Holds

PARITY = Path(__file__).parent.parent / "parity"
RECIPE = """
model: {name: lenet5}
data:
  source: digits:train
  validation: digits:test
  batch: 64
  transforms: [{name: Resize, args: {size: 32}}, {name: ToTensor}, {name: Normalize, args: {mean: [0.5], std: [0.5]}}]
optimizer: {name: SGD, args: {lr: 0.05, momentum: 0.9}}
train: {epochs: 2, mode: pynative}
"""
NO_ASCEND = "libge_runner.so: cannot open shared object file"


def probe(ascend: int = 0) -> list[str]:
    """MindSpore's answer, without MindSpore."""
    devices = {"Ascend": ascend, "GPU": 0, "CPU": 1}
    answer = Result({"version": "2.10.0", "devices": devices, "missing": {"Ascend": NO_ASCEND, "GPU": ""}})
    return [sys.executable, "-c", f"print({encode(answer)!r})"]


@dataclass
class Pretender:
    """Stands in for launch.run: stores the job, logs so many steps, and ends as it is told."""

    ending: BaseException | int = 0
    steps: int = 4
    jobs: list[Job] = field(default_factory=list)
    spreads: list[Spread] = field(default_factory=list)

    def __call__(self, job: Job, spread: Spread, on_event: Callable[[int, dict[str, Any]], None]) -> int:
        self.jobs.append(job)
        self.spreads.append(spread)
        job.write(job_file(job))
        job.checkpoints.mkdir(exist_ok=True)
        with job.log.open("a") as log:
            for event in self.events(job):
                log.write(json.dumps({"time": time.time(), **event}) + "\n")
                on_event(0, event)
        if self.steps:
            checkpoints.write(job.checkpoints / "best.ckpt", {}, {"step": self.steps})
        if isinstance(self.ending, BaseException):
            raise self.ending
        return self.ending

    def events(self, job: Job) -> list[dict[str, Any]]:
        """What the run says."""
        plan = {"event": "plan", "epochs": 2, "steps": 44, "first_step": 0, "gate": job.gate}
        found = [plan, *({"event": "step", "epoch": 0, "step": n + 1, "loss": 1.0} for n in range(self.steps))]
        if self.ending == 0:
            found.append({"event": "end", "steps": self.steps})
        if self.ending == 1:
            found.append({"event": "stopped", "step": self.steps, "text": "fc.weight is nan"})
        return found


DRAWN = training_run.plot


@pytest.fixture(autouse=True)
def house(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A recipe in a folder of its own, which is where we are; the picture of a run, which takes longest, is empty."""
    (tmp_path / "r.yaml").write_text(RECIPE)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(training_run, "plot", lambda history, file, title: file.touch())


def train(launcher: Pretender, recipe: str = "r.yaml", **options: Any) -> int:
    """The command, unproven unless the options say otherwise."""
    if not options.keys() & {"parity_report", "skip_parity"}:
        options["skip_parity"] = True
    return train_command.run(launcher, probe(), ["no worker"], recipe=Path(recipe), **options)


def refusal(kind: type[MsmigrateError], launcher: Pretender | None = None, **options: Any) -> str:
    """The one line of a command that is refused before anything is started."""
    launcher = launcher or Pretender()
    with pytest.raises(kind) as caught:
        train(launcher, **options)
    assert "\n" not in str(caught.value) and len(str(caught.value)) < 500
    assert launcher.jobs == []
    return str(caught.value)


def report(file: Path, failing: bool = False) -> Path:
    """A report of the recipe as it is now."""
    recipe = recipes.load(Path("r.yaml"))
    holds = Holds.now(recipe)
    verdicts = [Verdict.PASS] * 5 + [Verdict.FAIL if failing else Verdict.PASS]
    findings = [Finding(s, "train", "w", 0, v, "off") for s, v in zip(STAGES, verdicts, strict=True)]
    write_json(Report("r", holds.recipe, {}, findings, made_with=MadeWith(holds.code, None, 3, 8)), file)
    return file


def test_the_command_line_wins_over_the_recipe(tmp_path: Path) -> None:
    launcher = Pretender()
    assert train(launcher) == 0
    job = launcher.jobs[0]
    assert (job.mode, job.target, job.device_id, job.epochs, job.seed) == ("pynative", "CPU", 0, None, None)
    assert job.folder == tmp_path / "runs" / "r" and job.recipe == tmp_path / "r.yaml"
    options = {"mode": "graph", "device_id": 3, "epochs": 7, "seed": 9, "max_steps": 5, "target": "cpu", "nproc": 2}
    assert train(launcher, out=Path("other"), **options) == 0
    job = launcher.jobs[1]
    assert (job.mode, job.device_id, job.epochs, job.seed, job.max_steps) == ("graph", 3, 7, 9, 5)
    assert (job.processes, launcher.spreads[1].nproc, job.target) == (2, 2, "CPU")
    assert job.folder == tmp_path / "other" and job.resume is False
    assert job.settled(recipes.load(job.recipe)).train.epochs == 7


def test_the_best_device_that_is_there_is_the_default() -> None:
    launcher = Pretender()
    options = {"skip_parity": True, "recipe": Path("r.yaml")}
    assert train_command.run(launcher, probe(ascend=8), ["no worker"], **options) == 0
    assert launcher.jobs[0].target == "Ascend"


def test_a_run_leaves_its_summary_and_its_picture(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(training_run, "plot", DRAWN)
    assert train(Pretender()) == 0
    said = capsys.readouterr()
    assert "Trained: 4 of 44 steps" in said.out and "The step was not proven" in said.out
    assert "warning: --skip-parity" in said.err and "training lenet5 on digits:train" in said.err
    folder = tmp_path / "runs" / "r"
    assert json.loads((folder / "summary.json").read_text())["status"] == "done"
    assert (folder / "training.png").stat().st_size > 5000


def test_json_is_all_there_is_on_stdout(capsys: pytest.CaptureFixture[str]) -> None:
    assert train(Pretender(), json_file=STDOUT) == 0
    content = json.loads(capsys.readouterr().out)
    assert content["gate"]["parity"] == "skipped" and content["steps"] == 4


def test_a_number_that_is_not_finite_is_exit_1(capsys: pytest.CaptureFixture[str]) -> None:
    assert train(Pretender(ending=1)) == 1
    assert "fc.weight is nan" in capsys.readouterr().out
    assert json.loads(Path("runs/r/summary.json").read_text())["status"] == "stopped"
    assert Path("runs/r/training.png").exists()


@pytest.mark.parametrize("ending", [WorkerFailed("rank 0: out of memory"), KeyboardInterrupt()])
def test_however_a_run_ends_it_is_summed_up(ending: BaseException, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(type(ending)):
        train(Pretender(ending=ending))
    assert Path("runs/r/summary.json").exists() and Path("runs/r/training.png").exists()
    shown = capsys.readouterr().out
    if isinstance(ending, KeyboardInterrupt):
        assert "Interrupted: 4 of 44 steps" in shown and "--resume" in shown
    else:
        assert shown == ""  # the error's own line is what counts


def test_a_run_that_fails_at_once_says_only_why(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(WorkerFailed):
        train(Pretender(ending=WorkerFailed("no"), steps=0))
    assert capsys.readouterr().out == ""
    assert train(Pretender()) == 0  # its folder is free


def test_precision_of_the_command_line(capsys: pytest.CaptureFixture[str]) -> None:
    launcher = Pretender()
    assert train(launcher, amp="O2") == 0
    job = launcher.jobs[0]
    plain = recipes.load(job.recipe)
    half = job.settled(plain)
    assert half.amp is not None and (half.amp.level, half.amp.dtype) == ("O2", "float16")
    assert job.gate["recipe"] == half.digest != plain.digest
    assert train(launcher, resume=True) == 0  # as it was begun
    assert launcher.jobs[1].amp == job.amp and launcher.jobs[1].gate["recipe"] == half.digest
    assert "give both" in refusal(BadInput, amp_dtype="bfloat16")


# The folder


def test_a_folder_with_a_run_is_continued_or_left_alone() -> None:
    launcher = Pretender()
    assert train(launcher, seed=5, epochs=3) == 0
    before = {path: path.stat().st_mtime_ns for path in Path("runs/r").rglob("*")}
    assert "runs/r holds a run: continue it with --resume" in refusal(BadDestination)
    assert before == {path: path.stat().st_mtime_ns for path in Path("runs/r").rglob("*")}
    assert train(launcher, resume=True) == 0
    again = launcher.jobs[1]
    assert (again.resume, again.seed, again.epochs, again.mode) == (True, 5, 3, "pynative")
    assert train(launcher, resume=True, mode="graph") == 0
    assert launcher.jobs[2].mode == "graph"


def test_resuming_by_folder_knows_its_recipe(tmp_path: Path) -> None:
    launcher = Pretender()
    assert train(launcher, out=Path("here")) == 0
    options = {"resume": True, "skip_parity": True, "out": Path("here")}
    assert train_command.run(launcher, probe(), ["no worker"], **options) == 0
    assert launcher.jobs[1].recipe == tmp_path / "r.yaml"


@pytest.mark.parametrize("left", ["nothing", "an empty folder", "a killed run"])
def test_with_nothing_to_resume_it_begins_anew(left: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """So that a scheduler can always say --resume."""
    launcher, folder = Pretender(), tmp_path / "runs" / "r"
    if left != "nothing":
        folder.mkdir(parents=True)
    if left == "a killed run":  # before its first checkpoint
        assert train(Pretender(steps=0, ending=2), seed=5, parity_report=report(tmp_path / "report.json")) == 2
        (folder / ".parity.json.123-0a0b0c0d.tmp").touch()
        assert train(launcher, skip_parity=False, resume=True) == 0
        assert launcher.jobs[0].seed == 5 and launcher.jobs[0].gate["parity"] == "passed"
    else:
        assert train(launcher, resume=True) == 0
    assert "runs/r holds no checkpoint to go on from, so the run begins anew\n" in capsys.readouterr().err
    assert json.loads((folder / "summary.json").read_text())["steps"] == 4
    assert train(launcher, resume=True) == 0
    assert "anew" not in capsys.readouterr().err


def test_what_a_killed_run_went_on_from_is_not_forgotten(tmp_path: Path) -> None:
    launcher = Pretender()
    for name in ("a.ckpt", "b.ckpt"):
        checkpoints.write(tmp_path / name, {"w": np.zeros(1)}, {})
    assert train(Pretender(steps=0, ending=2), continue_from=Path("a.ckpt")) == 2
    assert train(launcher, resume=True) == 0 and launcher.jobs[0].start == tmp_path / "a.ckpt"
    assert train(launcher, resume=True, continue_from=Path("b.ckpt")) == 0  # which a run that has begun has left behind
    assert launcher.jobs[1].start is None
    assert train(launcher, resume=True, continue_from=Path("b.ckpt"), out=Path("new")) == 0
    assert launcher.jobs[2].start == tmp_path / "b.ckpt"


def test_resuming_something_else_or_nothing_known_is_refused(tmp_path: Path) -> None:
    Path("mine").mkdir()
    Path("mine/thesis.txt").touch()
    assert "mine is not empty (thesis.txt): name another folder" in refusal(
        BadDestination, resume=True, out=Path("mine")
    )
    options = {"resume": True, "skip_parity": True, "out": Path("typing-error")}
    with pytest.raises(BadDestination, match="holds no run that says what it trains: name the RECIPE"):
        train_command.run(Pretender(), probe(), ["no worker"], **options)
    Path("theirs/checkpoints").mkdir(parents=True)
    Path("theirs/checkpoints/resnet.ckpt").touch()
    assert "none of a run of msmigrate train: correct --out" in refusal(BadDestination, resume=True, out=Path("theirs"))
    assert sorted(path.name for path in tmp_path.iterdir()) == ["mine", "r.yaml", "theirs"]


def test_a_damaged_only_checkpoint_is_not_begun_over(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    launcher = Pretender()
    assert train(launcher) == 0
    best = tmp_path / "runs" / "r" / "checkpoints" / "best.ckpt"
    best.write_bytes(best.read_bytes()[:-1])
    before = {path: path.stat().st_mtime_ns for path in Path("runs/r").rglob("*")}
    said = refusal(BadCheckpoint, resume=True)
    assert "the only checkpoint is damaged" in said and "best.ckpt" in said and "remove what is there to begin" in said
    assert train_command.run(Pretender(), probe(), ["none"], recipe=Path("r.yaml"), resume=True, dry_run=True) == 2
    assert "the only checkpoint is damaged" in " ".join(capsys.readouterr().out.split())
    assert before == {path: path.stat().st_mtime_ns for path in Path("runs/r").rglob("*")}


def test_a_folder_of_something_else_is_refused(tmp_path: Path) -> None:
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "thesis.txt").write_text("x")
    assert "is not empty (thesis.txt)" in refusal(BadDestination, out=Path("mine"))
    assert "r.yaml is a file" in refusal(BadDestination, out=Path("r.yaml"))
    assert "r.yaml is a file" in refusal(BadDestination, out=Path("r.yaml/below"))


@pytest.mark.skipif(os.geteuid() == 0, reason="root may write anywhere")
def test_a_folder_without_permission_is_refused(tmp_path: Path) -> None:
    (tmp_path / "locked").mkdir(mode=0o500)
    assert "no permission" in refusal(BadDestination, out=Path("locked/run"))


def test_two_runs_in_one_folder_are_refused(tmp_path: Path) -> None:
    folder = tmp_path / "shared"
    folder.mkdir()
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX)
        assert "another run is at work in" in refusal(BadDestination, out=folder)
    finally:
        os.close(descriptor)
    assert train(Pretender(), out=folder) == 0


# What is refused before anything is started


def test_a_target_that_is_not_here_is_said_behind_what_can_be_known_by_reading() -> None:
    line = refusal(Unsupported, target="Ascend")
    assert "cannot use Ascend here: libge_runner.so is not found" in line and "--target CPU" in line
    assert "cannot use GPU here" in refusal(Unsupported, target="GPU")
    Path("r.yaml").write_text(RECIPE.replace("digits:train", "folder:/none/there"))
    assert "there is no folder /none/there" in refusal(BadInput, target="Ascend")


REFUSED: dict[str, tuple[tuple[str, str], dict[str, Any], str]] = {
    "too few classes": (("{name: lenet5}", "{name: lenet5, args: {num_classes: 4}}"), {}, "num_classes"),
    "a large batch": (("batch: 64", "batch: 2000"), {}, "lower data.batch to 1437"),
    "a small shard": (("batch: 64", "batch: 64"), {"nproc": 30}, "over 30 processes are 47 each"),
    "an unknown key": (("epochs: 2", "epoch: 2"), {}, "unknown key 'train.epoch'; did you mean 'epochs'"),
    "no checkpoint": (("{name: lenet5}", "{name: lenet5, checkpoint: no.pth}"), {}, "no.pth cannot be read"),
    "report and skip": (("a", "a"), {"skip_parity": True, "parity_report": Path("x")}, "leave one out"),
    "nothing to go on from": (("a", "a"), {"continue_from": Path("x")}, "--continue-from: there is no file x"),
    "no such machine": (("a", "a"), {"nnodes": 2, "node_rank": 2, "master_addr": "10.0.0.1"}, "--node-rank 2"),
}


@pytest.mark.parametrize("case", REFUSED)
def test_bad_input_is_one_line_and_leaves_nothing(case: str) -> None:
    (old, new), options, said = REFUSED[case]
    Path("r.yaml").write_text(RECIPE.replace(old, new))
    assert said in refusal(MsmigrateError, **options)
    assert not Path("runs").exists()


# The gate


def test_a_report_opens_the_gate(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    launcher = Pretender()
    file = report(tmp_path / "report.json")
    assert train(launcher, parity_report=file, mode="graph") == 0
    assert launcher.jobs[0].gate["parity"] == "passed" and launcher.jobs[0].gate["report"] == str(file)
    said = capsys.readouterr().err
    assert f"{file} is of the PyNative step, and training compiles it; of both: msmigrate parity-step " in said
    assert said.count("--json report.json --mode graph") == 1
    assert train(Pretender(), parity_report=file, mode="pynative", out=Path("eager")) == 0
    assert "PyNative" not in capsys.readouterr().err
    Path("r.yaml").write_text(RECIPE.replace("lr: 0.05", "lr: 0.06"))
    assert "is of another recipe" in refusal(BadInput, parity_report=file, out=Path("other"))
    assert not Path("other").exists()


def test_a_failing_report_keeps_it_shut(tmp_path: Path) -> None:
    file = report(tmp_path / "report.json", failing=True)
    assert "did not pass, first in update" in refusal(BadInput, parity_report=file)


def test_a_proof_that_the_run_began_with_is_not_made_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    launcher = Pretender()
    assert train(launcher, parity_report=report(tmp_path / "report.json")) == 0
    (tmp_path / "report.json").unlink()
    calls = []
    monkeypatch.setattr(parity_gate, "prove", lambda *given: calls.append(given))
    assert train(launcher, skip_parity=False, resume=True) == 0
    assert launcher.jobs[1].gate == launcher.jobs[0].gate and calls == []
    Path("r.yaml").write_text(RECIPE.replace("lr: 0.05", "lr: 0.06"))
    assert train(launcher, skip_parity=False, resume=True) == 1  # for now it is to be proven, which failed
    assert "proven again: the run began with another recipe" in capsys.readouterr().err
    assert len(calls) == 1 and len(launcher.jobs) == 2


def test_a_skipped_proof_is_made_when_the_run_goes_on(monkeypatch: pytest.MonkeyPatch) -> None:
    launcher = Pretender()
    assert train(launcher) == 0
    monkeypatch.setattr(parity_gate, "prove", lambda *given: {"parity": "passed"})
    assert train(launcher, skip_parity=False, resume=True) == 0
    assert launcher.jobs[1].gate == {"parity": "passed"}


def test_other_machines_leave_the_proof_to_the_first(capsys: pytest.CaptureFixture[str]) -> None:
    launcher = Pretender()
    others = {"nnodes": 2, "node_rank": 1, "master_addr": "10.0.0.1"}
    assert train(launcher, skip_parity=False, **others) == 0
    assert launcher.jobs[0].gate["parity"] == "left to the first machine"
    assert not Path("runs/r/summary.json").exists()  # which is the first machine's too


def test_without_torch_both_ways_are_said(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(parity_gate, "find_spec", lambda name: None)
    line = refusal(Unsupported, skip_parity=False)
    assert "--parity-report" in line and "--skip-parity" in line
    assert not Path("runs").exists()


@pytest.fixture(scope="module")
def broken(tmp_path_factory: pytest.TempPathFactory) -> tuple[subprocess.CompletedProcess[str], Path]:
    """The command on a step whose MindSpore side has one fault, in a process of its own."""
    folder = tmp_path_factory.mktemp("broken")
    worker = [sys.executable, str(PARITY / "mindspore_broken_worker.py"), "bn_eps"]
    code = f"""if True:
        import sys
        from pathlib import Path
        from msmigrate.workflows import train as train_command
        never = lambda *job, **more: sys.exit("it was started")
        options = {{"recipe": Path({str(PARITY / "tiny.yaml")!r}), "out": Path("run")}}
        sys.exit(train_command.run(never, {probe()!r}, {worker!r}, **options))
    """
    environment = {**os.environ, "NO_COLOR": "1"}
    command = [sys.executable, "-c", code]
    return subprocess.run(command, capture_output=True, text=True, cwd=folder, env=environment), folder


@pytest.mark.full
def test_a_step_that_is_not_pytorchs_is_not_trained(
    broken: tuple[subprocess.CompletedProcess[str], Path],
) -> None:
    done, folder = broken
    assert done.returncode == 1, done
    assert "No parity. First divergence: forward (eval) layer2.0.bn2" in " ".join(done.stdout.split())
    assert "BatchNorm2d layer2.0.bn2 computes as with eps=0.001; torch has eps=1e-05" in done.stdout
    assert "nothing was trained: the step is not proven" in done.stderr
    assert [path.name for path in (folder / "run").iterdir()] == ["parity.json"]
    assert json.loads((folder / "run" / "parity.json").read_text())["parity"] is False


def test_a_failing_proof_starts_nothing(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setattr(parity_gate, "prove", lambda *given: None)
    launcher = Pretender()
    assert train(launcher, skip_parity=False, json_file=STDOUT) == 1
    said = capsys.readouterr()
    assert json.loads(said.out)["status"] == "not proven" and "nothing was trained" in said.err
    assert launcher.jobs == []


def test_a_run_that_a_cluster_ends_is_interrupted(capsys: pytest.CaptureFixture[str]) -> None:
    def told_to_end(job: Job, *more: Any, **words: Any) -> int:
        Pretender(ending=2)(job, *more, **words)
        os.kill(os.getpid(), signal.SIGTERM)
        time.sleep(10)
        return 0

    before = signal.getsignal(signal.SIGTERM)
    with pytest.raises(KeyboardInterrupt), signals_raised():
        train(told_to_end)  # type: ignore[arg-type]
    assert "Interrupted: 4 of 44 steps" in capsys.readouterr().out
    assert signal.getsignal(signal.SIGTERM) is before


def test_ctrl_c_in_the_gate_leaves_nothing(tmp_path: Path) -> None:
    fake = [sys.executable, str(PARITY / "fake_worker.py")]
    code = f"""if True:
        import sys
        from pathlib import Path
        from msmigrate import cli
        from msmigrate.parity import run
        from msmigrate.workflows import train as train_command
        run.parity_step.__defaults__ = (*run.parity_step.__defaults__[:-2], {[*fake, "interrupts"]}, {[*fake, "waits"]})
        train = train_command.run
        train_command.run = lambda **o: train(print, {probe()!r}, {[*fake, "waits"]}, **o)
        sys.argv = ["msmigrate", "train", "r.yaml"]
        cli.main()
    """
    environment = {**os.environ, "TMPDIR": str(tmp_path), "PYTHONDONTWRITEBYTECODE": "1"}
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60, env=environment)
    assert done.returncode == 130, done.stderr
    assert "Traceback" not in done.stderr and done.stderr.endswith("msmigrate: interrupted\n")
    assert [path.name for path in tmp_path.iterdir()] == ["r.yaml"]
    listed = subprocess.run(["ps", "-eo", "args"], capture_output=True, text=True).stdout
    assert f"{tmp_path}" not in listed
