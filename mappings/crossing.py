"""What a checkpoint's conversion has to know of one tensor of a layer."""

from __future__ import annotations

from typing import NamedTuple


class Crossing(NamedTuple):
    """Where one tensor of a layer goes: the part of a row's `State` that a checkpoint needs."""

    mindspore: str | None  # None: dropped, see `why`
    verb: str | None = None  # a name in shapes.SHAPES
    why: str | None = None
