"""A torch optimizer's state dict on its way to MindSpore's side: tensors by name, steps, groups."""

from __future__ import annotations

import json
import math
import struct
from collections.abc import Mapping, Sequence
from typing import Any

from ..errors import BadCheckpoint, MsmigrateError, Unsupported
from .constants import Maker
from .formats.contents import Shape, Tensor
from .formats.torch_wrappers import describe as in_words
from .optimizer_class import optimizer_row
from .optimizer_names import Groups, check_names, names_of
from .plan import Entry, crossed, few
from .training_names import GROUPS

PREFIXES = ("module.", "_orig_mod.")
LARGEST_JSON = 4 << 20  # bytes
MAX_PARAMETERS = 200_000  # of an optimizer; the largest models have some thousands
MAX_STATE = 100  # what an optimizer keeps of one parameter


def optimizer_entries(
    key: str,
    optimizer: Mapping[Any, Any],
    parameters: Mapping[str, Shape],
    names: Groups | None,
    maker: Maker,
    classes: Sequence[str] | None,
    about: Mapping[str, Any],
) -> tuple[list[Entry], int | None, str]:
    """The entries of an optimizer's state dict, the steps it has taken, where it counts them, and what it is, in words.

    key: where it stands in the file. parameters: of the state dict, name -> shape, in the model's order. names: of each
    parameter group, and classes: what the optimizer's class may be called, where they are known. about: what else the
    groups' JSON is to say. Raises what training_state raises.
    """
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
    groups = [_numbers(group, maker) for group in groups]
    try:
        row = optimizer_row(groups, {part for held in tensors.values() for part in held}, classes)
        if given is None:
            given = names_of(indices, shapes, parameters)
        else:
            check_names(given, shapes, flat, parameters)
    except MsmigrateError as error:
        raise type(error)(f"{key}: {error}") from None
    named = dict(zip(flat, (name for group in given for name in group), strict=True))
    in_groups = [item.torch for item in row.state if item.in_groups]
    steps = {_whole(key, group["step"]) for group in groups if "step" in in_groups and "step" in group}
    entries = []
    for index, held in tensors.items():
        for part, value in held.items():
            if part == "step":
                steps.add(_whole(key, maker.number(value) if isinstance(value, Tensor) else value))
                continue
            target = f"optimizer.{part}.{named[index]}"
            if isinstance(value, Tensor):
                entries.append(crossed(f"{key}.{index}.{part}", value, target, value.shape, ""))
            else:  # as torch kept ASGD's eta and mu before version 2
                entries.append(constant_entry(target, "float32", value, maker))
    if len(steps) > 1:
        raise Unsupported(
            f"{key}: parameters have taken {few([str(s) for s in sorted(steps)])} steps; MindSpore counts once"
        )
    taken = steps.pop() if steps else None
    if taken is not None:
        entries.append(constant_entry("optimizer.step", "int32", taken, maker))
    kept = [{name: value for name, value in group.items() if name not in in_groups} for group in groups]
    entries.append(_groups({"optimizer": row.torch, **about}, kept, given, maker))
    counts = few([str(len(group)) for group in given], 8, " and ")
    after = f" after {taken} steps" if taken is not None else ""
    return entries, taken, f"{row.torch}'s state{after}, of {'groups of ' * (len(given) > 1)}{counts} parameters"


def _numbers(group: Mapping[Any, Any], maker: Maker) -> dict[Any, Any]:
    """A parameter group with numbers instead of tensors of one: `capturable` keeps the rate so, and timm the step."""
    found = {}
    for name, value in group.items():
        if isinstance(value, Tensor) or not (plain(value) or name in ("params", "param_names")):
            try:
                value = maker.number(maker.tensor(value))
            except MsmigrateError:
                continue  # an object of the script's own
        found[name] = value
    return found


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
    """The shape of the parameter that a state belongs to; single numbers may stand beside what has it."""
    shapes = {tensor.shape for part, tensor in held.items() if part != "step" and isinstance(tensor, Tensor)}
    shapes = shapes - {()} or shapes
    return shapes.pop() if len(shapes) == 1 else None


def _told(groups: Sequence[Mapping[str, Any]], indices: Sequence[Sequence[int]]) -> Groups | None:
    """The names in the groups themselves, as torch 2.6 and later keeps them when it was given any."""
    told: Groups = []
    for group, inside in zip(groups, indices, strict=True):
        names = group.get("param_names")
        if type(names) is not list or len(names) != len(inside) or any(not isinstance(name, str) for name in names):
            return None
        told.append([short(name) for name in names])
    return told


def short(name: str) -> str:
    while taken := next((prefix for prefix in PREFIXES if name.startswith(prefix)), None):
        name = name[len(taken) :]
    return name


def _groups(about: Mapping[str, Any], groups: Sequence[Mapping[str, Any]], names: Groups, maker: Maker) -> Entry:
    """The optimizer and its parameter groups as JSON: their options, and the names instead of the numbers."""
    told = [
        {**{k: v for k, v in group.items() if isinstance(k, str) and plain(v)}, "params": list(inside)}
        for group, inside in zip(groups, names, strict=True)
    ]
    content = bytearray()
    for part in json.JSONEncoder(allow_nan=False).iterencode({**about, "param_groups": told}):
        content += part.encode()
        if len(content) > LARGEST_JSON:  # what a small file says once, it may say in many places
            raise Unsupported(f"its parameter groups take more than {LARGEST_JSON:,} bytes of JSON")
    tensor = maker.constant("uint8", bytes(content), (len(content),))
    return Entry("keep", "param_groups", tensor, GROUPS, (len(content),), "")


def plain(value: Any, deep: int = 3) -> bool:
    """Whether a value is an option of a parameter group: a number, a text, or a few of them."""
    if isinstance(value, (list, tuple)):
        return len(value) <= 8 and deep > 0 and all(plain(item, deep - 1) for item in value)
    if isinstance(value, float):
        return math.isfinite(value)
    return value is None or isinstance(value, (bool, str)) or (isinstance(value, int) and abs(value) < 1 << 60)


def constant_entry(name: str, dtype: str, value: float, maker: Maker) -> Entry:
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
