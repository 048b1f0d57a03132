"""A step that goes on from a torch training checkpoint: what is read of it, what is refused, and that it goes red."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from msmigrate.errors import BadCheckpoint, BadInput, WorkerFailed
from msmigrate.migrate.checkpoint.formats import reader
from msmigrate.parity import job as job_module
from msmigrate.parity.job import Pair, ParityJob
from msmigrate.parity.record import resume
from msmigrate.parity.result import Report
from msmigrate.parity.run import parity_step
from msmigrate.training import checkpoints
from msmigrate.training.recipe import reader as recipes
from msmigrate.training.recipe.schema import Recipe
from safetensors.numpy import save_file

HERE = Path(__file__).parent
RECIPE = HERE / "continued.yaml"
COSINE = {"name": "CosineAnnealingLR", "args": {"T_max": 20}}


def given(steps: int | None, schedule: int | None, epoch: int | None) -> dict[str, np.ndarray]:
    told: dict[str, Any] = {"optimizer": "torch.optim.SGD", "param_groups": []}
    if epoch is not None:
        told["epoch"] = epoch
    counts = {reader.STEPS: steps, reader.EPOCH: schedule}
    found = {name: np.array(count, np.int64) for name, count in counts.items() if count is not None}
    return {**found, reader.GROUPS: np.frombuffer(json.dumps(told).encode(), np.uint8)}


def with_schedule(per: str | None) -> Recipe:
    recipe = recipes.load(RECIPE).model_dump()
    recipe["schedule"] = None if per is None else {**COSINE, "per": per}
    return Recipe.model_validate(recipe)


@pytest.mark.parametrize(
    ("per", "steps", "schedule", "epoch", "position"),
    [
        ("step", None, 16, 2, (16, 16, 8)),
        ("step", 16, 16, None, (16, 16, 1)),
        ("step", 16, None, 0, (16, 16, 1)),  # scripts that keep the epoch that has ended, the first being 0
        ("epoch", 16, 2, None, (16, 2, 8)),
        (
            "epoch",
            None,
            2,
            2,
            (2, 2, 1),
        ),  # both sides count alike, and nothing but a warm-up of the average hears of it
        ("epoch", 17, None, 2, (17, 2, 8)),
        (None, 16, None, 2, (16, 16, 8)),
    ],
)
def test_where_the_file_stands(
    per: str | None, steps: int | None, schedule: int | None, epoch: int | None, position: tuple[int, int, int]
) -> None:
    assert resume.position(given(steps, schedule, epoch), with_schedule(per)) == position


def test_a_file_that_does_not_tell() -> None:
    with pytest.raises(BadCheckpoint, match="does not say how many steps were taken"):
        resume.position(given(None, None, 2), with_schedule("step"))
    with pytest.raises(BadCheckpoint, match="does not say how many steps were taken"):
        resume.position(given(None, 16, 2), with_schedule(None))


def test_the_workers_are_told_and_the_recipe_stays_the_same(tmp_path: Path) -> None:
    options = ParityJob(recipes.load(RECIPE), Path("run"), continue_from=Path("last.pth"))
    options.write(tmp_path / "job.json")
    given = ParityJob.read(tmp_path / "job.json")
    assert given.continue_from == Path("last.pth")
    assert given.recipe.digest == recipes.load(RECIPE).digest  # so its report opens the gate of the recipe
    assert given.step_recipe.model.checkpoint == Path("run") / job_module.BARE


def test_a_pair_cannot_go_on() -> None:
    pair = Pair("a.py:build", "b.py:build")
    with pytest.raises(BadInput, match=r"--continue-from continues with the recipe's own models, not with a\.py:build"):
        ParityJob(recipes.load(RECIPE), Path("run"), pair=pair, continue_from=Path("last.pth"))


def test_what_cannot_be_gone_on_from(tmp_path: Path) -> None:
    weights = {"fc.weight": np.ones((2, 3), np.float32), "fc.bias": np.ones(2, np.float32)}
    save_file(weights, tmp_path / "weights.safetensors")
    with pytest.raises(BadCheckpoint, match="holds no training state"):
        resume.prepare(tmp_path / "weights.safetensors", tmp_path, recipes.load(RECIPE))
    checkpoints.write(tmp_path / "ours.ckpt", weights, {"step": 1})
    with pytest.raises(BadInput, match=r"is MindSpore's: .* name the torch file that it was converted from"):
        resume.prepare(tmp_path / "ours.ckpt", tmp_path, recipes.load(RECIPE))
    with pytest.raises(BadCheckpoint, match="there is no file"):
        resume.prepare(tmp_path / "nowhere.pth", tmp_path, recipes.load(RECIPE))


@pytest.fixture(scope="module")
def checkpoint(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The checkpoint of a torch run."""
    path = tmp_path_factory.mktemp("run") / "last.pth"
    subprocess.run([sys.executable, str(HERE / "continued_torch_run.py"), str(path)], check=True)
    return path


def proven(checkpoint: Path, folder: Path, old: str = "", new: str = "") -> Report:
    """The report on the recipe, with one text of it replaced."""
    file = folder / "recipe.yaml"
    text = RECIPE.read_text(encoding="utf-8")
    assert old in text
    file.write_text(text.replace(old, new), encoding="utf-8")
    options = ParityJob(recipes.load(file), folder / "run", steps=2, no_replay=True, continue_from=checkpoint)
    return parity_step(file, options)


@pytest.mark.full
def test_the_next_steps_are_torchs(checkpoint: Path, tmp_path: Path) -> None:
    found = proven(checkpoint, tmp_path)
    assert found.parity, found.first_divergence
    assert any("the steps go on from" in note for note in found.notes)
    rates = [f for f in found.findings if f.part == "learning rate and weight decay"]
    assert rates and all(f.verdict.name == "PASS" for f in rates)
    parts = {finding.part for finding in found.findings}
    assert {"step1 momentum_buffer", "step2 ema", "loss scale"} <= parts


@pytest.mark.full
@pytest.mark.parametrize(
    ("old", "new", "part"),
    [
        ("T_max: 20", "T_max: 21", "learning rate and weight decay"),
        ("momentum: 0.9", "momentum: 0.8", "given gradients"),
        ("growth_interval: 5", "growth_interval: 6", "loss scale"),
    ],
)
def test_another_recipe_than_the_runs_goes_red(old: str, new: str, part: str, checkpoint: Path, tmp_path: Path) -> None:
    found = proven(checkpoint, tmp_path, old, new)
    assert not found.parity
    assert {f.stage for f in found.findings if f.verdict.name == "FAIL"} == {"update"}
    assert any(f.part == part for f in found.findings if f.verdict.name == "FAIL")
    assert any("causes of updates are not looked for" in note for note in found.notes)


@pytest.mark.full
def test_groups_that_the_recipe_lacks_are_named(checkpoint: Path, tmp_path: Path) -> None:
    with pytest.raises(
        (BadCheckpoint, WorkerFailed), match=r"conv1\.weight was trained with weight_decay 0\.01, conv1"
    ):
        proven(checkpoint, tmp_path, "no_weight_decay: [bias]", "no_weight_decay: []")
