"""What becomes of a model's operators; the coverage table."""

from __future__ import annotations

import statistics
from collections.abc import Iterable
from dataclasses import asdict
from typing import Any

from rich.padding import Padding
from rich.table import Table
from rich.text import Text

from ..mappings import table
from ..migrate.analyze.model_analysis import Analysis, Coverage, Covered
from ..migrate.analyze.operators import BY_HAND, COMPOSED, NO_ROW, OURS, Operator, patterns
from .html import still_page
from .terminal import Console, one_line

COLOURS = {"direct": "green", "composed": "green", BY_HAND: "yellow", "missing": "red", NO_ROW: "red"}
MARKS = {"direct": "pass", "composed": "pass", BY_HAND: "none", "missing": "fail", NO_ROW: "fail"}
FLOPS = "matrix products, convolutions and attention of one forward pass; a multiply-add is two"
LEGEND = {
    "direct": "MindSpore has it, under the name shown.",
    "composed": "MindSpore lacks it or gets it wrong, on the CPU at least: msmigrate brings it, built from what works.",
    BY_HAND: "MindSpore has it, but not with one of the values used here: the change is shown.",
    "missing": "MindSpore has nothing for it; the row says what to do instead.",
    NO_ROW: "The mapping table has no row for it: nobody has looked for a counterpart yet.",
}


def show(analysis: Analysis, console: Console, *, whole: bool = False) -> None:
    """Print the verdict, the operators, what is missing, what has to change, and the pitfalls; whole: the calls too."""
    with console.capture() as captured:
        _show(analysis, console, whole)
    console.file.write("\n".join(line.rstrip() for line in captured.get().splitlines()) + "\n")


def _show(analysis: Analysis, console: Console, whole: bool) -> None:
    colour = "red" if analysis.missing or not analysis.operators else "green"
    console.print(one_line(analysis.verdict, style=f"bold {colour}"), soft_wrap=True)
    console.print(one_line(_conditions(analysis), style="dim"), soft_wrap=True)
    for line in costs(analysis):
        console.print(one_line(f"{line[0]:12}{line[1]}"), soft_wrap=True)
    if analysis.operators:
        console.print()
        console.print(_overview(analysis.operators))
    _list(console, "Missing", ((o.torch, ["; ".join((_lack(o), *_at(o))), *o.changes]) for o in analysis.missing))
    _list(
        console,
        "To change",
        ((o.torch, list(o.changes)) for o in analysis.operators if o.changes and not o.missing),
    )
    if whole:
        _list(console, "Calls", ((o.torch, [o.call, *o.differs]) for o in analysis.operators if o.call))
    _list(console, "Pitfalls", ((fault, [_pitfall(fault, of)]) for fault, of in analysis.pitfalls.items()))
    _list(console, "Notes", (("", [note]) for note in notes(analysis)))


def as_json(analysis: Analysis) -> dict[str, Any]:
    """The analysis as plain values, the pitfalls with what they say."""
    return {
        "model": analysis.name,
        "kind": analysis.kind,
        "mode": analysis.mode,
        "target": analysis.target,
        "verdict": analysis.verdict,
        "moves": bool(analysis.operators) and not analysis.missing,
        "missing": [operator.torch for operator in analysis.missing],
        "operators": [_plain(operator) for operator in analysis.operators],
        "pitfalls": {
            fault: {"symptom": table.faults()[fault].symptom, "fix": table.faults()[fault].fix, "operators": of}
            for fault, of in analysis.pitfalls.items()
        },
        "costs": dict(analysis.costs),
        "inputs": analysis.inputs,
        "ran_on": analysis.device,
        "family": analysis.family,
        "never_ran": list(analysis.never_ran),
        "notes": list(analysis.notes),
        "versions": dict(analysis.versions),
    }


def html(analysis: Analysis) -> str:
    """The analysis as one self-contained page."""
    return still_page(
        "analysis.html.j2",
        analysis=analysis,
        costs=costs(analysis),
        conditions=_conditions(analysis),
        operators=[
            {"operator": o, "mark": MARKS[o.way], "places": patterns(o.places), "at": _at(o), "lack": _lack(o)}
            for o in sorted(analysis.operators, key=lambda o: not o.missing)
        ],
        counts={way: sum(o.way == way for o in analysis.operators) for way in LEGEND},
        marks=MARKS,
        legend=LEGEND,
        pitfalls=[(fault, table.faults()[fault], of) for fault, of in analysis.pitfalls.items()],
        notes=notes(analysis),
    )


