"""From the job to the first step: data, net, weights, resumed or continued."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import mindspore
import numpy as np
from mindspore import nn

from ...errors import BadCheckpoint, BadDestination, MsmigrateError
from ...mappings import table
from ...migrate.checkpoint.convert import convert
from ...migrate.checkpoint.stored_source import source_digest
from ...printable import few
from .. import checkpoints, mindspore_device
from ..checkpoints import Facts, Progress, check_resumable, is_foreign
from ..data.mindspore_dataloader import Loader
from ..data.sources import open_sources
from ..models import mindspore_models
from ..models.mindspore_models import load_start, load_weights
from ..recipe.schema import Recipe
from ..step.mindspore_step import TrainStep
from ..step.mindspore_step_state import completed, load_state
from .mindspore_distributed import Team
from .mindspore_validation import Validator
from .mindspore_watchpoints import Watchpoints
from .run_log import RunLog, Scalars
from .train_job import Job


def opened(path: Path, folder: Path, recipe: Recipe) -> checkpoints.Checkpoint:
    """The converted checkpoint; a torch file is first converted into the run's folder, for the recipe's optimizer.

    Raises BadCheckpoint, Ambiguous or Unsupported as convert-ckpt does.
    """
    stored = path
    if is_foreign(path):
        stored = folder / "start.ckpt"
        kind = table.row(recipe.optimizer.name).torch
        convert(path, stored, training=True, force=True, optimizer=kind)
    found = checkpoints.read(stored)
    if found.run is not None:
        raise BadCheckpoint(f"{path} is a checkpoint of msmigrate train: go on from it with --resume")
    return found


def go_on(
    step: TrainStep, found: checkpoints.Checkpoint, path: Path, steps_per_epoch: int
) -> tuple[Progress, list[str]]:
    """Give the step its state; returns the run's position, and notes. Raises BadCheckpoint."""
    try:
        whole, notes = completed(step, found.tensors, steps_per_epoch)
        load_state(step, whole)
    except MsmigrateError as error:
        raise type(error)(f"{path}: {error}") from None
    epoch, within = divmod(step.steps, steps_per_epoch)
    return Progress(step=step.steps, epoch=epoch, step_in_epoch=within), notes


@dataclass
class Run:
    """Everything that the loop works with."""

    job: Job
    recipe: Recipe
    facts: Facts
    progress: Progress
    team: Team
    log: RunLog
    net: nn.Cell
    step: TrainStep
    loader: Loader
    validator: Validator | None
    watch: Watchpoints | None
    scalars: Scalars | None


def use(job: Job, local_rank: int) -> None:
    """Choose the device; raises Unsupported in one line where MindSpore cannot use it."""
    mindspore_device.use(job.target, job.device_id + local_rank, mindspore.PYNATIVE_MODE)


def make_net(recipe: Recipe, seed: int, team: Team) -> tuple[nn.Cell, list[str]]:
    """The net that is trained, newly drawn, and the names of its frozen parameters."""
    mindspore.set_seed(seed)
    net = mindspore_models.of_recipe(recipe.model)
    frozen = mindspore_models.fine_tune(net, recipe.model)
    return team.with_shared_statistics(net) if recipe.sync_batchnorm else net, frozen


def make_step(recipe: Recipe, net: nn.Cell, mode: str, team: Team) -> TrainStep:
    """The step that is trained with, on a net that has its weights."""
    look = recipe.train.finite if team.size == 1 else "gradients"  # their mean is the same in every process
    step = TrainStep(recipe, net.set_train(), mode=mode, look=look)
    step.reduce = team.reducer(step.weights, recipe.train.all_reduce_fusion)
    return step


