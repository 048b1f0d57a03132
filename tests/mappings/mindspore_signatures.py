"""What arguments MindSpore's own things take, with the source of their defaults."""

from __future__ import annotations

import inspect
from enum import Enum
from typing import Any

from mindspore import nn
from mindspore_calls import parameters
from msmigrate.mappings.rows import Row, resolve

RECURRENT = nn.LSTM.__mro__[1]  # private


def signature(row: Row) -> dict[str, str | None]:
    """Names of the MindSpore arguments and the source of their defaults (None: no default)."""
    target = resolve(row.mindspore or "")
    found = inspect.unwrap(target.__init__ if inspect.isclass(target) else target)
    recurrent = inspect.isclass(target) and issubclass(target, RECURRENT)
    if recurrent:  # which take what their base class does but for the first
        found = RECURRENT.__init__
    stars = {inspect.Parameter.VAR_POSITIONAL: "*", inspect.Parameter.VAR_KEYWORD: "**"}
    return {
        stars.get(p.kind, "") + p.name: None if p.default is p.empty else source(p.default)
        for p in parameters(found)
        if p.name != "self" and not (recurrent and p.name == "mode")
    } | ({"nonlinearity": repr("tanh")} if target is nn.RNN else {})


def source(value: Any) -> str:
    """A default as one would write it."""
    if isinstance(value, Enum):
        return f"{type(value).__name__}.{value.name}"
    if isinstance(value, type):
        return value.__name__
    return f"mindspore.{str(value).lower()}" if "mindspore" in str(type(value)) else repr(value)
