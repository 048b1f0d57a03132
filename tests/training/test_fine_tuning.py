"""Fine-tuning in a recipe: which names its patterns pick, what reading alone refuses, and what training leaves."""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from msmigrate.errors import BadRecipe
from msmigrate.training import checkpoints
from msmigrate.training.checkpoints import new_head
from msmigrate.training.recipe.reader import DEFAULT, load
from msmigrate.training.step.parameter_groups import hint, matching, picked
from recipe_files import read, refusal

NAMES = [
    *("conv1.weight", "bn1.weight", "bn1.bias", "layer1.0.conv1.weight", "layer10.0.conv1.weight"),
    *("fc.weight", "fc.bias"),
]
PLAIN = "model: {name: resnet_tiny}\noptimizer: {name: SGD, args: {lr: 0.1}}\n"


@pytest.mark.parametrize(
    ("patterns", "expected"),
    [
        ([], []),
        (["fc.*"], ["fc.weight", "fc.bias"]),
        (["*", "!fc.*"], NAMES[:5]),
        (["*", "!fc.*", "fc.bias"], [*NAMES[:5], "fc.bias"]),
        (["layer1.*"], ["layer1.0.conv1.weight"]),  # and not layer10's
        (["*.bias", "conv1.*"], ["conv1.weight", "bn1.bias", "fc.bias"]),
        (["layer[0-9]*"], ["layer1.0.conv1.weight", "layer10.0.conv1.weight"]),
    ],
)
def test_the_last_pattern_that_matches_decides(patterns: list[str], expected: list[str]) -> None:
    assert picked(patterns, NAMES, "model.freeze", "parameter") == expected


@given(st.lists(st.sampled_from(NAMES), unique=True), st.lists(st.sampled_from(["*", "fc.*", "*.bias", "bn1.*"])))
def test_taking_everything_back_leaves_nothing_and_patterns_only_pick(names: list[str], patterns: list[str]) -> None:
    found = matching(patterns, names)
    assert [name for name in names if name in found] == found
    assert matching([*patterns, "!*"], names) == []


@pytest.mark.parametrize(
    ("pattern", "words"),
    [
        ("layer1", "did you mean 'layer1.*'?"),
        ("fc.weigth", "did you mean 'fc.weight'?"),
        ("encoder.*", "names look like 'conv1.weight'"),
    ],
)
def test_a_pattern_that_matches_nothing_says_what_would(pattern: str, words: str) -> None:
    assert hint(pattern, NAMES) == words
    with pytest.raises(BadRecipe, match=r"model\.freeze\.1: "):
        picked(["fc.*", pattern], NAMES, "model.freeze", "parameter")


def test_patterns_that_take_back_all_that_they_pick_are_refused() -> None:
    with pytest.raises(BadRecipe, match="exclude all names that they include"):
        picked(["fc.*", "!fc.*"], NAMES, "model.freeze", "parameter")


@pytest.mark.parametrize(
    ("lines", "words"),
    [
        ("fresh: [fc.*]", "without model.checkpoint every weight starts fresh"),
        ("freeze: ['!fc.*', '*']", "excludes names, but no pattern before it includes any"),
        ("freeze_statistics: ['']", "a pattern is empty"),
        ("freeze: fc.*", "Input should be a valid list"),
        ("frozen: [fc.*]", "unknown key 'model.frozen'; did you mean 'freeze'?"),
    ],
)
def test_what_cannot_be_meant_is_refused_by_reading_alone(tmp_path: Path, lines: str, words: str) -> None:
    text = PLAIN.replace("{name: resnet_tiny}", f"{{name: resnet_tiny, {lines}}}")
    assert words in refusal(tmp_path, text)


def test_a_recipe_that_does_not_fine_tune_has_the_digest_that_it_always_had(tmp_path: Path) -> None:
    assert read(tmp_path, PLAIN).digest == "57fca0961d9737b5"
    tuned = PLAIN.replace("{name: resnet_tiny}", "{name: resnet_tiny, freeze: [conv1.*]}")
    assert read(tmp_path, tuned).digest != read(tmp_path, PLAIN).digest


def test_the_recipe_that_the_readme_names_is_read() -> None:
    recipe = load(DEFAULT.with_name("fine_tuning.yaml"))
    assert recipe.model.fresh == ["fc.*"] and recipe.model.draws