def build(job: Job, recipe: Recipe, team: Team, log: RunLog) -> Run:
    """Open the data, make and fill the net, and restore the run's position.

    Raises what opening the sources raises; BadRecipe and BadInput where data, model and recipe do not fit together;
    BadCheckpoint for weights that do not fit the net; BadDestination where there are another run's checkpoints.
    """
    seed = recipe.seed if job.seed is None else job.seed
    source, validation = open_sources(recipe.data, recipe.model)
    loader = Loader(source, recipe, training=True, rank=team.rank, world=team.size, seed=seed, warn=log.warn)
    validator = None
    net, frozen = make_net(recipe, seed, team)
    if validation is not None:
        tested = Loader(validation, recipe, training=False, rank=team.rank, world=team.size, seed=seed, warn=log.warn)
        validator = Validator(recipe, tested, job.mode, team)
    facts = Facts(
        recipe=recipe,
        seed=seed,
        images=len(source),
        steps_per_epoch=loader.steps_per_epoch,
        processes=team.size,
        classes=source.classes,
        mode=job.mode,
        target=job.target,
        versions={"mindspore": mindspore.__version__, "numpy": np.__version__},
        source_digest=source_digest(recipe.model.source) if recipe.model.source is not None else None,
    )
    found = _where_it_stands(job, facts, team, log)
    start = None
    if found is None and job.start is not None:
        start = opened(job.start, job.folder, recipe)
    if start is not None and job.start is not None:
        load_weights(net, start.weights, str(job.start), recipe)
    elif found is None and recipe.model.checkpoint is not None and team.rank == 0:
        fresh = load_start(net, recipe, job.folder)
        if fresh:
            log.note(f"model.fresh: drawn anew, not taken from {recipe.model.checkpoint}: {few(fresh)}")
    elif found is not None:
        load_weights(net, found[1].weights, str(found[0]), recipe)
    if found is None:
        team.share(net)
    if frozen and team.rank == 0:
        log.note(f"model.freeze: {len(frozen)} parameters do not train: {few(frozen)}")
    step = make_step(recipe, net, job.mode, team)
    progress = Progress()
    if found is not None:
        path, checkpoint = found
        assert checkpoint.run is not None
        progress = Progress.of(path, checkpoint.run)
        load_state(step, checkpoint.tensors)
        if team.rank == 0:
            log.note(f"going on from {path}, after step {progress.step}")
    elif start is not None and job.start is not None:
        progress, notes = go_on(step, start, job.start, loader.steps_per_epoch)
        if team.rank == 0:
            log.note(f"going on from {job.start}, after step {progress.step}")
            for note in notes:
                log.warn(f"{job.start}: {note}")
    if validator is not None:
        validator.rehearse()
    watch = Watchpoints(step, recipe.train.watch) if recipe.train.watch is not None else None
    scalars = None
    if recipe.train.tensorboard and team.rank == 0:
        scalars = Scalars(job.folder / "tensorboard", progress.step)
    return Run(job, recipe, facts, progress, team, log, net, step, loader, validator, watch, scalars)


def _where_it_stands(job: Job, facts: Facts, team: Team, log: RunLog) -> tuple[Path, checkpoints.Checkpoint] | None:
    """The checkpoint to continue from, the same in every process; None for a new run."""
    folder = job.checkpoints
    say = log.warn if team.rank == 0 else _nothing
    found = checkpoints.newest(folder, say) if job.resume else None
    if found is None and team.rank == 0 and any(folder.glob("*.ckpt")):
        raise BadDestination(f"{folder} holds the checkpoints of another run: add --resume, or take another --out")
    if not job.resume:
        return None
    step, path = -1, None
    if found is not None:
        path, checkpoint = found
        assert checkpoint.run is not None
        for note in check_resumable(path, checkpoint.run, facts):
            say(note)
        step = Progress.of(path, checkpoint.run).step
    if team.mean([float(step)]) != [float(step)]:
        raise BadCheckpoint(
            f"the processes found different newest checkpoints (this one {path}): start them again; with several "
            "machines, --out has to be a folder that all of them share"
        )
    if team.rank == 0 and found is None:
        log.note(f"there is no checkpoint in {folder} to go on from: the run begins anew")
    elif team.rank == 0:
        for aside in checkpoints.set_aside(folder, step):
            log.note(f"a damaged checkpoint is now called {aside}")
    return found


def _nothing(text: str) -> None:
    """Drops a text that another process logs already."""
