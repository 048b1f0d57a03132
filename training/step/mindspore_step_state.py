"""The state of a step: saved, loaded, completed from a torch training checkpoint, written for torch.

Torch holds only the state that its optimizer uses, and no count that it does not need; MindSpore holds every slot.
Slots that torch does not have keep their values from before the first step.
"""

from __future__ import annotations

import json
import math
from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np
from mindspore import Parameter, Tensor

from ...errors import BadCheckpoint
from ...input_files import json_value
from ...mappings import table
from ...mappings.rows import State
from ...migrate.checkpoint.formats.reader import EPOCH, GROUPS, RUN, STEPS
from .mindspore_step import TrainStep

CLOSE = 1e-6  # relative difference of a rate in float32 from one in float64


def completed(
    step: TrainStep, given: Mapping[str, np.ndarray], steps_per_epoch: int
) -> tuple[dict[str, np.ndarray], list[str]]:
    """The whole state for `load_state`, and notes.

    given: the tensors of the converted file by name; the net's own are passed over. steps_per_epoch: of the continued
    run, to convert epochs to steps where the file counts only epochs. Raises BadCheckpoint for a state of another
    optimizer, or one that lacks what the recipe uses.
    """
    notes: list[str] = []
    whole = state(step)
    steps = _steps(step, given, steps_per_epoch)
    _optimizer(step, given, whole, steps, notes)
    epoch, finished = _groups_in(given).get("epoch"), steps // steps_per_epoch
    if isinstance(epoch, int) and epoch not in (finished, finished - 1):  # scripts save the next epoch or the last one
        notes.append(
            f"the file is from epoch {epoch}, and its {steps} steps are {finished} epochs of this run's "
            f"{steps_per_epoch} steps: the steps count"
        )
    _average(given, whole, notes)
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
        "the file does not say how many steps were taken: save global_step with the weights, or the scheduler's state"
    )


def _epoch(step: TrainStep, given: Mapping[str, np.ndarray], steps: int, steps_per_epoch: int) -> int:
    """The position of the schedule."""
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
    before = _groups_in(given)
    kind = before.get("optimizer")
    if kind is not None and kind != row.torch:
        raise BadCheckpoint(f"the file's optimizer is {kind}, the recipe's {row.torch}: another optimizer's state")
    keys = {name.split(".", 2)[1] for name in given if name.startswith("optimizer.")}
    foreign = keys - {item.torch for item in row.state}
    if foreign:
        raise BadCheckpoint(
            f"the file holds {', '.join(sorted(foreign))}, which {row.short} does not: another optimizer's"
        )
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
        used = [name for name in step.names if uses(step, item, name)]
        missing = [name for name in used if f"{key}.{name}" not in given]
        if used and len(missing) == len(used) and steps:
            raise BadCheckpoint(f"the file's optimizer has no {item.torch}, and the recipe's uses it")
        if missing:
            notes.append(
                f"{item.torch} of {missing[0]} and {len(missing) - 1} others is not in the file and starts anew"
            )
        whole.update({n: given[n] for n in whole if n.startswith(f"{key}.") and n in given})
    started = {name.split(".", 2)[2] for name in given if name.startswith("optimizer.") and name.count(".") > 1}
    for item in row.state:  # flags that torch expresses by whether a buffer exists
        if item.torch is None and item.fill is not None:
            slot = f"optimizer.{item.mindspore}"
            slots = [f"{slot}.{name}" for name in step.names if name in started]
            if item.verb == "shared":
                slots = [slot] if started else []
            whole.update({name: np.full_like(whole[name], item.fill) for name in slots})
    _compare_groups(step, before, notes)


def _average(given: Mapping[str, np.ndarray], whole: dict[str, np.ndarray], notes: list[str]) -> None:
    stored = {name for name in given if name.startswith("ema.")}
    wanted = {name for name in whole if name.startswith("ema.")}
    if stored and not wanted:
        notes.append("the file's moving average is left out: the recipe has no ema")
    elif wanted and not stored:
        notes.append("the file has no moving average: it starts as a copy of the weights")
    elif wanted - stored:
        raise BadCheckpoint(f"the file's moving average lacks {min(wanted - stored).removeprefix('ema.')}")
    whole.update({name: given[name] for name in wanted & stored})


