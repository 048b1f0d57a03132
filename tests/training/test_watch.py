"""What the watchpoints make of numbers, and the pieces of the loop that need no framework."""

from __future__ import annotations

import importlib
import json
import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from msmigrate.errors import BadCheckpoint, BadDestination, BadInput
from msmigrate.migrate.checkpoint.inspect_file import DIGEST
from msmigrate.training.checkpoints import Facts, Progress, check_resumable
from msmigrate.training.metrics import Tally
from msmigrate.training.recipe.schema import Recipe, Watch
from msmigrate.training.run import mindspore_worker
from msmigrate.training.run.run_log import RunLog
from msmigrate.training.run.train_job import Job

KINDS = ["images", "labels", "weight", "output", "loss", "gradient"]


class Later:
    """A module that imports MindSpore, imported when something of it is used, and not when tests are collected."""

    def __init__(self, name: str) -> None:
        self.name = name

    def __getattr__(self, name: str) -> Any:
        if name.startswith(("_", "pytest")):  # which pytest asks of every object
            raise AttributeError(name)
        return getattr(importlib.import_module(self.name), name)


watchpoints = Later("msmigrate.training.run.mindspore_watchpoints")
HEALTHY = {"a.weight": np.array([0.1, -0.2], np.float32), "a.bias": np.array([0.05], np.float32)}


def array(*values: float) -> np.ndarray:
    return np.array(values, dtype=np.float32)


# watchpoints


def test_gradients_that_are_not_finite_are_always_said() -> None:
    grads = {**HEALTHY, "b.weight": array(math.nan, 1, math.inf)}
    assert watchpoints.gradients(Watch(), grads) == ["not finite: gradient of b.weight (2 of 3 values)"]
    assert watchpoints.gradients(Watch(), HEALTHY) == []


def test_vanishing_and_exploding_gradients() -> None:
    grads = {**HEALTHY, "b": array(1e-12, -1e-13), "c": array(0, 0), "d": array(1, -500)}
    watched = Watch(vanishing=1e-10, exploding=100.0)
    assert watchpoints.gradients(watched, grads) == [
        "vanishing (below 1e-10): gradient of c (at most 0), b (at most 1e-12)",
        "exploding (above 100): gradient of d (up to 500)",
    ]
    assert watchpoints.gradients(watched, HEALTHY) == []
    assert watchpoints.gradients(Watch(), grads) == []


def test_the_worst_are_named_and_the_others_counted() -> None:
    grads = {f"layer{i}": array(float(i)) for i in range(1, 8)}
    (said,) = watchpoints.gradients(Watch(exploding=1.5), grads)
    assert said == "exploding (above 1.5): gradient of layer7 (up to 7), layer6 (up to 6), layer5 (up to 5) and 3 more"


def test_unchanged_weights_and_large_changes() -> None:
    before = {"same": array(1, 2), "slow": array(1, 2), "fast": array(3, 4), "new": array(0, 0)}
    after = {"same": array(1, 2), "slow": array(1, 2.001), "fast": array(6, 8), "new": array(1e-4, 0)}
    before, after = ({name: held[None] for name, held in one.items()} for one in (before, after))
    before["bias"], after["bias"] = array(1e-9), array(1)
    watched = Watch(unchanged=True, large_change=0.5)
    assert watchpoints.weights(watched, before, after, 0.1) == [
        "unchanged by an update at learning rate 0.1: same",
        "large change (more than 0.5 of its norm): fast (1)",
    ]
    assert watchpoints.weights(Watch(), before, after, 0.1) == []
    gone = {**after, "slow": array(math.nan, 1)[None]}
    assert "slow (nan)" in watchpoints.weights(watched, before, gone, 0.1)[1]


def test_dead_relus() -> None:
    zeros = {"relu": 0.5, "layer1.relu": 0.995, "layer2.relu": 1.0}
    (said,) = watchpoints.relus(Watch(dead_relu=0.99), zeros)
    assert said == "dead ReLU (zero for at least 0.99): layer2.relu (1), layer1.relu (0.995)"
    assert watchpoints.relus(Watch(dead_relu=0.999), {"relu": 0.5}) == []


# the first bad tensor


def test_the_first_bad_tensor_is_named_with_what_came_before() -> None:
    search = watchpoints.Search()
    search.see("images", "images", array(0, 1))
    search.see("conv.weight", "weight", array(-3, 2))
    search.see("fc.weight", "weight", array(1, 1))
    search.see("conv", "output", array(-7, 9))
    search.see("relu", "output", array(math.inf, math.nan, 4))
    search.see("fc", "output", array(math.nan))
    assert search.found is not None
    assert search.found.bad.name == "relu"
    text = search.found.text()
    assert text == (
        "the output of relu holds 2 of 3 values that are not finite, the others 4 to 4; before it, the output of conv "
        "was finite, -7 to 9; the largest weight is conv.weight, -3 to 2; " + watchpoints.REMEDIES["output"]
    )


