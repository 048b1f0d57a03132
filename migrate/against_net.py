"""Hold a plan against the MindSpore net that it has to fill (`--into`): every parameter by exactly one tensor, of its
shape and type, and nothing left over."""

from __future__ import annotations

from collections.abc import Mapping

from ..errors import BadCheckpoint
from .formats.casts import castable
from .formats.contents import Shape
from .name_map import near
from .plan import KEEP, NO_PARAMETER, RENAME, Entry, Plan, drop_tied, refuse, refuse_twins, size

REMEDY = "; --dtype casts"
HINTS = 5  # names for which the nearest are looked up, since each is held against all

Net = Mapping[str, tuple[Shape, str]]  # parameter name -> shape and dtype, as --into learnt them


def against(net: Net, entries: list[Entry]) -> tuple[list[Entry], list[str]]:
    """Compare with the MindSpore net: returns the entries, refused where they do not fit, and the unfilled names."""
    filled = {entry.tensor: entry for entry in entries if entry.target in net}
    checked = []
    hints = HINTS
    for entry in entries:
        twin = filled.get(entry.tensor)  # equal: the same bytes, seen in the same way
        if entry.tensor is None or (entry.target is None and entry.error is not BadCheckpoint):
            checked.append(entry)
        elif entry.target not in net and twin:
            checked.append(drop_tied(entry, twin))
        elif entry.target is None:
            checked.append(entry)
        elif entry.target not in net:
            hint = near(entry.target, net) if hints else ""
            hints -= bool(hint)
            checked.append(refuse(entry, BadCheckpoint, f"{NO_PARAMETER}{entry.target}{hint}"))
        else:
            checked.append(_fitted(entry, entry.piece.dtype, *net[entry.target]))
    targets = {entry.target for entry in entries}
    return checked, [name for name in net if name not in targets]


def under_own_names(plan: Plan, own: Mapping[str, str]) -> Plan:
    """The plan with every parameter of the net under its own name, which is not always its path.

    own: path -> name of those that have another one; MindSpore's loader goes by it, and its save_checkpoint too.
    """
    filled = {entry.target: own.get(entry.target, entry.target) for entry in plan.entries if entry.target is not None}
    if plan.into is None or plan.parameters is None:
        return plan
    renamed = [
        entry._replace(target=own[entry.target], action=RENAME if entry.action == KEEP else entry.action)
        if entry.target is not None and entry.target in own
        else entry
        for entry in plan.entries
    ]
    notes = [f"{path} goes under {name}, its own name in the net" for path, name in own.items() if path in filled]
    return plan._replace(entries=refuse_twins(renamed), filled=filled, notes=[*plan.notes, *notes])


def _fitted(entry: Entry, given: str, shape: Shape, dtype: str) -> Entry:
    """The entry, refused unless the net's parameter has its shape and dtype."""
    if shape != entry.target_shape:
        why = f"the net's {entry.target} is {size(shape)}, this is {size(entry.target_shape or ())}"
        return refuse(entry, BadCheckpoint, why)
    if dtype != given:
        why = f"the net's {entry.target} is {dtype}, this is {given}{REMEDY if castable(given) else ''}"
        return refuse(entry, BadCheckpoint, why)
    return entry