def _groups_in(given: Mapping[str, np.ndarray]) -> dict[str, Any]:
    """The file's record of its optimizer and the parameter groups; empty where there is none."""
    if GROUPS not in given:
        return {}
    try:
        found: dict[str, Any] = json_value(given[GROUPS].tobytes())
        [name for group in found["param_groups"] for name in group["params"]]
        found.get("optimizer")
    except (ValueError, KeyError, TypeError, AttributeError):
        raise BadCheckpoint(f"{GROUPS} is damaged") from None
    return found


def _compare_groups(step: TrainStep, before: Mapping[str, Any], notes: list[str]) -> None:
    """Note where the file's parameter groups were trained with other options than the recipe's."""
    if not before:
        return
    then, now = (
        {name: group for group in groups for name in group["params"]}
        for groups in (before["param_groups"], json.loads(torch_groups(step).tobytes())["param_groups"])
    )
    moved = {"lr"}  # by the schedule
    if getattr(step.optimizer, "cycles", False):
        moved |= {"momentum", "betas"}
    compared = [a.torch for a in table.row(step.recipe.optimizer.name).arguments if a.to and a.torch not in moved]
    differences: dict[str, list[str]] = {}
    for name in step.names:
        if name not in then:
            differences.setdefault("is not in the file's optimizer", []).append(name)
            continue
        for key in compared:
            if key in then[name] and not _same(then[name][key], now[name].get(key)):
                was, says = then[name][key], now[name].get(key)
                differences.setdefault(f"was trained with {key} {was}, the recipe says {says}", []).append(name)
    notes += [
        f"{names[0]}{f' and {len(names) - 1} others' if len(names) > 1 else ''}: it {text}"
        for text, names in differences.items()
    ]


def _same(before: Any, now: Any) -> bool:
    if isinstance(before, (list, tuple)) and isinstance(now, (list, tuple)):
        return len(before) == len(now) and all(map(_same, before, now))
    if isinstance(before, (int, float)) and isinstance(now, (int, float)):
        return math.isclose(before, now, rel_tol=CLOSE, abs_tol=1e-12)
    return bool(before == now)


def torch_groups(step: TrainStep) -> np.ndarray:
    """uint8: JSON with what torch's `load_state_dict` takes besides tensors.

    `optimizer`: torch's class. `param_groups`: each with all options, the rate in force as `lr`, and the names of its
    parameters. `scaler`: with a dynamic loss scale, its rule.
    """
    row = table.row(step.recipe.optimizer.name)
    found: dict[str, Any] = {"optimizer": row.torch, "param_groups": []}
    for index, group in enumerate(step.optimizer.param_groups):
        names = [name for name in step.names if step.group(name) is group]
        given = {**step.recipe.optimizer.args, **step.group_args[index]}
        options = {key: _plain(value) for key, value in table.arguments(row.torch, given).items() if key != "params"}
        rates = {"lr": float(group["lr"])}
        if step.schedule is not None:
            rates |= step.schedule.group_options(index)
        found["param_groups"].append({**options, **rates, "params": names})
    rule = step.recipe.dynamic_loss_scale
    if rule is not None:
        found["scaler"] = {key: getattr(rule, key) for key in ("growth_factor", "backoff_factor", "growth_interval")}
    return np.frombuffer(json.dumps(found, allow_nan=False).encode(), np.uint8)


def _plain(value: Any) -> Any:
    return list(value) if isinstance(value, tuple) else value


OURS = ("optimizer.", "ema.", "msmigrate.")
NOT_OURS = (RUN, GROUPS)  # entries of a checkpoint that are not part of the state
SCALE, TRACKER = "msmigrate.loss_scale", "msmigrate.growth_tracker"


