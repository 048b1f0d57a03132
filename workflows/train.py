"""What `msmigrate train` does, in order: make the job, check target and data, prove the step, train, report.

With --dry-run all that can be known of the run is planned and printed, and nothing is started.
"""

from __future__ import annotations

import contextlib
import fcntl
import json
import os
import re
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ..errors import BadDestination, MsmigrateError, NotTrusted
from ..option_fields import STDOUT, as_path, values_of
from ..parity.job import SIDES, check_inputs
from ..parity.run import MINDSPORE_WORKER
from ..printable import count_text, echo, note
from ..reports import training_run
from ..reports.progress import TrainingProgress
from ..reports.terminal import Console
from ..training import checkpoints, device_targets
from ..training.checkpoints import is_foreign
from ..training.device_targets import Targets
from ..training.options import TrainOptions
from ..training.recipe import reader as recipes
from ..training.recipe.recipe_in_checkpoint import foreign_argument
from ..training.recipe.schema import Amp, Recipe
from ..training.run import launch, plan
from ..training.run.plan import RunData, RunPlan
from ..training.run.run_log import finite, read
from ..training.run.train_job import JOB_FILE, Job
from . import parity_gate
from .results import Result, console_text, only_json

Launcher = Callable[..., int]
RUNS = Path("runs")
LOG = "log.jsonl"
PARITY = "parity.json"
# what a run that wrote no checkpoint leaves behind, half-written files included
LEFT = ("ranks", LOG, JOB_FILE, PARITY, "checkpoints", "tensorboard", "start.ckpt", "summary.json", "training.png")
NAMES = "|".join(map(re.escape, LEFT))
LEFTOVERS = re.compile(rf"(?:{NAMES}|\.(?:{NAMES})\.\d+-[0-9a-f]+\.tmp)$")


@dataclass(frozen=True)
class Options(TrainOptions):
    """The options of train, and the files that they lead to."""

    @property
    def folder(self) -> Path:
        """Where the run's files go, absolute: --out, or runs/ and the recipe's name."""
        out = self.out or RUNS / (self.recipe or recipes.DEFAULT).stem
        return recipes.expanded(out).absolute()

    @property
    def recipe_file(self) -> Path:
        """The recipe, absolute: the one named, that of the run to resume, or the default."""
        before = previous(self.folder) if self.resume and self.recipe is None and self.out is not None else None
        return before.recipe if before else recipes.expanded(recipes.find(self.recipe)).absolute()


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
        return console_text(lambda console: training_run.show_summary(self.summary, console))

    def as_dict(self) -> dict[str, Any]:
        """The summary as `train --json` prints it."""
        if not self.summary:
            return {"status": self.status, "report": str(self.folder / PARITY)}
        summary: dict[str, Any] = finite(self.summary)
        return summary


def train(recipe: str | Path | None = None, **options: Any) -> TrainingResult:
    """Train the net of a recipe in MindSpore, once its step is proven to be torch's; `train`.

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
    # what can be checked by reading comes before any framework is started
    holds = parity_gate.Holds.now(recipe)
    if options.parity_report is not None:
        parity_gate.accept(options.parity_report, file, recipe, holds)
    proves = options.parity_report is None and not options.skip_parity and not options.node_rank
    check_inputs(recipe, None, SIDES if proves else (), draws=False)
    data = plan.look(recipe, options.spread.processes)
    targets = device_targets.ask(probe=probe)
    job = make_job(options, recipe, targets.default)
    targets.check(job.target, job.device_id, options.nproc)
    anew = begins_anew(options)
    with claimed(options) as folder:
        if anew:
            note(f"{folder} holds no checkpoint to go on from, so the run begins anew")
        entry = open_gate(options, recipe, holds, job.mode, mindspore_worker)
        if entry is None:
            if show:
                _say_unproven(options, folder / PARITY)
            return TrainingResult(folder, 1, "not proven", {})
        job = job.model_copy(update={"gate": entry})
        _announce(job, recipe, data)
        code, summary = _train(options, job, recipe, launcher, show=show)
        return TrainingResult(folder, code, str(summary.get("status", "done")), summary)


def open_gate(
    options: Options,
    recipe: Recipe,
    holds: parity_gate.Holds,
    mode: str,
    mindspore_worker: Sequence[str] = MINDSPORE_WORKER,
) -> dict[str, Any] | None:
    """What opens the gate, for the run's log; None where the step was compared and is not the same.

    A report, when one is given; the proof of the run to resume, while it still holds; else parity-step, here and now.
    With several machines the first one proves. mode: the one that trains, whose step is proven.
    """
    file, mode = options.recipe_file, parity_gate.mode_of_proof(recipe, mode)
    if options.skip_parity:
        note("warning: --skip-parity: nobody has proven that this step is PyTorch's; the run's log says so")
        return holds.entry("skipped")
    if options.parity_report is not None:
        entry = parity_gate.accept(options.parity_report, file, recipe, holds)
        if entry["mode"] != mode == "graph":
            how = parity_gate.how_to_prove(file, recipe, mode=mode)
            note(f"warning: {options.parity_report} is of the PyNative step, and training compiles it; of both: {how}")
        return entry
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
    start = start if start is not None and is_foreign(start) else None  # torch cannot continue from a converted one
    console = Console(stderr=options.json_file == STDOUT)
    return parity_gate.prove(file, recipe, holds, options.folder / PARITY, console, mindspore_worker, start, mode)


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
    """Write summary.json and training.png, and print the summary; only on the first machine."""
    if options.node_rank:
        return {}
    history = read(job.log)
    content = training_run.summary(history, job, options.spread, recipe)
    if history.steps:
        title = f"{recipe.model.name} on {recipe.data.source}"
        picture = training_run.draw(history, job.folder, title)
        content["plot"] = str(picture) if picture else None
        training_run.write(content, job.folder)
    if show and not only_json(lambda: finite(content), options.json_file) and history.steps:
        training_run.show_summary(content, Console())
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

    A target that this machine lacks is reported and is no failure: the plan is for a machine that has it.
    """
    made = make_plan(options, recipe, probe)
    if not only_json(lambda: finite(made.as_json()), options.json_file):
        training_run.show_plan(made, Console())
    return 2 if made.problems else 0