def test_bad_images_are_numbered_as_in_their_source() -> None:
    images = np.zeros((4, 1, 2, 2), np.float32)
    images[1, 0, 0, 0] = images[3, 0, 1, 1] = math.nan
    search = watchpoints.Search()
    search.see("images", "images", images)
    assert search.found is not None
    assert search.found.bad.rows == (1, 3)
    text = search.found.text(np.array([10, 20, 30, 40]))
    assert "the images hold 2 of 16 values that are not finite, the others 0 to 0 (image 20, 40 of the source);" in text


def test_nothing_bad_is_nothing_found() -> None:
    search = watchpoints.Search()
    search.see("images", "images", array(0, 1))
    search.see("labels", "labels", np.array([3, 4], np.int32))
    search.see("none", "output", np.zeros((0, 3), np.float32))
    assert search.found is None


def test_every_kind_has_a_remedy() -> None:
    assert list(watchpoints.REMEDIES) == KINDS


@pytest.mark.parametrize("kind", KINDS)
def test_every_kind_has_words(kind: str) -> None:
    search = watchpoints.Search()
    search.see("x", kind, np.array(math.nan, np.float32))
    assert search.found is not None
    assert search.found.text().endswith(watchpoints.REMEDIES[kind])
    assert watchpoints.look("x", kind, array(math.nan, math.nan)).bad == 2


# metrics


def test_metrics_over_batches_are_those_over_all_images() -> None:
    generator = np.random.default_rng(3)
    logits, labels = generator.standard_normal((50, 7)).astype(np.float32), generator.integers(0, 7, 50)
    whole, parts = Tally(), Tally()
    whole.add(logits, labels)
    for start in range(0, 50, 8):
        parts.add(logits[start : start + 8], labels[start : start + 8])
    wide = logits.astype(np.float64)
    logs = wide - np.log(np.exp(wide).sum(axis=1, keepdims=True))
    order = np.argsort(-logits, axis=1)
    found = whole.metrics()
    assert found == pytest.approx(parts.metrics())
    assert found.loss == pytest.approx(-logs[np.arange(50), labels].mean())
    assert found.top1 == (order[:, 0] == labels).mean()
    assert found.top5 == (order[:, :5] == labels[:, None]).any(axis=1).mean()


def test_few_classes_ties_and_nan() -> None:
    tally = Tally()
    tally.add(array(1, 1, 0)[None], np.array([1]))  # the lower class number ranks first
    assert tally.metrics()[1:] == (0.0, 1.0)
    tally.add(array(1, 1, 0)[None], np.array([0]))
    assert tally.metrics()[1:] == (0.5, 1.0)
    tally.add(array(5, math.nan, 0)[None], np.array([0]))
    assert tally.metrics()[1:] == (pytest.approx(1 / 3), pytest.approx(2 / 3))
    assert math.isnan(tally.metrics().loss)


# pace


def test_pace_leaves_out_what_is_no_training() -> None:
    now = [0.0]
    pace = Later("msmigrate.training.run.mindspore_training_loop").Pace(world=2, clock=lambda: now[0])
    now[0] = 10.0
    pace.step(32, waited=0.5, compiled=True)
    assert pace.overall.images_per_second is None
    assert pace.seconds_left(5) is None
    assert pace.compiling == 10
    now[0] = 12.0
    pace.step(32, waited=1.0)
    now[0] = 100.0  # validation
    pace.resume()
    now[0] = 102.0
    pace.step(32, waited=1.5)
    assert pace.overall.images_per_second == 32
    assert pace.overall.waited == 0.25
    assert pace.waited == 1.0
    assert pace.seconds_left(3, validations=2, validation=10.0) == 26
    assert pace.recent().images_per_second == 32
    assert pace.recent().images_per_second is None


# failures


MEMORY = """Allocate memory failed

----------------------------------------------------
- C++ Call Stack: (For framework developers)
----------------------------------------------------
mindspore/ccsrc/backend/common/device_address_utils.cc:1300 MallocForOutputs
"""


@pytest.mark.parametrize(
    ("error", "kind", "says"),
    [
        (RuntimeError(MEMORY), "WorkerFailed", "out of memory: a step of 8 images does not fit; lower data.batch"),
        (MemoryError(), "WorkerFailed", "out of memory"),
        (BadInput("no\nfolder"), "BadInput", "no folder"),
        (OSError(28, "No space left on device", "x"), "BadDestination", "x: No space left on device"),
        (RuntimeError("\n----\nThe kernel X unregistered.\nmore"), "WorkerFailed", "RuntimeError: The kernel X unreg"),
        (ValueError(), "WorkerFailed", "ValueError: no reason given; the whole report is in out.log"),
    ],
)
def test_failures_are_one_line(error: Exception, kind: str, says: str) -> None:
    found, text = mindspore_worker.explain(error, 8, Path("out.log"))
    assert found == kind
    assert says in text
    assert "\n" not in text


# the log


def say(job: Job, rank: int, text: str) -> None:
    log = RunLog(job, rank)
    log.note(text)
    log.close()


