"""MindSpore's side of a step that goes on from a torch training checkpoint: what `train --continue-from` does."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from ..train.step.mindspore_converted_state import completed
from ..train.step.mindspore_step import TrainStep
from .continued import position


def go_on(step: TrainStep, given: Mapping[str, np.ndarray]) -> list[str]:
    """Give the step the state of the converted file; what is worth knowing of it. Raises BadCheckpoint."""
    whole, notes = completed(step, given, position(given, step.recipe).steps_per_epoch)
    step.load_state(whole)
    return notes
