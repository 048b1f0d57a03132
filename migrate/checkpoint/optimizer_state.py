"""The optimizer's state dict: which optimizer it is of, which parameter each entry is of, its entries.

A state dict does not name the class. Where several rows fit, the user has to name it and nothing is guessed: older
versions of torch store the same keys for Adam and AdamW.

`optimizer.state_dict()` numbers parameters, group after group, in the order in which the optimizer got them; it has
names only since torch 2.6, and only when the optimizer got names. So the order is taken from the model: all of its
parameters in one group, or groups by one of the rules of training scripts, if exactly one of these fits every shape.
"""

from __future__ import annotations

import difflib
import json
import math
import struct
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence, Set
from contextlib import suppress
from typing import Any

from ...errors import Ambiguous, BadCheckpoint, BadInput, MsmigrateError, UnknownRow, Unsupported
from ...mappings import table
from ...mappings.aliases import lookup
from ...mappings.rows import Argument, Row
from .computed_tensors import Maker
from .formats.pth_weights import describe as in_words
from .formats.reader import GROUPS, PREFIXES, Shape, Tensor, shown
from .plan import Entry, crossed, few, size

# that torch and timm have added to their optimizers over the years: an older file has none of them
LATER = {"foreach", "fused", "capturable", "differentiable", "maximize", "decoupled_weight_decay"}
LATER |= {"caution", "decoupled_decay", "corrected_weight_decay"}
# that a schedule, SWALR, timm's layer decay or the training script writes into a group, whatever the optimizer is
OTHERS = {"params", "param_names", "initial_lr", "max_lr", "min_lr", "base_momentum", "max_momentum"}
OTHERS |= {"swa_lr", "lr_scale", "name"}


def optimizer_row(
    groups: Sequence[Mapping[Any, Any]], parts: Collection[str], named: Sequence[str] | None = None
) -> Row:
    """The row of the optimizer that has these parameter groups and these keys of state.

    named: the possible names of its class, where the user has named it; the first one with a row counts, and the file
    is only checked against that row. Raises Ambiguous where several rows fit, Unsupported where none does or where the
    table has no counterpart, BadCheckpoint for a file of another class than the named one, BadInput for a name without
    a row.
    """
    options = [{key for key in group if isinstance(key, str)} for group in groups]
    common = set.intersection(*options) if options else set()
    option_names = set().union(*options) - OTHERS
    rows = table.rows("optimizer")
    near = [row for row in rows if not _mismatch(row, common, parts)]
    if named is not None:
        row = _named(named, rows)
        reason = _mismatch(row, common, parts) or _conflict(row, groups)
        if reason:
            others = [other for other in near if not _unknown(other, option_names) and not _conflict(other, groups)]
            seems = [other.torch for other in others if other is not row]
            like = f"; it looks like {' or '.join(seems)}" if seems else ""
            raise BadCheckpoint(f"its state is not {row.torch}'s: {reason}{like}")
    else:
        row = _only(near, groups, option_names, parts)
    if row.mindspore is None:
        raise Unsupported(f"it is {row.torch}'s state, which has no counterpart: {row.why}")
    return row


def _only(
    near: Sequence[Row], groups: Sequence[Mapping[Any, Any]], option_names: Set[str], parts: Collection[str]
) -> Row:
    """The one row that fits; near: those that have what they need."""
    whole = [row for row in near if not _unknown(row, option_names)]
    fitting = [row for row in whole if not _conflict(row, groups)]
    if len(fitting) == 1:
        return fitting[0]
    if fitting:
        either = " or ".join(row.torch for row in fitting)
        raise Ambiguous(f"it may be the state of {either}: name the class with --optimizer")
    if whole:
        raise Unsupported(f"it is {whole[0].torch}'s state: {_conflict(whole[0], groups)}")
    if near:
        fewest = min(len(_unknown(row, option_names)) for row in near)
        nearest = [row for row in near if len(_unknown(row, option_names)) == fewest]
        raise Ambiguous(
            f"{few(sorted(_unknown(nearest[0], option_names)), 4, ', ')} in its parameter groups is no option of "
            f"{' or '.join(row.torch for row in nearest)}: if it is that optimizer, name the class with --optimizer"
        )
    held = f"the state {few(sorted(parts), 8, ', ')}" if parts else "no state yet"
    raise Unsupported(
        f"the table has no optimizer with {held} and the options {few(sorted(option_names) or ['none'], 12, ', ')}: "
        "write a row for it (--mappings), or convert without --training"
    )


