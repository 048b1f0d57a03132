"""The mapping table and the page of a fault.

`python -m msmigrate.reports.mapping_table docs/mappings.md` rewrites the page.
"""

from __future__ import annotations

import difflib
import os
import sys
from collections.abc import Iterable
from dataclasses import asdict
from pathlib import Path
from typing import Any

from rich.padding import Padding
from rich.table import Table
from rich.text import Text

from ..errors import BadInput
from ..mappings import table
from ..mappings.rows import Argument, Fault, Own, Row, State
from ..mappings.user_rows import VARIABLE
from ..mappings.verb_registry import SHAPES
from ..mappings.verbs import VERBS
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


def show_fault(fault: Fault, console: Console) -> None:
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
    """Print a line for every fault: where it shows, and its symptom; a terminal cuts what is longer than its line."""
    longest = max(map(len, table.faults()))
    for fault in table.faults().values():
        shows = Text(f"{', '.join(fault.shows_in)}: ", "dim")
        line = Text.assemble((f"{fault.id:{longest}}  ", "bold"), shows, " ".join(fault.symptom.split()))
        console.print(line, no_wrap=True, overflow="ellipsis")


def fault_json(faults: list[Fault]) -> list[dict[str, Any]]:
    """The faults as plain values, with their examples."""
    keys = ("torch", "wrong", "right")
    return [{**asdict(fault), "example": dict(zip(keys, table.examples()[fault.id], strict=True))} for fault in faults]


Cells = tuple[str, str, str]  # torch, MindSpore, note

INTRODUCTION = """\
# The mapping table

Generated from `mappings/tables/*.yaml` by `python -m msmigrate.reports.mapping_table docs/mappings.md`; do not edit.

Every row that can run is a test that runs both frameworks, and `msmigrate mappings NAME` prints one. Statuses:
**equal**: every output, gradient, buffer, update and state tensor of MindSpore is as near to torch in float64 as
torch in float32 is (within four times, plus 1e-6 of the tensor's scale), bit-equal for transforms; **equal in
distribution**: the random streams differ, the distributions were compared; **documented, not run**: not tried here.
"Graph" means compiled with `mindspore.jit`. All of it on the CPU; nothing here ran on Ascend. A row that is not exact
says why below its name. Where the target is a class of msmigrate, MindSpore's own differs, and the row says how.
"""


def overview(rows: Iterable[Row]) -> Table:
    """One line for every row."""
    shown = Table("kind", "torch", "MindSpore", "exact", "PyNative", "graph", "pitfalls", box=None, pad_edge=False)
    for row in rows:
        target = row.mindspore or "none"
        exact = "yes" if row.exact else "no"
        numbers = str(len(row.pitfalls) or "")
        shown.add_row(row.kind, row.torch, target, exact, row.status["pynative"], row.status["graph"], numbers)
    return shown


def argument_cells(row: Row) -> list[Cells]:
    """How every argument of both sides crosses."""
    cells = [_argument(argument, row) for argument in row.arguments]
    if row.otherwise is not None:
        cells += [
            (f"{name} of its call", name, f"{row.otherwise.mindspore} takes it") for name in row.otherwise.called_with
        ]
        if row.otherwise.over_one_value:
            cells.append(("", "", f"{row.otherwise.mindspore} where a softmax of the model goes over a single value"))
        cells += [
            ("", "", f"{row.otherwise.mindspore} unless {name} is {value}")
            for name, value in row.otherwise.unless.items()
        ]
        if row.otherwise.as_value:
            cells.append(("", "", f"{row.otherwise.mindspore}, with torch's arguments, where the class is a value"))
    cells += [("", f"{item.mindspore}={item.value!r}", item.why or "always written") for item in row.written]
    return cells + [("", name, f"not written: {why}") for name, why in row.unwritten.items()]


def _argument(argument: Argument, row: Row) -> Cells:
    torch = argument.torch if argument.required else f"{argument.torch}={argument.default!r}"
    mindspore = ", ".join(f"{name} ({row.defaults[name]})" if name in row.defaults else name for name in argument.to)
    notes = [VERBS[argument.verb].description] if argument.verb else []
    if argument.values:
        notes.append(", ".join(f"{value!r} → {counterpart!r}" for value, counterpart in argument.values))
    if argument.only:
        notes.append("only " + " or ".join(repr(value) for value in argument.only))
    if argument.refuse:
        notes.append("not " + " or ".join(repr(value) for value in argument.refuse))
    notes += [text for text in (argument.why, argument.remedy) if text]
    if row.otherwise is not None and argument not in row.otherwise.arguments:
        notes.append(f"{row.otherwise.mindspore} takes the values that this does not")
    return torch, mindspore or "–", "; ".join(note.rstrip(".") for note in notes)


