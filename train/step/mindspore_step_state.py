"""What a training step remembers besides the weights: read it, and put it back, to the bit."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING

import numpy as np
from mindspore import Parameter, Tensor

from ...errors import BadCheckpoint
from ...mappings import table
from ...mappings.rows import State
from ...migrate.training_names import EPOCH, GROUPS, RUN, STEPS

if TYPE_CHECKING:
    from .mindspore_step import TrainStep

OURS = ("optimizer.", "ema.", "msmigrate.")
NOT_OURS = (RUN, GROUPS)  # which stand beside the state in a checkpoint
SCALE, TRACKER = "msmigrate.loss_scale", "msmigrate.growth_tracker"


def optimizer_state(step: TrainStep) -> dict[str, dict[str, Tensor]]:
    """Torch's state key -> state_dict name -> tensor; the mapping table says which attribute holds which key.

    MindSpore holds every slot from the start, torch only those that an update has written: the others are left out.
    """
    state: dict[str, dict[str, Tensor]] = {}
    for item in table.row(step.recipe.optimizer.name).state:
        if item.torch is None or item.mindspore is None:
            continue
        held = getattr(step.optimizer, item.mindspore)
        if isinstance(held, Tensor):  # one step counter for every parameter, where torch keeps one for each
            held = [held] * len(step.names)
        named = {n: t for n, t in zip(step.names, held, strict=True) if uses(step, item, n)}
        if any(t.asnumpy().any() for t in named.values()):
            state[item.torch] = named
    return state


def state(step: TrainStep) -> dict[str, np.ndarray]:
    """Everything that a step needs, besides the net's weights and buffers, to go on as if it had never stopped.

    optimizer.KEY.NAME: the optimizer's state by torch's key (MindSpore's where torch has none) and state_dict name,
    optimizer.KEY where one tensor serves all. ema.NAME: the moving average. msmigrate.…: steps taken (int64), epoch of
    the schedule (int64), loss scale (float32) and growth tracker (int32).
    """
    found = {name: parameter.asnumpy().copy() for name, parameter in _held(step)}
    return {**found, **{name: np.array(number, np.int64) for name, number in _counts(step).items()}}


def load_state(step: TrainStep, tensors: Mapping[str, np.ndarray]) -> None:
    """Put back what `state()` gave; names that are no part of a step's state (the net's own) are passed over.

    Raises BadCheckpoint, and changes nothing, when a tensor is missing, unknown, or of another shape or dtype: the
    state is of another recipe.
    """
    held, counts = dict(_held(step)), _counts(step)
    given = {name: array for name, array in tensors.items() if name.startswith(OURS) and name not in NOT_OURS}
    expected = [*held, *counts]
    for name in expected:
        if name not in given:
            raise BadCheckpoint(f"the training state has no {name}: it was saved under another recipe")
    for name, array in given.items():
        if name in held:
            shape, dtype = held[name].shape, held[name].asnumpy().dtype
        elif name in counts:
            shape, dtype = (), np.dtype(np.int64)
        else:
            raise BadCheckpoint(f"the training state has {name}, which this recipe's step does not: another recipe's")
        if tuple(array.shape) != tuple(shape) or array.dtype != dtype:
            raise BadCheckpoint(
                f"{name} in the training state: expected {dtype} {list(shape)}, got {array.dtype} {list(array.shape)}"
            )
    if min((int(given[name]) for name in counts), default=0) < 0:
        raise BadCheckpoint("the training state counts fewer than no steps: it is damaged")
    for name, parameter in held.items():
        # copy_, for a compiled graph never sees what set_data puts in place; and ascontiguousarray would give a scalar
        # a dimension
        parameter.copy_(Tensor(np.array(given[name], order="C")))
    step.restore_counts(int(given[STEPS]), int(given[EPOCH]) if EPOCH in counts else 0)


def _held(step: TrainStep) -> Iterator[tuple[str, Parameter]]:
    """Name in the state -> the parameter that holds it."""
    for item in table.row(step.recipe.optimizer.name).state:
        if item.mindspore is None:
            continue
        key = f"optimizer.{item.torch or item.mindspore}"
        held = getattr(step.optimizer, item.mindspore)
        if isinstance(held, Tensor):
            yield key, held
        else:
            for name, parameter in zip(step.names, held, strict=True):
                yield f"{key}.{name}", parameter
    if step.average is not None:
        for name, parameter in step.average.tensors().items():
            yield f"ema.{name}", parameter
    if step.scaler is not None:
        yield SCALE, step.scaler.scale
        yield TRACKER, step.scaler.growth_tracker


def _counts(step: TrainStep) -> dict[str, int]:
    counts = {STEPS: step.steps}
    return counts if step.schedule is None else {**counts, EPOCH: step.schedule.epoch}


def uses(step: TrainStep, item: State, name: str) -> bool:
    """Whether the arguments of a parameter's group make torch hold this state."""
    return item.when is None or bool(step.group(name)[item.when])