def make_plan(options: Options, recipe: Recipe, probe: Sequence[str] = device_targets.PROBE) -> RunPlan:
    """Everything that can be known about the run before it is started."""
    problems: list[str] = []
    data = _planned_data(options, recipe, problems)
    per_epoch = data.steps_per_epoch if data else 0
    targets = _probed(options, recipe, data, probe, problems)
    job = make_job(options, recipe, targets.default)
    net, graph = targets.net or {}, targets.graph or {}
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
        environment=plan.environment(job, targets, options.nproc),
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
    if make_job(options, recipe, "CPU").mode == "graph":
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
            raise parity_gate.needs_torch(options.recipe_file, recipe, make_job(options, recipe, "CPU").mode)
    except MsmigrateError as error:
        problems.append(str(error))
        return {"state": "shut", "text": "shut: see below"}
    return {"state": "will prove", "text": "parity-step will prove the step first; torch is here"}


def _planned_launch(options: Options, job: Job, problems: list[str]) -> list[dict[str, str]]:
    """Every way to start the processes of this run; the first is what train does."""
    try:
        forms = launch.launch_forms(job, options.spread)
    except MsmigrateError as error:
        problems.append(str(error))
        return []
    return [{"form": form, "command": command} for form, command in forms]


def refuse_unsaid(options: Options, recipe: Recipe) -> None:
    """Raise NotTrusted where only the run's folder says which recipe it is of, and that recipe names code to import, or
    model arguments that are not known to be harmless: a folder may come from anyone."""
    if options.recipe is not None or not options.resume or previous(options.folder) is None:
        return
    model, foreign = recipe.model, foreign_argument(recipe.model)
    source = model.source if model.source is not None else recipe.loss.source
    if source is not None or foreign is not None:
        what = f"net is built with {foreign}" if source is None else f"net or loss is imported from {source}"
        raise NotTrusted(
            f"{options.folder / JOB_FILE} says that the run is of {options.recipe_file}, whose {what}; if that is the "
            "recipe, say so",
            (str(options.recipe_file),),
        )


def precision(options: Options) -> Amp | None:
    """The precision that the command line names, or that the run to resume was begun with instead of its recipe's."""
    if options.amp is not None:
        return Amp.model_validate({"level": options.amp, **({"dtype": options.amp_dtype} if options.amp_dtype else {})})
    before = previous(options.folder) if options.resume else None
    return before.amp if before else None


def make_job(options: Options, recipe: Recipe, default_target: str) -> Job:
    """The job: the command line over the recipe's `train` section; a resumed run keeps what it was begun with."""
    train = recipe.train
    before = previous(options.folder) if options.resume else None
    return Job.model_validate(
        {
            "recipe": options.recipe_file,
            "folder": options.folder,
            "target": target_of(options, recipe) or default_target,
            "mode": options.mode or (before.mode if before else train.mode),
            "device_id": train.device_id if options.device_id is None else options.device_id,
            "seed": options.seed if options.seed is not None or before is None else before.seed,
            "epochs": options.epochs or (before.epochs if before else None),
            "amp": precision(options),
            "processes": options.spread.processes,
            "resume": options.resume,
            "start": start_of(options),
            "max_steps": options.max_steps,
        }
    )


