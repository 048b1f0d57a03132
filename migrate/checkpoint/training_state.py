"""Optimizer, schedule, loss scale and EMA, next to the weights: to MindSpore and back.

A torch file has the weights under `model`, and under other keys the state dicts of the optimizer, the GradScaler and
the moving average.

Torch numbers an optimizer's parameters, group after group; the groups, with names and options, are in MindSpore's
checkpoint under `msmigrate.training`.

In the new file the names are those of `msmigrate train`'s own checkpoints:

    optimizer.KEY.NAME          the optimizer's state, by torch's key and state_dict name; optimizer.step, one for all
    ema.NAME                    the moving average
    msmigrate.steps             optimizer steps taken (int64), where the file tells
    msmigrate.schedule_epoch    the schedule's last_epoch (int64)
    msmigrate.loss_scale, …     GradScaler's scale (float32) and growth_tracker (int32)
    msmigrate.training          uint8: JSON of the optimizer's class, the parameter groups and GradScaler's rule, for
                                comparison when training goes on, and for the way back
"""

from __future__ import annotations

import math
import struct
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from ...errors import BadCheckpoint, Unsupported
from ...input_files import json_value
from ...mappings.rows import Row
from .computed_tensors import Maker
from .formats.byte_copy import castable
from .formats.pth_weights import describe as in_words
from .formats.reader import EPOCH, GROUPS, RUN, STEPS, Piece, Shape, Tensor, check_name, product
from .optimizer_state import LARGEST_JSON, Groups, constant_entry, optimizer_entries, plain, short
from .plan import Entry, crossed

STEP = "optimizer.step"


def training_back(
    training: Mapping[str, Tensor], shapes: Mapping[str, Shape], maker: Maker, read: Callable[[Tensor], bytes]
) -> dict[str, Any]:
    """What the torch file holds besides the weights: key -> dicts, lists and numbers, with Pieces for tensors.

    training: the tensors that are not the net's, by name. shapes: of the state dict in torch, by name. read: reads the
    bytes of a small tensor. Raises Unsupported for a checkpoint without its parameter groups, BadCheckpoint for a
    damaged one.
    """
    if GROUPS not in training:
        raise Unsupported(f"it holds no {GROUPS}, and nothing else names the optimizer's parameter groups")
    noted = _told(read(training[GROUPS]) if training[GROUPS].nbytes <= LARGEST_JSON else b"")
    row = _row(noted)
    groups = noted["param_groups"]
    steps = _count(STEPS, training, maker) if STEPS in training else None
    kept = {item.torch: item for item in row.state if steps != 0 or item.from_start}  # that torch has by now
    taken = _steps(training, maker) if "step" in kept else None
    slots: dict[str, dict[str, Tensor]] = {}  # parameter -> state key -> tensor
    for name, tensor in training.items():
        if name.startswith("optimizer.") and name != STEP:
            key, _, parameter = name.removeprefix("optimizer.").partition(".")
            if key in kept and parameter:
                slots.setdefault(parameter, {})[key] = tensor
    state: dict[int, Any] = {}
    index = 0
    numbered = []
    for group in groups:
        indices = list(range(index, index + len(group["params"])))
        for number, parameter in zip(indices, group["params"], strict=True):
            held = {
                key: _piece(key, tensor, shapes.get(parameter))
                for key, tensor in slots.get(parameter, {}).items()
                if (when := kept[key].when) is None or group.get(when)
            }
            if held and taken is not None and not kept["step"].in_groups:  # each has its own: torch adds to it in place
                tensor = maker.constant("float32", struct.pack("<f", taken), ())
                held = {"step": Piece("step", "float32", (), tensor), **held}
            if held:
                state[number] = held
        own = {name: values[0] for name, values in row.group_options.items() if values}
        if taken is not None and kept["step"].in_groups:
            own["step"] = taken
        numbered.append({**own, **group, "params": indices})
        index += len(indices)
    found: dict[str, Any] = {"optimizer": {"state": state, "param_groups": numbered}}
    if steps is not None:
        found["global_step"] = steps
    epoch = noted.get("epoch", _epoch(read(training[RUN])) if RUN in training else None)
    if epoch is not None:
        found["epoch"] = epoch
    if EPOCH in training:
        last = _count(EPOCH, training, maker)
        rates = [group.get("lr") for group in groups]
        bases = [group.get("initial_lr", group.get("lr")) for group in groups]
        found["lr_scheduler"] = {"last_epoch": last, "_step_count": last + 1, "base_lrs": bases, "_last_lr": rates}
    if "msmigrate.loss_scale" in training:
        found["scaler"] = {
            "scale": float(maker.number(training["msmigrate.loss_scale"])),
            "_growth_tracker": _count("msmigrate.growth_tracker", training, maker),
            **noted.get("scaler", {}),
        }
    average = {
        name.removeprefix("ema."): _piece(name, tensor, shapes.get(name.removeprefix("ema.")))
        for name, tensor in training.items()
        if name.startswith("ema.")
    }
    if average:
        found["model_ema"] = average
    return found


