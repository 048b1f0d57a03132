"""Which parameter goes into which optimizer group."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msmigrate.errors import BadRecipe
from msmigrate.training.recipe.schema import Group, Optimizer
from msmigrate.training.step.parameter_groups import is_norm, parameter_groups

OWNERS = {
    "conv1.weight": "Conv2d",
    "bn1.weight": "BatchNorm2d",
    "bn1.bias": "BatchNorm2d",
    "layer1.0.downsample.1.bias": "BatchNorm2d",
    "fc.weight": "Linear",
    "fc.bias": "Linear",
}


def split(**keys) -> list[tuple[tuple[str, ...], dict]]:
    """The groups of these parameters as pairs."""
    return [(group.names, group.args) for group in parameter_groups(OWNERS, Optimizer(name="SGD", **keys))]


def test_without_wishes_there_is_one_group():
    assert split() == [(tuple(OWNERS), {})]


def test_norms_and_biases_are_left_undecayed_by_their_layer_s_class():
    norms = ("bn1.weight", "bn1.bias", "layer1.0.downsample.1.bias")
    assert split(no_weight_decay=["norm"])[0] == (norms, {"weight_decay": 0.0})
    biases = ("bn1.bias", "layer1.0.downsample.1.bias", "fc.bias")
    assert split(no_weight_decay=["bias"])[0] == (biases, {"weight_decay": 0.0})
    assert split(no_weight_decay=["bias", "norm"])[1] == (("conv1.weight", "fc.weight"), {})


def test_own_groups_come_first_and_the_first_match_wins():
    found = split(
        no_weight_decay=["norm", "bias"],
        groups=[Group(params=["fc.*"], args={"lr": 1.0}), Group(params=["*.weight"], args={"lr": 2.0})],
    )
    assert found == [
        (("fc.weight", "fc.bias"), {"lr": 1.0}),
        (("conv1.weight", "bn1.weight"), {"lr": 2.0}),
        (("bn1.bias", "layer1.0.downsample.1.bias"), {"weight_decay": 0.0}),
    ]


@pytest.mark.parametrize(
    ("patterns", "message"),
    [
        (
            [["fc.*", "head.*"]],
            r"'head\.\*' matches no parameter that trains; names look like 'conv1.weight'",
        ),
        ([["conv1.weigth"]], "did you mean 'conv1.weight'?"),
        ([["FC.*"]], "matches no parameter"),
        ([["fc.*"], ["fc.bias"]], "optimizer.groups.1: earlier groups have all the parameters that it matches"),
    ],
)
def test_groups_without_parameters_are_refused(patterns, message):
    with pytest.raises(BadRecipe, match=message):
        split(groups=[Group(params=each, args={}) for each in patterns])


def test_a_model_that_does_not_train_is_refused():
    with pytest.raises(BadRecipe, match="no parameter that trains"):
        parameter_groups({}, Optimizer(name="SGD"))


@pytest.mark.parametrize(
    ("name", "norm"), [("BatchNorm2d", True), ("LayerNorm", True), ("GroupNorm", True), ("Linear", False)]
)
def test_what_a_norm_is(name, norm):
    assert is_norm(name) is norm


@given(
    st.lists(st.sets(st.sampled_from(sorted(OWNERS)), min_size=1), max_size=3),
    st.sets(st.sampled_from(["norm", "bias"])),
)
def test_every_parameter_is_in_exactly_one_group_in_model_order(members, undecayed):
    groups = [Group(params=sorted(names), args={}) for names in members]
    taken: set[str] = set()
    hidden = False
    for names in members:
        hidden = hidden or names <= taken
        taken |= names
    if hidden:
        with pytest.raises(BadRecipe):
            split(groups=groups, no_weight_decay=sorted(undecayed))
        return
    found = [names for names, _ in split(groups=groups, no_weight_decay=sorted(undecayed))]
    assert sorted(name for names in found for name in names) == sorted(OWNERS)
    order = list(OWNERS)
    assert all(list(names) == sorted(names, key=order.index) for names in found)
