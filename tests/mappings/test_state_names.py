"""The generated names of layers' tensors are those of the table."""

from __future__ import annotations

import pytest
from msmigrate.mappings import state_names, table
from msmigrate.mappings.state_names import LAYER_STATES, Crossing, find


def test_the_generated_file_is_up_to_date() -> None:
    written = state_names.FILE.read_text(encoding="utf-8")
    assert written == state_names.source(), "run: python -m msmigrate.mappings.state_names"


def test_every_layer_and_tensor_of_the_table_is_there() -> None:
    layers = [row for row in (*table.rows("layer"), *table.rows("module")) if row.mindspore or row.state]
    layers += [row for row in table.rows("loss") if row.state]  # whose tensors are arguments
    rows = {name: row for row in layers for name in (row.torch, *row.aliases)}
    assert list(LAYER_STATES) == list(rows)
    for name, row in rows.items():
        states = {state.torch: state for state in row.state if state.torch is not None}
        assert list(LAYER_STATES[name]) == list(states)
        for tensor, crossing in LAYER_STATES[name].items():
            assert (crossing.mindspore, crossing.verb) == (states[tensor].mindspore, states[tensor].verb)
            assert crossing.mindspore is not None or crossing.why == states[tensor].why
            assert crossing.refused == states[tensor].refused


STATES = {
    "weight": Crossing("gamma"),
    "weight_ih_l*": Crossing("w_ih_l*", verb="expand_dims"),
    "weight_hr_l*": Crossing(None, why="there is none", refused=True),
    "layers.*.linear.weight": Crossing("layers.*.dense.weight"),
}


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("weight", STATES["weight"]),
        ("weight_ih_l0_reverse", Crossing("w_ih_l0_reverse", verb="expand_dims")),
        ("weight_hr_l12", STATES["weight_hr_l*"]),
        ("layers.3.linear.weight", Crossing("layers.3.dense.weight")),
        ("layers.3.linear.bias", None),
        ("layers.3.x.linear.weight", None),
        ("layers..linear.weight", None),
        ("layers.linear.weight", None),
        ("weight_ih_l", None),
        ("weights", None),
    ],
)
def test_a_star_stands_for_one_part_of_a_name(name: str, expected: Crossing | None) -> None:
    assert find(STATES, name) == expected


def test_every_star_has_its_like() -> None:
    for states in LAYER_STATES.values():
        for torch, crossing in states.items():
            assert torch.count("*") <= 1
            assert crossing.mindspore is None or crossing.mindspore.count("*") == torch.count("*")
