"""What arguments torch's own things take, with their defaults."""

from __future__ import annotations

import ast
import inspect
import re
from enum import Enum
from pathlib import Path
from typing import Any

import torch
import yaml
from msmigrate.mappings.rows import Row
from torch_calls import find

# What the help of functions written in C does not say, or says wrongly: `overloads`, and `why` it stands here.
WRITTEN = yaml.safe_load((Path(__file__).parent / "torch_overloads.yaml").read_text())


def signature(row: Row) -> dict[str, Any]:
    """The torch arguments: `defaults` by name ("required" where there is none), and the `orders` of the overloads.

    An argument that some overload lacks is optional, its default None.
    """
    found = find(row.torch)
    if inspect.isclass(found) and issubclass(found, torch.nn.RNNBase):
        return only(recurrent_signature(found))
    parameters = [] if row.torch in WRITTEN else in_python(found)
    if not parameters or parameters[0].kind is inspect.Parameter.VAR_POSITIONAL:
        hidden = getattr(torch.nn.functional, f"_{row.short}", None)
        if row.kind == "function" and hidden is not None:
            parameters = in_python(hidden)
    if parameters:
        taken = [p for p in parameters if p.kind not in (p.VAR_POSITIONAL, p.VAR_KEYWORD)]
        return only([[p.name, default(p.default)] for p in taken])
    if row.torch in WRITTEN:
        overloads = WRITTEN[row.torch]["overloads"]
    else:
        pattern = rf"^\s*(?:\.\. (?:function|method):: )?(?:linalg\.|special\.)?{row.short}(\(.*?\)) *->"
        overloads = re.findall(pattern, found.__doc__ or "", flags=re.MULTILINE)
    return merged([read_overload(text, method=row.torch.startswith("torch.Tensor.")) for text in overloads])


def in_python(found: Any) -> list[inspect.Parameter]:
    """The parameters of what is written in Python, none of what is written in C."""
    try:
        return list(inspect.signature(found).parameters.values())
    except ValueError:
        return []


def only(arguments: list[list[Any]]) -> dict[str, Any]:
    """What `signature` gives, where there is one overload."""
    return {"defaults": dict(arguments), "orders": [[name for name, _ in arguments]]}


def merged(overloads: list[dict[str, Any]]) -> dict[str, Any]:
    """What `signature` gives, from the arguments of each overload."""
    defaults: dict[str, Any] = {}
    for name in dict.fromkeys(name for overload in overloads for name in overload):
        values = [overload[name] for overload in overloads if name in overload]
        given = [value for value in values if value != "required"]
        defaults[name] = given[0] if given else "required" if len(values) == len(overloads) else None
    return {"defaults": defaults, "orders": [list(overload) for overload in overloads]}


def read_overload(text: str, *, method: bool) -> dict[str, Any]:
    """Names and defaults from text such as `(start=0, end, *, out=None)`, which need not be Python."""
    found: dict[str, Any] = {"self": "required"} if method else {}
    for part in re.split(r",(?![^(\[]*[)\]])", text[1:-1]):
        name, _, value = part.replace("\\", "").partition("=")
        name, _, kind = name.partition(":")
        name = name.strip().lstrip("*")
        if name == "self" and not method:  # what other overloads call the input
            name = "input"
        if name:
            optional = None if kind.strip().startswith("Optional") else "required"
            found[name] = literal(value.strip()) if value else optional
    return found


def literal(text: str) -> Any:
    """The value of a default, or its source where that is no constant."""
    try:
        return ast.literal_eval(text)
    except (ValueError, SyntaxError):
        return text


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
    if inspect.isfunction(value) or inspect.isclass(value):
        return value.__name__
    if isinstance(value, (torch.dtype, torch.layout, torch.memory_format)):
        return str(value)
    return value.value if isinstance(value, Enum) else value
