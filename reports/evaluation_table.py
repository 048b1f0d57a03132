"""An evaluation for people: the figures, the classes, the plainest mistakes, in 80 columns."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rich import box
from rich.table import Table
from rich.text import Text

from .evaluation import ClassReport, Evaluation
from .terminal import Console, one_line

if TYPE_CHECKING:
    from .eval_command import About

ALL = 30  # up to so many classes all are listed, of more the worst
WORST = 20
LONGEST = 5  # of the lists below the table


def show(about: About, evaluation: Evaluation, console: Console) -> None:
    """Print the report; more than 30 classes are cut to the 20 with the lowest F1."""
    stands = f" after step {about.step}" if about.step is not None else ""
    whose = "its moving average" if about.weights != "weights" else "its weights"
    console.print(one_line(f"{about.checkpoint} ({about.model}, {whose}{stands}) on {about.source}"))
    console.print(one_line(f"{evaluation.images} images on {about.target}, {about.seconds:.1f} s"))
    shares = f"top-1 {evaluation.top1:.2%}   top-5 {evaluation.top5:.2%}"
    console.print(one_line(f"{shares}   loss {evaluation.loss:.4f}", "bold"))
    console.print(_classes(evaluation))
    if evaluation.confused:
        console.print(Text("Most confused:"))
        for pair in evaluation.confused[:LONGEST]:
            times = "time" if pair.images == 1 else "times"
            console.print(
                one_line(f"  {pair.label} taken for {pair.predicted}: {pair.images} {times}, {pair.share:.1%}")
            )
        console.print(Text("Surest mistakes:"))
        for found in evaluation.mistakes[:LONGEST]:
            console.print(
                one_line(f"  {found.name}: {found.label} taken for {found.predicted} at {found.probability:.1%}")
            )
    for note in about.notes:
        console.print(one_line(f"Note: {note}."))
    for reason in about.skipped[:LONGEST]:
        console.print(one_line(f"Skipped: {reason}", "yellow"))
    if len(about.skipped) > LONGEST:
        console.print(one_line(f"and {len(about.skipped) - LONGEST} more (--json and --out have all)", "yellow"))


def _classes(evaluation: Evaluation) -> Table:
    rows = evaluation.classes
    caption = None
    if len(rows) > ALL:
        rows = sorted(rows, key=lambda row: row.f1)[:WORST]
        caption = f"the {WORST} of {len(evaluation.classes)} classes with the lowest F1; --json and --out have all"
    table = Table(box=box.SIMPLE_HEAD, pad_edge=False, caption=caption, caption_justify="left")
    table.add_column("class", overflow="fold")
    for heading in ("precision", "recall", "F1", "images"):
        table.add_column(heading, justify="right", no_wrap=True)
    for row in rows:
        table.add_row(*_cells(row))
    table.add_section()
    for row in evaluation.averages:
        table.add_row(*_cells(row))
    return table


def _cells(row: ClassReport) -> tuple[Text, ...]:
    figures = (f"{row.precision:.3f}", f"{row.recall:.3f}", f"{row.f1:.3f}", str(row.support))
    return (one_line(row.name), *map(one_line, figures))
