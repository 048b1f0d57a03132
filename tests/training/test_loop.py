"""What a training run says, keeps and measures, and how it ends when it cannot go on."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from loop_cases import ALONE, CASES, MOST_SKIPPED, POISONED, ROW
from loop_runs import events, final, finish, make_job, start
from msmigrate.training import checkpoints
from msmigrate.training.data.random_draws import epoch_order
from msmigrate.training.run.run_log import Follower
from msmigrate.training.run.train_job import Job

WEIGHTS = 91_866  # of the net
HERE = Path(__file__).parent


class Runs:
    """The cases that one process has run."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.codes: dict[str, int] = json.loads((folder / "codes.json").read_text(encoding="utf-8"))

    def job(self, name: str) -> Path:
        resumed = "-resumed" if {**CASES, **ALONE}[name][1].get("resume") else ""
        return self.folder / name / f"job{resumed}.json"

    def events(self, name: str, kind: str | None = None) -> list[dict[str, Any]]:
        return events(self.job(name), kind)

    def last(self, name: str) -> dict[str, Any]:
        return self.events(name)[-1]

    def checkpoint(self, name: str, step: int) -> checkpoints.Checkpoint:
        return checkpoints.read(checkpoints.path_of(Job.read(self.job(name)).checkpoints, step))

    def warnings(self, name: str) -> list[str]:
        return [event["text"] for event in self.events(name, "warning")]


@pytest.fixture(scope="module")
def runs(tmp_path_factory: pytest.TempPathFactory) -> Runs:
    return run_cases(tmp_path_factory.mktemp("loops"))