def _plain(operator: Operator) -> dict[str, Any]:
    content = {key: list(value) if isinstance(value, tuple) else value for key, value in asdict(operator).items()}
    del content["refused"]  # `why` has it in words
    return {**content, "measured": operator.measured}


def costs(analysis: Analysis) -> list[tuple[str, str]]:
    """What the model costs, in words; what is not known is left out."""
    known = analysis.costs
    lines = []
    if (parameters := known.get("parameters")) is not None:
        lines.append(("parameters", f"{amount(parameters)} ({size(known.get('parameter_bytes') or 0)})"))
    if (flops := known.get("flops")) is not None:
        lines.append(("FLOPs", f"{amount(flops)} ({FLOPS})"))
    if (kept := known.get("activation_bytes")) is not None:
        lines.append(("activations", f"{size(kept)} kept for the backward pass, in train mode"))
    return lines


def amount(number: int) -> str:
    """A number in three digits and a prefix: 11.7 M, 3.63 G."""
    for power, prefix in ((12, "T"), (9, "G"), (6, "M"), (3, "k")):
        if number >= 10**power:
            return f"{float(f'{number / 10**power:.3g}'):g} {prefix}"
    return str(number)


def size(number: int) -> str:
    """A number of bytes with its unit: 46.8 MB."""
    return f"{amount(number)}{'' if number >= 1000 else ' '}B"


def notes(analysis: Analysis) -> list[str]:
    """What else a reader has to know."""
    lines = list(analysis.notes)
    if analysis.never_ran:
        named = "; ".join(patterns(analysis.never_ran))
        lines.append(f"never ran as modules on these inputs (functions may use their parameters): {named}")
    if analysis.device == "cpu":
        lines.append("it looks at values, so it ran on the CPU with random ones: other values may take other branches")
    if analysis.target == "Ascend":
        lines.append("Ascend: every status is read from MindSpore's documentation; nothing of it ran")
    if analysis.target == "GPU":
        lines.append("GPU: the rows say nothing about it; all that is known is that MindSpore has the operator")
    return lines


def _conditions(analysis: Analysis) -> str:
    mode = {"pynative": "PyNative", "graph": "graph"}[analysis.mode]
    ran = {"cpu": "run on the CPU", "meta": "run without values"}.get(analysis.device, analysis.device)
    return f"{analysis.kind}, {ran}, input {analysis.inputs}; for MindSpore on {analysis.target}, {mode} mode"


def _overview(operators: Iterable[Operator]) -> Table:
    shown = Table("operator", "calls", "MindSpore", "", "status", "where", box=None, pad_edge=False, header_style="dim")
    shown.columns[1].justify = "right"
    for o in operators:
        way = Text(o.way, style=COLOURS[o.way])
        status = "" if o.missing else o.status
        left, right = (short(o.torch), _calls(o), short(o.mindspore or "–")), (status, ", ".join(patterns(o.places, 2)))
        shown.add_row(*(one_line(cell) for cell in left), way, *(one_line(cell) for cell in right))
    return shown


def short(name: str) -> str:
    """A name without the prefix that all share; a composed one without the module that msmigrate has it in."""
    if name.startswith(OURS):
        return name.rpartition(".")[2]
    return name.removeprefix("mindspore.").removeprefix("torch.")


def _calls(operator: Operator) -> str:
    return str(operator.calls) if operator.calls or not operator.train_calls else f"{operator.train_calls} in training"


def _lack(operator: Operator) -> str:
    if operator.way == NO_ROW:
        return "no row: the mapping table does not know it"
    why = " ".join((operator.why or "").split())
    return why if operator.refused else f"no counterpart: {why}"


def _at(operator: Operator) -> list[str]:
    places = [f"in {', '.join(patterns(operator.places))}"] if operator.places else []
    return places + ([f"at {', '.join(operator.lines[:5])}"] if operator.lines else [])


def _pitfall(fault: str, of: list[str]) -> str:
    return f"{' '.join(table.faults()[fault].symptom.split())} ({', '.join(short(name) for name in of[:4])})"


