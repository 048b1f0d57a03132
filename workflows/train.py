"""What `msmigrate train` does, in order: settle, check target and data, prove the step, train, say what came of it.

With --dry-run all that can be known of the run is planned and printed, and nothing is started.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ..errors import BadDestination, MsmigrateError
from ..option_fields import STDOUT, as_path, values_of
from ..parity.job import SIDES, check_inputs
from ..parity.run import MINDSPORE_WORKER
from ..printable import echo, note
from ..reports import training_plan, training_summary
from ..reports.formatting import count_text
from ..reports.progress import TrainingProgress
from ..reports.terminal import Console
from ..training import device_targets
from ..training.checkpoints import is_foreign
from ..training.device_targets import Targets
from ..training.recipe import reader as recipes
from ..training.recipe.schema import Recipe
from ..training.run import launch, plan, train_job
from ..training.run.plan import RunData, RunPlan
from ..training.run.run_log import finite, read
from ..training.run.train_job import Job
from . import parity_gate
from .results import Result, console_text, only_json
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
    target_of,
)

Launcher = Callable[..., int]


@dataclass(frozen=True, repr=False)
class TrainingResult(Result):
    """How a training run ended; true where it trained to its end.

    status: of the summary ("done", "stopped" at a number that is not finite), or "not proven" where the step is not
    torch's, and nothing was trained. summary: what summary.json holds.
    """

    folder: Path
    code: int
    status: str
    summary: dict[str, Any]

    @property
    def ok(self) -> bool:
        """Whether it trained to its end."""
        return self.code == 0

    def text(self) -> str:
        """Epochs, the best of them, and what to do next."""
        if not self.summary:
            return f"nothing was trained: the step is not proven. Every tensor is in {self.folder / PARITY}"
        return console_text(lambda console: training_summary.show(self.summary, console))

    def as_dict(self) -> dict[str, Any]:
        """The summary as `train --json` prints it."""
        if not self.summary:
            return {"status": self.status, "report": str(self.folder / PARITY)}
        found: dict[str, Any] = finite(self.summary)
        return found


def train(recipe: str | Path | None = None, **options: Any) -> TrainingResult:
    """Train the net of a recipe in MindSpore, behind the proof that its step is torch's; `train`.

    recipe: a YAML file; ResNet50 on two photographs without one.
    options: those of the command, with underscores: out, target, mode, epochs, max_steps, resume, continue_from,
        parity_report, skip_parity, nproc and so on; all but dry_run and json_file, which print.

    Raises BadInput, BadDestination, BadRecipe, Unsupported, WorkerFailed and what stops a run, in words.
    """
    values = values_of(Options, options, "train", ("recipe", "dry_run", "json_file"))
    chosen = Options(recipe=as_path(recipe, "recipe"), **values)
    return _trained(chosen, _recipe_of(chosen), show=False)


def run(
    launcher: Launcher = launch.run,
    probe: Sequence[str] = device_targets.PROBE,
    mindspore_worker: Sequence[str] = MINDSPORE_WORKER,
    **given: Any,
) -> int:
    """Train, and print the summary; `given` are the command line's options, see Options.

    launcher, probe, mindspore_worker: what starts the run, answers about targets, and records MindSpore's side of the
    proof. Returns the exit code: 0 trained, 1 not proven or stopped at a number that is not finite. Raises the
    errors of errors.py for everything a user can cause, before any file is written where that is possible.
    """
    options = Options(**given)
    recipe = _recipe_of(options)
    if options.dry_run:
        return dry_run(options, recipe, probe)
    return _trained(options, recipe, launcher, probe, mindspore_worker).code


def _recipe_of(options: Options) -> Recipe:
    recipe = recipes.load(options.recipe_file)
    refuse_unsaid(options, recipe)
    amp = precision(options)
    return recipe if amp is None else recipe.model_copy(update={"amp": amp})


def _trained(
    options: Options,
    recipe: Recipe,
    launcher: Launcher = launch.run,
    probe: Sequence[str] = device_targets.PROBE,
    mindspore_worker: Sequence[str] = MINDSPORE_WORKER,
    *,
    show: bool = True,
) -> TrainingResult:
    """The run that the options describe. show: print what comes of it."""
    file = options.recipe_file
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
            note(f"{folder} holds no checkpoint to go on from, so the run begins anew")
        entry = open_gate(options, recipe, holds, mindspore_worker)
        if entry is None:
            if show:
                _say_unproven(options, folder / PARITY)
            return TrainingResult(folder, 1, "not proven", {})
        job = job.model_copy(update={"gate": entry})
        _announce(job, recipe, data)
        code, summary = _train(options, job, recipe, launcher, show=show)
        return TrainingResult(folder, code, str(summary.get("status", "done")), summary)


def open_gate(
    options: Options, recipe: Recipe, holds: parity_gate.Holds, mindspore_worker: Sequence[str] = MINDSPORE_WORKER
) -> dict[str, Any] | None:
    """What opens the gate, for the run's log; None where the step was compared and is not the same.

    A report, when one is given; the proof of the run to resume, while it still holds; else parity-step, here and now.
    With several machines the first one proves.
    """
    file = options.recipe_file
    if options.skip_parity:
        note("warning: --skip-parity: nobody has proven that this step is PyTorch's; the run's log says so")
        return holds.entry("skipped")
    if options.parity_report is not None:
        return parity_gate.accept(options.parity_report, file, recipe, holds)
    if options.node_rank:
        return holds.entry("left to the first machine")
    if options.resume:
        before = gate_of(options.folder)
        if parity_gate.still_holds(before, holds):
            note("the proof that the run began with still holds: same recipe, code and checkpoint")
            return before
        note(f"the step has to be proven again: {parity_gate.why_not(before, holds)}")
    note(f"proving the step of {file}; --parity-report FILE brings a proof, --skip-parity goes without")
    start = start_of(options)
    start = start if start is not None and is_foreign(start) else None  # a converted one has nothing for torch to go on
    console = Console(stderr=options.json_file == STDOUT)
    return parity_gate.prove(file, recipe, holds, options.folder / PARITY, console, mindspore_worker, start)


def _train(options: Options, job: Job, recipe: Recipe, launcher: Launcher, *, show: bool) -> tuple[int, dict[str, Any]]:
    """Start the run, show it, and sum it up however it ends; the exit code and the summary."""
    try:
        with TrainingProgress(Console(stderr=True)) as progress:
            code = launcher(job, options.spread, on_event=progress.show)
    except KeyboardInterrupt:
        _sum_up(options, job, recipe, show=show)
        raise
    except BaseException:
        _sum_up(options, job, recipe, show=False)  # the error's own line is what counts
        raise
    return code, _sum_up(options, job, recipe, show=show)


def _sum_up(options: Options, job: Job, recipe: Recipe, *, show: bool = True) -> dict[str, Any]:
    """Write summary.json and training.png, and print the summary; of the first machine alone."""
    if options.node_rank:
        return {}
    history = read(job.log)
    content = training_summary.summary(history, job, options.spread, recipe)
    if history.steps:
        title = f"{recipe.model.name} on {recipe.data.source}"
        picture = training_summary.draw(history, job.folder, title)
        content["plot"] = str(picture) if picture else None
        training_summary.write(content, job.folder)
    if show and not only_json(lambda: finite(content), options.json_file) and history.steps:
        training_summary.show(content, Console())
    return content


def _say_unproven(options: Options, report: Path) -> None:
    text = f"nothing was trained: the step is not proven. Every tensor is in {report}"
    only_json(lambda: {"status": "not proven", "report": str(report)}, options.json_file)
    echo(text, err=True)


def _announce(job: Job, recipe: Recipe, data: RunData) -> None:
    epochs = job.epochs or recipe.train.epochs
    processes = f" in {job.processes} processes" if job.processes > 1 else ""
    note(
        f"training {recipe.model.name} on {recipe.data.source} ({data.training.images} {recipe.data.unit}) on "
        f"{job.target}{processes}, {job.mode} mode: {count_text(epochs, 'epoch')} of {data.steps_per_epoch} steps; "
        f"files in {job.folder}"
    )
    counted = plan.steps(recipe, job, data.steps_per_epoch)
    for text in (*data.warnings, *plan.warnings(recipe.schedule, counted["steps"], counted["epochs"])):
        note(f"warning: {text}")


def dry_run(options: Options, recipe: Recipe, probe: Sequence[str] = device_targets.PROBE) -> int:
    """Print the plan; returns 0, or 2 where the run would be refused for another reason than the target.

    A target that is not here is said and no failure: the plan is for a machine that has it.
    """
    made = make_plan(options, recipe, probe)
    if not only_json(lambda: finite(made.as_json()), options.json_file):
        training_plan.show(made, Console())
    return 2 if made.problems else 0


def make_plan(options: Options, recipe: Recipe, probe: Sequence[str] = device_targets.PROBE) -> RunPlan:
    """Everything that can be known about the run before it is started."""
    problems: list[str] = []
    data = _planned_data(options, recipe, problems)
    per_epoch = data.steps_per_epoch if data else 0
    found = _probed(options, recipe, data, probe, problems)
    job = settle(options, recipe, found.default)
    net, graph = found.net or {}, found.graph or {}
    if graph.get("problem"):
        problems.append(graph["problem"])
    folder = folder_problem(options)
    if folder:
        problems.append(folder)
    try:
        check_checkpoints(options)
    except MsmigrateError as error:
        problems.append(str(error))
    memory = plan.memory(recipe, job, net, options.nproc) if net else {}
    counted = plan.steps(recipe, job, per_epoch)
    warnings = [
        *(data.warnings if data else ()),
        *plan.warnings(recipe.schedule, counted["steps"], counted["epochs"]),
        *graph.get("again", ()),
    ]
    return RunPlan(
        recipe=_planned_recipe(recipe, job),
        environment=plan.environment(job, found, options.nproc),
        data=plan.data(recipe, data, job.processes) if data else {},
        steps=counted,
        net=net,
        memory=memory,
        graph=graph,
        out={
            "folder": str(job.folder),
            "state": "not free" if folder else "goes on" if options.resume and not begins_anew(options) else "new",
        },
        gate=_planned_gate(options, recipe, problems),
        launch=_planned_launch(options, job, problems),
        problems=problems,
        warnings=warnings,
    )


def _planned_data(options: Options, recipe: Recipe, problems: list[str]) -> RunData | None:
    try:
        return plan.look(recipe, options.spread.processes)
    except MsmigrateError as error:
        problems.append(str(error))
        return None


def _probed(
    options: Options, recipe: Recipe, data: RunData | None, probe: Sequence[str], problems: list[str]
) -> Targets:
    """What MindSpore says about targets, net and graph; about targets alone where the net or the data fail."""
    epochs, per_epoch = options.epochs or recipe.train.epochs, data.steps_per_epoch if data else 0
    wanted = [
        str(options.recipe_file),
        f"--steps={max(epochs * per_epoch, 1)}",
        f"--steps-per-epoch={max(per_epoch, 1)}",
    ]
    if options.seed is not None:
        wanted.append(f"--seed={options.seed}")
    if settle(options, recipe, "CPU").mode == "graph":
        rest = data.shard % recipe.data.batch if data and not recipe.data.drop_last else 0
        amp = None if recipe.amp is None else recipe.amp.model_dump(mode="json")
        run = {"target": target_of(options, recipe), "amp": amp, "last": rest}
        wanted.append(f"--compile={json.dumps(run)}")
    try:
        return device_targets.ask(wanted, probe)
    except MsmigrateError as error:
        problems.append(str(error))
        return device_targets.ask((), probe)


def _planned_recipe(recipe: Recipe, job: Job) -> dict[str, Any]:
    return {
        "file": str(job.recipe),
        "digest": recipe.digest,
        "seed": recipe.seed if job.seed is None else job.seed,
        "model": recipe.model.name,
        "source": recipe.data.source,
        "schedule": recipe.schedule.name if recipe.schedule else None,
        "schedule_per": recipe.schedule.per if recipe.schedule else None,
    }


def _planned_gate(options: Options, recipe: Recipe, problems: list[str]) -> dict[str, Any]:
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


def _planned_launch(options: Options, job: Job, problems: list[str]) -> list[dict[str, str]]:
    """Every way to start the processes of this run; the first is what train does."""
    try:
        forms = train_job.launch_forms(job, options.spread)
    except MsmigrateError as error:
        problems.append(str(error))
        return []
    return [{"form": form, "command": command} for form, command in forms]
