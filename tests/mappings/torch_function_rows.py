"""The cases of functions in PyTorch."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import torch
from mapping_cases import bind, made_of
from msmigrate.mappings.rows import Case, Row
from torch_calls import arguments, find, joined, record, tensors


def run_function(name: str, row: Row, case: Case, dtype: torch.dtype) -> dict[str, Any]:
    """A function: forward and input gradients."""
    torch.manual_seed(3)
    xs = tensors(name, case, dtype)
    _, given = arguments(row, case, dtype)
    made, rest = made_of(case, joined(case, xs), lambda cls, words: find(cls)(**words))
    positional, keywords = split(row, bind(row, replace(case, args=given | made), rest), set(given))
    result = find(row.torch)(*positional, **keywords)
    return {"random": result.detach()} if not case.train else record(result, xs, name)


def split(row: Row, given: dict[str, Any], plain: set[str]) -> tuple[list[Any], dict[str, Any]]:
    """The arguments up to the last input one by one, as overloads want them; those after it, or after a gap, by name.

    plain: the names that hold no input.
    """
    names = [argument.torch for argument in row.arguments]
    last = max((index for index, name in enumerate(names) if name in given and name not in plain), default=-1)
    if row.torch.startswith("operator."):  # which takes nothing by name
        last = len(names) - 1
    positional: list[Any] = []
    for argument in row.arguments[: last + 1]:
        if argument.torch not in given:
            break
        value = given.pop(argument.torch)
        positional.extend(value if argument.rest else [value])
    return positional, given
