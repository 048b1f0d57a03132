"""What stands beside the weights of a torch training checkpoint, on its way to MindSpore's side: the optimizer's state,
where the schedule is, the loss scale, the moving average.

In the new file the names are those of `msmigrate train`'s own checkpoints:

    optimizer.KEY.NAME          the optimizer's state, by torch's key and state_dict name; optimizer.step, one for all
    ema.NAME                    the moving average
    msmigrate.steps             optimizer steps taken (int64), where the file tells
    msmigrate.schedule_epoch    the schedule's last_epoch (int64)
    msmigrate.loss_scale, …     GradScaler's scale (float32) and growth_tracker (int32)
    msmigrate.training          uint8: JSON of the optimizer's class, the parameter groups and GradScaler's rule, for
                                whoever goes on to compare with, and for the way back
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from ..errors import BadCheckpoint
from .constants import Maker
from .formats.casts import castable
from .formats.contents import Shape, Tensor, check_name
from .formats.torch_wrappers import describe as in_words
from .optimizer_names import Groups
from .optimizer_state import constant_entry, optimizer_entries, plain, short
from .plan import Entry, crossed
from .training_names import EPOCH, STEPS

OPTIMIZER = ("optimizer", "optimizer_state_dict", "optimizer_state", "optimizer_states", "optim", "opt")
SCHEDULE = (
    *("scheduler", "lr_scheduler", "scheduler_state_dict", "lr_scheduler_state_dict", "lr_schedulers", "sched"),
    "scheduler_state",
)
SCALER = ("scaler", "grad_scaler", "scaler_state_dict", "amp_scaler", "loss_scaler")
AVERAGE = ("ema", "model_ema", "state_dict_ema", "ema_state_dict", "ema_model", "params_ema", "averaged_model")
COUNTS = ("global_step", "step", "iteration", "iter", "num_updates", "num_steps")


class Beside(NamedTuple):
    """Tensors of the training state as entries, remarks, and the keys of the file that were read."""

    entries: list[Entry]
    notes: list[str]
    read: set[str]


def parameters_of(tensors: Mapping[str, Tensor]) -> dict[str, Shape]:
    """The parameters of a state dict, name -> shape, in the model's order: floating-point, no norm's statistics, and of
    tied ones the first, as `parameters()` gives them.

    A buffer of one's own passes for a parameter; then the optimizer's state fits no order.
    """
    seen: set[Tensor] = set()
    found = {}
    for name, tensor in tensors.items():
        buffer = name.rpartition(".")[2] in ("running_mean", "running_var", "num_batches_tracked")
        if not buffer and castable(tensor.dtype) and tensor not in seen:
            found[name] = tensor.shape
            seen.add(tensor)
    return found


def training_state(
    training: Mapping[str, Any],
    parameters: Mapping[str, Shape],
    names: Groups | None,
    maker: Maker,
    classes: Sequence[str] | None = None,
) -> Beside:
    """Read what is known in `training` (key -> inert value).

    parameters: of the state dict, name -> shape, in the model's order. names: of each parameter group, where they are
    known. classes: what the optimizer's class may be called, where that is known. Raises BadCheckpoint for a damaged
    state, Ambiguous when the class or the order of the parameters is not clear, Unsupported for states that no row of
    the mapping table has.
    """
    entries: list[Entry] = []
    notes: list[str] = []
    read: set[str] = set()
    steps: int | None = None
    key, optimizer = _first(training, OPTIMIZER)
    if key is not None:
        read.add(key)
        about = _rule(_first(training, SCALER)[1])
        if type(epoch := training.get("epoch")) is int and plain(epoch):
            about["epoch"] = epoch
            read.add("epoch")
        found, steps, words = optimizer_entries(key, optimizer, parameters, names, maker, classes, about)
        entries += found
        notes.append(f"{key}: {words}")
    elif names is not None or classes is not None:
        notes.append(f"it holds no optimizer's state, of which --optimizer tells, under {', '.join(OPTIMIZER)}")
    key, schedule = _first(training, SCHEDULE)
    if key is not None and type(schedule) is dict:
        read.add(key)
        last = schedule.get("last_epoch")
        if type(last) is not int or not 0 <= last < 1 << 60:
            raise BadCheckpoint(f"{key}: its last_epoch is {in_words(last)}, not a count")
        entries.append(constant_entry(EPOCH, "int64", last, maker))
    key, scaler = _first(training, SCALER)
    if key is not None and type(scaler) is dict and scaler:
        read.add(key)
        entries += _scaler(key, scaler, maker)
    key = next((name for name in AVERAGE if training.get(name) is not None), None)
    if key is not None:
        read.add(key)
        entries += _average(key, training[key], maker)
    key = next((name for name in COUNTS if type(training.get(name)) is int), None)
    if key is not None:
        read.add(key)
        told = training[key]
        if steps is not None and told != steps:
            notes.append(f"{key} is {told} and the optimizer has taken {steps} steps; the optimizer's count is used")
        steps = steps if steps is not None else told
    if steps is not None:
        entries.append(constant_entry(STEPS, "int64", steps, maker))
    elif entries:
        moves = any(entry.target == EPOCH for entry in entries)
        notes.append(f"the file does not say how many steps were taken{', but where its schedule is' * moves}")
    return Beside(entries, notes, read)


def _first(training: Mapping[str, Any], keys: Sequence[str]) -> tuple[str | None, Any]:
    """The first key that is there with something in it; of a list of one, as Lightning keeps them, that one."""
    for key in keys:
        value = training.get(key)
        if type(value) is list and len(value) == 1:
            value = value[0]
        if type(value) is dict:
            return key, value
    return None, None


def _rule(scaler: Any) -> dict[str, Any]:
    """How a GradScaler moves its scale, for its load_state_dict."""
    held = scaler if type(scaler) is dict else {}
    told = {name: held[name] for name in ("growth_factor", "backoff_factor", "growth_interval") if name in held}
    return {"scaler": told} if told and all(map(plain, told.values())) else {}


def _scaler(key: str, scaler: Mapping[Any, Any], maker: Maker) -> Iterator[Entry]:
    """GradScaler's state dict."""
    scale, tracker = scaler.get("scale"), scaler.get("_growth_tracker", 0)
    if not isinstance(scale, (int, float)) or not 0 < scale < math.inf or type(tracker) is not int or tracker < 0:
        told = f"scale {in_words(scale)} and growth tracker {in_words(tracker)}"
        raise BadCheckpoint(f"{key}: {told} are no GradScaler's")
    yield constant_entry("msmigrate.loss_scale", "float32", scale, maker)
    yield constant_entry("msmigrate.growth_tracker", "int32", tracker, maker)


def _average(key: str, average: Any, maker: Maker) -> Iterator[Entry]:
    """A moving average: a state dict, perhaps under one more key or with its wrapper's prefix, or a whole model."""
    for inner in ("module", "state_dict", "shadow", "model"):
        if type(average) is dict and type(average.get(inner)) is dict:
            average = average[inner]
    average = maker.weights(average)
    for name, value in average.items():
        if not isinstance(name, str) or isinstance(value, (int, float, type(None))):
            continue
        tensor = maker.tensor(value)
        own = short(name)
        if own == "n_averaged" or own.rpartition(".")[2] == "num_batches_tracked":
            continue
        yield crossed(f"{key}.{name}", tensor, check_name(key, f"ema.{own}"), tensor.shape, "")