def _mismatch(row: Row, common: Set[str], parts: Collection[str]) -> str | None:
    """What the row needs and the groups lack, or what the state holds and the row does not."""
    missing = {name for name, argument in _arguments(row).items() if name not in LATER} - common
    if missing:
        return f"its parameter groups have no {few(sorted(missing), 4, ', ')}"
    foreign = set(parts) - {item.torch for item in row.state}
    if foreign and row.mindspore is not None:  # without a counterpart a row does not list its state
        return f"it holds {few(sorted(foreign), 4, ', ')}, which {row.torch} does not"
    return None


def _conflict(row: Row, groups: Sequence[Mapping[Any, Any]]) -> str | None:
    """The option of a group that has a value which this row's optimizer never has, or which does not cross."""
    for group in groups:
        for name, argument in _arguments(row).items():
            value = group.get(name)
            if isinstance(value, (bool, str)) and (
                (argument.only and value not in argument.only) or value in argument.refuse
            ):
                remedy = f" {argument.remedy}" if argument.remedy else ""
                return f"{name}={value} has no counterpart: {argument.why}.{remedy}"
        for name, values in row.group_options.items():
            value = group.get(name)
            if values and isinstance(value, (bool, str)) and value not in values:
                return f"its parameter groups have {name}={value}, {row.torch}'s {values[0]}"
    return None


def _unknown(row: Row, option_names: Set[str]) -> set[str]:
    """The options that this row's optimizer does not have."""
    return {*option_names} - {*_arguments(row), *row.group_options, *_in_groups(row)}


def _arguments(row: Row) -> dict[str, Argument]:
    return {argument.torch: argument for argument in row.arguments if argument.torch != "params"}


def _in_groups(row: Row) -> set[str]:
    return {item.torch for item in row.state if item.in_groups and item.torch is not None}


def _named(names: Sequence[str], rows: Sequence[Row]) -> Row:
    """The row of the first of these names that has one: a full name or alias, or a short name that only one row has."""
    for name in names:
        found = [row for row in rows if name.lower() == row.short.lower()]
        if not found:
            with suppress(UnknownRow):
                found = [row for row in lookup(name) if row in rows]
        if len(found) > 1:
            raise BadInput(f"--optimizer {name} may be {' or '.join(row.torch for row in found)}")
        if found:
            return found[0]
    near = difflib.get_close_matches(names[0].rpartition(".")[2].lower(), [row.short.lower() for row in rows], n=1)
    hint = next((f"did you mean {row.torch}?" for row in rows if [row.short.lower()] == near), "")
    raise BadInput(
        f"the table has no optimizer {names[0]}; {hint or 'msmigrate mappings lists them, --mappings adds your own'}"
    )


Groups = list[list[str]]

REMEDY = (
    "name the function that builds model and optimizer, with --optimizer FILE.py:FUNCTION returning (model, optimizer)"
)


def is_norm_or_bias(name: str, shape: Shape) -> bool:
    """Whether a parameter is a vector, as norms' scales and shifts and all biases are."""
    return len(shape) <= 1


def is_bias(name: str, shape: Shape) -> bool:
    """Whether a parameter is called a bias."""
    return name.rpartition(".")[2] == "bias"


def is_of_a_norm(name: str, shape: Shape) -> bool:
    """Whether a parameter is a norm's scale: a vector that is not called a bias."""
    return len(shape) == 1 and not is_bias(name, shape)


SPLITS: tuple[Callable[[str, Shape], bool], ...] = (is_norm_or_bias, is_bias, is_of_a_norm)


def names_of(groups: Sequence[Sequence[int]], shapes: Mapping[int, Shape], parameters: Mapping[str, Shape]) -> Groups:
    """The names of each group's parameters.

    groups: the indices of each group's parameters. shapes: parameter index -> shape of its state, where it has one.
    parameters: name -> shape, in the model's order. Raises Ambiguous when several orders fit, BadCheckpoint when none
    does.
    """
    wanted = [len(group) for group in groups]
    flat = [index for group in groups for index in group]
    if sum(wanted) > len(parameters):
        raise BadCheckpoint(
            f"the optimizer has {sum(wanted)} parameters and the state dict {len(parameters)}: it is another model's"
        )
    fitting: list[Groups] = []
    for order in _orders(wanted, parameters):
        names = [name for group in order for name in group]
        fits = [len(group) for group in order] == wanted and all(
            parameters[name] == shapes.get(index, parameters[name]) for index, name in zip(flat, names, strict=True)
        )
        if fits and order not in fitting:
            fitting.append(order)
    if not fitting:
        raise BadCheckpoint(
            f"its {_counted(wanted)} fit no usual order of the model's {len(parameters)} parameters: {REMEDY}"
        )
    if len(fitting) > 1:
        first, second = ([name for group in order for name in group] for order in fitting[:2])
        differing = [shown(one) for one, other in zip(first, second, strict=True) if one != other]
        raise Ambiguous(
            f"its {_counted(wanted)} may be in more than one order, which differ in {few(differing, 3)}: {REMEDY}"
        )
    return fitting[0]


