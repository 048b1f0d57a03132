"""From the job to the first step: data, net, weights, resumed or continued; and the net that validates while training.

That is a net of its own, in float32 and evaluation mode, that borrows the weights to measure. For a net without
classes, the recipe's own loss is measured. The training net stays in training mode and compiled as it is, so that
validation changes nothing in training, and the result is what `msmigrate eval` will measure for the checkpoint.
"""

from __future__ import annotations

import re
import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import mindspore
import numpy as np
from mindspore import Tensor, nn

from ...errors import BadCheckpoint, BadDestination, BadRecipe, DoesNotCompile, MsmigrateError
from ...mappings import table
from ...migrate.checkpoint.convert import convert
from ...migrate.checkpoint.inspect_file import source_digest
from ...printable import few
from .. import checkpoints, device_targets
from ..checkpoints import Facts, Progress, check_resumable, is_foreign
from ..data.mindspore_dataloader import Batch, Loader
from ..data.sources import open_sources
from ..metrics import Metrics, Tally
from ..models import mindspore_models
from ..models.mindspore_models import canonical_parameters, load_start, load_weights
from ..recipe.schema import Recipe
from ..step.mindspore_amp import first_tensor
from ..step.mindspore_compile import Graphs
from ..step.mindspore_step import Images, TrainStep, build_loss, inputs_of
from ..step.mindspore_step_state import completed, load_state
from .mindspore_distributed import Team
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
    device_targets.use(job.target, job.device_id + local_rank, mindspore.PYNATIVE_MODE)


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


# messages of MindSpore's CPU and device backends, oneDNN and the C++ library when memory has run out
MEMORY = re.compile(
    r"allocate memory failed|memory not enough|out of memory|memory is not enough|malloc device memory failed"
    r"|device memory .*insufficient|could not create a memory object|std::bad_alloc|cannot allocate memory",
    re.IGNORECASE,
)


# and MindSpore's messages when images do not fit a net
SHAPES = re.compile(r"shape|C_in|channel|dimension|rank of", re.IGNORECASE)


def refuse_misfit(error: Exception, images: Images, given: str) -> None:
    """Raise BadRecipe where an error of MindSpore's says that the net cannot take these images."""
    arrays = inputs_of(images)
    error = error.__cause__ if isinstance(error.__cause__, Exception) else error  # in MindSpore's own words
    if SHAPES.search(str(error)) and not MEMORY.search(str(error)):
        size = " and ".join(" × ".join(map(str, each.shape[1:])) or "one number" for each in arrays)
        what = "images" if len(arrays) == 1 and arrays[0].ndim == 4 else "inputs"
        first = next((line.strip() for line in str(error).splitlines() if SHAPES.search(line)), "")
        raise BadRecipe(f"the net cannot be run on the {what} of {size} that {given}: {first[:300]}") from error


class Validator:
    """Measures weights on all images of a validation loader.

    mode: "graph" compiles the forward pass. team: its processes measure rank 0's weights, each on its share of the
    images. seconds: duration of the last measurement.
    """

    def __init__(self, recipe: Recipe, loader: Loader, mode: str, team: Team) -> None:
        self.loader, self.team = loader, team
        self.net = mindspore_models.of_recipe(recipe.model).set_train(False)
        self.seconds = 0.0
        self._parameters = {each.name: each.parameter for each in canonical_parameters(self.net)}
        self._by_class = bool(loader.source.classes)
        self._loss_function = build_loss(recipe)
        measured = self._logits if self._by_class else self._loss
        self._measured = mindspore.jit(measured) if mode == "graph" else measured

    def rehearse(self) -> None:
        """Compile, and run one batch, so that validation that cannot work fails before training begins.

        Raises what the loader raises, and BadRecipe where the net cannot be run on the images.
        """
        batches: Any = self.loader.epoch(0)
        batch = next(batches)
        batches.close()
        try:
            with Graphs().watching():
                found = self._of(batch).asnumpy()
        except (RuntimeError, TypeError, ValueError, DoesNotCompile) as error:
            refuse_misfit(error, batch.images, "data.validation and data.eval_transforms give")
            raise
        if self._by_class and found.ndim != 2:
            raise BadRecipe(
                f"the net returns {list(found.shape)} for a batch, but for labels that are classes (N, classes) is "
                "needed: remove model.classes, and its loss is measured"
            )

    def measure(self, weights: Mapping[str, Tensor]) -> Metrics:
        """The metrics of weights and buffers by state_dict name; they are copied and left as they are."""
        began = time.perf_counter()
        for name, parameter in self._parameters.items():
            parameter.copy_(weights[name])  # a compiled graph never sees a value that set_data puts in place
        self.team.share(self.net)
        tally = Tally()
        for batch, found in self._outputs():
            if self._by_class:
                tally.add(found.asnumpy()[: batch.count], batch.classes[: batch.count])
            else:
                tally.add_loss(float(found.asnumpy()), batch.count)
        tally.sums = self.team.total(tally.sums)
        self.seconds = time.perf_counter() - began
        return tally.metrics()

    def _outputs(self) -> Iterator[tuple[Batch, Tensor]]:
        """Each batch with its logits or loss, which are being computed while the next batch is fetched."""
        before: tuple[Batch, Tensor] | None = None
        for batch in self.loader.epoch(0):
            if not batch.count:
                continue
            if before is not None:
                yield before
            before = batch, self._of(batch)
        if before is not None:
            yield before

    def _of(self, batch: Batch) -> Tensor:
        """The logits of a batch, or the loss of those of its examples that count.

        For logits, a smaller batch is filled up with its last image, because MindSpore compiles again for another size.
        """
        if self._by_class:
            return self._measured(*(_full(each, self.loader.batch) for each in inputs_of(batch.images)))
        counted = slice(batch.count)
        return self._measured(batch.labels[counted], *(each[counted] for each in inputs_of(batch.images)))

    def _logits(self, *inputs: Tensor) -> Tensor:
        return first_tensor(self.net(*inputs))

    def _loss(self, labels: Tensor, *inputs: Tensor) -> Tensor:
        return self._loss_function(self.net(*inputs), labels)


def _full(images: Tensor, batch: int) -> Tensor:
    """The images, filled up with the last one to a whole batch."""
    missing = batch - images.shape[0]
    if missing <= 0:
        return images
    array = images.asnumpy()
    return Tensor(np.concatenate([array, np.repeat(array[-1:], missing, axis=0)]))
