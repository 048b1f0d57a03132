"""A training run for people: its plan before anything starts; its result, with the best epoch and the curves."""

from __future__ import annotations

import contextlib
import io
import math
import shlex
from collections.abc import Iterable
from dataclasses import asdict, fields
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rich import box
from rich.table import Table
from rich.text import Text

from ..atomic_files import atomic_file
from ..errors import BadDestination
from ..printable import bytes_text, clock_text, count_text, few, percent
from ..training.checkpoints import BEST
from ..training.options import Spread
from ..training.recipe.recipe_in_checkpoint import enough
from ..training.recipe.schema import ARRAYS, Recipe
from ..training.run.plan import RunPlan
from ..training.run.run_log import History, json_text
from ..training.run.train_job import Job
from .terminal import Console

if TYPE_CHECKING:
    from matplotlib.axes import Axes

LOSS, TESTED, AVERAGE, RATE = (
    "#4477aa",
    "#ee6677",
    "#228833",
    "#666666",
)  # Paul Tol's bright colours, which everyone can tell apart
SHARE = 0.05  # of the logged steps: the length over which the curve is smoothed
WIDE = 30  # the largest loss over the smallest one, from which on the axis is logarithmic
FEW = 40  # logged steps: each gets a dot, and nothing is smoothed


def plot(history: History, file: Path, title: str) -> None:
    """Draw a run's curves into a PNG file, which replaces an old one. Raises BadDestination."""
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
    means = []
    for at in range(len(values)):
        reach = min(half, at, len(values) - 1 - at)
        around = [value for value in values[at - reach : at + reach + 1] if math.isfinite(value)]
        means.append(sum(around) / len(around) if around else math.nan)
    return means


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
        panel.plot([line.step], [top1], "o", markersize=9, color=AVERAGE if ema else TESTED, fillstyle="none")
        panel.set_title(f"best {top1:.2f}%, at step {line.step:,}", loc="right", fontsize=9)  # where no line goes
    panel.set_ylabel("accuracy (%)")
    panel.legend(frameon=False, fontsize=9, ncols=2)


def _rate(panel: Axes, history: History) -> None:
    panel.plot([line.step for line in history.steps], [line.lr for line in history.steps], color=RATE, linewidth=1.5)
    panel.set_ylabel("learning rate")
    panel.ticklabel_format(axis="y", style="sci", scilimits=(-3, 3))


NAMES = {"loss": "loss", "top1": "top-1", "top5": "top-5"}
ROWS = 12  # epochs shown; a long run's first and last ones
SUMMARY = "summary.json"
PLOT = "training.png"
ENDINGS = {
    "done": ("Trained", "green"),
    "interrupted": ("Interrupted", "yellow"),
    "stopped": ("Stopped", "bold red"),
    "failed": ("Failed", "bold red"),
}


def summary(history: History, job: Job, spread: Spread | None = None, recipe: Recipe | None = None) -> dict[str, Any]:
    """The summary of a run as plain values, for --json and summary.json.

    spread: the processes that it ran in. recipe: what it trained.
    """
    best = history.best
    checkpoints = sorted(str(file) for file in job.checkpoints.glob("*.ckpt"))
    speeds = [line.images_per_second for line in history.steps if math.isfinite(line.images_per_second)]
    return {
        "status": history.status,
        "recipe": str(job.recipe),
        "folder": str(job.folder),
        "target": job.target,
        "mode": job.mode,
        "processes": job.processes,
        "gate": job.gate,
        "steps": history.last_step,
        "continued_from": history.continued,
        "planned_steps": history.plan.get("steps"),
        "epochs": _epochs(history),
        "best": _best(best[0], best[1], job) if best else None,
        "seconds": round(history.seconds, 1),
        "images_per_second": round(sum(speeds) / len(speeds), 1) if speeds else None,
        "unit": "rows" if history.plan.get("unit") == "rows" else "images",
        "checkpoints": checkpoints,
        "checkpoint_step": history.kept or None,
        "warnings": history.warnings,
        "stopped": history.stopped,
        "error": history.error,
        "next": _next(history, job, checkpoints, spread or Spread(), recipe),
    }


def write(content: dict[str, Any], folder: Path) -> None:
    """Store a summary as summary.json; the file appears whole or not at all. Raises BadDestination."""
    with atomic_file(folder / SUMMARY, force=True) as fd, open(fd, "w", encoding="utf-8", closefd=False) as file:
        file.write(json_text(content))


def draw(history: History, folder: Path, title: str) -> Path | None:
    """Draw training.png and return its path, or None where there is nothing to draw or nowhere to put it."""

    if not history.steps and not history.validations:
        return None
    with contextlib.suppress(BadDestination):
        plot(history, folder / PLOT, title)
        return folder / PLOT
    return None