def _counted(wanted: Sequence[int]) -> str:
    if len(wanted) == 1:
        return f"{wanted[0]} parameters"
    return f"groups of {few([str(count) for count in wanted], 8, ', ')} parameters"


def _orders(wanted: Sequence[int], parameters: Mapping[str, Shape]) -> Iterable[Groups]:
    """The orders that training scripts use: one group; two by a rule, either first; blocks of the model one by one."""
    names = list(parameters)
    if len(wanted) == 1:
        yield [names]
        return
    if len(wanted) == 2:
        for rule in SPLITS:
            inside = [name for name in names if rule(name, parameters[name])]
            outside = [name for name in names if not rule(name, parameters[name])]
            yield [inside, outside]
            yield [outside, inside]
    if sum(wanted) == len(names):
        at, blocks = 0, []
        for count in wanted:
            blocks.append(names[at : at + count])
            at += count
        yield blocks
        if len(wanted) == 2:  # the head first, as fine-tuning scripts do
            yield [names[-wanted[0] :], names[: -wanted[0]]]


def check_names(
    groups: Groups, shapes: Mapping[int, Shape], indices: Sequence[int], parameters: Mapping[str, Shape]
) -> None:
    """Check the given parameter names against the state dict; raises BadCheckpoint."""
    names = [name for group in groups for name in group]
    if len(names) != len(indices):
        raise BadCheckpoint(f"the optimizer has {len(indices)} parameters and {len(names)} are named")
    for index, name in zip(indices, names, strict=True):
        if name not in parameters:
            raise BadCheckpoint(f"the optimizer's parameter {name} is not in the state dict")
        if parameters[name] != shapes.get(index, parameters[name]):
            raise BadCheckpoint(
                f"the optimizer's state of {name} is {size(shapes[index])}, the parameter {size(parameters[name])}"
            )


LARGEST_JSON = 4 << 20  # bytes
MAX_PARAMETERS = 200_000  # of an optimizer; the largest models have some thousands
MAX_STATE = 100  # entries that an optimizer keeps for one parameter


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

    key: where it stands in the file. parameters: of the state dict, name -> shape, in the model's order. names: the
    parameter names of each group, where known. classes: the possible names of the optimizer's class, where known.
    about: what else the groups' JSON is to hold. Raises what training_state raises.
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
    given = names or _names_in(groups, indices)
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
    """A parameter group with numbers instead of one-element tensors: `capturable` keeps the learning rate as such a
    tensor, and timm the step."""
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
        if left < 0:  # a small file may refer to one list many times
            raise BadCheckpoint(f"{key}: it has more than {MAX_PARAMETERS:,} parameters and groups of them")
        if any(type(index) is not int for index in params):
            raise BadCheckpoint(f"{key}: a parameter group does not list its parameters by number")
        found.append(params)
    return found


def _tensors(key: str, index: Any, held: Any, maker: Maker) -> dict[str, Any]:
    """State key -> tensor or number, of one parameter; entries that are None are left out."""
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
    """The shape of the parameter that a state belongs to; the state may hold single numbers too."""
    shapes = {tensor.shape for part, tensor in held.items() if part != "step" and isinstance(tensor, Tensor)}
    shapes = shapes - {()} or shapes
    return shapes.pop() if len(shapes) == 1 else None


def _names_in(groups: Sequence[Mapping[str, Any]], indices: Sequence[Sequence[int]]) -> Groups | None:
    """The names in the groups themselves, which torch 2.6 and later keeps when the optimizer got names."""
    found: Groups = []
    for group, inside in zip(groups, indices, strict=True):
        names = group.get("param_names")
        if type(names) is not list or len(names) != len(inside) or any(not isinstance(name, str) for name in names):
            return None
        found.append([short(name) for name in names])
    return found


def short(name: str) -> str:
    while taken := next((prefix for prefix in PREFIXES if name.startswith(prefix)), None):
        name = name[len(taken) :]
    return name


def _groups(about: Mapping[str, Any], groups: Sequence[Mapping[str, Any]], names: Groups, maker: Maker) -> Entry:
    """The optimizer and its parameter groups as JSON: their options, and parameter names instead of numbers."""
    written = [
        {**{k: v for k, v in group.items() if isinstance(k, str) and plain(v)}, "params": list(inside)}
        for group, inside in zip(groups, names, strict=True)
    ]
    content = bytearray()
    for part in json.JSONEncoder(allow_nan=False).iterencode({**about, "param_groups": written}):
        content += part.encode()
        if len(content) > LARGEST_JSON:  # a small file may refer to one object in many places
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
