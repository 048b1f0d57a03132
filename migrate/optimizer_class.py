"""Which optimizer a state dict is of, told by the rows of the mapping table: a row's arguments are the options of its
parameter groups, its state the keys of every parameter.

A state dict does not hold the class. What several rows fit is asked for, never guessed: older versions of torch keep
the same under the same names for Adam and AdamW.
"""

from __future__ import annotations

import difflib
from collections.abc import Collection, Mapping, Sequence, Set
from typing import Any

from ..errors import Ambiguous, BadCheckpoint, BadInput, Unsupported
from ..mappings import table
from ..mappings.rows import Argument, Row
from .plan import few

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

    named: what its class is called, where the user has said so, the first that a row has; then the file is only held
    against it. Raises Ambiguous where several rows fit, Unsupported where none does or where the table has no
    counterpart, BadCheckpoint for a file that is not of the class that was named, BadInput for a name without a row.
    """
    options = [{key for key in group if isinstance(key, str)} for group in groups]
    common = set.intersection(*options) if options else set()
    told = set().union(*options) - OTHERS
    rows = table.rows("optimizer")
    near = [row for row in rows if not _apart(row, common, parts)]
    if named is not None:
        row = _named(named, rows)
        apart = _apart(row, common, parts) or _told_otherwise(row, groups)
        if apart:
            others = [other for other in near if not _unknown(other, told) and not _told_otherwise(other, groups)]
            seems = [other.torch for other in others if other is not row]
            like = f"; it looks like {' or '.join(seems)}" if seems else ""
            raise BadCheckpoint(f"its state is not {row.torch}'s: {apart}{like}")
    else:
        row = _only(near, groups, told, parts)
    if row.mindspore is None:
        raise Unsupported(f"it is {row.torch}'s state, which has no counterpart: {row.why}")
    return row


def _only(near: Sequence[Row], groups: Sequence[Mapping[Any, Any]], told: Set[str], parts: Collection[str]) -> Row:
    """The one row that fits; near: those that have what they need."""
    whole = [row for row in near if not _unknown(row, told)]
    fitting = [row for row in whole if not _told_otherwise(row, groups)]
    if len(fitting) == 1:
        return fitting[0]
    if fitting:
        either = " or ".join(row.torch for row in fitting)
        raise Ambiguous(f"it does not tell whether it is {either}'s state: name the class with --optimizer")
    if whole:
        raise Unsupported(f"it is {whole[0].torch}'s state: {_told_otherwise(whole[0], groups)}")
    if near:
        fewest = min(len(_unknown(row, told)) for row in near)
        nearest = [row for row in near if len(_unknown(row, told)) == fewest]
        raise Ambiguous(
            f"{few(sorted(_unknown(nearest[0], told)), 4, ', ')} in its parameter groups is no option of "
            f"{' or '.join(row.torch for row in nearest)}: if it is that all the same, name the class with --optimizer"
        )
    held = f"the state {few(sorted(parts), 8, ', ')}" if parts else "no state yet"
    raise Unsupported(
        f"the table has no optimizer with {held} and the options {few(sorted(told) or ['none'], 12, ', ')}: write a "
        "row for it (--mappings), or convert without --training"
    )


def _apart(row: Row, common: Set[str], parts: Collection[str]) -> str | None:
    """What the row needs and the groups lack, or what the state holds and the row does not."""
    missing = {name for name, argument in _arguments(row).items() if name not in LATER} - common
    if missing:
        return f"its parameter groups have no {few(sorted(missing), 4, ', ')}"
    foreign = set(parts) - {item.torch for item in row.state}
    if foreign and row.mindspore is not None:  # without a counterpart a row does not list its state
        return f"it holds {few(sorted(foreign), 4, ', ')}, which {row.torch} does not"
    return None


def _told_otherwise(row: Row, groups: Sequence[Mapping[Any, Any]]) -> str | None:
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


def _unknown(row: Row, told: Set[str]) -> set[str]:
    """The options that this row's optimizer does not have."""
    return {*told} - {*_arguments(row), *row.group_options, *_in_groups(row)}


def _arguments(row: Row) -> dict[str, Argument]:
    return {argument.torch: argument for argument in row.arguments if argument.torch != "params"}


def _in_groups(row: Row) -> set[str]:
    return {item.torch for item in row.state if item.in_groups and item.torch is not None}


def _named(names: Sequence[str], rows: Sequence[Row]) -> Row:
    """The row of the first of these names that has one: qualified, an alias, or short where only one is called so."""
    for name in names:
        found = [row for row in rows if name == row.torch or name in row.aliases]
        found = found or [row for row in rows if name.lower() == row.short.lower()]
        if len(found) > 1:
            raise BadInput(f"--optimizer {name} may be {' or '.join(row.torch for row in found)}")
        if found:
            return found[0]
    near = difflib.get_close_matches(names[0].rpartition(".")[2].lower(), [row.short.lower() for row in rows], n=1)
    hint = next((f"did you mean {row.torch}?" for row in rows if [row.short.lower()] == near), "")
    raise BadInput(
        f"the table has no optimizer {names[0]}; {hint or 'msmigrate mappings lists them, --mappings adds your own'}"
    )