def show_summary(content: dict[str, Any], console: Console) -> None:
    """Print a summary."""
    if content["epochs"]:
        console.print(_table(content["epochs"]))
    word, style = ENDINGS[content["status"]]
    of = f" of {content['planned_steps']}" if content["planned_steps"] not in (None, content["steps"]) else ""
    speed = f", {content['images_per_second']:.0f} {content['unit']}/s" if content["images_per_second"] else ""
    before = content["continued_from"]
    steps = (
        f"steps {before + 1} to {content['steps']}{of}"
        if content["steps"] > before > 0
        else f"{content['steps']}{of} steps"
    )
    head = Text.assemble((word, style), f": {steps} in {clock_text(content['seconds'])}{speed}")
    console.print(head)
    if content["stopped"]:
        console.print(Text(f"  {content['stopped'].get('text', '')}"))
    best = content["best"]
    if best:
        average = ", of the moving average" if best["ema"] else ""
        what = (
            f"top-1 {percent(best['top1'])}" if math.isfinite(best["top1"]) else f"validation loss {best['loss']:.4f}"
        )
        console.print(Text(f"Best: {what} after epoch {best['epoch']}{average}"))
    if content["gate"].get("parity") != "passed":
        console.print(Text("The step was not proven (--skip-parity).", "yellow"))
    if content["checkpoints"]:
        newest = f", the newest after step {content['checkpoint_step']}" if content["checkpoint_step"] else ""
        console.print(Text(f"Checkpoints: {Path(content['checkpoints'][0]).parent}{newest}"), soft_wrap=True)
    for command in content["next"]:
        console.print(Text(f"  {command}"), soft_wrap=True)


def _epochs(history: History) -> list[dict[str, Any]]:
    """A row for each epoch: mean of the logged losses, last learning rate, and the validation after it."""
    numbers = sorted({line.epoch for line in history.steps} | {line.epoch for line in history.validations})
    rows = []
    for epoch in numbers:
        lines = [line for line in history.steps if line.epoch == epoch]
        losses = [line.loss for line in lines]
        tested = [asdict(line) for line in history.validations if line.epoch == epoch]
        rows.append(
            {
                "epoch": epoch + 1,
                "loss": sum(losses) / len(losses) if losses else None,
                "lr": lines[-1].lr if lines else None,
                "validation": {key: tested[-1][key] for key in ("loss", "top1", "top5", "ema")} if tested else None,
            }
        )
    return rows


def _best(line: Any, ema: bool, job: Job) -> dict[str, Any]:
    measured = line.ema if ema else {"top1": line.top1, "loss": line.loss}
    file = job.checkpoints / BEST
    return {
        "top1": measured["top1"],
        "loss": measured["loss"],
        "epoch": line.epoch + 1,
        "step": line.step,
        "ema": ema,
        "checkpoint": str(file) if file.exists() else None,
    }


def _next(history: History, job: Job, checkpoints: list[str], spread: Spread, recipe: Recipe | None) -> list[str]:
    """The commands to go on with."""
    if not checkpoints:
        return []
    if history.status != "done":
        command = ["msmigrate", "train", str(job.recipe), "--out", str(job.folder), "--resume"]
        for field in fields(Spread):
            value = getattr(spread, field.name)
            if value != field.default:
                command += [f"--{field.name.replace('_', '-')}", str(value)]
        return [shlex.join(command)]
    best = str(job.checkpoints / BEST)
    chosen = best if best in checkpoints else checkpoints[-1]
    ema = ["--ema"] if history.best is not None and history.best[1] else []
    data = [] if history.validations else ["DATA"]
    named = [] if recipe is None or enough(recipe) else ["--recipe", str(job.recipe)]
    seen = "FILE.npz" if recipe is not None and recipe.data.of_arrays else "IMAGE"
    tools = (["eval", chosen, *data, *ema, *named], ["predict", chosen, seen, *ema, *named])
    return [shlex.join(["msmigrate", *tool]) for tool in tools]