def _list(console: Console, title: str, entries: Iterable[tuple[str, Iterable[str | None]]]) -> None:
    first = True
    for name, lines in entries:
        if first:
            console.print(Text(f"\n{title}", style="bold"))
            first = False
        text = one_line(name, style="bold")
        for line in lines:
            before = ": " if name and len(text) == len(name) else "\n" if len(text) else ""
            text.append(before).append(one_line(str(line), style="not bold"))
        console.print(Padding(text, (0, 0, 0, 2)))


HEAD = ("models", "number", "move", "all direct", "operators each", "seconds each")


def rows(found: Coverage) -> list[tuple[str, ...]]:
    """A line for each family, and one for all where there are several."""
    lines = [_line(name, entries) for name, entries in found.families().items()]
    return [*lines, _line("all", list(found.models))] if len(lines) > 1 else lines


def _line(name: str, entries: list[Covered]) -> tuple[str, ...]:
    sizes = [len(entry.analysis.operators) for entry in entries if entry.analysis is not None]
    direct = [
        entry
        for entry in entries
        if entry.moves and entry.analysis is not None and all(o.way != COMPOSED for o in entry.analysis.operators)
    ]
    seconds = statistics.median(entry.seconds for entry in entries)
    counts = (str(len(entries)), str(sum(entry.moves for entry in entries)), str(len(direct)))
    return (name, *counts, f"{min(sizes)} to {max(sizes)}" if sizes else "–", f"{seconds:.1f}")


def show_coverage(found: Coverage, *, whole: bool = False) -> None:
    """Print the table, the operators that are lacking, and with `whole` a line for every model."""
    console = Console()
    if whole:
        shown = Table("model", "operators", "", box=None, pad_edge=False, header_style="dim")
        for entry in found.models:
            number = str(len(entry.analysis.operators)) if entry.analysis is not None else "–"
            shown.add_row(entry.model, number, one_line(_state(entry), style="" if entry.moves else "red"))
        console.print(shown)
        console.print()
    shown = Table(*HEAD, box=None, pad_edge=False, header_style="dim")
    for line in rows(found):
        shown.add_row(*line)
    console.print(shown)
    mode = {"pynative": "PyNative", "graph": "graph"}[found.mode]
    console.print(f"\n{found.used()} different operators; for MindSpore on {found.target}, {mode} mode", style="dim")
    if found.lacking():
        shown = Table("missing", "", "in models", box=None, pad_edge=False, header_style="dim")
        for name, way, models in found.lacking():
            shown.add_row(name, way, str(models))
        console.print()
        console.print(shown)
    for entry in found.models:
        if entry.failed is not None:
            console.print(one_line(f"{entry.model} was not analysed: {entry.failed}", style="red"), soft_wrap=True)


def _state(entry: Covered) -> str:
    if entry.moves:
        return "moves"
    if entry.analysis is None:
        return f"not analysed: {entry.failed}"
    return "lacks " + ", ".join(short(operator.torch) for operator in entry.analysis.missing)


def coverage_json(found: Coverage) -> dict[str, Any]:
    """The coverage as plain values."""
    return {
        "mode": found.mode,
        "target": found.target,
        "operators": found.used(),
        "families": [dict(zip(HEAD, line, strict=True)) for line in rows(found)],
        "lacking": [{"operator": name, "how": way, "models": number} for name, way, number in found.lacking()],
        "models": [
            {
                "model": entry.model,
                "family": entry.family,
                "moves": entry.moves,
                "seconds": entry.seconds,
                "operators": [o.torch for o in entry.analysis.operators] if entry.analysis is not None else [],
                "missing": [o.torch for o in entry.analysis.missing] if entry.analysis is not None else [],
                "failed": entry.failed,
            }
            for entry in found.models
        ],
    }


def markdown(found: Coverage) -> str:
    """The table as docs/coverage.md shows it, and the missing operators in one line."""
    lines = [f"| {' | '.join(HEAD)} |", "|---|" + "---:|" * (len(HEAD) - 1)]
    lines += [f"| {' | '.join(line)} |" for line in rows(found)]
    lacking = ", ".join(f"`{name}` ({number})" for name, _, number in found.lacking())
    failed = ", ".join(entry.model for entry in found.models if entry.failed is not None)
    last = f"Missing (in how many models): {lacking}." if lacking else "Nothing is missing."
    return "\n".join([*lines, "", f"{last} Not analysed: {failed}." if failed else last])
