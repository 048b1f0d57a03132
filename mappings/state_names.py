"""How the tensors of every layer are called in MindSpore: the generated names, and those of the user's own layers.

    python -m msmigrate.mappings.state_names

writes layer_states.json from the tables of layers and modules: `convert-ckpt` needs these names and nothing else of the
table, in every run, and reading them from YAML would take a quarter of the processor time of converting a ResNet50. So
the table is imported only where there are rows of the user's own. A test fails when the file is not what this writes.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from .user_rows import paths

if TYPE_CHECKING:
    from .rows import State

FILE = Path(__file__).with_name("layer_states.json")  # torch class -> tensor -> the fields of a Crossing


class Crossing(NamedTuple):
    """Where one tensor of a layer goes: the part of a row's `State` that a checkpoint needs."""

    mindspore: str | None  # None: dropped, see `why`
    verb: str | None = None  # a name in verb_registry.SHAPES
    why: str | None = None
    refused: bool = False  # not dropped but refused: without it the others mean something else


Names = dict[str, dict[str, Crossing]]  # torch class -> its tensors -> where they go
LAYER_STATES: Names = {
    layer: {name: Crossing(*fields) for name, fields in tensors.items()}
    for layer, tensors in json.loads(FILE.read_bytes()).items()
}


def layer_states() -> Names:
    """Return the names of all layers that have a row; raises BadInput for a file of rows that cannot be read."""
    files = paths()
    return _with(files) if files else LAYER_STATES


@cache
def _with(files: tuple[Path, ...]) -> Names:
    from . import table  # the whole of it, for a row that replaces another takes over its further names

    return {
        name: {state.torch: _crossing(state) for state in row.state if state.torch is not None}
        for kind in ("layer", "module", "loss")
        for row in table.rows(kind)
        for name in (row.torch, *row.aliases)
    }


def _crossing(state: State) -> Crossing:
    return Crossing(state.mindspore, state.verb, None if state.mindspore else state.why, state.refused)


def renamed(name: str, pattern: str, target: str) -> str | None:
    """`target` for a name that fits `pattern`, with the part that its `*` stands for; None where it does not fit.

    A `*` stands for a part of a name without dots, `0` or `0_reverse` in an LSTM's `weight_ih_l*`.
    """
    head, star, tail = pattern.partition("*")
    if not star:
        return target if name == pattern else None
    if len(name) < len(head) + len(tail) or not (name.startswith(head) and name.endswith(tail)):
        return None
    middle = name[len(head) : len(name) - len(tail)]
    return target.replace("*", middle) if middle and "." not in middle else None


def find(states: Mapping[str, Crossing], name: str) -> Crossing | None:
    """How the tensor of this name crosses: by its own entry, or by one with a `*` that it fits."""
    if name in states:
        return states[name]
    for pattern, crossing in states.items():
        new = renamed(name, pattern, crossing.mindspore or "") if "*" in pattern else None
        if new is not None:
            return crossing._replace(mindspore=new or None)
    return None


# the parts from which a weight is computed, as torch.nn.utils.parametrizations names them -> as nn.weight_norm and
# nn.spectral_norm do, and torch's older functions
PARTS = {"original0": "g", "original1": "v", "original": "orig", "0._u": "u", "0._v": "v"}
PARAMETRIZED = re.compile(r"(|.*\.)parametrizations\.([^.]+)\.(original[01]?|0\._[uv])")


def part_of_weight(name: str) -> str:
    """The name in MindSpore of a part of a weight: `fc.weight_g` for `fc.parametrizations.weight.original0`; any other
    name as it is."""
    match = PARAMETRIZED.fullmatch(name)
    return name if match is None else f"{match[1]}{match[2]}_{PARTS[match[3]]}"


# Writing layer_states.json


def source() -> str:
    """What layer_states.json has to hold."""
    from . import table

    lines = []
    for row in (*table.built_in("layer"), *table.built_in("module"), *table.built_in("loss")):
        # a checkpoint's tensors cannot belong to a layer that has no counterpart and names no tensors
        for name in (row.torch, *row.aliases) if row.state or (row.mindspore and row.kind != "loss") else ():
            states = {state.torch: _fields(state) for state in row.state if state.torch is not None}
            lines.append(f"{json.dumps(name)}: {json.dumps(states)}")
    return "{\n" + ",\n".join(lines) + "\n}\n"


def _fields(state: State) -> list[str | bool | None]:
    """The fields of its Crossing, without those at the end that have their defaults."""
    fields: list[str | bool | None] = list(_crossing(state))
    while len(fields) > 1 and not fields[-1]:
        fields.pop()
    return fields


if __name__ == "__main__":
    FILE.write_text(source(), encoding="utf-8")


def is_constant(cell: Any, attribute: str) -> bool:
    """Whether a Parameter of a Cell is a number of its kernel's: the ones and zeros of a norm with affine=False.

    MindSpore's GroupNorm and InstanceNorm hold them all the same. Nothing trains them, and torch's norm has none.
    """
    return attribute in ("gamma", "beta") and getattr(cell, "affine", True) is False
