"""A fault's page: both sides, where it shows, what to do, the smallest example, and the rows where people meet it."""

from __future__ import annotations

import difflib
from dataclasses import asdict
from typing import Any

from rich.padding import Padding
from rich.table import Table
from rich.text import Text

from ..errors import BadInput
from ..mappings import table
from ..mappings.rows import Fault
from .terminal import Console

# where a fault first shows, in the words of a step
WORDS = {
    "crash": "an error when the code runs",
    "load": "when weights are loaded",
    "init": "initial values",
    "grad": "gradients",
    "state": "what is held and saved",
    "schedule": "the learning rate, after some steps",
    "buffers": "running statistics after a step",
    "update": "weights after a step",
}


def find(name: str) -> Fault:
    """The fault of this id; raises BadInput that names the closest ones."""
    known = table.faults()
    if name in known:
        return known[name]
    near = [i for i in known if name.lower() in i][:3] or difflib.get_close_matches(name, known, n=3, cutoff=0.4)
    hint = f"did you mean {' or '.join(near)}?" if near else "`msmigrate explain` lists them all"
    raise BadInput(f"no fault is called {name!r}; {hint}")


def show(fault: Fault, console: Console) -> None:
    """Print one fault's page."""
    console.print(Text(fault.id, "bold"))
    torch, wrong, right = table.examples()[fault.id]
    places = ", ".join(WORDS.get(stage, stage) for stage in fault.shows_in)
    lines = [
        ("torch", fault.torch),
        ("MindSpore", fault.mindspore),
        ("shows in", places),
        ("symptom", fault.symptom),
        ("fix", fault.fix),
        ("measured", fault.measured),
    ]
    rows = [row.torch for row in table.rows() if fault.id in row.pitfalls]
    if rows:
        lines.append(("met at", ", ".join(rows)))
    grid = Table.grid(padding=(0, 2))
    for title, text in lines:
        grid.add_row(Text(title, "dim"), Text(text))
    console.print(grid)
    console.print()
    for title, source, style in (("torch", torch, ""), ("wrong", wrong, "red"), ("right", right, "green")):
        console.print(Text.assemble((f"{title:6} ", "dim"), (source, style)), soft_wrap=True)


def show_all(console: Console) -> None:
    """Print every fault, where it shows, and its symptom."""
    for fault in table.faults().values():
        console.print(Text.assemble((fault.id, "bold"), (f"  {', '.join(fault.shows_in)}", "dim")))
        console.print(Padding(Text(fault.symptom), (0, 0, 0, 4)))


def as_json(faults: list[Fault]) -> list[dict[str, Any]]:
    """The faults as plain values, with their examples."""
    keys = ("torch", "wrong", "right")
    return [{**asdict(fault), "example": dict(zip(keys, table.examples()[fault.id], strict=True))} for fault in faults]
