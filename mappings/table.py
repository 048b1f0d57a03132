"""The mapping table: look a row up, and translate a torch call into a MindSpore call.

    row("Conv2d").state                      # how its tensors are called in MindSpore
    translate("torch.optim.SGD", {"lr": 0.1, "momentum": 0.9})
                                             # Call("mindspore.experimental.optim.SGD", {... every argument ...})

Rows are read from tables/*.yaml; only a kind's files are read when only that kind is needed.
"""

from __future__ import annotations

import ast
import difflib
import os
import re
from collections.abc import Iterable, Mapping
from dataclasses import replace
from enum import Enum
from functools import cache
from importlib import metadata
from pathlib import Path
from typing import Any

from packaging.version import Version

from ..errors import BadInput, UnknownRow, Unsupported
from ..printable import quoted
from . import user_rows
from .row_reader import read_examples, read_faults, read_rows
from .rows import MISSING, OLDEST, Argument, Call, Fault, Row
from .verbs import VERBS, Types, Verb

KINDS = {  # kind -> how the names of its files begin: layers.yaml, layers_pooling.yaml
    "layer": "layers",
    "module": "modules",
    "function": "functions",
    "loss": "losses",
    "optimizer": "optimizers",
    "schedule": "schedules",
    "initializer": "initializers",
    "transform": "transforms",
    "distribution": "distributions",
    "parallel": "parallel",
    "script": "scripts",
}
HERE = Path(__file__).parent
InForce = tuple[tuple[Path, ...], str | None]
OF_MINDSPORE = ("ops", "mint", "mint.nn", "mindspore", "mindspore.ops", "mindspore.nn", "mindspore.mint")
ALIKE = 0.66  # how alike two names are, by difflib, from where on one may be a typo for the other: SDG and SGD are 0.67
VERSION = "MSMIGRATE_MINDSPORE"  # the MindSpore whose rows are wanted, installed here or not
FAULTS = HERE / "faults.yaml"


def load(kind: str) -> tuple[Row, ...]:
    """Return the rows of one kind, in the order of its files, then the user's own; raises BadInput for an unknown kind
    or a bad file."""
    if kind not in KINDS:
        raise BadInput(f"there is no kind of row '{kind}'; there are {', '.join(KINDS)}")
    return _with_own(kind, in_force())


@cache
def built_in(kind: str) -> tuple[Row, ...]:
    """Return the rows of one kind that msmigrate brings."""
    return read_rows(files(kind), kind)


@cache
def _with_own(kind: str, in_force: InForce) -> tuple[Row, ...]:
    own, version = in_force
    found = tuple(_in_version(row, version) for row in built_in(kind)) if version else built_in(kind)
    return tuple(user_rows.among(found, kind, _own(own))) if own else found


def in_force() -> InForce:
    """What the rows depend on: the user's own files, and the MindSpore. Caches of rows have it as their key."""
    return user_rows.paths(), mindspore_version()


def mindspore_version() -> str | None:
    """The MindSpore whose rows are in force: the one that the environment names, which --mindspore-version sets, or
    else the one that is installed; None, which means the newest, where there is none."""
    return os.environ.get(VERSION) or _installed()


@cache
def _installed() -> str | None:
    try:
        return metadata.version("mindspore")
    except metadata.PackageNotFoundError:
        return None


def _in_version(row: Row, version: str) -> Row:
    """The row as it holds in a MindSpore: without a counterpart if that came later."""
    if row.since == OLDEST or Version(version) >= Version(row.since):
        return row
    why = f"MindSpore computes it so from {row.since} on, and this is {version}"
    status = dict.fromkeys(row.status, MISSING)
    return replace(row, mindspore=None, otherwise=None, exact=False, why=why, status=status, cases=(), vary=())


def own_rows() -> tuple[Row, ...]:
    """Return the rows of the user's own files in force; raises BadInput for a bad file."""
    return _own(user_rows.paths())


@cache
def _own(paths: tuple[Path, ...]) -> tuple[Row, ...]:
    """The user's rows; raises BadInput where one points to an unknown fault."""
    own = user_rows.read(paths, tuple(KINDS))
    for row in own:
        unknown = [name for name in row.pitfalls if name not in faults()]
        if unknown:
            raise BadInput(f"{row.origin}: {row.torch}: pitfalls: there is no fault {quoted(unknown[0])}")
    return own


