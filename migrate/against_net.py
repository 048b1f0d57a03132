"""Hold a plan against the MindSpore net that it has to fill (`--into`): every parameter by exactly one tensor, of its
shape and type, and nothing left over."""

from __future__ import annotations

from collections.abc import Mapping

from ..errors import BadCheckpoint
from .formats.casts import castable
from .formats.contents import Shape
from .plan import Entry, drop_tied, refuse, size

REMEDY = "; --dtype casts"

Net = Mapping[str, tuple[Shape, str]]  # parameter name -> shape and dtype, as --into learnt them


def against(net: Net, entries: list[Entry]) -> tuple[list[Entry], list[str]]:
    """Compare with the MindSpore net: returns the entries, refused where they do not fit, and the unfilled names."""
    filled = {entry.tensor: entry for entry in entries if entry.target in net}
    checked = []
    for entry in entries:
        twin = filled.get(entry.tensor)  # equal: the same bytes, seen in the same way
        if entry.tensor is None or (entry.target is None and entry.error is not BadCheckpoint):
            checked.append(entry)
        elif entry.target not in net and twin:
            checked.append(drop_tied(entry, twin))
        elif entry.target is None:
            checked.append(entry)
        elif entry.target not in net:
            checked.append(refuse(entry, BadCheckpoint, f"the net has no parameter {entry.target}"))
        else:
            checked.append(_fitted(entry, entry.piece.dtype, *net[entry.target]))
    targets = {entry.target for entry in entries}
    return checked, [name for name in net if name not in targets]


def _fitted(entry: Entry, given: str, shape: Shape, dtype: str) -> Entry:
    """The entry, refused unless the net's parameter has its shape and dtype."""
    if shape != entry.target_shape:
        why = f"the net's {entry.target} is {size(shape)}, this is {size(entry.target_shape or ())}"
        return refuse(entry, BadCheckpoint, why)
    if dtype != given:
        why = f"the net's {entry.target} is {dtype}, this is {given}{REMEDY if castable(given) else ''}"
        return refuse(entry, BadCheckpoint, why)
    return entry
