"""What the processes of a comparison are given arrives as it was, and what cannot be is refused where it is made."""

from __future__ import annotations

from dataclasses import fields
from pathlib import Path
from typing import Any

import pytest
from msmigrate.errors import BadInput, BadRecipe
from msmigrate.parity.job import Pair, ParityJob
from msmigrate.parity.options import ParityOptions, StepOptions
from msmigrate.training.recipe import reader as recipes
from msmigrate.training.recipe.schema import Part, Recipe

RECIPE = Path(__file__).parent / "tiny.yaml"
PAIR = Pair("a.py:f", "b.py:g(1, x='é')", Path("map.yaml"), Path("a.pth"), Path("batch.npz"), outputs=True)
OTHERS: dict[str, Any] = {
    "steps": 7,
    "init_seeds": 2,
    "batch": 16,
    "mode": "graph",
    "precision": "hf32",
    "stages": ("forward",),
    "modules": ("layer1*", "fc"),
    "no_replay": True,
    "thorough": True,
    "timeout": 12.5,
    "no_diagnosis": True,
    "continue_from": Path("last.pth"),
    "device": "cuda:1",
    "target": "Ascend",
    "device_id": 3,
    "noise": True,
}
WITH: dict[str, dict[str, Any]] = {"device_id": {"target": "Ascend"}}  # what an option is refused without


def read_back(job: ParityJob, folder: Path) -> ParityJob:
    job.write(folder / "job.json")
    return ParityJob.read(folder / "job.json")


def test_every_option_reaches_the_workers(tmp_path: Path) -> None:
    recipe = recipes.load(RECIPE)
    assert OTHERS.keys() == {field.name for field in fields(StepOptions)}
    for name, value in OTHERS.items():
        given = {name: value, **WITH.get(name, {})}
        again = read_back(ParityJob(recipe, tmp_path / "run", **given), tmp_path)
        found = getattr(again, name)
        assert (tuple(found) if isinstance(value, tuple) else found) == value
        assert again.narrowing == ParityJob(recipe, tmp_path / "run", **given).narrowing
    again = read_back(ParityJob(recipe, tmp_path / "run", PAIR, alone=True), tmp_path)
    assert again.pair == PAIR and again.alone and again.folder == tmp_path / "run"


@pytest.mark.parametrize("path", sorted(Path(__file__).parent.glob("*.yaml")), ids=lambda path: path.stem)
def test_a_recipe_arrives_as_it_was(path: Path, tmp_path: Path) -> None:
    recipe = recipes.load(path)
    again = read_back(ParityJob(recipe, tmp_path), tmp_path).recipe
    assert again == recipe and again.digest == recipe.digest


def test_a_whole_number_stays_whole_and_a_float_a_float(tmp_path: Path) -> None:
    args = {"tiny": 1e-7, "whole": 1.0, "count": 1, "nested": [{"p": 2.0}]}
    recipe: Recipe = recipes.load(RECIPE).model_copy(update={"loss": Part(name="CrossEntropyLoss", args=args)})
    again = read_back(ParityJob(recipe, tmp_path), tmp_path).recipe.loss.args
    assert again == args and [type(again[name]) for name in ("whole", "count")] == [float, int]


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({"steps": 0}, "steps is 0: expected 1 to 100"),
        ({"steps": 101}, "steps is 101: expected 1 to 100"),
        ({"batch": 0}, "batch is 0: expected 1 or more"),
        ({"init_seeds": 0}, "init_seeds is 0: expected 1 to 1,000"),
        ({"timeout": 0.5}, "timeout is 0.5: expected 1 or more"),
        ({"mode": "eager"}, "mode is 'eager': expected one of pynative, graph"),
        ({"stages": ["forwad"]}, "did you mean 'forward'"),
        ({"mindspore": "b.py:g"}, "--mindspore goes with --torch"),
        ({"ckpt": Path("a.pth")}, "--ckpt is for a pair of your own"),
        ({"write_map": Path("a.yaml")}, "--write-map is for a pair of your own"),
        ({"worst": 0}, "worst is 0: expected 1 or more"),
    ],
)
def test_what_the_command_line_refuses_the_api_refuses_too(given: dict[str, Any], said: str) -> None:
    with pytest.raises(BadInput, match=said):
        ParityOptions(**given)


def test_a_recipe_s_devices_hold_unless_the_command_line_says_others(tmp_path: Path) -> None:
    file = tmp_path / "recipe.yaml"
    file.write_text(
        "model: lenet5\noptimizer: {name: SGD}\ndevices: {torch: 'cuda:1', mindspore: Ascend, device_id: 3}\n"
    )
    recipe = recipes.load(file)

    def of(**options: Any) -> tuple[str, str, int]:
        job = ParityJob(recipe, tmp_path, **options)
        return job.torch_device, job.mindspore_target, job.mindspore_device_id

    assert of() == ("cuda:1", "Ascend", 3) and of(device="cpu") == ("cpu", "Ascend", 3)
    assert of(target="cpu") == ("cuda:1", "CPU", 0) and of(device_id=0) == ("cuda:1", "Ascend", 0)
    assert of(target="gpu", device_id=2) == ("cuda:1", "GPU", 2)
    with pytest.raises(BadInput, match="--device-id 2 needs a --target with devices"):
        of(target="CPU", device_id=2)
    for odd, said in (("{torch: gpu}", "devices.torch: "), ("{mindspore: Asend}", "devices.mindspore: ")):
        file.write_text(f"model: lenet5\noptimizer: {{name: SGD}}\ndevices: {odd}\n")
        with pytest.raises(BadRecipe, match=f"recipe.yaml:3: {said}"):
            recipes.load(file)
    file.write_text("model: lenet5\noptimizer: {name: SGD}\n")
    assert recipes.load(file).digest == recipe.digest