def _table(rows: list[dict[str, Any]]) -> Table:
    tested = any(row["validation"] for row in rows)
    averaged = any(row["validation"] and row["validation"]["ema"] for row in rows)
    by_class = any(row["validation"] and math.isfinite(row["validation"]["top1"]) for row in rows)
    shares, averages = (("top1", "top5"), ("top1", "top5")) if by_class else ((), ("loss",))
    table = Table(box=box.SIMPLE_HEAD, pad_edge=False, show_edge=False)
    headings = ["epoch", "loss", "lr"]
    headings += ["validation\nloss", *(NAMES[key] for key in shares)] if tested else []
    headings += [f"EMA\n{NAMES[key]}" for key in averages] if averaged else []
    for heading in headings:
        table.add_column(heading, justify="right", no_wrap=True)
    shown = rows if len(rows) <= ROWS else [*rows[: ROWS // 2], None, *rows[-ROWS // 2 :]]
    for row in shown:
        if row is None:
            table.add_row(*["…"] * len(headings))
            continue
        validation = row["validation"] or {}
        ema = validation.get("ema") or {}
        cells = [str(row["epoch"]), _number(row["loss"]), _number(row["lr"], "{:.3g}")]
        cells += [_number(validation.get("loss")), *(_share(validation.get(k)) for k in shares)] if tested else []
        cells += [(_share if by_class else _number)(ema.get(k)) for k in averages] if averaged else []
        table.add_row(*cells)
    return table


def _number(value: float | None, form: str = "{:.4f}") -> str:
    return "" if value is None else form.format(value)


def _share(value: float | None) -> str:
    return "" if value is None else percent(value)


BARS = "▁▂▃▄▅▆▇█"
WIDTH = 48  # characters of the learning rate's curve


def show_plan(plan: RunPlan, console: Console) -> None:
    """Print the plan."""
    grid = Table(box=None, show_header=False, pad_edge=False, padding=(0, 2, 0, 0))
    grid.add_column(no_wrap=True, style="bold")
    grid.add_column(overflow="fold")
    for name, lines in _sections(plan):
        for index, line in enumerate(lines):
            grid.add_row(name if index == 0 else "", line if isinstance(line, Text) else Text(line))
    console.print(grid)
    if plan.net.get("groups"):
        console.print(_groups(plan.net["groups"]))
    for number, form in enumerate(plan.launch):
        what = "starts" if number == 0 else "the other ways, after train has written JOB.json"
        if number < 2:
            console.print(Text.assemble(("launch", "bold"), f" ({what})"))
        for line in form["command"].splitlines():
            console.print(Text(f"  {line}"), soft_wrap=True)
    for text in plan.warnings:
        console.print(Text(f"Warning: {text}.", "yellow"))
    for text in plan.problems:
        console.print(Text(f"It would not start here: {text}.", "bold red"))


def _sections(plan: RunPlan) -> Iterable[tuple[str, list[Any]]]:
    yield "recipe", [f"{plan.recipe['file']} (recipe {plan.recipe['digest']}, seed {plan.recipe['seed']})"]
    yield "environment", _environment(plan.environment)
    yield "data", _data(plan.data) if plan.data else ["unknown: see below"]
    yield "steps", [_steps(plan)]
    if plan.net:
        yield "schedule", _schedule(plan)
        yield "model", [_model(plan), *_fine_tuning(plan.net)]
    if plan.memory:
        yield "memory", _memory(plan.memory)
    if plan.graph:
        yield "graph", _graph(plan.graph)
    yield "out", [f"{plan.out['folder']} ({plan.out['state']})"]
    yield "gate", [plan.gate["text"]]


def _model(plan: RunPlan) -> str:
    text = f"{plan.recipe['model']}, {plan.net['parameters']:,} parameters"
    if plan.net["inputs"] is None:
        return text
    of = "" if plan.net["image_of"] == plan.recipe["source"] else f" (of {plan.net['image_of']})"
    shapes = " and ".join("×".join(map(str, shape)) or "numbers" for shape, _ in plan.net["inputs"])
    return f"{text}; {'images' if plan.net['image'] else 'inputs'} {shapes}{of}"


def _fine_tuning(net: dict[str, Any]) -> Iterable[str]:
    """What does not come from the checkpoint, and what does not train."""
    for key, text in (("fresh", "not from the checkpoint, drawn anew"), ("frozen", "frozen")):
        if net.get(key):
            numbers = f" with {net['frozen_parameters']:,} parameters" if key == "frozen" else ""
            yield f"{text}: {count_text(len(net[key]), 'tensor')}{numbers}, {few(net[key])}"


def _environment(found: dict[str, Any]) -> list[Any]:
    versions = ", ".join(f"{name} {version}" for name, version in found["versions"].items())
    processes = f", {found['processes']} processes" if found["processes"] > 1 else ""
    usable = Text("can be used here", "green") if found["usable"] else Text("cannot be used here", "bold red")
    variables = [f"{name}={v['value']} (set by {v['set_by']})" for name, v in found["variables"].items()]
    return [
        f"python {found['python']}, {versions}",
        Text.assemble(f"{found['target']}, {found['mode']} mode{processes}: ", usable),
        *([found["problem"]] if found["problem"] else []),
        "; ".join(variables),
    ]


def _data(data: dict[str, Any]) -> list[str]:
    lines = [_source("training", data["training"])]
    lines.append(_source("validation", data["validation"]) if data["validation"] else "validation: none")
    micro = f", in {data['micro_batches']} micro-batches a process" if data["micro_batches"] > 1 else ""
    each = f"; {data['shard']:,} an epoch for each process" if data["images_per_step"] != data["batch"] else ""
    lines.append(f"{data['images_per_step']:,} {_unit(data['training'])} a step{micro}{each}")
    return lines


def _unit(facts: dict[str, Any]) -> str:
    return "rows" if facts["source"].startswith(ARRAYS) else "images"


def _source(what: str, facts: dict[str, Any]) -> str:
    if not facts["classes"]:
        return f"{what}: {facts['source']}, {facts['images']:,} {_unit(facts)}"
    sizes = {facts["smallest"], facts["largest"]}
    each = " to ".join(f"{size:,}" for size in sorted(sizes))
    return f"{what}: {facts['source']}, {facts['images']:,} {_unit(facts)}, {facts['classes']} classes of {each}"


def _steps(plan: RunPlan) -> str:
    steps = plan.steps
    epochs = count_text(steps["epochs"], "epoch")
    if not steps.get("steps_per_epoch"):
        return epochs
    text = f"{epochs} of {steps['steps_per_epoch']:,} steps: {steps['steps']:,}"
    return f"{text}, where max_steps ends it" if steps["max_steps"] == steps["steps"] else text


def _schedule(plan: RunPlan) -> list[str]:
    rates = plan.net["rates"]
    if plan.recipe["schedule"] is None:
        return [f"none: learning rate {rates[0][1]:.4g}"]
    if not plan.steps["steps"]:
        return [f"{plan.recipe['schedule']}: learning rate {rates[0][1]:.3g} at the start"]
    highest = max(rates, key=lambda line: line[1])
    turns = [(rates[0], "at the start"), (highest, f"at step {highest[0]:,}"), (rates[-1], "at the end")]
    shown = {line[0]: f"{line[1]:.3g} {when}" for line, when in reversed(turns)}
    first = f"{plan.recipe['schedule']}: learning rate " + ", ".join(reversed(shown.values()))
    return [first, sparkline([line[1] for line in rates])]


def sparkline(values: list[float], width: int = WIDTH) -> str:
    """A curve in `width` characters, from zero to its highest value."""
    top = max(values, default=0.0) or 1.0
    places = [round(i * (len(values) - 1) / max(width - 1, 1)) for i in range(width)] if values else []
    return "".join(BARS[min(int(max(values[i], 0.0) / top * len(BARS)), len(BARS) - 1)] for i in places)


def _memory(memory: dict[str, Any]) -> list[Any]:
    parts = ", ".join(f"{name} {bytes_text(size)}" for name, size in memory["parts"].items() if size)
    besides = f", and {' and '.join(memory['unknown'])}, which only the images can tell" if memory["unknown"] else ""
    total = f"about {bytes_text(memory['total'])} a process (estimated: {parts}{besides})"
    if memory["free"] is None:
        return [total, "compare it with the device's memory, which is not known here"]
    if memory["fits"] is None:
        return [total, f"{bytes_text(memory['free'])} free"]
    here = f" for {memory['processes_here']} processes here" if memory["processes_here"] > 1 else ""
    fits = Text("fits", "green") if memory["fits"] else Text("does not fit: lower data.batch", "bold red")
    return [total, Text.assemble(f"{bytes_text(memory['free'])} free{here}: ", fits)]


def _graph(graph: dict[str, Any]) -> list[Any]:
    if why := graph.get("why_not"):
        return [f"not compiled before the run: {why}"]
    if graph["problem"]:
        return [Text("the step does not compile: see below", "bold red")]
    known = "" if graph["graphs"] is None else f", {count_text(graph['graphs'], 'graph')}"
    single = ", in float32, because the target is not here" if graph["float32"] else ""
    batches = " and ".join(f"{size:,}" for size in graph["batches"])
    first = f"compiled in {graph['seconds']:.1f} s{known}: the step on {batches} made-up images, on {graph['target']}"
    return [f"{first}{single}"]


def _groups(groups: list[dict[str, Any]]) -> Table:
    table = Table(box=box.SIMPLE_HEAD, pad_edge=False, show_edge=False)
    table.add_column("optimizer group", overflow="fold")
    table.add_column("tensors", justify="right", no_wrap=True)
    table.add_column("parameters", justify="right", no_wrap=True)
    table.add_column("arguments", overflow="fold")
    for group in groups:
        names = group["names"]
        shown = ", ".join(names[:2]) + (", …" if len(names) > 2 else "")
        args = ", ".join(f"{key} {value}" for key, value in group["args"].items())
        table.add_row(Text(shown), str(len(names)), f"{group['parameters']:,}", Text(args))
    return table
