"""What a model gives: the tensors in it, and the shape that each has for a batch."""

from __future__ import annotations

from typing import Any


def flat(value: Any, kind: type | tuple[type, ...]) -> list[Any]:
    """The tensors (objects of `kind`) in a nest of tuples, lists and dicts, in order."""
    if isinstance(value, kind):
        return [value]
    if isinstance(value, dict):
        return [found for item in value.values() for found in flat(item, kind)]
    if isinstance(value, (list, tuple)):
        return [found for item in value for found in flat(item, kind)]
    return []


def of_batch(shape: tuple[int, ...], ran: int, batch: int) -> tuple[int, ...]:
    """The shape that an output has for a batch, which ran on so many examples: a first axis may be of (N x L) rows."""
    rows = shape[0] * batch // ran if shape and shape[0] % ran == 0 else batch
    return (rows, *shape[1:])
