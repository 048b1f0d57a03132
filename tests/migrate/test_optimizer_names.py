"""Which parameter an optimizer's state belongs to: told by names, by the one order that fits, or asked for."""

from __future__ import annotations

import pytest
from msmigrate.errors import Ambiguous, BadCheckpoint
from msmigrate.migrate.checkpoint.optimizer_state import check_names, names_of

PARAMETERS = {
    "conv.weight": (4, 3, 3, 3),
    "bn.weight": (4,),
    "bn.bias": (4,),
    "fc.weight": (2, 4),
    "fc.bias": (2,),
}
NAMES = list(PARAMETERS)


def shapes(*names: str) -> dict[int, tuple[int, ...]]:
    return {index: PARAMETERS[name] for index, name in enumerate(names)}


def test_one_group_is_in_the_model_s_order() -> None:
    assert names_of([range(5)], shapes(*NAMES), PARAMETERS) == [NAMES]


@pytest.mark.parametrize(
    "groups",
    [
        [["conv.weight", "fc.weight"], ["bn.weight", "bn.bias", "fc.bias"]],
        [["bn.weight", "bn.bias", "fc.bias"], ["conv.weight", "fc.weight"]],
        [["bn.bias", "fc.bias"], ["conv.weight", "bn.weight", "fc.weight"]],
        [["conv.weight", "bn.weight", "bn.bias"], ["fc.weight", "fc.bias"]],
        [["fc.weight", "fc.bias"], ["conv.weight", "bn.weight", "bn.bias"]],
    ],
    ids=["no decay last", "no decay first", "biases first", "backbone and head", "head first"],
)
def test_two_groups_are_told_by_the_shapes_of_their_state(groups: list[list[str]]) -> None:
    flat = [name for group in groups for name in group]
    indices = [list(range(len(groups[0]))), list(range(len(groups[0]), 5))]
    assert names_of(indices, shapes(*flat), PARAMETERS) == groups


def test_two_orders_that_fit_are_asked_about() -> None:
    """Without a state nothing tells them apart."""
    with pytest.raises(Ambiguous, match=r"in more than one order, which differ in .*--optimizer FILE\.py:FUNCTION"):
        names_of([[0, 1], [2, 3, 4]], {}, PARAMETERS)


def test_an_order_that_nobody_uses_is_asked_for() -> None:
    odd = ["fc.bias", "conv.weight", "bn.bias", "fc.weight", "bn.weight"]
    with pytest.raises(BadCheckpoint, match="fit no usual order of the model's 5 parameters"):
        names_of([range(5)], shapes(*odd), PARAMETERS)


def test_more_parameters_than_the_model_has() -> None:
    with pytest.raises(BadCheckpoint, match="6 parameters and the state dict 5: it is another model's"):
        names_of([range(6)], {}, PARAMETERS)


@pytest.mark.parametrize(
    ("names", "says"),
    [
        (NAMES[:4], "5 parameters and 4 are named"),
        ([*NAMES[:4], "head.bias"], r"head\.bias is not in the state dict"),
        ([*NAMES[1:], NAMES[0]], r"state of bn\.weight is 4×3×3×3, the parameter 4"),
    ],
)
def test_names_that_are_given_are_held_against_the_file(names: list[str], says: str) -> None:
    with pytest.raises(BadCheckpoint, match=says):
        check_names([names], shapes(*NAMES), range(5), PARAMETERS)
    check_names([NAMES], shapes(*NAMES), range(5), PARAMETERS)
