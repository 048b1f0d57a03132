"""Write layer_states.py, the names of layers' tensors, from the tables of layers and modules.

    python -m msmigrate.mappings.write_layer_states

`convert-ckpt` needs these names and nothing else of the table, in every run, and reading them from YAML would take a
quarter of the processor time of converting a ResNet50. A test fails when the file is not what this program writes.
"""

from __future__ import annotations

from pathlib import Path

from . import table
from .rows import Row, State

FILE = Path(__file__).with_name("layer_states.py")
HEAD = '''\
"""How the tensors of every layer are called in MindSpore: torch class -> tensor -> where it goes.

Generated from the tables of layers and modules by `python -m msmigrate.mappings.write_layer_states`; do not edit.
"""

from __future__ import annotations

from .crossing import Crossing

# fmt: off
LAYER_STATES: dict[str, dict[str, Crossing]] = {
'''


def source() -> str:
    """What layer_states.py has to hold."""
    lines = [HEAD]
    for row in (*table.built_in("layer"), *table.built_in("module")):
        # a layer that has no counterpart and tells no names is none that a checkpoint's tensors could go by
        for name in (row.torch, *row.aliases) if row.mindspore or row.state else ():
            lines += _layer(name, row)
    return "".join([*lines, "}\n"])


def _layer(name: str, row: Row) -> list[str]:
    states = [state for state in row.state if state.torch is not None]
    if not states:
        return [f"    {_text(name)}: {{}},\n"]
    tensors = ", ".join(f"{_text(state.torch)}: {_crossing(state)}" for state in states)
    return [f"    {_text(name)}: {{{tensors}}},\n"]


def _crossing(state: State) -> str:
    given = {"verb": state.verb, "why": state.why if state.mindspore is None else None}
    options = [f"{key}={_text(value)}" for key, value in given.items() if value is not None]
    options += ["refused=True"] if state.refused else []
    return f"Crossing({', '.join([_text(state.mindspore), *options])})"


def _text(value: str | None) -> str:
    """The Python literal, in the quotes that the formatter likes."""
    literal = repr(value)
    return f'"{literal[1:-1]}"' if literal.startswith("'") and '"' not in literal else literal


if __name__ == "__main__":
    FILE.write_text(source(), encoding="utf-8")
