"""Go on in MindSpore from a torch training checkpoint: weights, optimizer, schedule, loss scale, moving average."""

from __future__ import annotations

from pathlib import Path

from mindspore import Tensor, nn

from ...errors import BadCheckpoint, MsmigrateError
from ...mappings import table
from ...migrate.convert import convert
from ..inference.inference_weights import fit, is_foreign
from ..models.mindspore_names import canonical_parameters
from ..recipe import Recipe
from ..step.mindspore_converted_state import completed
from ..step.mindspore_step import TrainStep
from . import checkpoints
from .run_state import Progress


def opened(path: Path, folder: Path, recipe: Recipe) -> checkpoints.Checkpoint:
    """The converted checkpoint; a torch file is converted into the run's folder first, as the recipe's optimizer's.

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


def fill(net: nn.Cell, found: checkpoints.Checkpoint, path: Path, recipe: Recipe) -> None:
    """Give the net its weights; raises BadCheckpoint where they do not fit."""
    held = {each.parameter.name: each.parameter for each in canonical_parameters(net)}
    wanted = {name: (tuple(p.shape), str(p.dtype).lower()) for name, p in held.items()}
    for name, array in fit(str(path), found.weights, wanted, recipe).items():
        held[name].set_data(Tensor(array))


def go_on(
    step: TrainStep, found: checkpoints.Checkpoint, path: Path, steps_per_epoch: int
) -> tuple[Progress, list[str]]:
    """Give the step its state; where the run stands now, and what is worth knowing. Raises BadCheckpoint."""
    try:
        whole, notes = completed(step, found.tensors, steps_per_epoch)
        step.load_state(whole)
    except MsmigrateError as error:
        raise type(error)(f"{path}: {error}") from None
    epoch, within = divmod(step.steps, steps_per_epoch)
    return Progress(step=step.steps, epoch=epoch, step_in_epoch=within), notes
