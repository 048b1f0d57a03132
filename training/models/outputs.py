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


def of_batch(shape: tuple[int, ...], given: int, ran: int, batch: int) -> tuple[int, ...]:
    """The shape that an output has for a batch; a first axis may be of (N x L) rows.

    given, ran: the length of the first input, and of the part of it that gave this shape; as long where it ran whole.
    """
    examples = ran if ran < given else batch
    rows = shape[0] * batch // examples if shape and shape[0] % examples == 0 else batch
    return (rows, *shape[1:])