def state_cells(row: Row) -> list[Cells]:
    """How every tensor of its state crosses."""
    return [_state(state) for state in row.state]


def _state(state: State) -> Cells:
    notes = [SHAPES[state.verb].description] if state.verb else []
    notes += ["not trained"] if state.buffer and state.mindspore else []
    notes += [f"filled with {state.fill:g}"] if state.fill is not None else []
    notes += [state.why] if state.why else []
    return state.torch or "–", state.mindspore or "dropped", "; ".join(notes)


def show(rows: Iterable[Row], *, whole: bool) -> None:
    """Print a line for every row, or the whole of each."""
    console = Console()
    if whole:
        for row in rows:
            show_row(row, console)
    else:
        console.print(overview(rows))


def show_row(row: Row, console: Console) -> None:
    """Print one row: arguments, state, status, pitfalls with symptom and fix, pages."""
    names = Text.assemble((row.torch, "bold"), " → ", (row.mindspore or "no counterpart", "bold"))
    console.print(names)
    if row.origin:
        instead = f", in place of msmigrate's own → {row.replaces}" if row.replaces else ""
        console.print(f"from {row.origin}{instead}", soft_wrap=True)
    if row.aliases:
        console.print(f"also {', '.join(row.aliases)}")
    plain = [name for name, own in row.instead_of.items() if not _remark(own)]
    if plain:
        console.print(f"in place of {', '.join(plain)}")
    if row.why:
        console.print(_why(row))
    if row.rewrite:
        console.print(Text("\nWritten in MindSpore", "bold"))
        console.print(Padding(row.rewrite, (0, 0, 0, 2)))
    if len(plain) < len(row.instead_of):
        console.print(Text("\nMindSpore's own names, current unless noted", "bold"))
    for name, own in row.instead_of.items():
        if _remark(own):
            console.print(Padding(f"{name}: {_remark(own)}", (0, 0, 0, 2)))
    if row.recipe:
        console.print(Text("\nIn a recipe", "bold"))
        console.print(f"  {_recipe(row)}")
    sections = (("Arguments", "MindSpore (its default)", argument_cells(row)), ("State", "MindSpore", state_cells(row)))
    for title, heading, cells in sections:
        if cells:
            shown = Table("torch", heading, "", box=None, pad_edge=False, header_style="dim")
            for cell in cells:
                shown.add_row(*cell)
            console.print(Text(f"\n{title}", "bold"))
            console.print(Padding(shown, (0, 0, 0, 2)))
    console.print(Text("\nStatus", "bold"))
    for mode, status in row.status.items():
        console.print(f"  {mode:9} {status}")
    if row.pitfalls:
        console.print(Text("\nPitfalls", "bold"))
    for name in row.pitfalls:
        fault = table.faults()[name]
        console.print(Text.assemble("  ", (name, "bold"), f" (shows in {', '.join(fault.shows_in)})"))
        lines = (f"torch: {fault.torch}", f"MindSpore: {fault.mindspore}", f"symptom: {fault.symptom}")
        for text in (*lines, f"fix: {fault.fix}"):
            console.print(Padding(text, (0, 0, 0, 4)))
    pages = [page for page in row.docs.values() if page]
    if pages:
        console.print(Text("\nPages", "bold"))
    for page in pages:
        console.print(f"  {page}", soft_wrap=True)


def as_json(rows: Iterable[Row]) -> list[dict[str, Any]]:
    """The rows as plain values, their faults written out; the tests' cases are left out."""
    plain = []
    for row in rows:
        content = {key: value for key, value in asdict(row).items() if key != "cases"}
        content["pitfalls"] = [asdict(table.faults()[name]) for name in row.pitfalls]
        plain.append(content)
    return plain