def files(kind: str) -> list[Path]:
    """Return the files that hold the rows of one kind: its own where it has one, then those of a part of it."""
    folder = HERE / "tables"
    return [*folder.glob(f"{KINDS[kind]}.yaml"), *sorted(folder.glob(f"{KINDS[kind]}_*.yaml"))]


@cache
def faults() -> dict[str, Fault]:
    """Return every known fault by its id: those that rows point to, and those that belong to no row."""
    return {fault.id: fault for group in read_faults(FAULTS).values() for fault in group}


@cache
def examples() -> dict[str, tuple[str, str, str]]:
    """Return each fault's smallest example: Python source of torch, of a port that goes wrong, and of a right one."""
    return read_examples(HERE / "fault_examples.yaml")


def rows(kind: str | None = None) -> list[Row]:
    """Return all rows, or those of one kind."""
    return [row for name in ([kind] if kind else KINDS) for row in load(name)]


def row(name: str) -> Row:
    """Return the row of a torch name: qualified, an alias, or short (`Conv2d`); raises UnknownRow.

    A short name that both a built-in row and a user's own have means the built-in one.
    """
    found = _row(name, in_force())
    if isinstance(found, Row):
        return found
    if found:
        raise UnknownRow(f"'{name}' is short for several rows: {found}")
    close = closest(name, rows())
    hint = f"; did you mean {', '.join(close)}?" if close else ""
    raise UnknownRow(f"the mapping table has no row '{name}'{hint}")


def known(name: str) -> Row | None:
    """Return the row that row() returns, or None where that raises; no name is sought that is like the given one."""
    found = _row(name, in_force())
    return found if isinstance(found, Row) else None


@cache
def _row(name: str, in_force: InForce) -> Row | str:
    """The row of a name, or the names of several rows; of none, nothing."""
    for kind in KINDS:
        for candidate in load(kind):
            if name == candidate.torch or name in candidate.aliases:
                return candidate
    everything = rows()
    for matches in (
        [candidate for candidate in everything if name == candidate.short],
        [candidate for candidate in everything if name.lower() == candidate.short.lower()],
    ):
        if len(matches) > 1:
            matches = [candidate for candidate in matches if candidate.origin is None] or matches
        if len(matches) == 1:
            return matches[0]
        if matches:
            return ", ".join(match.torch for match in matches)
    return ""


def closest(name: str, among: Iterable[Row]) -> list[str]:
    """Return up to three names that look most like the given one, those of its own module first: torch's, or
    MindSpore's where the name's module is one that torch does not have."""
    lower: dict[str, list[str]] = {}
    module, _, last = name.rpartition(".")
    for candidate in among:
        for known in (candidate.torch, *candidate.aliases) if module not in OF_MINDSPORE else ():
            lower.setdefault(known.rpartition(".")[2].lower(), []).append(candidate.torch)
        for own in (candidate.mindspore or "", *candidate.instead_of) if module else ():
            written = own.removeprefix("mindspore.")
            if written.rpartition(".")[0] == module:
                lower.setdefault(written.rpartition(".")[2].lower(), []).append(written)
    found = difflib.get_close_matches(last.lower(), list(lower), n=3, cutoff=ALIKE)
    alike = [sorted(lower[match], key=lambda torch: torch.rpartition(".")[0] != module) for match in found]
    return list(dict.fromkeys(torch for names in alike for torch in names))[:3]


def layer_classes() -> dict[str, str]:
    """Torch's class names of MindSpore's layers, by MindSpore's."""
    return {row.mindspore.rsplit(".", 1)[-1]: row.short for row in rows("layer") if row.mindspore}


def translate(name: str, args: Mapping[str, Any], positional: tuple[Any, ...] = (), *, partial: bool = False) -> Call:
    """Translate a torch call into the MindSpore call that means the same, with every argument written out.

    Defaults that the caller left out are torch's. With `partial` only the given arguments are translated, which is
    what an optimizer's parameter group needs. If MindSpore's own class does not take a value, the call is translated
    for the class that the row has in `otherwise`. Raises UnknownRow; BadInput for an argument that torch does not have
    or that is missing; Unsupported for a value that has no counterpart.
    """
    found = row(name)
    if found.otherwise is None or partial:
        return _translated(found, args, positional, partial)
    try:
        return _translated(found, args, positional, partial)
    except Unsupported as refused:
        try:
            return _translated(found.otherwise, args, positional, partial)
        except Unsupported as too:
            raise (refused if too.argument == refused.argument else too) from None


