"""What stands beside the weights of a torch training checkpoint, on its way to MindSpore's side: the optimizer's state,
where the schedule is, the loss scale, the moving average.

In the new file the names are those of `msmigrate train`'s own checkpoints:

    optimizer.KEY.NAME          the optimizer's state, by torch's key and state_dict name; optimizer.step, one for all
    ema.NAME                    the moving average
    msmigrate.steps             optimizer steps taken (int64), where the file tells
    msmigrate.schedule_epoch    the schedule's last_epoch (int64)
    msmigrate.loss_scale, …     GradScaler's scale (float32) and growth_tracker (int32)
    msmigrate.training          uint8: JSON of the parameter groups, for whoever goes on to compare with
"""

from __future__ import annotations

import json
import math
import struct
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from ..errors import BadCheckpoint, MsmigrateError, Unsupported
from .constants import Maker
from .formats.casts import castable
from .formats.contents import Shape, Tensor, check_name
from .formats.torch_wrappers import describe as in_words
from .optimizer_names import Groups, check_names, names_of
from .plan import Entry, crossed, few

OPTIMIZER = ("optimizer", "optimizer_state_dict", "optimizer_state", "optimizer_states", "optim", "opt")
SCHEDULE = (
    *("scheduler", "lr_scheduler", "scheduler_state_dict", "lr_scheduler_state_dict", "lr_schedulers", "sched"),
    "scheduler_state",
)
SCALER = ("scaler", "grad_scaler", "scaler_state_dict", "amp_scaler", "loss_scaler")
AVERAGE = ("ema", "model_ema", "state_dict_ema", "ema_state_dict", "ema_model", "params_ema", "averaged_model")
STEPS = ("global_step", "step", "iteration", "iter", "num_updates", "num_steps")
PREFIXES = ("module.", "_orig_mod.")
LARGEST_JSON = 4 << 20  # bytes
MAX_PARAMETERS = 200_000  # of an optimizer; the largest models have some thousands
MAX_STATE = 100  # what an optimizer keeps of one parameter


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
    training: Mapping[str, Any], parameters: Mapping[str, Shape], names: Groups | None, maker: Maker
) -> Beside:
    """Read what is known in `training` (key -> inert value).

    parameters: of the state dict, name -> shape, in the model's order. names: of each parameter group, where they are
    known. Raises BadCheckpoint for a damaged state, Ambiguous when the order of the parameters is not clear,
    Unsupported for states that no row of the mapping table has.
    """
    entries: list[Entry] = []
    notes: list[str] = []
    read: set[str] = set()
    steps: int | None = None
    key, optimizer = _first(training, OPTIMIZER)
    if key is not None:
        read.add(key)
        found, steps = _optimizer(key, optimizer, parameters, names, maker)
        entries += found
    key, schedule = _first(training, SCHEDULE)
    if key is not None and type(schedule) is dict:
        read.add(key)
        last = schedule.get("last_epoch")
        if type(last) is not int or not 0 <= last < 1 << 60:
            raise BadCheckpoint(f"{key}: its last_epoch is {in_words(last)}, not a count")
        entries.append(_constant("msmigrate.schedule_epoch", "int64", last, maker))
    key, scaler = _first(training, SCALER)
    if key is not None and type(scaler) is dict and scaler:
        read.add(key)
        entries += _scaler(key, scaler, maker)
    key = next((name for name in AVERAGE if training.get(name) is not None), None)
    if key is not None:
        read.add(key)
        entries += _average(key, training[key], maker)
    key = next((name for name in STEPS if type(training.get(name)) is int), None)
    if key is not None:
        read.add(key)
        told = training[key]
        if steps is not None and told != steps:
            notes.append(f"{key} is {told} and the optimizer has taken {steps} steps; the optimizer's count is used")
        steps = steps if steps is not None else told
    if steps is not None:
        entries.append(_constant("msmigrate.steps", "int64", steps, maker))
    elif entries:
        notes.append("the file does not say how many steps were taken")
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


def _optimizer(
    key: str, optimizer: Mapping[Any, Any], parameters: Mapping[str, Shape], names: Groups | None, maker: Maker
) -> tuple[list[Entry], int | None]:
    """The entries of an optimizer's state dict, and the steps it has taken, where it counts them."""
    state, groups = optimizer.get("state"), optimizer.get("param_groups")
    if type(state) is not dict or type(groups) is not list or any(type(group) is not dict for group in groups):
        raise BadCheckpoint(f"{key} is no optimizer's state dict: it lacks state and param_groups")
    indices = _indices(key, groups)
    flat = [index for group in indices for index in group]
    known = set(flat)
    if len(known) != len(flat) or any(index not in known for index in state):
        raise BadCheckpoint(f"{key}: its state and its param_groups count different parameters")
    tensors = {index: _tensors(key, index, held, maker) for index, held in state.items()}
    shapes = {index: shape for index, held in tensors.items() if (shape := _shape(held)) is not None}
    given = names or _told(groups, indices)
    try:
        if given is None:
            given = names_of(indices, shapes, parameters)
        else:
            check_names(given, shapes, flat, parameters)
    except MsmigrateError as error:
        raise type(error)(f"{key}: {error}") from None
    named = dict(zip(flat, (name for group in given for name in group), strict=True))
    entries, steps = [], set()
    for index, held in tensors.items():
        for part, tensor in held.items():
            if part == "step":
                steps.add(_whole(key, maker.number(tensor) if isinstance(tensor, Tensor) else tensor))
            elif isinstance(tensor, Tensor):
                entries.append(
                    crossed(f"{key}.{index}.{part}", tensor, f"optimizer.{part}.{named[index]}", tensor.shape, "")
                )
    if len(steps) > 1:
        raise Unsupported(
            f"{key}: parameters have taken {few([str(s) for s in sorted(steps)])} steps; MindSpore counts once"
        )
    taken = steps.pop() if steps else None
    if taken is not None:
        entries.append(_constant("optimizer.step", "int32", taken, maker))
    entries.append(_groups(groups, given, maker))
    return entries, taken


