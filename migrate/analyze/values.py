"""The arguments of a recorded call, as they come out of the worker's JSON.

A tensor is only its dtype and its number of axes; what JSON cannot hold is a mapping of one key that names it.
"""

from __future__ import annotations

from typing import Any, NamedTuple


class TensorValue(NamedTuple):
    """A tensor among the arguments of a call."""

    dtype: str
    rank: int

    def __repr__(self) -> str:
        return "a tensor"


class Thing(NamedTuple):
    """A value of which only the text is known."""

    text: str

    def __repr__(self) -> str:
        return self.text


def decode(value: Any) -> Any:
    """Return the value that the worker had encoded."""
    if isinstance(value, list):
        return [decode(item) for item in value]
    if not isinstance(value, dict):
        return value
    ((kind, content),) = value.items()
    if kind == "tensor":
        return TensorValue(*content)
    if kind == "tuple":
        return tuple(decode(item) for item in content)
    if kind == "slice":
        return slice(*(decode(item) for item in content))
    if kind == "float":
        return float(content)
    if kind == "dtype":
        return content  # a dtype is its name in the table, too
    return ... if kind == "ellipsis" else Thing(content)
