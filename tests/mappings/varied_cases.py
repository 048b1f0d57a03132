"""From a row's variations to cases that hypothesis draws and shrinks: sizes to the smallest, arguments to the first."""

from __future__ import annotations

import json
import zlib
from collections.abc import Mapping
from dataclasses import asdict
from typing import Any

from hypothesis import assume
from hypothesis import strategies as st
from msmigrate.mappings import table
from msmigrate.mappings.row_reader import expression_names
from msmigrate.mappings.rows import EQUAL, Case, Row, Variation

GROUPS = ({}, {"lr": 0.03})  # of an optimizer's parameters


def varied(mode: str) -> list[Row]:
    """The rows that may be drawn from in one of MindSpore's modes."""
    return [row for row in table.rows() if row.vary and row.mindspore and row.status[mode] == EQUAL]


@st.composite
def cases(draw: st.DrawFn, row: Row) -> Case:
    """One case of one of the row's variations."""
    variation = draw(st.sampled_from(row.vary))
    sizes = {name: draw(st.integers(*ends)) for name, ends in variation.sizes.items()}
    args = {name: draw(st.sampled_from(values)) for name, values in variation.args.items()}
    dtype = draw(st.sampled_from(variation.dtypes))
    assume(all(expression_value(condition, {**args, **sizes}) for condition in variation.where))
    return case_of(row, variation, sizes, args, dtype)


def case_of(row: Row, variation: Variation, sizes: Mapping[str, int], args: Mapping[str, Any], dtype: str) -> Case:
    """The case of these sizes (name -> number), arguments and dtype of inputs that do not say how they are drawn."""
    inputs = []
    for spec in (_input(spec, sizes) for spec in variation.inputs):
        drawn = isinstance(spec, dict) and set(spec) - {"shape", "grad", "fixed"}
        if dtype == "float32" or drawn:
            inputs.append(spec)
        else:
            inputs.append({**(spec if isinstance(spec, dict) else {"shape": spec}), "dtype": dtype})
    return Case(
        args={name: settled(value, sizes) for name, value in args.items()},
        inputs=tuple(inputs),
        pack=variation.pack,
        paired=variation.paired,
        weights=variation.weights,
        apart=variation.apart,
        groups=GROUPS if row.kind == "optimizer" else (),
    )


def _input(spec: Any, sizes: Mapping[str, int]) -> Any:
    """An input with its shape, and whatever else is an expression, worked out."""
    shape = spec["shape"] if isinstance(spec, dict) else spec
    numbers = [expression_value(str(size), sizes) for size in shape]
    return {**settled(spec, sizes), "shape": numbers} if isinstance(spec, dict) else numbers


def expression_value(text: str, known: Mapping[str, Any]) -> Any:
    """What an expression comes to; raises ValueError for what is none."""
    expression_names(text)
    return eval(text, {"__builtins__": {}}, dict(known))


def is_sized(text: Any, sizes: Mapping[str, Any]) -> bool:
    """Whether it is an expression over nothing but these names, at least one of them."""
    if not isinstance(text, str):
        return False
    try:
        found = expression_names(text)
    except ValueError:
        return False
    return bool(found) and found <= set(sizes)


def settled(value: Any, sizes: Mapping[str, int]) -> Any:
    """The value with the expressions over sizes in it worked out; other text stays."""
    if isinstance(value, dict):
        return {key: settled(item, sizes) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [settled(item, sizes) for item in value]
    return expression_value(value, sizes) if is_sized(value, sizes) else value


def name_of(row: Row, case: Case, draw: int) -> str:
    """A name for one drawing of a case's values, which are drawn from it: the same in both frameworks and every run."""
    digest = zlib.crc32(json.dumps(asdict(case), sort_keys=True, default=str).encode())
    return f"{row.torch}[{digest:08x}.{draw}]"


def as_json(case: Case) -> dict[str, Any]:
    """The case as one line to a worker; lists stand for tuples, as in YAML."""
    return asdict(case)


def from_json(content: Mapping[str, Any]) -> Case:
    """The case that `as_json` wrote."""
    whole = {key: tuple(value) if isinstance(value, list) else value for key, value in content.items()}
    return Case(**whole)
