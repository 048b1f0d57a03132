"""What arguments torch's own things take, with their defaults."""

from __future__ import annotations

import ast
import inspect
import re
from enum import Enum
from typing import Any

import torch
from msmigrate.mappings.rows import Row
from torch_calls import find


def signature(row: Row) -> list[list[Any]]:
    """Names and defaults of the torch arguments; for a function written in C, from the first lines of its help."""
    found = find(row.torch)
    try:
        parameters = list(inspect.signature(found).parameters.values())
    except ValueError:
        parameters = []
    if inspect.isclass(found) and issubclass(found, torch.nn.RNNBase):
        return recurrent_signature(found)
    if not parameters or parameters[0].kind is inspect.Parameter.VAR_POSITIONAL:
        hidden = getattr(torch.nn.functional, f"_{row.short}", None)
        if row.kind == "function" and hidden is not None:
            parameters = list(inspect.signature(hidden).parameters.values())
    if parameters:
        return [[p.name, default(p.default)] for p in parameters if p.kind not in (p.VAR_POSITIONAL, p.VAR_KEYWORD)]
    overloads = re.findall(
        rf"^\s*(?:\.\. function:: )?{row.short}(\(.*?\)) ->", found.__doc__ or "", flags=re.MULTILINE
    )
    merged: dict[str, Any] = {}
    for overload in overloads:
        spec = ast.parse(f"def f{overload}: ...").body[0].args
        positional = [argument.arg for argument in spec.args]
        values = ["required"] * (len(positional) - len(spec.defaults)) + [ast.literal_eval(d) for d in spec.defaults]
        keywords = {
            argument.arg: ast.literal_eval(d) for argument, d in zip(spec.kwonlyargs, spec.kw_defaults, strict=True)
        }
        merged |= {**dict(zip(positional, values, strict=True)), **keywords}
    return [[name, value] for name, value in merged.items()]


def recurrent_signature(found: type) -> list[list[Any]]:
    """The arguments of an LSTM, GRU or RNN, which take what their base class does but for the first."""
    parameters = [p for p in inspect.signature(torch.nn.RNNBase).parameters.values() if p.name != "mode"]
    names = [[p.name, default(p.default)] for p in parameters if found is torch.nn.LSTM or p.name != "proj_size"]
    if found is torch.nn.RNN:
        names.insert(3, ["nonlinearity", found(1, 1).nonlinearity])
    return names


def default(value: Any) -> Any:
    """A default as JSON holds it."""
    if value is inspect.Parameter.empty:
        return "required"
    if inspect.isfunction(value):
        return value.__name__
    return value.value if isinstance(value, Enum) else value
