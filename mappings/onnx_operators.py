"""From ONNX's operators to the names that the mapping table's rows have: tables/… knows torch, this knows ONNX.

An entry of onnx_operators.yaml names the row (`torch`), or the row by the number of the input's axes (`by_axes`), or
why nothing remains of the operator in source (`folds`). `refuse` lists values of attributes that torch has none for.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Any

from ..errors import BadInput
from .row_reader import Fields, read_yaml

FILE = Path(__file__).parent / "onnx_operators.yaml"


@dataclass(frozen=True)
class OnnxOperator:
    """One operator of ONNX's own domain, and where the mapping table speaks of it."""

    onnx: str
    torch: str | None = None
    by_axes: Mapping[int, str] = field(default_factory=dict)
    folds: str | None = None
    refuse: Mapping[str, tuple[Any, ...]] = field(default_factory=dict)
    remedy: str | None = None

    def row(self, axes: int | None) -> str | None:
        """The name of its row, for an input with so many axes; None where it folds away."""
        if not self.by_axes:
            return self.torch
        return self.by_axes.get(axes or 4, next(iter(self.by_axes.values())))


@cache
def onnx_operators() -> dict[str, OnnxOperator]:
    """Read the table; raises BadInput naming the entry and the key."""
    found = {}
    for entry in read_yaml(FILE):
        operator = _read(entry)
        if operator.onnx in found:
            raise BadInput(f"{FILE.name}: {operator.onnx} stands there twice")
        found[operator.onnx] = operator
    return found


def _read(entry: Any) -> OnnxOperator:
    fields = Fields(entry, f"{FILE.name}: {entry.get('onnx') if isinstance(entry, dict) else entry!r}")
    operator = OnnxOperator(
        onnx=fields.take("onnx", str),
        torch=fields.take("torch", str, default=None),
        by_axes=fields.take("by_axes", dict, default={}),
        folds=fields.take("folds", str, default=None),
        refuse={name: tuple(values) for name, values in fields.take("refuse", dict, default={}).items()},
        remedy=fields.take("remedy", str, default=None),
    )
    fields.done()
    if sum((bool(operator.torch), bool(operator.by_axes), bool(operator.folds))) != 1:
        raise BadInput(f"{fields.where}: one of torch, by_axes and folds")
    if bool(operator.refuse) != bool(operator.remedy):
        raise BadInput(f"{fields.where}: refuse and remedy go together")
    return operator