def run_cases(folder: Path, *cases: str) -> Runs:
    done = subprocess.run(
        [sys.executable, str(HERE / "loop_mindspore_worker.py"), str(folder), *cases],
        capture_output=True,
        text=True,
        timeout=600,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return Runs(folder)


def test_every_run_says_its_plan_and_its_end(runs: Runs) -> None:
    assert runs.codes["all"] == 0
    (plan,) = runs.events("all", "plan")
    facts = ("steps_per_epoch", "epochs", "steps", "images", "first_step", "parameters", "batch", "mode", "gate")
    assert [plan[fact] for fact in facts] == [7, 2, 11, 1437, 0, WEIGHTS, 200, "pynative", {"parity": "skipped"}]
    end = runs.last("all")
    assert end["event"] == "end"
    assert (end["steps"], end["epochs"]) == (11, 1)
    assert end["images_per_second"] > 0
    assert 0 <= end["waited"] < 1
    assert end["peak_rss_mb"] > 100
    assert end["seconds"] > end["compile_seconds"] > 0


def test_steps_are_logged_where_they_are_due(runs: Runs) -> None:
    steps = runs.events("all", "step")
    assert [event["step"] for event in steps] == [1, 4, 8, 11]
    assert [event["epoch"] for event in steps] == [0, 0, 1, 1]
    assert steps[0]["images_per_second"] is None  # the first step compiles
    for event in steps[1:]:
        assert event["images_per_second"] > 0
        assert 0 <= event["waited"] <= 1
        assert event["seconds_left"] >= 0
        assert event["lr"] == pytest.approx(0.1)
        assert event["loss_scale"] is None
        assert 0 < event["loss"] < 10


def test_the_log_is_what_rank_0_told(runs: Runs) -> None:
    told = Follower(Job.read(runs.job("all")).events(0)).events()
    assert [{**event, "time": 0} for event in runs.events("all")] == [{**event, "time": 0} for event in told]


def test_checkpoints_that_stay(runs: Runs) -> None:
    said = [(event["step"], event["best"]) for event in runs.events("all", "checkpoint")]
    assert [step for step, best in said if not best] == [3, 6, 7, 9, 11]
    folder = Job.read(runs.job("all")).checkpoints
    names = sorted(path.name for path in folder.iterdir())
    assert names == ["best.ckpt", "step-00000009.ckpt", "step-00000011.ckpt"]
    best = checkpoints.read(folder / "best.ckpt")
    end = runs.last("all")
    assert best.run is not None
    assert best.run["step"] == end["best_step"] == max(step for step, best in said if best)
    top = max(max(event["top1"], event["ema"]["top1"]) for event in runs.events("all", "validation"))
    assert best.run["best_top1"] == end["best_top1"] == top


def test_a_checkpoint_says_where_the_run_stands(runs: Runs) -> None:
    run = runs.checkpoint("all", 9).run
    assert run is not None
    assert (run["step"], run["epoch"], run["step_in_epoch"]) == (9, 1, 2)
    assert run["classes"] == [str(digit) for digit in range(10)]
    assert run["recipe"]["optimizer"]["name"] == "SGD"
    assert (run["seed"], run["images"], run["processes"]) == (42, 1437, 1)
    names = set(runs.checkpoint("all", 9).tensors)
    assert {"conv1.weight", "bn1.gamma", "bn1.moving_mean", "ema.bn1.weight", "ema.bn1.running_var"} <= names
    assert any(name.startswith("optimizer.momentum_buffer.") for name in names)


def test_validating_watching_and_averaging_change_nothing_in_training(runs: Runs) -> None:
    watched, plain = runs.checkpoint("all", 11), runs.checkpoint("plain", 11)
    for name, array in plain.tensors.items():
        assert array.tobytes() == watched.tensors[name].tobytes(), name
    losses = [[event["loss"] for event in runs.events(name, "step")] for name in ("all", "plain")]
    assert losses[0] == pytest.approx(losses[1], rel=1e-6)


@pytest.mark.full
def test_nor_do_they_in_a_compiled_step(tmp_path: Path) -> None:
    jobs = [make_job(tmp_path / name, *CASES[name][0], mode="graph") for name in ("all", "plain")]
    for job in jobs:
        finish(start(job))
    watched, plain = (final(job) for job in jobs)
    for name, array in plain.tensors.items():
        assert array.tobytes() == watched.tensors[name].tobytes(), name
    assert events(jobs[0], "warning") == []


def test_a_healthy_net_raises_no_warning(runs: Runs) -> None:
    assert runs.warnings("all") == []


def test_validations_measure_weights_and_their_average(runs: Runs) -> None:
    validations = runs.events("all", "validation")
    assert [(event["epoch"], event["step"]) for event in validations] == [(0, 7), (1, 11)]
    for event in validations:
        for numbers in (event, event["ema"]):
            assert 0 <= numbers["top1"] <= numbers["top5"] <= 1
            assert numbers["top1"] * 360 == pytest.approx(round(numbers["top1"] * 360))
            assert numbers["loss"] > 0
        assert event["ema"]["loss"] != event["loss"]
    assert runs.last("all")["final"] == {key: validations[-1][key] for key in ("loss", "top1", "top5", "ema")}


def test_without_validation_the_training_loss_says_which_is_best(runs: Runs) -> None:
    end = runs.last("plain")
    assert end["best_top1"] is None
    assert end["best_step"] == 7
    assert end["best_loss"] == pytest.approx(runs.checkpoint("plain", 11).run["best_loss"])  # type: ignore[index]
    assert (Job.read(runs.job("plain")).checkpoints / "best.ckpt").exists()


def test_the_seed_draws_weights_and_order(runs: Runs) -> None:
    first = [runs.events(name, "step")[0]["loss"] for name in ("poisoned", "other seed")]
    assert first[0] != first[1]
    assert runs.checkpoint("other seed", 1).run["seed"] == 43  # type: ignore[index]


def test_scalars_for_tensorboard(runs: Runs) -> None:
    script = (
        "import json, sys\n"
        "from tensorboard.backend.event_processing.event_accumulator import EventAccumulator\n"
        "found = EventAccumulator(sys.argv[1])\n"
        "found.Reload()\n"
        "tags = found.Tags()['scalars']\n"
        "print(json.dumps({tag: [(e.step, e.value) for e in found.Scalars(tag)] for tag in tags}))\n"
    )
    folder = Job.read(runs.job("all")).folder / "tensorboard"
    done = subprocess.run([sys.executable, "-c", script, str(folder)], capture_output=True, text=True, check=True)
    scalars = json.loads(done.stdout)
    steps = runs.events("all", "step")
    assert scalars["train/loss"] == [[e["step"], pytest.approx(e["loss"])] for e in steps]
    assert [step for step, _ in scalars["train/images_per_second"]] == [4, 8, 11]
    validations = runs.events("all", "validation")
    assert scalars["validation/top1"] == [[e["step"], pytest.approx(e["top1"])] for e in validations]
    assert scalars["ema/loss"] == [[e["step"], pytest.approx(e["ema"]["loss"])] for e in validations]
    assert "train/loss_scale" not in scalars


def test_a_bad_image_stops_training_and_is_named(runs: Runs) -> None:
    assert runs.codes["poisoned"] == 1
    stopped = runs.last("poisoned")
    assert (stopped["event"], stopped["step"], stopped["tensor"]) == ("stopped", POISONED, "images")
    order = epoch_order(1437, seed=42, epoch=0, shuffle=True, drop_last=True)
    image = order[(POISONED - 1) * 100 + ROW]
    assert f"image {image} of the source" in stopped["text"]
    assert "2 of 102,400 values" in stopped["text"]
    assert "data.transforms" in stopped["text"]


def test_with_a_loss_scale_the_step_is_skipped_as_gradscaler_does(runs: Runs) -> None:
    assert runs.codes["poisoned and scaled"] == 0
    assert [event["loss_scale"] for event in runs.events("poisoned and scaled", "step")] == [256, 256, 256, 128]


def test_weights_that_explode_stop_training(runs: Runs) -> None:
    assert runs.codes["too fast"] == 1
    stopped = runs.last("too fast")
    assert stopped["step"] == 2
    assert stopped["tensor"] in ("conv1", "conv2", "fc1", "fc2", "fc3")
    assert f"the output of {stopped['tensor']} holds" in stopped["text"]
    assert "the largest weight is" in stopped["text"]
    assert "lower the learning rate" in stopped["text"]


def test_a_scale_that_comes_down_in_time(runs: Runs) -> None:
    assert runs.codes["overflows twice"] == 0
    scales = [event["loss_scale"] for event in runs.events("overflows twice", "step")]
    assert scales == [2.0**60, 2.0**35, 2.0**10, 2.0**10, 2.0**10]


def test_a_scale_that_does_not_come_down_stops_training(runs: Runs) -> None:
    assert runs.codes["overflows always"] == 1
    stopped = runs.last("overflows always")
    assert stopped["step"] == MOST_SKIPPED
    assert f"{MOST_SKIPPED} steps in a row overflowed" in stopped["text"]
    assert "gradient of" in stopped["text"]
    assert "smaller loss scale" in stopped["text"]


def test_watchpoints_fire(runs: Runs) -> None:
    said = runs.warnings("watched")
    assert all(text.startswith("step 2: ") for text in said)
    for words in ("vanishing (below 1e+09): gradient of", "exploding (above 1e-09): gradient of", "large change"):
        assert sum(words in text for text in said) == 1, words
    (unchanged,) = [text for text in said if "unchanged" in text]
    assert unchanged.endswith(": fc3.weight")
    (dead,) = [text for text in said if "dead ReLU" in text]
    assert "relu" in dead
    assert len(said) == 5


def test_an_overflow_at_a_watched_step_is_named(runs: Runs) -> None:
    assert runs.codes["watched overflow"] == 0
    said = runs.warnings("watched overflow")
    assert [text.partition(" of ")[0] for text in said] == [
        "step 1: not finite: gradient",
        "step 2: not finite: gradient",
    ]


def test_it_starts_from_a_checkpoint(runs: Runs) -> None:
    assert runs.codes["from a checkpoint"] == 0
    start = checkpoints.read(runs.folder / "from a checkpoint" / "start.ckpt").weights["conv1.weight"]
    after = runs.checkpoint("from a checkpoint", 1).weights["conv1.weight"]
    assert 0 < np.abs(after - start).max() < 0.05


def test_with_nothing_to_resume_it_begins_anew(runs: Runs) -> None:
    assert runs.codes["nothing to resume"] == 0
    assert runs.events("nothing to resume", "note")[-1]["text"].endswith("to go on from: the run begins anew")
    assert [event["step"] for event in runs.events("nothing to resume", "step")] == [1]


@pytest.mark.parametrize(
    ("name", "kind", "says"),
    [
        ("no folder", "BadInput", "there is no folder"),
        ("too few classes", "BadRecipe", "num_classes"),
        ("large batch", "BadRecipe", "set data.batch to at most 1437"),
        ("no tensorboard", "BadInput", "pip install 'msmigrate[tensorboard]'"),
        ("bad labels", "BadInput", "image 7 has label 10, and the model's 10 classes are 0 to 9 (2 of 1437"),
        ("grey and colour", "BadRecipe", "the images of 3 × 32 × 32 that data.transforms give"),
        ("wrong checkpoint", "BadCheckpoint", "does not hold the weights of the recipe's lenet5"),
        ("no device", "Unsupported", "cannot use Ascend here: Unsupported device target Ascend"),
    ],
)
def test_errors_are_one_line_with_the_remedy(runs: Runs, name: str, kind: str, says: str) -> None:
    refused(runs, name, kind, says)


def refused(runs: Runs, name: str, kind: str, says: str) -> None:
    assert runs.codes[name] == 2
    error = runs.last(name)
    assert (error["event"], error["kind"]) == ("error", kind)
    assert says in error["text"]
    assert "\n" not in error["text"]
    assert runs.events(name, "step") == []
    assert list(Job.read(runs.job(name)).checkpoints.iterdir()) == []


@pytest.mark.full
@pytest.mark.parametrize(
    ("name", "kind", "says"),
    [
        (
            "grey and colour in validation",
            "BadRecipe",
            "the images of 3 × 32 × 32 that data.validation and data.eval_transforms give",
        ),
        ("no memory", "WorkerFailed", "out of memory: a step of 100 images does not fit; lower data.batch"),
    ],
)
def test_errors_of_mindspore_become_one_line(tmp_path: Path, name: str, kind: str, says: str) -> None:
    refused(run_cases(tmp_path, name), name, kind, says)


def test_it_says_once_which_variable_it_sets(tmp_path: Path) -> None:
    """The worker of these tests has set it before; one that starts by itself does it then."""
    job = make_job(tmp_path, {"data": {"source": "folder:missing"}})
    finish(start(job), 2)
    assert [event["text"].partition(" ")[0] for event in events(job, "note")] == ["ONEDNN_MAX_CPU_ISA=AVX2"]