def _translated(found: Row, args: Mapping[str, Any], positional: tuple[Any, ...], partial: bool) -> Call:
    if found.mindspore is None:
        raise Unsupported(f"{found.torch} has no MindSpore counterpart: {found.why}")
    if found.kind == "script" and not found.arguments:
        raise Unsupported(f"{found.torch} does not cross argument by argument; write: {found.rewrite}")
    given = bind(found, args, positional)
    values = _filled(found, given, complete=not partial)
    kwargs: dict[str, Any] = {}
    for argument in found.arguments:
        if argument.torch in (given if partial else values):
            kwargs.update(cross(found, argument, values))
    if not partial:
        kwargs.update((written.mindspore, written.value) for written in found.written)
    return Call(found.mindspore, kwargs)


def arguments(name: str, args: Mapping[str, Any]) -> dict[str, Any]:
    """Return a torch call's arguments with torch's own defaults filled in; raises UnknownRow and BadInput."""
    found = row(name)
    return _filled(found, bind(found, args, ()), complete=True)


def inverse(name: str, kwargs: Mapping[str, Any], *, partial: bool = False) -> dict[str, Any]:
    """Return torch arguments that mean the given MindSpore ones; `translate` takes them back to the same call.

    Arguments that do not cross are left to torch's default, and with `partial` those that are not given. The MindSpore
    arguments are those of the row's first counterpart. Raises UnknownRow; BadInput when one is missing.
    """
    found = row(name)
    args = {}
    for argument in found.arguments:
        if not argument.to:
            continue
        missing = [theirs for theirs in argument.to if theirs not in kwargs]
        if missing and partial:
            continue
        if missing:
            raise BadInput(f"{found.mindspore}: the argument '{missing[0]}' is not written")
        value: Any = tuple(kwargs[theirs] for theirs in argument.to)
        value = value if len(argument.to) > 1 else value[0]
        if argument.verb:
            value = VERBS[argument.verb].inverse(value)
        args[argument.torch] = next((ours for ours, theirs in argument.values if theirs == value), value)
    return args


def bind(found: Row, args: Mapping[str, Any], positional: tuple[Any, ...]) -> dict[str, Any]:
    """Give every positional value its torch name, and check that all names exist."""
    known = {argument.torch: argument for argument in found.arguments}
    given: dict[str, Any] = {}
    waiting = list(positional)
    for argument in found.arguments:
        if not waiting:
            break
        given[argument.torch] = tuple(waiting) if argument.rest else waiting[0]
        waiting = [] if argument.rest else waiting[1:]
    if waiting:
        raise BadInput(f"{found.torch} takes {len(known)} arguments, got {len(positional)} by position")
    for key, value in ((found.own_name(key), value) for key, value in args.items()):
        if key not in known:
            near = difflib.get_close_matches(key, known, n=1)
            hint = f"; did you mean '{near[0]}'?" if near else f"; it has {', '.join(known)}"
            raise BadInput(f"{found.torch} has no argument '{key}'{hint}")
        if key in given:
            raise BadInput(f"{found.torch} got '{key}' twice")
        given[key] = value
    return given


def _filled(found: Row, given: Mapping[str, Any], *, complete: bool) -> dict[str, Any]:
    """Add torch's defaults for what was not given."""
    values = {}
    for argument in found.arguments:
        if argument.torch in given:
            values[argument.torch] = plain(given[argument.torch])
        elif argument.rest:
            values[argument.torch] = ()
        elif not argument.required:
            values[argument.torch] = plain(argument.default)
        elif complete:
            raise BadInput(f"{found.torch} needs the argument '{argument.torch}'")
    return values


SIZES = ("kernel_size", "stride", "padding", "dilation", "output_padding")
SIZED = re.compile(
    r"torch\.nn\.(functional\.)?(lazy)?(conv|max_?pool|avg_?pool)\w*[23]d$", re.IGNORECASE
)  # [2] is (2, 2)


