"""The training state in a checkpoint of `msmigrate train`, on its way to torch.

What the `load_state_dict` of an optimizer, a GradScaler and a moving average take stands beside the weights, which are
under `model`.

Torch counts an optimizer's parameters, group after group; the groups, with names and options, stand in the checkpoint
under `msmigrate.training` (see training_state.py).
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Mapping
from typing import Any

from ..errors import BadCheckpoint, Unsupported
from ..input_files import json_value
from ..mappings.rows import Row
from .constants import Maker
from .formats.contents import Piece, Shape, Tensor, product
from .optimizer_state import LARGEST_JSON, plain
from .training_names import EPOCH, GROUPS, RUN, STEPS

STEP = "optimizer.step"


def training_back(
    training: Mapping[str, Tensor], shapes: Mapping[str, Shape], maker: Maker, read: Callable[[Tensor], bytes]
) -> dict[str, Any]:
    """What stands beside the weights in the torch file: key -> dicts, lists and numbers, with Pieces for tensors.

    training: the tensors that are not the net's, by name. shapes: of the state dict in torch, by name. read: the bytes
    of a small tensor. Raises Unsupported for a checkpoint that does not know its parameter groups, BadCheckpoint for a
    damaged one.
    """
    if GROUPS not in training:
        raise Unsupported(f"it holds no {GROUPS}, which names the optimizer's parameter groups; nothing else does")
    told = _told(read(training[GROUPS]) if training[GROUPS].nbytes <= LARGEST_JSON else b"")
    row = _row(told)
    groups = told["param_groups"]
    steps = _count(STEPS, training, maker) if STEPS in training else None
    kept = {item.torch: item for item in row.state if steps != 0 or item.from_start}  # torch's own, by now
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
            if held and taken is not None and not kept["step"].in_groups:  # each has its own: torch counts in place
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
    epoch = told.get("epoch", _epoch(read(training[RUN])) if RUN in training else None)
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
            **told.get("scaler", {}),
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
        raise BadCheckpoint("it does not say how many steps were taken, which torch's optimizer counts")
    return _count(counted, training, maker)


def _count(name: str, training: Mapping[str, Tensor], maker: Maker) -> int:
    """A number of the run that counts something; raises BadCheckpoint where none does."""
    if name not in training:
        raise BadCheckpoint(f"it holds no {name}")
    value = maker.number(training[name])
    if not 0 <= value < 1 << 60 or value != int(value):
        raise BadCheckpoint(f"{name} is {value}, not a count")
    return int(value)


def _epoch(content: bytes) -> int | None:
    """The epoch that is next, as `msmigrate train` notes it."""
    try:
        epoch = json_value(content)["epoch"]
    except (ValueError, KeyError, TypeError):
        return None
    return epoch if type(epoch) is int and plain(epoch) else None


def _row(told: Mapping[str, Any]) -> Row:
    """The row of the optimizer; raises UnknownRow for one that the table does not have."""
    from ..mappings import table

    return table.row(told["optimizer"])


def _told(content: bytes) -> dict[str, Any]:
    """The parameter groups and what else the run has noted for torch."""
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
