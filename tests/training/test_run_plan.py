"""The plan's numbers: steps, memory and learning rates are those that the run will have."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import pytest
from msmigrate.errors import BadRecipe
from msmigrate.training import device_targets
from msmigrate.training.device_targets import Targets
from msmigrate.training.recipe import reader as recipes
from msmigrate.training.recipe.schema import Recipe
from msmigrate.training.run import plan
from msmigrate.training.run.plan import look
from msmigrate.training.run.train_job import Job

LENET = """
model: {name: lenet5}
data:
  source: %s
  batch: 64
  transforms: [{name: Resize, args: {size: 32}}, {name: ToTensor}, {name: Normalize, args: {mean: [0.5], std: [0.5]}}]
optimizer:
  name: AdamW
  args: {lr: 0.01, weight_decay: 0.1}
  no_weight_decay: [bias]
  groups: [{params: ["fc*"], args: {lr: 0.02}}]
schedule: {name: CosineAnnealingLR, per: %s, args: {T_max: %d}}
%s
"""
# LeNet-5 by hand: weights and biases of two convolutions and three linear layers
WEIGHTS, BIASES = 6 * 25 + 16 * 6 * 25 + 400 * 120 + 120 * 84 + 84 * 10, 6 + 16 + 120 + 84 + 10
# and its outputs for one image of 32 x 32, by the layers that make them
OUTPUTS = [6 * 28 * 28, 6 * 28 * 28, 6 * 14 * 14, 16 * 10 * 10, 16 * 10 * 10, 16 * 5 * 5, 120, 120, 84, 84, 10]


def recipe(**more: Any) -> Recipe:
    return Recipe.model_validate(
        {
            "model": {"name": "lenet5"},
            "data": {"source": "digits:train", "validation": "digits:test", "batch": 64},
            "optimizer": {"name": "SGD", "args": {"lr": 0.1}},
            **more,
        }
    )


def job(**more: Any) -> Job:
    return Job(recipe=Path("/r.yaml"), folder=Path("/runs/r"), **more)


def net_of(path: Path, text: str, *arguments: str) -> dict[str, Any]:
    path.write_text(text)
    found = device_targets.ask([str(path), *arguments]).net
    assert found is not None
    return found


@pytest.fixture(scope="module")
def net(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    """What MindSpore says of LeNet-5 and 300 steps of a cosine over 200."""
    path = tmp_path_factory.mktemp("net") / "recipe.yaml"
    text = LENET % ("digits:train", "step", 200, "ema: {decay: 0.9}")
    return net_of(path, text, "--steps=300", "--steps-per-epoch=22")


def test_sizes_are_those_of_the_net(net: dict[str, Any]) -> None:
    assert net["parameters"] == WEIGHTS + BIASES
    assert net["weights_bytes"] == net["gradient_bytes"] == net["ema_bytes"] == 4 * (WEIGHTS + BIASES)
    # Adam's two moments, and AMSGrad's third, which MindSpore holds whether it is wanted or not
    assert net["optimizer_bytes"] == pytest.approx(3 * 4 * (WEIGHTS + BIASES), rel=1e-3)
    assert (net["image"], net["image_of"]) == ([1, 32, 32], "digits:train")
    assert net["activation_bytes"] == pytest.approx(4 * (sum(OUTPUTS) + 32 * 32), rel=0.05)


def test_groups_are_those_of_the_optimizer(net: dict[str, Any]) -> None:
    ours, bias, rest = net["groups"]
    assert ours["args"] == {"lr": 0.02, "weight_decay": 0.1} and all(n.startswith("fc") for n in ours["names"])
    assert bias["args"]["weight_decay"] == 0.0 and all(n.endswith("bias") for n in bias["names"])
    assert sum(group["parameters"] for group in net["groups"]) == WEIGHTS + BIASES
    assert len(rest["names"]) + len(bias["names"]) + len(ours["names"]) == 10


def test_rates_are_those_of_the_schedule(net: dict[str, Any]) -> None:
    for step, ours, bias, rest in net["rates"]:
        expected = 0.5 * (1 + math.cos(math.pi * step / 200))
        assert rest == bias == pytest.approx(0.01 * expected, abs=1e-9)
        assert ours == pytest.approx(0.02 * expected, abs=1e-9)
    shown = [line[0] for line in net["rates"]]
    assert shown[0] == 0 and shown[-1] == 299 and len(shown) <= 65 and shown == sorted(shown)


def test_a_schedule_by_epoch_moves_once_an_epoch_and_other_images_stand_in(tmp_path: Path) -> None:
    text = LENET % ("folder:/none/there", "epoch", 4, "")
    grey = text.replace("{name: ToTensor}", "{name: Grayscale}, {name: ToTensor}")
    found = net_of(tmp_path / "r.yaml", grey, "--steps=88", "--steps-per-epoch=22")
    assert [line[0] for line in found["rates"]] == [0, 22, 44, 66]
    assert found["rates"][2][3] == pytest.approx(0.005)
    assert found["image_of"].startswith("synthetic") and found["image"] == [1, 32, 32]


def test_a_precision_that_this_machine_lacks_can_be_planned(tmp_path: Path) -> None:
    text = LENET % ("digits:train", "step", 4, "amp: {level: O2, dtype: bfloat16}")
    assert net_of(tmp_path / "r.yaml", text)["parameters"] == WEIGHTS + BIASES


def test_what_no_image_can_tell_is_unknown(tmp_path: Path) -> None:
    found = net_of(tmp_path / "r.yaml", LENET % ("folder:/none/there", "step", 4, ""))
    assert found["image"] is None and found["activation_bytes"] is None  # three channels, and LeNet takes one
    memory = plan.memory(recipe(), job(), found, 1)
    assert memory["unknown"] == ["activations"] and memory["fits"] is None and memory["parts"]["activations"] == 0


def test_a_net_that_does_not_take_the_images_is_one_line(tmp_path: Path) -> None:
    text = LENET % ("digits:train", "step", 4, "")
    (tmp_path / "r.yaml").write_text(text.replace("size: 32", "size: 16"))
    with pytest.raises(BadRecipe, match=r"lenet5 does not take .* of digits:train, images of 1x16x16"):
        device_targets.ask([str(tmp_path / "r.yaml")])


def test_a_recipe_that_no_net_can_take_is_its_own_error(tmp_path: Path) -> None:
    text = LENET % ("digits:train", "step", 4, "")
    (tmp_path / "r.yaml").write_text(text.replace("fc*", "none.*"))
    with pytest.raises(BadRecipe, match=r"'none\.\*' matches no parameter"):
        device_targets.ask([str(tmp_path / "r.yaml")])


@pytest.mark.parametrize(
    ("train", "options", "expected"),
    [
        ({"epochs": 5}, {}, (5, 110)),
        ({"epochs": 5, "max_steps": 30}, {}, (5, 30)),
        ({"epochs": 5, "max_steps": 30}, {"epochs": 2, "max_steps": 200}, (2, 44)),
        ({"epochs": 5}, {"max_steps": 7}, (5, 7)),
    ],
)
def test_steps(train: dict[str, int], options: dict[str, int], expected: tuple[int, int]) -> None:
    found = plan.steps(recipe(train=train), job(**options), 22)
    assert (found["epochs"], found["steps"]) == expected


def test_memory_counts_what_the_recipe_asks_for(net: dict[str, Any]) -> None:
    plain = plan.memory(recipe(), job(target="Ascend"), net, 1)
    assert plain["parts"]["activations"] == 64 * net["activation_bytes"]
    assert plain["total"] == sum(plain["parts"].values())
    assert plain["free"] is None and plain["fits"] is None  # whatever memory an Ascend device has
    parts = plan.memory(recipe(accumulate=4), job(target="Ascend"), net, 1)["parts"]
    assert parts["activations"] == 16 * net["activation_bytes"]
    assert parts["gradients"] == 2 * net["gradient_bytes"]
    half = plan.memory(recipe(amp={"level": "O2"}), job(target="Ascend"), net, 1)["parts"]
    assert half["activations"] == 32 * net["activation_bytes"]
    assert half["weights"] == 1.5 * net["weights_bytes"]


def test_memory_is_compared_with_what_is_free(net: dict[str, Any], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(plan, "free_memory", lambda: 1_000_000_000)
    assert plan.memory(recipe(), job(), net, 1)["fits"] is True
    assert plan.memory(recipe(), job(), net, 2)["fits"] is False
    monkeypatch.setattr(plan, "free_memory", lambda: None)
    assert plan.memory(recipe(), job(), net, 2)["fits"] is None


def test_free_memory_is_the_container_s_where_that_is_less(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name, text in {"max": "1000000\n", "current": "900000\n", "stat": "anon 1\ninactive_file 300000\n"}.items():
        (tmp_path / f"memory.{name}").write_text(text)
    monkeypatch.setattr(device_targets, "CGROUP", tmp_path)
    assert device_targets.free_memory() == 400_000
    (tmp_path / "memory.max").write_text("max\n")
    free = device_targets.free_memory()
    assert free is not None and free > 1_000_000


def test_the_environment_says_who_set_what(monkeypatch: pytest.MonkeyPatch) -> None:
    found = Targets("2.10.0", {"CPU": 1}, {"Ascend": "libge_runner.so is not found"})
    monkeypatch.setenv("ONEDNN_MAX_CPU_ISA", "AVX512_CORE")
    monkeypatch.delenv("GLOG_v", raising=False)
    about = plan.environment(job(target="Ascend"), found, 1)
    assert about["variables"]["ONEDNN_MAX_CPU_ISA"] == {"value": "AVX512_CORE", "set_by": "you"}
    assert about["variables"]["GLOG_v"] == {"value": "3", "set_by": "msmigrate"}
    assert about["usable"] is False and "libge_runner.so" in about["problem"]


def test_data_of_several_processes() -> None:
    found = plan.data(recipe(), look(recipe(), 2), 2)
    assert (found["images_per_step"], found["shard"]) == (128, 718)
    assert found["validation"]["images"] == 360


def test_the_recipes_that_come_with_us_can_be_planned() -> None:
    for name in ("digits", "resnet50"):
        assert look(recipes.load(recipes.DEFAULT.parent / f"{name}.yaml")).steps_per_epoch > 0