def momenta(step: TrainStep) -> dict[str, float]:
    """State_dict name -> the momentum, or beta1, that its next update uses; empty where no schedule moves it."""
    optimizer = step.optimizer
    if not getattr(optimizer, "cycles", False):
        return {}
    groups = enumerate(optimizer.param_groups)
    return {name: optimizer.momentum(i) for i, group in groups for name in step.names if step.group(name) is group}


def optimizer_state(step: TrainStep) -> dict[str, dict[str, Tensor]]:
    """Torch's state key -> state_dict name -> tensor; the mapping table says which attribute holds which key.

    MindSpore has every slot from the start, torch only those that an update has written: the others are left out.
    """
    state: dict[str, dict[str, Tensor]] = {}
    for item in table.row(step.recipe.optimizer.name).state:
        if item.torch is None or item.mindspore is None:
            continue
        slots = getattr(step.optimizer, item.mindspore)
        if isinstance(slots, Tensor):  # one step counter for every parameter, where torch keeps one for each
            slots = [slots] * len(step.names)
        named = {n: t for n, t in zip(step.names, slots, strict=True) if uses(step, item, n)}
        if any(t.asnumpy().any() for t in named.values()):
            state[item.torch] = named
    return state


def state(step: TrainStep) -> dict[str, np.ndarray]:
    """Everything that a step needs, besides the net's weights and buffers, to go on as if it had never stopped.

    optimizer.KEY.NAME: the optimizer's state by torch's key (MindSpore's where torch has none) and state_dict name,
    optimizer.KEY where one tensor serves all. ema.NAME: the moving average. msmigrate.…: steps taken (int64), epoch of
    the schedule (int64), loss scale (float32) and growth tracker (int32).
    """
    found = {name: parameter.asnumpy().copy() for name, parameter in _parameters(step)}
    return {**found, **{name: np.array(number, np.int64) for name, number in _counts(step).items()}}


def load_state(step: TrainStep, tensors: Mapping[str, np.ndarray]) -> None:
    """Restore what `state()` returned; names that are no part of a step's state (the net's own) are passed over.

    Raises BadCheckpoint, and changes nothing, when a tensor is missing, unknown, or of another shape or dtype: the
    state is from another recipe.
    """
    parameters, counts = dict(_parameters(step)), _counts(step)
    given = {name: array for name, array in tensors.items() if name.startswith(OURS) and name not in NOT_OURS}
    expected = [*parameters, *counts]
    for name in expected:
        if name not in given:
            raise BadCheckpoint(f"the training state has no {name}: it was saved under another recipe")
    for name, array in given.items():
        if name in parameters:
            shape, dtype = parameters[name].shape, parameters[name].asnumpy().dtype
        elif name in counts:
            shape, dtype = (), np.dtype(np.int64)
        else:
            raise BadCheckpoint(f"the training state has {name}, which this recipe's step does not: another recipe's")
        if tuple(array.shape) != tuple(shape) or array.dtype != dtype:
            raise BadCheckpoint(
                f"{name} in the training state: expected {dtype} {list(shape)}, got {array.dtype} {list(array.shape)}"
            )
    if min((int(given[name]) for name in counts), default=0) < 0:
        raise BadCheckpoint("the training state has a negative number of steps: it is damaged")
    for name, parameter in parameters.items():
        # copy_, because a compiled graph never sees a value that set_data puts in place; and not ascontiguousarray,
        # which would give a scalar a dimension
        parameter.copy_(Tensor(np.array(given[name], order="C")))
    step.restore_counts(int(given[STEPS]), int(given[EPOCH]) if EPOCH in counts else 0)


def _parameters(step: TrainStep) -> Iterator[tuple[str, Parameter]]:
    """Name in the state -> the parameter that holds it."""
    for item in table.row(step.recipe.optimizer.name).state:
        if item.mindspore is None:
            continue
        key = f"optimizer.{item.torch or item.mindspore}"
        slots = getattr(step.optimizer, item.mindspore)
        if isinstance(slots, Tensor):
            yield key, slots
        else:
            for name, parameter in zip(step.names, slots, strict=True):
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