def _piece(name: str, tensor: Tensor, shape: Shape | None) -> Piece:
    """A tensor of a weight's state, in the shape that the weight has in torch; a single number stays one."""
    fits = shape is not None and tensor.shape and product(shape) == product(tensor.shape)
    return Piece(name, tensor.dtype, shape if shape is not None and fits else tensor.shape, tensor)


def _steps(training: Mapping[str, Tensor], maker: Maker) -> int:
    """How many steps were taken."""
    counted = next((name for name in (STEP, STEPS) if name in training), None)
    if counted is None:
        raise BadCheckpoint("it does not say how many steps were taken, which torch's optimizer state needs")
    return _count(counted, training, maker)


def _count(name: str, training: Mapping[str, Tensor], maker: Maker) -> int:
    """A count of the run; raises BadCheckpoint where it is missing or is not a count."""
    if name not in training:
        raise BadCheckpoint(f"it holds no {name}")
    value = maker.number(training[name])
    if not 0 <= value < 1 << 60 or value != int(value):
        raise BadCheckpoint(f"{name} is {value}, not a count")
    return int(value)


def _epoch(content: bytes) -> int | None:
    """The next epoch, as `msmigrate train` notes it."""
    try:
        epoch = json_value(content)["epoch"]
    except (ValueError, KeyError, TypeError):
        return None
    return epoch if type(epoch) is int and plain(epoch) else None


def _row(told: Mapping[str, Any]) -> Row:
    """The row of the optimizer; raises UnknownRow for one that the table does not have."""
    from ...mappings import table

    return table.row(told["optimizer"])


def _told(content: bytes) -> dict[str, Any]:
    """The parameter groups and everything else that the run has noted for torch."""
    try:
        found = json_value(content)
        groups = found["param_groups"]
        names = [name for group in groups for name in group["params"]]
        if type(found) is dict and "optimizer" not in found:
            raise Unsupported(f"{GROUPS} does not name the optimizer: convert the torch file once more, which notes it")
        if (
            type(found) is not dict
            or type(found.get("optimizer")) is not str
            or type(groups) is not list
            or any(type(name) is not str for name in names)
        ):
            raise ValueError
        scaler = found.get("scaler", {})
        if len(set(names)) != len(names) or type(scaler) is not dict:
            raise ValueError
        options = [value for group in groups for key, value in group.items() if key != "params"]
        if not all(map(plain, (*options, *scaler.values(), found.get("epoch")))):
            raise ValueError
    except (ValueError, KeyError, TypeError, AttributeError):
        raise BadCheckpoint(f"{GROUPS} is damaged") from None
    result: dict[str, Any] = found
    return result


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
    """The parameters of a state dict, name -> shape, in the model's order: floating-point tensors without the norms'
    statistics, and of tied ones the first, as in `parameters()`.

    A user's own buffer is taken for a parameter; then the optimizer's state fits no order.
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
    """Read the training state in `training` (key -> inert value); keys that are not known are skipped.

    parameters: of the state dict, name -> shape, in the model's order. names: the parameter names of each group, where
    known. classes: the possible names of the optimizer's class, where known. Raises BadCheckpoint for a damaged
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
        notes.append(f"--optimizer is given, but the file has no optimizer state under {', '.join(OPTIMIZER)}")
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
        count = training[key]
        if steps is not None and count != steps:
            notes.append(f"{key} is {count} and the optimizer has taken {steps} steps; the optimizer's count is used")
        steps = steps if steps is not None else count
    if steps is not None:
        entries.append(constant_entry(STEPS, "int64", steps, maker))
    elif entries:
        moves = any(entry.target == EPOCH for entry in entries)
        notes.append(f"the file does not say how many steps were taken{', only where its schedule is' * moves}")
    return Beside(entries, notes, read)


def _first(training: Mapping[str, Any], keys: Sequence[str]) -> tuple[str | None, Any]:
    """The first key that holds a dict, and the dict; a list of one dict, as Lightning has it, counts as the dict."""
    for key in keys:
        value = training.get(key)
        if type(value) is list and len(value) == 1:
            value = value[0]
        if type(value) is dict:
            return key, value
    return None, None


def _rule(scaler: Any) -> dict[str, Any]:
    """How a GradScaler changes its scale, for its load_state_dict."""
    held = scaler if type(scaler) is dict else {}
    rule = {name: held[name] for name in ("growth_factor", "backoff_factor", "growth_interval") if name in held}
    return {"scaler": rule} if rule and all(map(plain, rule.values())) else {}


def _scaler(key: str, scaler: Mapping[Any, Any], maker: Maker) -> Iterator[Entry]:
    """GradScaler's state dict."""
    scale, tracker = scaler.get("scale"), scaler.get("_growth_tracker", 0)
    if not isinstance(scale, (int, float)) or not 0 < scale < math.inf or type(tracker) is not int or tracker < 0:
        values = f"scale {in_words(scale)} and growth tracker {in_words(tracker)}"
        raise BadCheckpoint(f"{key}: {values} are not a GradScaler's")
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
