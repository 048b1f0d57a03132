"""What people usually got wrong where two steps first part: the pitfalls of the mapping row in charge."""

from __future__ import annotations

from ..errors import UnknownRow
from ..mappings import table
from ..mappings.rows import Fault
from ..train.recipe import Recipe
from .findings import Finding

# the words the fault table uses for where a fault shows first
SHOWS = {
    "data": ("data",),
    "init": ("load", "init", "state"),
    "forward": ("forward", "load"),
    "loss": ("loss",),
    "gradients": ("grad", "gradients"),
    "update": ("update", "buffers", "schedule", "state"),
}
MOST = 4


def hints(first: Finding | None, recipe: Recipe) -> list[str]:
    """Known faults of the layer, loss, optimizer or transforms at the first divergence, one line each."""
    if first is None:
        return []
    found = {fault.id: fault for name in _rows_in_charge(first, recipe) for fault in _pitfalls(name, first.stage)}
    return [f"{fault.symptom}: {fault.fix} [{fault.id}]" for fault in list(found.values())[:MOST]]


def _rows_in_charge(first: Finding, recipe: Recipe) -> list[str]:
    if first.stage == "data":
        return [part.name for part in recipe.data.transforms]
    if first.stage == "loss":
        return [recipe.loss.name]
    if first.part.endswith("buffers"):
        return ["BatchNorm2d"]
    if first.stage == "update":
        return [recipe.optimizer.name, *([recipe.schedule.name] if recipe.schedule else [])]
    return [first.module] if first.module else []


def _pitfalls(name: str, stage: str) -> list[Fault]:
    try:
        row = table.row(name)
    except UnknownRow:
        return []
    faults = table.faults()
    return [faults[i] for i in row.pitfalls if i in faults and set(faults[i].shows_in) & set(SHOWS[stage])]