def target_of(options: Options, recipe: Recipe) -> str | None:
    """The target that the command line names, or the run to resume, or the recipe; None for any that is available."""
    before = previous(options.folder) if options.resume else None
    named = next((t for t in ("Ascend", "GPU", "CPU") if t.lower() == (options.target or "").lower()), None)
    return named or (before.target if before else recipe.train.target)


def start_of(options: Options) -> Path | None:
    """The torch training checkpoint that the run begins with, or began with if it came to no checkpoint of its own."""
    if options.resume and holds_a_run(options.folder):
        return None
    if options.continue_from is not None:
        return recipes.expanded(options.continue_from).absolute()
    before = previous(options.folder) if options.resume else None
    return before.start if before else None


def previous(folder: Path) -> Job | None:
    """The job that a run folder was last used for, or None where no job can be read there."""
    try:
        return Job.read(folder / JOB_FILE)
    except (OSError, ValueError):
        return None


def gate_of(folder: Path) -> dict[str, Any] | None:
    """What the log of the run in this folder says of its proof."""
    before = previous(folder)
    return (read(folder / LOG).gate or before.gate) if before else None


def holds_a_run(folder: Path) -> bool:
    """Whether there is a checkpoint in this run folder, and so something to continue and to keep."""
    return any(folder.glob("checkpoints/*.ckpt"))


def folder_problem(options: Options) -> str | None:
    """Why the run's folder cannot be used, in one line, or None; nothing is changed."""
    folder = options.folder
    there = next((path for path in (folder, *folder.parents) if path.exists()), folder)
    if not there.is_dir():
        return f"{folder} cannot be the run's folder: {there} is a file; name another with --out"
    if not os.access(there, os.W_OK | os.X_OK):
        return f"{folder} cannot be the run's folder: no permission for {there}; name another with --out"
    if options.node_rank:
        return None  # the first machine looks after the folder
    if holds_a_run(folder):
        why = "continue it with --resume, or name another folder with --out"
        return None if options.resume else f"{folder} holds a run: {why}"
    if folder.is_dir() and (foreign := [path.name for path in folder.iterdir() if not LEFTOVERS.match(path.name)]):
        return f"{folder} is not empty ({min(foreign)}): name another folder with --out"
    if options.resume and options.recipe is None and options.out is not None and previous(folder) is None:
        return f"{folder} holds no run that says what it trains: name the RECIPE for a new one, or correct --out"
    return None


def check_checkpoints(options: Options) -> None:
    """Raise BadInput where the run to resume has checkpoints, and no sound one, before any work is done."""
    folder = options.folder / "checkpoints"
    if not options.resume or options.node_rank or not holds_a_run(options.folder):
        return
    if checkpoints.newest(folder, lambda text: None) is None:
        raise BadDestination(f"{folder} holds checkpoints, and none of a run of msmigrate train: correct --out")


def begins_anew(options: Options) -> bool:
    """Whether there is nothing to resume, such as after a run that was killed before its first checkpoint."""
    return options.resume and not options.node_rank and not holds_a_run(options.folder)


@contextmanager
def claimed(options: Options) -> Iterator[Path]:
    """Make the run's folder and keep other runs out of it while the block runs; a new one left empty is removed again.

    The log of a run that left no checkpoint is removed, because a new one begins. Raises BadDestination where the
    folder cannot be made or used, or where another run is at work in it.
    """
    problem = folder_problem(options)
    if problem:
        raise BadDestination(problem)
    folder = options.folder
    made = [path for path in (folder, *folder.parents) if not path.exists()]
    try:
        folder.mkdir(parents=True, exist_ok=True)
        descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    except OSError as error:
        raise BadDestination(f"{folder} cannot be the run's folder: {error.strerror or error}") from None
    try:
        if not options.node_rank:
            _lock(descriptor, folder)
            if not options.resume or begins_anew(options):
                (folder / LOG).unlink(missing_ok=True)
        yield folder
    finally:
        os.close(descriptor)  # and with it goes the lock
        with contextlib.suppress(OSError):  # a folder that holds something now
            for path in made:
                path.rmdir()


def _lock(descriptor: int, folder: Path) -> None:
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        raise BadDestination(f"another run is at work in {folder}: name another folder with --out") from None
    except OSError:
        pass  # a file system without locks
