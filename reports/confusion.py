"""The confusion matrix as a picture, for two classes or a thousand."""

from __future__ import annotations

import io
import math
from collections.abc import Sequence

import matplotlib
import numpy as np
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.colors import LinearSegmentedColormap, PowerNorm
from matplotlib.figure import Figure

COUNTED = 30  # up to so many classes, every cell says how many images it holds
LONGEST = 24  # characters of a class name
DPI = 120
CELLS = {10: 64, 30: 50, 100: 20}  # pixels of a cell, up to so many classes
SMALLEST = 320  # pixels of the whole matrix, or the colour bar has no room for its labels
LARGEST = 2000  # pixels of the whole matrix, where there are more
LABEL = 16  # pixels that a line of the smallest labels takes


def picture(matrix: np.ndarray, names: Sequence[str], title: str) -> bytes:
    """A PNG of the matrix (C, C) of counts, a row for each true class, coloured by the share of its row.

    Up to 30 classes have their counts written in. Where there is no room for every name, every n-th one stands.
    """
    count = len(names)
    cell = next((pixels for limit, pixels in CELLS.items() if count <= limit), max(1, LARGEST // count))
    cell = max(cell, SMALLEST // count)
    side = cell * count / DPI  # whole pixels for every cell, or some would be drawn larger than others
    figure = Figure(figsize=(side * 1.25, side * 1.25), dpi=DPI)  # cropped below to what was drawn
    FigureCanvasAgg(figure)
    axes = figure.add_axes((0.1, 0.1, 0.8, 0.8))
    shares = matrix / np.maximum(matrix.sum(axis=1, keepdims=True), 1)
    # white is none at all, and the square root lets one image in a thousand be seen
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
    return _plain(name if len(name) <= LONGEST else f"{name[: LONGEST - 1]}…")


def _plain(text: str) -> str:
    """The text with nothing in it that matplotlib would read as mathematics."""
    return text.replace("$", r"\$")
