"""What a checkpoint's conversion has to know of one tensor of a layer."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple


class Crossing(NamedTuple):
    """Where one tensor of a layer goes: the part of a row's `State` that a checkpoint needs."""

    mindspore: str | None  # None: dropped, see `why`
    verb: str | None = None  # a name in shapes.SHAPES
    why: str | None = None
    refused: bool = False  # not dropped but refused: without it the others mean something else


def renamed(name: str, ours: str, theirs: str) -> str | None:
    """`theirs` for a name that `ours` fits, with what the `*` of `ours` stands for; None where it does not fit.

    A `*` stands for a part of a name without dots, `0` or `0_reverse` in an LSTM's `weight_ih_l*`.
    """
    head, star, tail = ours.partition("*")
    if not star:
        return theirs if name == ours else None
    if len(name) < len(head) + len(tail) or not (name.startswith(head) and name.endswith(tail)):
        return None
    middle = name[len(head) : len(name) - len(tail)]
    return theirs.replace("*", middle) if middle and "." not in middle else None


def find(states: Mapping[str, Crossing], name: str) -> Crossing | None:
    """How the tensor of this name crosses: by its own entry, or by one with a `*` that it fits."""
    if name in states:
        return states[name]
    for ours, crossing in states.items():
        theirs = renamed(name, ours, crossing.mindspore or "") if "*" in ours else None
        if theirs is not None:
            return crossing._replace(mindspore=theirs or None)
    return None
