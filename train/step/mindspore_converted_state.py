"""What `convert-ckpt --training` brought from a torch training checkpoint, completed to what a step here remembers.

Torch holds only the state that its optimizer uses, and no count that it does not need; MindSpore holds every slot. What
torch does not hold stays as it is before the first step.
"""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

from ...errors import BadCheckpoint
from ...mappings import table
from .mindspore_step_state import EPOCH, GROUPS, SCALE, STEPS, SWITCHES, TRACKER, state

if TYPE_CHECKING:
    from .mindspore_step import TrainStep

CLOSE = 1e-6  # a rate in float32 against one in float64
COMPARED = ("momentum", "dampening", "nesterov", "betas", "eps", "alpha", "centered", "amsgrad", "maximize")


def completed(
    step: TrainStep, given: Mapping[str, np.ndarray], steps_per_epoch: int
) -> tuple[dict[str, np.ndarray], list[str]]:
    """The whole state for `TrainStep.load_state`, and what is worth knowing.

    given: the tensors of the converted file by name; the net's own are passed over. steps_per_epoch: of the run that
    goes on, by which epochs become steps where the file counts only these. Raises BadCheckpoint for a state of another
    optimizer, or one that lacks what the recipe uses.
    """
    notes: list[str] = []
    whole = state(step)
    steps = _steps(step, given, steps_per_epoch)
    _optimizer(step, given, whole, steps, notes)
    _average(step, given, whole, notes)
    if step.scaler is not None and step.recipe.dynamic_loss_scale is not None:
        if SCALE in given:
            whole[SCALE] = given[SCALE].astype(np.float32).reshape(whole[SCALE].shape)
            whole[TRACKER] = given[TRACKER].astype(np.int32).reshape(whole[TRACKER].shape)
        else:
            notes.append("the file has no loss scale: it starts as the recipe says")
    whole[STEPS] = np.array(steps, np.int64)
    if EPOCH in whole:
        whole[EPOCH] = np.array(_epoch(step, given, steps, steps_per_epoch), np.int64)
    return whole, notes


def _steps(step: TrainStep, given: Mapping[str, np.ndarray], steps_per_epoch: int) -> int:
    """How many steps were taken."""
    if STEPS in given:
        return int(given[STEPS])
    schedule = step.recipe.schedule
    if EPOCH in given and schedule is not None:
        return int(given[EPOCH]) * (steps_per_epoch if schedule.per == "epoch" else 1)
    raise BadCheckpoint(
        "the file does not say how many steps were taken: keep global_step beside the weights, or the scheduler's state"
    )


def _epoch(step: TrainStep, given: Mapping[str, np.ndarray], steps: int, steps_per_epoch: int) -> int:
    """Where the schedule is."""
    assert step.recipe.schedule is not None
    per_epoch = step.recipe.schedule.per == "epoch"
    expected = steps // steps_per_epoch if per_epoch else steps
    if EPOCH in given and int(given[EPOCH]) != expected:
        raise BadCheckpoint(
            f"the file's schedule is at {int(given[EPOCH])} after {steps} steps, the recipe's would be at {expected} "
            f"(it moves once {'an epoch' if per_epoch else 'a step'}): it is another schedule, or another batch size"
        )
    return expected


def _optimizer(
    step: TrainStep, given: Mapping[str, np.ndarray], whole: dict[str, np.ndarray], steps: int, notes: list[str]
) -> None:
    row = table.row(step.recipe.optimizer.name)
    held = {name.split(".", 2)[1] for name in given if name.startswith("optimizer.")}
    foreign = held - {item.torch for item in row.state}
    if foreign:
        kind = step.recipe.optimizer.name.rpartition(".")[2]
        raise BadCheckpoint(f"the file holds {', '.join(sorted(foreign))}, which {kind} does not: another optimizer's")
    for item in row.state:
        if item.torch is None or item.mindspore is None:
            continue
        key = f"optimizer.{item.torch}"
        if item.verb == "shared":
            if key not in given and steps:
                raise BadCheckpoint(
                    f"the file's optimizer has no {item.torch}: another optimizer's, or no step was taken"
                )
            whole[key] = np.array(given.get(key, 0), whole[key].dtype).reshape(whole[key].shape)
            continue
        used = [n for n in step.names if item.torch not in SWITCHES or bool(step.group(n)[SWITCHES[item.torch]])]
        missing = [name for name in used if f"{key}.{name}" not in given]
        if used and len(missing) == len(used) and steps:
            raise BadCheckpoint(f"the file's optimizer has no {item.torch}, and the recipe's uses it")
        if missing:
            notes.append(
                f"{item.torch} of {missing[0]} and {len(missing) - 1} others is not in the file and starts anew"
            )
        whole.update({n: given[n] for n in whole if n.startswith(f"{key}.") and n in given})
    for item in row.state:  # what torch tells by whether there is a buffer
        if item.torch is None and item.fill is not None:
            for name in step.names:
                if f"optimizer.momentum_buffer.{name}" in given:
                    slot = f"optimizer.{item.mindspore}.{name}"
                    whole[slot] = np.full_like(whole[slot], item.fill)
    _compare_groups(step, given, notes)


def _average(step: TrainStep, given: Mapping[str, np.ndarray], whole: dict[str, np.ndarray], notes: list[str]) -> None:
    held = {name for name in given if name.startswith("ema.")}
    wanted = {name for name in whole if name.startswith("ema.")}
    if held and not wanted:
        notes.append("the file's moving average is left out: the recipe has no ema")
    elif wanted and not held:
        notes.append("the file has no moving average: it starts as a copy of the weights")
    elif wanted - held:
        raise BadCheckpoint(f"the file's moving average lacks {min(wanted - held).removeprefix('ema.')}")
    whole.update({name: given[name] for name in wanted & held})


def _compare_groups(step: TrainStep, given: Mapping[str, np.ndarray], notes: list[str]) -> None:
    """Say where the file's parameter groups were trained with other options than the recipe's."""
    if GROUPS not in given:
        return
    try:
        groups = json.loads(given[GROUPS].tobytes())["param_groups"]
        options: dict[str, Mapping[str, Any]] = {name: group for group in groups for name in group["params"]}
    except (ValueError, KeyError, TypeError, RecursionError):
        raise BadCheckpoint(f"{GROUPS} is damaged") from None
    told: dict[str, list[str]] = {}
    decays = step.weight_decays()
    for name in step.names:
        before = options.get(name)
        if before is None:
            told.setdefault("is not in the file's optimizer", []).append(name)
            continue
        now = {"weight_decay": decays[name], **{key: step.group(name).get(key) for key in COMPARED}}
        for key, value in now.items():
            if key in before and not _same(before[key], value):
                told.setdefault(f"was trained with {key} {before[key]}, the recipe says {value}", []).append(name)
    notes += [
        f"{names[0]}{f' and {len(names) - 1} others' if len(names) > 1 else ''}: it {text}"
        for text, names in told.items()
    ]


def _same(before: Any, now: Any) -> bool:
    if isinstance(before, (list, tuple)) and isinstance(now, (list, tuple)):
        return len(before) == len(now) and all(map(_same, before, now))
    if isinstance(before, (int, float)) and isinstance(now, (int, float)):
        return math.isclose(before, now, rel_tol=CLOSE, abs_tol=1e-12)
    return now is None or before is None
