"""Keeping a run's checkpoints: what goes into one, and which of them stay. Rank 0 alone writes."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from ...migrate.training_names import GROUPS
from ..models.mindspore_names import canonical_parameters
from ..step.mindspore_groups import told_to_torch
from . import checkpoints
from .mindspore_setup import Run


class Keeper:
    """Writes checkpoints of a run; `newest` is the step of the last one, in every process."""

    def __init__(self, run: Run) -> None:
        self.run = run
        self.newest: int | None = None

    def save(self) -> None:
        """Write the checkpoint of this step and let go of old ones. Raises BadDestination."""
        folder, step = self.run.job.checkpoints, self.run.progress.step
        self._write(checkpoints.path_of(folder, step), best=False)
        if self.run.team.rank == 0:
            checkpoints.retain(folder, self.run.recipe.train.keep)
        self.newest = step

    def save_best(self) -> None:
        """Write the best checkpoint so far in the place of the one before. Raises BadDestination."""
        self._write(self.run.job.checkpoints / checkpoints.BEST, best=True)

    def _write(self, path: Path, *, best: bool) -> None:
        run = self.run
        if run.team.rank != 0:
            return
        weights = {held.parameter.name: held.parameter.asnumpy() for held in canonical_parameters(run.net)}
        tensors: dict[str, np.ndarray] = {**weights, **run.step.state(), GROUPS: told_to_torch(run.step)}
        checkpoints.write(path, tensors, {**run.facts.record(), **run.progress.record()})
        run.log.say("checkpoint", path=str(path), step=run.progress.step, best=best)
