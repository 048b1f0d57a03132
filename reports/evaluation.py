"""An evaluation, predictions, the confusion matrix."""

from __future__ import annotations

import io
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from rich import box
from rich.table import Table
from rich.text import Text

from ..printable import count_text
from ..training.inference import Request, Subject
from ..training.metrics import ClassReport, Evaluation, Results, likeliest
from ..training.recipe.schema import ARRAYS
from .terminal import Console, one_line

COUNTED = 30  # up to this many classes, every cell says how many images it holds
LONGEST_NAME = 24  # characters of a class name
DPI = 120
CELLS = {10: 64, 30: 50, 100: 20}  # pixels of a cell, up to this many classes
SMALLEST = 320  # pixels of the whole matrix, or the colour bar has no room for its labels
LARGEST = 2000  # pixels of the whole matrix, with more classes than these
LABEL = 16  # pixels that a line of the smallest labels takes


def picture(matrix: np.ndarray, names: Sequence[str], title: str) -> bytes:
    """A PNG of the matrix (C, C) of counts, a row for each true class, coloured by the share of its row.

    Up to 30 classes have their counts written in. Where there is no room for every name, every n-th one is written.
    """
    import matplotlib  # not above: what is printed needs no picture
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.colors import LinearSegmentedColormap, PowerNorm
    from matplotlib.figure import Figure

    count = len(names)
    cell = next((pixels for limit, pixels in CELLS.items() if count <= limit), max(1, LARGEST // count))
    cell = max(cell, SMALLEST // count)
    side = cell * count / DPI  # whole pixels for every cell, or some would be drawn larger than others
    figure = Figure(figsize=(side * 1.25, side * 1.25), dpi=DPI)  # cropped below to what was drawn
    FigureCanvasAgg(figure)
    axes = figure.add_axes((0.1, 0.1, 0.8, 0.8))
    shares = matrix / np.maximum(matrix.sum(axis=1, keepdims=True), 1)
    # white is a share of 0, and the square root makes one image in a thousand visible
    shades = LinearSegmentedColormap.from_list("shares", matplotlib.colormaps["Blues"](np.linspace(0.2, 1, 256)))
    drawn = axes.imshow(
        np.ma.masked_equal(shares, 0), cmap=shades, norm=PowerNorm(0.5, 0, 1), interpolation="nearest", aspect="auto"
    )
    bar = figure.add_axes((0.9 + 0.2 / (side * 1.25), 0.1, 0.15 / (side * 1.25), 0.8))
    figure.colorbar(drawn, cax=bar, ticks=[0, 0.01, 0.1, 0.25, 0.5, 1], format=lambda share, _: f"{share:.0%}")
    bar.set_ylabel("share of the true class")
    every = math.ceil(LABEL / cell)
    places = range(0, count, every)
    shown = [_shortened(names[place]) for place in places]
    size = min(10.0, 0.7 * every * cell * 72 / DPI)
    axes.set_xticks(places, shown, rotation=90, fontsize=size)
    axes.set_yticks(places, shown, fontsize=size)
    axes.set_xlabel("predicted")
    axes.set_ylabel("true")
    axes.set_title(_plain(title), fontsize=11, pad=12)
    if count <= COUNTED:
        for row, column in zip(*np.nonzero(matrix), strict=True):
            colour = "white" if shares[row, column] > 0.35 else "black"
            number = str(matrix[row, column])
            fitting = min(size, 1.5 * cell * 72 / DPI / len(number))
            axes.text(column, row, number, ha="center", va="center", fontsize=fitting, color=colour)
    content = io.BytesIO()
    figure.savefig(content, format="png", bbox_inches="tight", pad_inches=0.2)
    return content.getvalue()


def _shortened(name: str) -> str:
    return _plain(name if len(name) <= LONGEST_NAME else f"{name[: LONGEST_NAME - 1]}…")


def _plain(text: str) -> str:
    """The text with nothing in it that matplotlib would read as mathematics."""
    return text.replace("$", r"\$")


@dataclass(frozen=True)
class About:
    """What was evaluated on what, as the head of a report; notes: what a reader has to know about the figures."""

    checkpoint: str
    model: str
    recipe: str
    weights: str
    step: int | None
    epoch: int | None
    source: str
    target: str
    versions: dict[str, str]
    seconds: float
    skipped: list[str]
    notes: list[str]


def evaluation_json(about: About, evaluation: Evaluation) -> dict[str, Any]:
    return {**vars(about), **evaluation.as_json()}


ALL = 30  # up to this many classes all are listed, of more only the worst
WORST = 20
LONGEST_LIST = 5  # of the lists below the table


def show(about: About, evaluation: Evaluation, console: Console) -> None:
    """Print the report; more than 30 classes are cut to the 20 with the lowest F1."""
    after = f" after step {about.step}" if about.step is not None else ""
    whose = "its moving average" if about.weights != "weights" else "its weights"
    console.print(one_line(f"{about.checkpoint} ({about.model}, {whose}{after}) on {about.source}"))
    what = "rows" if about.source.startswith(ARRAYS) else "images"
    console.print(one_line(f"{evaluation.images} {what} on {about.target}, {about.seconds:.1f} s"))
    shares = "" if evaluation.top1 is None else f"top-1 {evaluation.top1:.2%}   top-5 {evaluation.top5:.2%}   "
    console.print(one_line(f"{shares}loss {evaluation.loss:.4f}", "bold"))
    if evaluation.top1 is not None:
        console.print(_classes(evaluation))
    if evaluation.confused:
        console.print(Text("Most confused:"))
        for pair in evaluation.confused[:LONGEST_LIST]:
            times = count_text(pair.images, "time")
            console.print(one_line(f"  {pair.label} taken for {pair.predicted}: {times}, {pair.share:.1%}"))
        console.print(Text("Most confident mistakes:"))
        for one in evaluation.mistakes[:LONGEST_LIST]:
            console.print(one_line(f"  {one.name}: {one.label} taken for {one.predicted} at {one.probability:.1%}"))
    for note in about.notes:
        console.print(one_line(f"Note: {note}."))
    for reason in about.skipped[:LONGEST_LIST]:
        console.print(one_line(f"Skipped: {reason}", "yellow"))
    if len(about.skipped) > LONGEST_LIST:
        console.print(one_line(f"and {len(about.skipped) - LONGEST_LIST} more (--json and --out have all)", "yellow"))


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


def predictions_json(
    subject: Subject, request: Request, results: Results, names: Sequence[str], files: Sequence[str]
) -> dict[str, Any]:
    rows = zip(results.names, results.classes, results.probabilities, strict=True)
    return {
        **_what_ran(subject, request, results),
        "predictions": [
            {"image": name, "classes": likeliest(numbers, shares, names)} for name, numbers, shares in rows
        ],
        "errors": [{"image": files[index], "error": reason} for index, reason in results.skipped],
    }


def outputs_json(subject: Subject, request: Request, results: Results) -> dict[str, Any]:
    return {**_what_ran(subject, request, results), "rows": len(results.names), "outputs": results.outputs}


def _what_ran(subject: Subject, request: Request, results: Results) -> dict[str, Any]:
    return {
        "checkpoint": str(subject.checkpoint),
        "model": subject.recipe.model.name,
        "recipe": subject.digest,
        "weights": "moving average" if request.ema else "weights",
        "target": results.target,
        "versions": results.versions,
    }


def output_lines(outputs: Mapping[str, list[int]]) -> list[str]:
    """A line for each output that was written: its name and its shape."""
    return [f"{name}  {' × '.join(map(str, shape))}" for name, shape in outputs.items()]


def show_predictions(results: Results, names: Sequence[str], console: Console) -> None:
    """A block of lines for each image: its name, then its classes."""
    table = Table(box=box.SIMPLE_HEAD, pad_edge=False)
    table.add_column("image", overflow="fold")
    table.add_column("class", overflow="fold")
    table.add_column("probability", justify="right", no_wrap=True)
    for image, numbers, shares in zip(results.names, results.classes, results.probabilities, strict=True):
        for place, (number, share) in enumerate(zip(numbers, shares, strict=True)):
            table.add_row(one_line(image if place == 0 else ""), one_line(names[number]), f"{share:.2%}")
        table.add_section()
    console.print(table)
