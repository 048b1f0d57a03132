"""A step that goes on from a torch training checkpoint.

continued.pth    the checkpoint's weights alone, under the names of the bare model
continued.ckpt   all of it as `convert-ckpt --training` brings it to MindSpore, which the MindSpore side goes on from

Torch's own side takes optimizer, loss scale and moving average from the checkpoint itself. Only the parameter that a
state belongs to comes from the conversion, because torch numbers parameters and does not name them.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from ...errors import BadCheckpoint, BadInput
from ...mappings import table
from ...migrate.checkpoint.convert import convert
from ...migrate.checkpoint.formats.reader import EPOCH, GROUPS, STEPS
from ...training import checkpoints
from ...training.checkpoints import is_foreign
from ...training.recipe.schema import Recipe
from ..job import BARE, TRAINING

NOTES = "continued"  # in the head of MindSpore's trace


class Position(NamedTuple):
    """Where a run stands: optimizer steps taken, how often its schedule has moved, steps of an epoch (as far as the
    file says; both sides only have to count alike)."""

    steps: int
    epoch: int
    steps_per_epoch: int


def prepare(path: Path, folder: Path, recipe: Recipe) -> None:
    """Leave both files in `folder`.

    Raises BadInput for a file that is not torch's, BadCheckpoint for one without an optimizer's state, and what
    convert-ckpt raises.
    """
    if not is_foreign(path):
        raise BadInput(
            f"{path} is MindSpore's: the proof compares MindSpore with torch's own resuming, so name the torch file "
            "that it was converted from"
        )
    convert(path, folder / BARE, to="torch")
    convert(path, folder / TRAINING, training=True, optimizer=table.row(recipe.optimizer.name).torch)
    if GROUPS not in read(folder):
        raise BadCheckpoint(
            f"{path}: it holds no optimizer's state to go on from; model.checkpoint takes weights alone"
        )


def notes(options_file: Path | None, about: Mapping[str, Any]) -> list[str]:
    """The notes of a report: the file, and what MindSpore's side noted when it read the converted one."""
    if options_file is None:
        return []
    said = about.get(NOTES)
    return [f"the steps go on from {options_file}", *(map(str, said) if isinstance(said, list) else [])]


def read(folder: Path) -> dict[str, np.ndarray]:
    """The tensors of continued.ckpt."""
    return checkpoints.read(folder / TRAINING).tensors


def told(given: Mapping[str, np.ndarray]) -> dict[str, Any]:
    """The converted file's record of the optimizer: its class, param_groups with names under params, epoch."""
    found: dict[str, Any] = json.loads(given[GROUPS].tobytes())
    return found


def position(given: Mapping[str, np.ndarray], recipe: Recipe) -> Position:
    """The position of the file's run; raises BadCheckpoint where the file does not say."""
    schedule = recipe.schedule
    if STEPS not in given and (EPOCH not in given or schedule is None):
        raise BadCheckpoint(
            "the file does not say how many steps were taken: save global_step with the weights, or the scheduler's "
            "state"
        )
    moved = int(given[EPOCH]) if EPOCH in given else None
    by_epoch = schedule is not None and schedule.per == "epoch"
    if by_epoch:
        if STEPS not in given:
            assert moved is not None
            return Position(moved, moved, 1)
        steps = int(given[STEPS])
        epochs = moved if moved is not None else told(given).get("epoch")
    else:
        steps = int(given[STEPS]) if STEPS in given else int(moved or 0)
        epochs = told(given).get("epoch")
    each = max(1, steps // epochs) if isinstance(epochs, int) and epochs > 0 else 1
    if moved is None:
        moved = steps // each if by_epoch else steps
    return Position(steps, moved, each)