def test_a_line_that_was_cut_off_is_ended(tmp_path: Path) -> None:
    job = Job.model_validate({"recipe": tmp_path / "r.yaml", "folder": tmp_path})
    say(job, 0, "first")
    with job.log.open("a") as file:
        file.write('{"event": "step", "lo')
    say(job, 0, "second")
    lines = job.log.read_text().splitlines()
    assert len(lines) == 3
    assert json.loads(lines[2])["text"] == "second"
    say(job, 1, "third")
    assert len(job.log.read_text().splitlines()) == 3
    assert json.loads(job.events(1).read_text())["text"] == "third"


def test_a_log_that_cannot_be_written_is_one_line(tmp_path: Path) -> None:
    (tmp_path / "log.jsonl").mkdir()
    with pytest.raises(BadDestination, match=r"cannot write .*log.jsonl: Is a directory"):
        RunLog(Job.model_validate({"recipe": tmp_path / "r.yaml", "folder": tmp_path}), 0)


# where a run stands


def test_progress_comes_back_from_json() -> None:
    progress = Progress(step=7, epoch=1, step_in_epoch=2, loss_sum=0.1 + 0.2, loss_steps=2)
    assert progress.better(top1=0.5)
    assert not progress.better(top1=0.5)
    assert not progress.better(top1=math.nan)
    assert progress.better(top1=0.6)
    assert progress.best_step == 7
    assert Progress.of(Path("x"), json.loads(json.dumps(progress.record()))) == progress
    lower = Progress()
    assert [lower.better(loss=loss) for loss in (2.0, 2.0, math.nan, 1.0)] == [True, False, False, True]


@pytest.mark.parametrize("damage", [{"step": -1}, {"epoch": "1"}, {"loss_sum": None}, {"best_top1": [1]}])
def test_progress_that_is_none_is_refused(damage: dict[str, Any]) -> None:
    with pytest.raises(BadCheckpoint, match=f"it says that {next(iter(damage))} is"):
        Progress.of(Path("x"), {**Progress().record(), **damage})


def facts(**changes: Any) -> Facts:
    recipe = {
        "model": {"name": "lenet5"},
        "data": {"source": "digits", "batch": 8},
        "optimizer": {"name": "SGD", "args": {"lr": 0.1}},
    }
    given: dict[str, Any] = {
        "recipe": recipe,
        "seed": 1,
        "images": 100,
        "steps_per_epoch": 12,
        "processes": 1,
        "classes": ("a", "b"),
        "mode": "graph",
        "target": "CPU",
        "versions": {"mindspore": "2.10.0"},
        **changes,
    }
    return Facts(**{**given, "recipe": Recipe.model_validate(given["recipe"])})


def changed(key: str, **changes: Any) -> dict[str, Any]:
    recipe = facts().recipe.model_dump(mode="json", exclude_defaults=True)
    return {**recipe, key: {**recipe.get(key, {}), **changes}}


def test_the_same_run_goes_on() -> None:
    run = json.loads(json.dumps(facts().record()))
    assert check_resumable(Path("x"), run, facts()) == []
    longer = changed("train", epochs=200, keep=9)
    assert check_resumable(Path("x"), run, facts(recipe=longer)) == []
    (note,) = check_resumable(Path("x"), run, facts(mode="pynative"))
    assert "mode was graph and is now pynative" in note
    assert DIGEST not in run and facts(source_digest="5a" * 32).record()[DIGEST] == "5a" * 32


@pytest.mark.parametrize(
    ("change", "says"),
    [
        ({"recipe": changed("optimizer", args={"lr": 0.2})}, "optimizer.args.lr was 0.1 and is now 0.2"),
        ({"recipe": changed("clip", max_norm=1.0)}, "clip was None and is now {'max_norm': 1.0}"),
        ({"recipe": changed("data", batch=16)}, "data.batch was 8 and is now 16"),
        ({"recipe": changed("data", shuffle=False)}, "data.shuffle was True and is now False"),
        ({"seed": 2}, "has the seed 1, and now it is 2"),
        ({"images": 99}, "trained on this many images: 100, and now it is 99"),
        ({"processes": 2}, "this many processes: 1, and now it is 2"),
        ({"steps_per_epoch": 6}, "this many steps per epoch: 12"),
        ({"classes": ("b", "a")}, "trained on other classes"),
    ],
)
def test_another_run_is_refused(change: dict[str, Any], says: str) -> None:
    run = json.loads(json.dumps(facts().record()))
    with pytest.raises(BadInput) as caught:
        check_resumable(Path("run/step.ckpt"), run, facts(**change))
    assert says in str(caught.value)
    assert "set it back, or start a new run with another --out" in str(caught.value)


def test_a_run_record_of_nonsense_is_refused() -> None:
    for run in ({}, {"recipe": [1]}, {"recipe_digest": facts().recipe.digest, "recipe": {"data": 3}}):
        with pytest.raises(BadInput):
            check_resumable(Path("x"), run, facts())
