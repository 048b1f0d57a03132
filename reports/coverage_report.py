"""Say how many models move: a line for each family, and the operators that the others lack."""

from __future__ import annotations

import statistics
import sys
from typing import Any

from rich.progress import BarColumn, MofNCompleteColumn, TimeRemainingColumn
from rich.progress import Progress as Bar
from rich.table import Table

from ..migrate.analyze.coverage import Coverage, Covered
from ..migrate.analyze.operators import COMPOSED
from .analysis_report import short
from .terminal import Console, TextColumn, one_line

HEAD = ("models", "number", "move", "all direct", "operators each", "seconds each")


class Progress:
    """A bar on stderr, in a terminal; nothing elsewhere."""

    def __init__(self) -> None:
        columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn())
        self.bar = Bar(*columns, console=Console(stderr=True), transient=True, disable=not sys.stderr.isatty())
        self.task = self.bar.add_task("", total=None)

    def __enter__(self) -> Progress:
        self.bar.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.bar.stop()

    def start(self, total: int) -> None:
        """So many models there are."""
        self.bar.update(self.task, total=total)

    def done(self, model: str) -> None:
        """One of them has been analysed."""
        self.bar.update(self.task, advance=1, description=model)


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


def show(found: Coverage, *, whole: bool = False) -> None:
    """Print the table, the operators that are lacking, and with `whole` a line for every model."""
    console = Console(width=None if sys.stdout.isatty() else 200, highlight=False)
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


def as_json(found: Coverage) -> dict[str, Any]:
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
    """The table as the README shows it, and the missing operators in one line."""
    lines = [f"| {' | '.join(HEAD)} |", "|---|" + "---:|" * (len(HEAD) - 1)]
    lines += [f"| {' | '.join(line)} |" for line in rows(found)]
    lacking = ", ".join(f"`{name}` ({number})" for name, _, number in found.lacking())
    failed = ", ".join(entry.model for entry in found.models if entry.failed is not None)
    last = f"Missing (in so many models): {lacking}." if lacking else "Nothing is missing."
    return "\n".join([*lines, "", f"{last} Not analysed: {failed}." if failed else last])