def cross(found: Row, argument: Argument, values: Mapping[str, Any]) -> dict[str, Any]:
    """Take one torch argument across; returns MindSpore names and values, empty when it is only checked."""
    value = values[argument.torch]
    if isinstance(value, tuple) and len(value) == 1 and argument.torch in SIZES and SIZED.match(found.torch):
        (value,) = value
    if argument.only and not any(same(value, allowed) for allowed in argument.only):
        raise unsupported(found, argument, value, argument.why)
    if any(same(value, refused) for refused in argument.refuse):
        raise unsupported(found, argument, value, argument.why)
    if argument.values:
        matches = [theirs for ours, theirs in argument.values if same(value, ours)]
        if not matches:
            raise unsupported(found, argument, value, argument.why)
        value = matches[0]
    if argument.verb:
        try:
            value = VERBS[argument.verb].forward(value, values)
        except ValueError as error:
            raise unsupported(found, argument, value, str(error)) from None
    elif type(value) is int and isinstance(argument.default, float) and not argument.values:
        value = float(value)  # which torch takes whole, and several of MindSpore's classes and operators do not
    if len(argument.to) > 1:
        return dict(zip(argument.to, value, strict=True))
    return dict.fromkeys(argument.to, value)


def unsupported(found: Row, argument: Argument, value: Any, why: str | None) -> Unsupported:
    """Say which row, argument and value have no counterpart, why (the row's reason, or a verb's), and what to do."""
    text = f"{argument.torch}={value!r} has no counterpart in {found.mindspore}"
    text += f": {why}" if why else ""
    text += f". {argument.remedy}" if argument.remedy else ""
    return Unsupported(text, row=found.torch, argument=argument.torch, value=value, why=why, remedy=argument.remedy)


def plain(value: Any) -> Any:
    """An enumeration member's value, a dtype's name, a tuple for a list of numbers; anything else as it is."""
    if isinstance(value, Enum):
        return value.value
    if isinstance(value, list) and all(item is None or isinstance(item, (int, float)) for item in value):
        return tuple(value)
    return str(value) if type(value).__module__ == "torch" and type(value).__name__ == "dtype" else value


def same(value: Any, other: Any) -> bool:
    """Equality that tells True from 1 and never takes the truth value of a tensor."""
    if value is None or other is None or isinstance(value, bool) or isinstance(other, bool):
        return value is other
    if isinstance(value, (int, float)) and isinstance(other, (int, float)):
        return value == other
    return type(value) is type(other) and bool(value == other)


# The verbs of values that are torch calls themselves: they need the table, which needs all other verbs to be read.


def _layer(value: Any, args: Mapping[str, Any]) -> Call | None:
    """A pair (torch layer, its arguments) to the call that makes it in MindSpore."""
    return None if value is None else translate(value[0], value[1])


def _from_layer(value: Call | None) -> list[Any] | None:
    if value is None:
        return None
    name = next(row.torch for row in (*rows("layer"), *rows("module")) if row.mindspore == value.target)
    return [name, inverse(name, value.kwargs)]


def _layer_expression(node: ast.expr, types: Types) -> list[ast.expr] | None:
    """The layer's expression as it is: it has crossed by its own row already."""
    return None if types is None else [node]


def _schedules(value: Any, args: Mapping[str, Any]) -> list[tuple[str, dict[str, Any]]]:
    """Pairs (torch schedule, its arguments) to pairs (MindSpore schedule, its arguments)."""
    calls = []
    for name, inner in value:
        found = row(name)
        # schedules that contain others, set the optimizer's own rates, or depend on a metric
        alone = any(argument.torch in ("schedulers", "max_lr", "patience") for argument in found.arguments)
        if found.kind != "schedule" or alone:
            raise ValueError(f"{found.torch} cannot be used inside another schedule")
        calls.append(translate(name, inner))
    return [(call.target, call.kwargs) for call in calls]


def _from_schedules(value: Any) -> list[tuple[str, dict[str, Any]]]:
    names = {row.mindspore: row.torch for row in rows("schedule")}
    return [(names[target], inverse(names[target], kwargs)) for target, kwargs in value]


VERBS["layer"] = Verb("a layer by its own row", _layer, _from_layer, _layer_expression)
VERBS["schedules"] = Verb("every schedule by its own row", _schedules, _from_schedules)
