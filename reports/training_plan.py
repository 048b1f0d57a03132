"""The plan of a training run for people: environment, data, steps, schedule, parameters, memory, launch, gate."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from rich import box
from rich.table import Table
from rich.text import Text

from ..printable import few
from ..training.recipe.schema import ARRAYS
from ..training.run.plan import RunPlan
from .formatting import bytes_text, count_text
from .terminal import Console

BARS = "▁▂▃▄▅▆▇█"
WIDTH = 48  # characters of the learning rate's curve


def show(plan: RunPlan, console: Console) -> None:
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
    single = ", in float32, for the target is not here" if graph["float32"] else ""
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
