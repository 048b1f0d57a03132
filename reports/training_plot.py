"""The curves of a run as a picture: loss, accuracy, learning rate, over the optimizer steps."""

from __future__ import annotations

import io
import math
from pathlib import Path
from typing import TYPE_CHECKING

from ..migrate.formats.atomic_file import atomic_file
from .training_log import History

if TYPE_CHECKING:
    from matplotlib.axes import Axes

LOSS, TESTED, AVERAGE, RATE = "#4477aa", "#ee6677", "#228833", "#666666"  # Paul Tol's bright colours, told apart by all
SHARE = 0.05  # of the logged steps: the length over which the curve is smoothed
WIDE = 30  # the largest loss over the smallest one, from which on the axis is logarithmic
FEW = 40  # logged steps: each gets a dot, and nothing is smoothed


def plot(history: History, file: Path, title: str) -> None:
    """Draw a run's curves into a PNG file; one that stood there is replaced. Raises BadDestination."""
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    tested = [line for line in history.validations if math.isfinite(line.top1)]
    rows = 3 if tested else 2
    figure = Figure(figsize=(8, 2.6 * rows), dpi=120, layout="constrained")
    FigureCanvasAgg(figure)
    axes = figure.subplots(rows, 1, sharex=True, height_ratios=[2, 1.6, 0.9] if tested else [2, 0.9], squeeze=False)
    panels = [axis[0] for axis in axes]
    figure.suptitle(title, fontsize=11, parse_math=False)
    _loss(panels[0], history)
    if tested:
        _accuracy(panels[1], history)
    _rate(panels[-1], history)
    panels[-1].set_xlabel("optimizer step")
    for panel in panels:
        panel.grid(alpha=0.25, linewidth=0.6)
        panel.spines[["top", "right"]].set_visible(False)
    drawn = io.BytesIO()
    figure.savefig(drawn, format="png")
    with atomic_file(file, force=True) as fd, open(fd, "wb", closefd=False) as out:
        out.write(drawn.getvalue())


def smoothed(values: list[float]) -> list[float]:
    """The mean over SHARE of the values around each one, and over fewer near the ends, so that no curve lags.

    Values that are not finite are left out; NaN where nothing is left.
    """
    half = max(round(len(values) * SHARE / 2), 1)
    found = []
    for at in range(len(values)):
        reach = min(half, at, len(values) - 1 - at)
        around = [value for value in values[at - reach : at + reach + 1] if math.isfinite(value)]
        found.append(sum(around) / len(around) if around else math.nan)
    return found


def _loss(panel: Axes, history: History) -> None:
    steps = [line.step for line in history.steps]
    losses = [line.loss for line in history.steps]
    many = len(losses) > FEW
    style = {"alpha": 0.3} if many else {"marker": ".", "markersize": 4}
    panel.plot(steps, losses, color=LOSS, linewidth=1, label="training, as logged", **style)
    if many:
        panel.plot(steps, smoothed(losses), color=LOSS, linewidth=1.8, label="training, smoothed")
    tested = [line for line in history.validations if math.isfinite(line.loss)]
    if tested:
        panel.plot(
            [v.step for v in tested], [v.loss for v in tested], "o-", color=TESTED, markersize=4, label="validation"
        )
    shown = [loss for loss in (*losses, *(v.loss for v in tested)) if math.isfinite(loss)]
    if shown and min(shown) > 0 and max(shown) / min(shown) > WIDE:
        panel.set_yscale("log")
        panel.yaxis.set_major_formatter("{x:g}")
    if history.stopped is not None and steps:
        panel.axvline(steps[-1], color=TESTED, linestyle="--", linewidth=1, label="stopped: not finite")
    panel.set_ylabel("loss")
    panel.legend(frameon=False, fontsize=9)


def _accuracy(panel: Axes, history: History) -> None:
    tested = [line for line in history.validations if math.isfinite(line.top1)]
    steps = [line.step for line in tested]
    for key, style in (("top1", "o-"), ("top5", "o:")):
        name = f"top-{key[3:]}"
        panel.plot(steps, [100 * getattr(v, key) for v in tested], style, color=TESTED, markersize=4, label=name)
        if all(v.ema for v in tested):
            average = [100 * (v.ema or {})[key] for v in tested]
            panel.plot(steps, average, style, color=AVERAGE, markersize=4, label=f"{name}, moving average")
    best = history.best
    if best is not None:
        line, ema = best
        top1 = 100 * (line.ema["top1"] if ema and line.ema else line.top1)
        panel.annotate(
            f"best {top1:.2f}%",
            (line.step, top1),
            textcoords="offset points",
            xytext=(0, -14),
            ha="right" if line.step > steps[0] else "left",
            fontsize=9,
        )
    panel.set_ylabel("accuracy (%)")
    panel.legend(frameon=False, fontsize=9, ncols=2)


def _rate(panel: Axes, history: History) -> None:
    panel.plot([line.step for line in history.steps], [line.lr for line in history.steps], color=RATE, linewidth=1.5)
    panel.set_ylabel("learning rate")
    panel.ticklabel_format(axis="y", style="sci", scilimits=(-3, 3))
