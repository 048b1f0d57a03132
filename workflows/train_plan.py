"""`msmigrate train --dry-run`: the whole plan of a run, and nothing started."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ..errors import MsmigrateError
from ..printable import echo, json_line
from ..reports.terminal import Console
from ..reports.training_plan import show
from ..training import device_targets
from ..training.device_targets import Targets
from ..training.recipe.schema import Recipe
from ..training.run import plan as plans
from ..training.run import plan as run_data
from ..training.run import plan as schedule_span
from ..training.run import train_job
from ..training.run.plan import RunData, RunPlan
from ..training.run.run_log import finite
from ..training.run.train_job import Job
from . import parity_gate
from .train_options import Options, begins_anew, check_checkpoints, folder_problem, gate_of, settle


def dry_run(options: Options, recipe: Recipe, probe: Sequence[str] = device_targets.PROBE) -> int:
    """Print the plan; returns 0, or 2 where the run would be refused for another reason than the target.

    A target that is not here is said and no failure: the plan is for a machine that has it.
    """
    plan = make_plan(options, recipe, probe)
    if options.as_json:
        echo(json_line(finite(plan.as_json())))
    else:
        show(plan, Console())
    return 2 if plan.problems else 0


def make_plan(options: Options, recipe: Recipe, probe: Sequence[str] = device_targets.PROBE) -> RunPlan:
    """Everything that can be known about the run before it is started."""
    problems: list[str] = []
    data = _data(options, recipe, problems)
    per_epoch = data.steps_per_epoch if data else 0
    found = _ask(options, recipe, per_epoch, probe, problems)
    job = settle(options, recipe, found.default)
    net = found.net or {}
    folder = folder_problem(options)
    if folder:
        problems.append(folder)
    try:
        check_checkpoints(options)
    except MsmigrateError as error:
        problems.append(str(error))
    memory = plans.memory(recipe, job, net, options.nproc) if net else {}
    counted = plans.steps(recipe, job, per_epoch)
    warnings = [
        *(data.warnings if data else ()),
        *schedule_span.warnings(recipe.schedule, counted["steps"], counted["epochs"]),
    ]
    return RunPlan(
        recipe=_recipe(recipe, job),
        environment=plans.environment(job, found, options.nproc),
        data=plans.data(recipe, data, job.processes) if data else {},
        steps=counted,
        net=net,
        memory=memory,
        out={
            "folder": str(job.folder),
            "state": "not free" if folder else "goes on" if options.resume and not begins_anew(options) else "new",
        },
        gate=_gate(options, recipe, problems),
        launch=_launch(options, job, problems),
        problems=problems,
        warnings=warnings,
    )


def _data(options: Options, recipe: Recipe, problems: list[str]) -> RunData | None:
    try:
        return run_data.look(recipe, options.spread.processes)
    except MsmigrateError as error:
        problems.append(str(error))
        return None


def _ask(options: Options, recipe: Recipe, per_epoch: int, probe: Sequence[str], problems: list[str]) -> Targets:
    """What MindSpore says about targets and net; about targets alone where the net or the data fail."""
    epochs = options.epochs or recipe.train.epochs
    wanted = [
        str(options.recipe_file),
        f"--steps={max(epochs * per_epoch, 1)}",
        f"--steps-per-epoch={max(per_epoch, 1)}",
    ]
    if options.seed is not None:
        wanted.append(f"--seed={options.seed}")
    try:
        return device_targets.ask(wanted, probe)
    except MsmigrateError as error:
        problems.append(str(error))
        return device_targets.ask((), probe)


def _recipe(recipe: Recipe, job: Job) -> dict[str, Any]:
    return {
        "file": str(job.recipe),
        "digest": recipe.digest,
        "seed": recipe.seed if job.seed is None else job.seed,
        "model": recipe.model.name,
        "source": recipe.data.source,
        "schedule": recipe.schedule.name if recipe.schedule else None,
        "schedule_per": recipe.schedule.per if recipe.schedule else None,
    }


def _gate(options: Options, recipe: Recipe, problems: list[str]) -> dict[str, Any]:
    """What will open the gate, or why nothing will."""
    try:
        holds = parity_gate.Holds.now(recipe)
        if options.skip_parity:
            return {"state": "skipped", "text": "skipped: the step will not be proven, and the run's log will say so"}
        if options.parity_report is not None:
            parity_gate.accept(options.parity_report, options.recipe_file, recipe, holds)
            return {"state": "report", "text": f"open: {options.parity_report} is a proof of this recipe and code"}
        if options.resume and parity_gate.still_holds(gate_of(options.folder), holds):
            return {"state": "report", "text": "open: the proof that the run began with still holds"}
        if not parity_gate.torch_is_here():
            raise parity_gate.needs_torch(options.recipe_file, recipe)
    except MsmigrateError as error:
        problems.append(str(error))
        return {"state": "shut", "text": "shut: see below"}
    return {"state": "will prove", "text": "parity-step will prove the step first; torch is here"}


def _launch(options: Options, job: Job, problems: list[str]) -> list[dict[str, str]]:
    """Every way to start the processes of this run; the first is what train does."""
    try:
        forms = train_job.launch_forms(job, options.spread)
    except MsmigrateError as error:
        problems.append(str(error))
        return []
    return [{"form": form, "command": command} for form, command in forms]