def test_a_new_head_is_offered_where_little_is_unlike() -> None:
    body = {f"layer{i}.weight": (3, 3) for i in range(20)}
    head = {"fc.weight": (20, 8), "fc.bias": (20,)}
    assert new_head(body | head, body | {"fc.weight": (5, 8), "fc.bias": (5,)}).endswith("fresh: [fc.*] under model")
    assert new_head(body | head, body | {"head.fc.weight": (5, 8)}).endswith("fresh: [head.fc.*, fc.*] under model")
    assert new_head(body | head, body | head) == ""
    assert new_head(head, {"conv.weight": (3,)}) == ""  # another model altogether


RECIPE = """
model:
  name: resnet_tiny
  args: {num_classes: 3, width: 4}
  checkpoint: pretrained.pth
  fresh: [fc.*]
  freeze: ["*", "!layer4.*", "!fc.*"]
  freeze_statistics: [bn1, "layer[12].*"]
data: {source: "synthetic:32x32", batch: 8, transforms: [{name: ToTensor}]}
optimizer: {name: SGD, args: {lr: 0.05, momentum: 0.9, weight_decay: 0.1}}
"""
MINDSPORE = {"weight": "gamma", "bias": "beta", "running_mean": "moving_mean", "running_var": "moving_variance"}


@pytest.fixture(scope="module")
def pretrained(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with torch's weights of a model of 20 classes: pretrained.pth, and the same as pretrained.npz."""
    folder = tmp_path_factory.mktemp("pretrained")
    script = Path(__file__).with_name("pretrained_torch_worker.py")
    done = subprocess.run([sys.executable, str(script)], cwd=folder, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return folder


@pytest.mark.parametrize("mode", ["pynative", pytest.param("graph", marks=pytest.mark.full)])
def test_training_leaves_what_is_frozen_to_the_bit_and_moves_the_rest(
    tmp_path: Path, pretrained: Path, mode: str
) -> None:
    (tmp_path / "tuned.yaml").write_text(RECIPE)
    shutil.copy(pretrained / "pretrained.pth", tmp_path)
    options = ("--out", "run", "--epochs", "1", "--mode", mode)
    command = [sys.executable, "-m", "msmigrate", "train", "tuned.yaml", *options]
    planned = subprocess.run([*command, "--dry-run"], cwd=tmp_path, capture_output=True, text=True)
    plan = " ".join(planned.stdout.split())
    assert planned.returncode == 0, planned
    assert (
        "not from the checkpoint, drawn anew: 2 tensors, fc.weight, fc.bias" in plan
        and "frozen: 39 tensors with" in plan
    )
    done = subprocess.run([*command, "--skip-parity"], cwd=tmp_path, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert "model.fresh: drawn anew, not taken from" in done.stderr and "39 parameters do not train" in done.stderr
    before = np.load(pretrained / "pretrained.npz")
    after = checkpoints.read(next((tmp_path / "run" / "checkpoints").glob("step-*.ckpt"))).weights
    for name in before.files:
        path, _, leaf = name.rpartition(".")
        if leaf == "num_batches_tracked" or path == "fc":
            continue
        norm = f"{path}.running_mean" in before.files
        value = after[f"{path}.{MINDSPORE[leaf]}" if norm else name]
        frozen = (
            not path.startswith("layer4") if "running" not in leaf else path.startswith(("bn1", "layer1", "layer2"))
        )
        assert np.array_equal(value, before[name]) == frozen, name
    assert after["fc.weight"].shape == (3, 128) and 0 < np.abs(after["fc.weight"]).max() < 1


def test_a_dry_run_sees_a_head_that_does_not_fit(tmp_path: Path, pretrained: Path) -> None:
    (tmp_path / "tuned.yaml").write_text(RECIPE.replace("  fresh: [fc.*]\n", ""))
    shutil.copy(pretrained / "pretrained.pth", tmp_path)
    options = ("--out", "run", "--dry-run", "--mode", "pynative")
    command = [sys.executable, "-m", "msmigrate", "train", "tuned.yaml", *options]
    planned = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True)
    said = " ".join(planned.stdout.split())
    assert planned.returncode == 2, planned
    assert "has 20 classes" in said and "for a new head write fresh: [fc.*] under model" in said