def markdown() -> str:
    """The page docs/mappings.md."""
    lines = [INTRODUCTION]
    for kind in table.KINDS:
        lines += [f"## {_title(kind)}", "", *_grid(("torch", "MindSpore", "exact", "PyNative", "graph"))]
        for row in table.rows(kind):
            target = f"`{row.mindspore}`" if row.mindspore else "none"
            exact = "yes" if row.exact else "no"
            status = (row.status["pynative"], row.status["graph"])
            cells = (f"[`{row.torch}`](#{_anchor(row.torch)})", target, exact, *status)
            lines.append(_line(cells))
        lines.append("")
    for row in table.rows():
        lines += _section(row)
    lines += ["## Pitfalls", ""]
    for fault in table.faults().values():
        lines += [
            f"### {fault.id}",
            "",
            f"- torch: {fault.torch}",
            f"- MindSpore: {fault.mindspore}",
            f"- shows in {', '.join(fault.shows_in)}: {fault.symptom}",
            f"- fix: {fault.fix}",
            f"- measured: {fault.measured}",
            "",
        ]
    return "\n".join(lines).rstrip() + "\n"


def _section(row: Row) -> list[str]:
    torch, mindspore = (f"[{name}]({row.docs[name.lower()]})" for name in ("torch", "MindSpore"))
    target = f"→ `{row.mindspore}`" if row.mindspore else "No counterpart"
    lines = [f"### {row.torch}", "", f"{target} ({torch}, {mindspore})", ""]
    if row.aliases:
        lines += ["Also " + ", ".join(f"`{alias}`" for alias in row.aliases) + ".", ""]
    plain = [f"`{name}`" for name, own in row.instead_of.items() if not _remark(own)]
    if plain:
        lines += ["In place of " + ", ".join(plain) + ".", ""]
    noted = [f"- `{name}`: {_remark(own)}" for name, own in row.instead_of.items() if _remark(own)]
    if noted:
        lines += ["MindSpore's own names, current unless noted:", "", *noted, ""]
    if row.why:
        lines += [_why(row), ""]
    if row.rewrite:
        lines += ["```python", *row.rewrite.splitlines(), "```", ""]
    if row.recipe:
        lines += [f"In a recipe: `{_recipe(row)}`.", ""]
    for title, cells in (("argument", argument_cells(row)), ("state", state_cells(row))):
        if cells:
            lines += _grid((f"torch {title}", "MindSpore" + (" (its default)" if title == "argument" else ""), ""))
            lines += [_line((_code(cell[0]), _code(cell[1]), cell[2])) for cell in cells]
            lines.append("")
    if row.pitfalls:
        lines += ["Pitfalls: " + ", ".join(f"[{name}](#{_anchor(name)})" for name in row.pitfalls) + ".", ""]
    return lines


def _remark(own: Own) -> str:
    """The remark on one of MindSpore's own names; empty where it does what the row's name does, and is current."""
    ended = f"deprecated from {own.deprecated} on" if own.deprecated else "no longer there" if own.gone else ""
    return "; ".join(filter(None, (own.does, ended)))


def _why(row: Row) -> str:
    return ("" if row.exact or row.mindspore is None else "Not exact: ") + (row.why or "")


def _recipe(row: Row) -> str:
    """The recipe's key, and its value where it is fixed, as YAML writes it."""
    value = row.recipe.get("value")
    shown = _flow(value) if isinstance(value, dict) else str(value).lower() if isinstance(value, bool) else str(value)
    return str(row.recipe["key"]) + (f": {shown}" if "value" in row.recipe else "")


def _flow(value: dict[str, Any]) -> str:
    return (
        "{"
        + ", ".join(f"{key}: {str(item).lower() if item in (True, False) else item}" for key, item in value.items())
        + "}"
    )


def _title(kind: str) -> str:
    return {"loss": "Losses", "parallel": "Data parallelism"}.get(kind, f"{kind.capitalize()}s")


def _grid(head: tuple[str, ...]) -> list[str]:
    return [_line(head), "|" + "---|" * len(head)]


def _line(cells: Iterable[str]) -> str:
    return "| " + " | ".join(" ".join(cell.split()).replace("|", "\\|") for cell in cells) + " |"


def _code(text: str) -> str:
    return f"`{text}`" if text and text not in ("–", "dropped") else text


def _anchor(heading: str) -> str:
    """The anchor that a forge gives a heading: lower case without punctuation."""
    return "".join(letter for letter in heading.lower() if letter.isalnum() or letter in "-_")


if __name__ == "__main__":
    os.environ.pop(VARIABLE, None)  # the page is of msmigrate's own rows
    Path(sys.argv[1]).write_text(markdown(), encoding="utf-8")
