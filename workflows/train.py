"""What `msmigrate train` does, in order: settle, check target and data, prove the step, train, say what came of it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

from ..errors import BadDestination
from ..parity.job import SIDES, check_inputs
from ..parity.run import MINDSPORE_WORKER
from ..printable import echo, json_line
from ..reports import training_summary
from ..reports.progress import TrainingProgress
from ..reports.terminal import Console
from ..training import device_targets
from ..training.checkpoints import is_foreign
from ..training.recipe import reader as recipes
from ..training.recipe.schema import Recipe
from ..training.run import launch, plan
from ..training.run import plan as plans
from ..training.run.plan import RunData
from ..training.run.run_log import finite, read
from ..training.run.train_job import Job
from . import parity_gate
from .train_options import (
    PARITY,
    Options,
    begins_anew,
    check_checkpoints,
    claimed,
    folder_problem,
    gate_of,
    precision,
    refuse_unsaid,
    settle,
    start_of,
)
from .train_plan import dry_run

Launcher = Callable[..., int]


def run(
    launcher: Launcher = launch.run,
    probe: Sequence[str] = device_targets.PROBE,
    mindspore_worker: Sequence[str] = MINDSPORE_WORKER,
    **given: Any,
) -> int:
    """Train; `given` are the command line's options, see Options.

    launcher, probe, mindspore_worker: what starts the run, answers about targets, and records MindSpore's side of the
    proof. Returns the exit code: 0 trained, 1 not proven or stopped at a number that is not finite. Raises the
    errors of errors.py for everything a user can cause, before any file is written where that is possible.
    """
    options = Options(**given)
    file = options.recipe_file
    recipe = recipes.load(file)
    refuse_unsaid(options, recipe)
    amp = precision(options)
    if amp is not None:
        recipe = recipe.model_copy(update={"amp": amp})
    if options.dry_run:
        return dry_run(options, recipe, probe)
    problem = folder_problem(options)
    if problem:
        raise BadDestination(problem)
    check_checkpoints(options)
    # what can be known by reading comes before any framework is asked
    holds = parity_gate.Holds.now(recipe)
    if options.parity_report is not None:
        parity_gate.accept(options.parity_report, file, recipe, holds)
    proves = options.parity_report is None and not options.skip_parity and not options.node_rank
    check_inputs(recipe, None, SIDES if proves else (), draws=False)
    data = plan.look(recipe, options.spread.processes)
    found = device_targets.ask(probe=probe)
    job = settle(options, recipe, found.default)
    found.check(job.target, job.device_id, options.nproc)
    anew = begins_anew(options)
    with claimed(options) as folder:
        if anew:
            _tell(f"{folder} holds no checkpoint to go on from, so the run begins anew")
        entry = open_gate(options, recipe, holds, mindspore_worker)
        if entry is None:
            _say_unproven(options, folder / PARITY)
            return 1
        job = job.model_copy(update={"gate": entry})
        _announce(job, recipe, data)
        return _train(options, job, recipe, launcher)


def open_gate(
    options: Options, recipe: Recipe, holds: parity_gate.Holds, mindspore_worker: Sequence[str] = MINDSPORE_WORKER
) -> dict[str, Any] | None:
    """What opens the gate, for the run's log; None where the step was compared and is not the same.

    A report, when one is given; the proof of the run to resume, while it still holds; else parity-step, here and now.
    With several machines the first one proves.
    """
    file = options.recipe_file
    if options.skip_parity:
        _tell("warning: --skip-parity: nobody has proven that this step is PyTorch's; the run's log says so")
        return holds.entry("skipped")
    if options.parity_report is not None:
        return parity_gate.accept(options.parity_report, file, recipe, holds)
    if options.node_rank:
        return holds.entry("left to the first machine")
    if options.resume:
        before = gate_of(options.folder)
        if parity_gate.still_holds(before, holds):
            _tell("the proof that the run began with still holds: same recipe, code and checkpoint")
            return before
        _tell(f"the step has to be proven again: {parity_gate.why_not(before, holds)}")
    _tell(f"proving the step of {file}; --parity-report FILE brings a proof, --skip-parity goes without")
    start = start_of(options)
    start = start if start is not None and is_foreign(start) else None  # a converted one has nothing for torch to go on
    console = Console(stderr=options.as_json)
    return parity_gate.prove(file, recipe, holds, options.folder / PARITY, console, mindspore_worker, start)


def _train(options: Options, job: Job, recipe: Recipe, launcher: Launcher) -> int:
    """Start the run, show it, and sum it up however it ends."""
    try:
        with TrainingProgress(Console(stderr=True)) as progress:
            code = launcher(job, **asdict(options.spread), told=progress.told)
    except KeyboardInterrupt:
        _sum_up(options, job, recipe)
        raise
    except BaseException:
        _sum_up(options, job, recipe, show=False)  # the error's own line is what counts
        raise
    _sum_up(options, job, recipe)
    return code


def _sum_up(options: Options, job: Job, recipe: Recipe, show: bool = True) -> None:
    """Write summary.json and training.png, and print the summary."""
    if options.node_rank:
        return
    history = read(job.log)
    content = training_summary.summary(history, job, options.spread, recipe)
    if history.steps:
        title = f"{recipe.model.name} on {recipe.data.source}"
        picture = training_summary.draw(history, job.folder, title)
        content["plot"] = str(picture) if picture else None
        training_summary.write(content, job.folder)
    if not show:
        return
    if options.as_json:
        echo(json_line(finite(content)))
    elif history.steps:
        training_summary.show(content, Console())


def _say_unproven(options: Options, report: Path) -> None:
    text = f"nothing was trained: the step is not proven. Every tensor is in {report}"
    if options.as_json:
        echo(json_line({"status": "not proven", "report": str(report)}))
    _tell(text)


def _announce(job: Job, recipe: Recipe, data: RunData) -> None:
    epochs = job.epochs or recipe.train.epochs
    processes = f" in {job.processes} processes" if job.processes > 1 else ""
    _tell(
        f"training {recipe.model.name} on {recipe.data.source} ({data.training.images} images) on {job.target}"
        f"{processes}, {job.mode} mode: {epochs} epoch{'s' * (epochs > 1)} of {data.steps_per_epoch} steps; files in "
        f"{job.folder}"
    )
    counted = plans.steps(recipe, job, data.steps_per_epoch)
    for text in (*data.warnings, *plan.warnings(recipe.schedule, counted["steps"], counted["epochs"])):
        _tell(f"warning: {text}")


def _tell(text: str) -> None:
    echo(text, err=True)
