"""The generated names of layers' tensors are those of the table."""

from __future__ import annotations

from msmigrate.mappings import table, write_layer_states
from msmigrate.mappings.layer_states import LAYER_STATES


def test_the_generated_file_is_up_to_date() -> None:
    written = write_layer_states.FILE.read_text(encoding="utf-8")
    assert written == write_layer_states.source(), "run: python -m msmigrate.mappings.write_layer_states"


def test_every_layer_and_tensor_of_the_table_is_there() -> None:
    rows = {name: row for row in table.rows("layer") for name in (row.torch, *row.aliases)}
    assert list(LAYER_STATES) == list(rows)
    for name, row in rows.items():
        states = {state.torch: state for state in row.state if state.torch is not None}
        assert list(LAYER_STATES[name]) == list(states)
        for tensor, crossing in LAYER_STATES[name].items():
            assert (crossing.mindspore, crossing.verb) == (states[tensor].mindspore, states[tensor].verb)
            assert crossing.mindspore is not None or crossing.why == states[tensor].why
