"""The two frameworks' models: the same names, shapes, calls, outputs and running statistics."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
from msmigrate.errors import BadRecipe
from msmigrate.training.models import model_names

CASES = json.loads(Path(__file__).with_name("cases.json").read_text(encoding="utf-8"))

# The naming rules, written out here once more so that they are not tested against themselves.
CLASSES = {"Conv2d": "Conv2d", "BatchNorm2d": "BatchNorm2d", "Linear": "Dense"}
NORM = {"weight": "gamma", "bias": "beta", "running_mean": "moving_mean", "running_var": "moving_variance"}


def renamed(shapes: dict[str, list]) -> dict[str, list]:
    """What MindSpore's parameters have to be for these torch tensors: name -> [class of the owner, shape]."""
    result = {}
    for name, (owner, shape) in shapes.items():
        path, _, leaf = name.rpartition(".")
        if leaf != "num_batches_tracked":
            result[f"{path}.{NORM[leaf] if owner == 'BatchNorm2d' else leaf}"] = [CLASSES[owner], shape]
    return result


def distance(ours: np.ndarray, theirs: np.ndarray) -> float:
    """The greatest difference over the greatest magnitude."""
    assert ours.shape == theirs.shape
    return float(np.abs(ours - theirs).max() / np.abs(theirs).max())


@pytest.mark.parametrize("case", CASES["shapes"])
def test_every_parameter_has_torch_s_name_class_and_shape(models_and_data, case):
    expected = renamed(models_and_data.torch.facts["shapes"][case])
    assert models_and_data.mindspore.facts["shapes"][case] == expected


@pytest.mark.parametrize("case", CASES["shapes"])
def test_the_names_of_modules_are_known_without_a_framework(models_and_data, case):
    name, arguments = CASES["shapes"][case]
    assert sorted(model_names.module_names(name, arguments)) == sorted(models_and_data.torch.facts["modules"][case])


def test_the_modules_of_other_models_are_known_to_them_alone():
    assert model_names.module_names("torchvision:resnet18", {}) is None


@pytest.mark.parametrize("case", CASES["shapes"])
def test_parameters_carry_their_path_as_name(models_and_data, case):
    mindspore = models_and_data.mindspore.facts
    assert mindspore["names"][case] == list(mindspore["shapes"][case])


@pytest.mark.parametrize("case", CASES["forward"])
def test_leaf_modules_are_called_in_the_same_order_with_the_same_shapes(models_and_data, case):
    calls = models_and_data.torch.facts["calls"][case]
    assert models_and_data.mindspore.facts["calls"][case] == calls
    assert len({name for name, _ in calls}) < len(calls)  # the ReLU of a block is one module, called more than once


@pytest.mark.parametrize("mode", ["train", "eval"])
@pytest.mark.parametrize("case", CASES["forward"])
def test_same_weights_give_the_same_output(models_and_data, case, mode):
    place = f"forward/{case}/{mode}"
    assert distance(models_and_data.mindspore.arrays[place], models_and_data.torch.arrays[place]) < 1e-5


@pytest.mark.parametrize("case", CASES["forward"])
def test_running_statistics_move_alike(models_and_data, case):
    place = f"forward/{case}/buffers/"
    theirs = models_and_data.torch.under(place)
    theirs = {name: array for name, array in theirs.items() if not name.endswith("num_batches_tracked")}
    ours = models_and_data.mindspore.under(place)
    assert ours.keys() == theirs.keys()
    for name in ours:
        assert distance(ours[name], theirs[name]) < 1e-5, name
        assert distance(theirs[name], models_and_data.torch.arrays[f"forward/{case}/weights/{name}"]) > 1e-3, name


def test_all_models_are_covered():
    assert {name for name, _ in CASES["shapes"].values()} == set(model_names.NAMES)


@pytest.mark.parametrize(
    ("name", "arguments", "message"),
    [
        ("resnet5", {}, "no model is called 'resnet5'; did you mean resnet50"),
        ("transformer", {}, "known: lenet5, resnet18"),
        ("resnet50", {"num_clases": 10}, "resnet50 takes no argument 'num_clases'; did you mean num_classes?"),
        ("resnet18", {"groups": 2}, "resnet18 takes no argument 'groups'"),
        ("resnet50", {"weights": "DEFAULT"}, "takes no argument 'weights'"),
        ("lenet5", {"num_classes": 0}, "num_classes must be a positive whole number, not 0"),
        ("lenet5", {"num_classes": True}, "num_classes must be a positive whole number, not True"),
        ("resnet34", {"zero_init_residual": 1}, "zero_init_residual must be true or false, not 1"),
        ("resnet_tiny", {"layers": [1, 1, 1]}, "layers must be four positive whole numbers"),
        ("resnet_tiny", {"block": "wide"}, "block must be 'basic' or 'bottleneck', not 'wide'"),
    ],
)
def test_unknown_models_and_arguments_are_refused_with_the_nearest(name, arguments, message):
    with pytest.raises(BadRecipe) as refusal:
        model_names.check(name, arguments)
    assert message in str(refusal.value)


def test_the_number_of_classes_is_known_without_a_framework(models_and_data):
    for case, (name, arguments) in CASES["shapes"].items():
        last = list(models_and_data.torch.facts["shapes"][case].values())[-1]
        assert last[1] == [model_names.num_classes(name, arguments)], case