def _indices(key: str, groups: Sequence[Mapping[Any, Any]]) -> list[list[int]]:
    """The numbers of each group's parameters."""
    found = []
    left = MAX_PARAMETERS
    for group in groups:
        params = group.get("params")
        if type(params) is not list:
            raise BadCheckpoint(f"{key}: a parameter group does not list its parameters by number")
        left -= 1 + len(params)
        if left < 0:  # a small file may say one list many times
            raise BadCheckpoint(f"{key}: it has more than {MAX_PARAMETERS:,} parameters and groups of them")
        if any(type(index) is not int for index in params):
            raise BadCheckpoint(f"{key}: a parameter group does not list its parameters by number")
        found.append(params)
    return found


def _tensors(key: str, index: Any, held: Any, maker: Maker) -> dict[str, Any]:
    """State key -> tensor, or number, of one parameter; None is left out, as torch leaves what it does not hold."""
    if type(held) is not dict or len(held) > MAX_STATE:
        raise BadCheckpoint(f"{key}: the state of parameter {in_words(index)} is damaged")
    found = {}
    for part, value in held.items():
        if value is None:
            continue
        if not isinstance(part, str) or not part.isidentifier() or len(part) > 100:
            raise BadCheckpoint(f"{key}: {in_words(part)} is no key of an optimizer's state")
        found[part] = value if isinstance(value, (int, float)) else maker.tensor(value)
    return found


def _shape(held: Mapping[str, Any]) -> Shape | None:
    """The shape of the parameter that a state belongs to."""
    shapes = {tensor.shape for part, tensor in held.items() if part != "step" and isinstance(tensor, Tensor)}
    return shapes.pop() if len(shapes) == 1 else None


def _told(groups: Sequence[Mapping[str, Any]], indices: Sequence[Sequence[int]]) -> Groups | None:
    """The names in the groups themselves, as torch 2.6 and later keeps them when it was given any."""
    told: Groups = []
    for group, inside in zip(groups, indices, strict=True):
        names = group.get("param_names")
        if type(names) is not list or len(names) != len(inside) or any(not isinstance(name, str) for name in names):
            return None
        told.append([_short(name) for name in names])
    return told


def _short(name: str) -> str:
    while taken := next((prefix for prefix in PREFIXES if name.startswith(prefix)), None):
        name = name[len(taken) :]
    return name


def _groups(groups: Sequence[Mapping[str, Any]], names: Groups, maker: Maker) -> Entry:
    """The parameter groups as JSON: their options, and the names instead of the numbers."""
    told = [
        {**{k: v for k, v in group.items() if isinstance(k, str) and plain(v)}, "params": list(inside)}
        for group, inside in zip(groups, names, strict=True)
    ]
    content = bytearray()
    for part in json.JSONEncoder(allow_nan=False).iterencode({"param_groups": told}):
        content += part.encode()
        if len(content) > LARGEST_JSON:  # what a small file says once, it may say in many places
            raise Unsupported(f"its parameter groups take more than {LARGEST_JSON:,} bytes of JSON")
    tensor = maker.constant("uint8", bytes(content), (len(content),))
    return Entry("keep", "param_groups", tensor, "msmigrate.training", (len(content),), "")


def plain(value: Any, deep: int = 3) -> bool:
    """Whether a value is an option of a parameter group: a number, a text, or a few of them."""
    if isinstance(value, (list, tuple)):
        return len(value) <= 8 and deep > 0 and all(plain(item, deep - 1) for item in value)
    if isinstance(value, float):
        return math.isfinite(value)
    return value is None or isinstance(value, (bool, str)) or (isinstance(value, int) and abs(value) < 1 << 60)


def _scaler(key: str, scaler: Mapping[Any, Any], maker: Maker) -> Iterator[Entry]:
    """GradScaler's state dict."""
    scale, tracker = scaler.get("scale"), scaler.get("_growth_tracker", 0)
    if not isinstance(scale, (int, float)) or not 0 < scale < math.inf or type(tracker) is not int or tracker < 0:
        told = f"scale {in_words(scale)} and growth tracker {in_words(tracker)}"
        raise BadCheckpoint(f"{key}: {told} are no GradScaler's")
    yield _constant("msmigrate.loss_scale", "float32", scale, maker)
    yield _constant("msmigrate.growth_tracker", "int32", tracker, maker)


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
        short = _short(name)
        if short == "n_averaged" or short.rpartition(".")[2] == "num_batches_tracked":
            continue
        yield crossed(f"{key}.{name}", tensor, check_name(key, f"ema.{short}"), tensor.shape, "")


def _constant(name: str, dtype: str, value: float, maker: Maker) -> Entry:
    """A single number as an entry."""
    form = {"int64": "<q", "int32": "<i", "float32": "<f"}[dtype]
    try:
        content = struct.pack(form, value)
    except (struct.error, OverflowError):
        raise BadCheckpoint(f"{name} is {value!r:.40}, which no {dtype} holds") from None
    return Entry("keep", name, maker.constant(dtype, content, ()), name, (), "")


def _whole(key: str, value: float) -> int:
    if not math.isfinite(value) or value != int(value) or not 0 <= value < 1 << 31:
        raise BadCheckpoint(f"{key}: a parameter has taken {value!r:.40} steps")
    return int(value)
