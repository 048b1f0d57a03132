"""An option of a command, declared once: a field of the dataclass that its workflow, its API and its workers take.

steps: Annotated[int, Option("Training steps to run.", least=1, most=100)] = 3
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass, fields
from numbers import Integral, Real
from pathlib import Path
from typing import Annotated, Any, NamedTuple, get_args, get_origin, get_type_hints, overload

from .errors import BadInput


@dataclass(frozen=True)
class Option:
    """What a command line needs to know of a field besides its name, its type and its default.

    flag: its name there, where that is not the field's. choices: the values it may have. least, most: of a number.
    reads: the kind of thing that it names, where that is read; what names a file to be written has none. any_case:
    whether a choice may be written in small letters.
    """

    help: str
    flag: str | None = None
    metavar: str | None = None
    choices: Sequence[str] = ()
    least: float | None = None
    most: float | None = None
    reads: str | None = None
    any_case: bool = False

    def check(self, name: str, value: Any) -> None:
        """Raise BadInput for a value that is none of the choices, or out of range."""
        values = value if isinstance(value, (list, tuple)) else (value,)
        known = [each.lower() for each in self.choices] if self.any_case else self.choices
        if known and (wrong := [each for each in values if (each.lower() if self.any_case else each) not in known]):
            raise BadInput(f"{name} is {wrong[0]!r}: expected one of {', '.join(self.choices)}")
        if self.least is not None and not self.least <= value <= (self.most or value):
            upto = "or more" if self.most is None else f"to {self.most:,}"
            raise BadInput(f"{name} is {value!r}: expected {self.least:,} {upto}")


class Declared(NamedTuple):
    """A field that is an option: its type without None, and its default."""

    option: Option
    type: Any
    default: Any


def options_in(kind: type[Any]) -> dict[str, Declared]:
    """The options that a dataclass declares, by the name of their fields."""
    hints, types = get_type_hints(kind, include_extras=True), _types(kind)
    found = {}
    for field in fields(kind):
        declared = [each for each in get_args(hints[field.name])[1:] if isinstance(each, Option)]
        if get_origin(hints[field.name]) is Annotated and declared:
            found[field.name] = Declared(declared[0], types[field.name], field.default)
    return found


def _types(kind: type[Any]) -> dict[str, Any]:
    """The type of every field, without None."""
    hints = get_type_hints(kind)
    found = {}
    for field in fields(kind):
        inner = [each for each in get_args(hints[field.name]) if each is not type(None)]
        optional = type(None) in get_args(hints[field.name])
        found[field.name] = inner[0] if optional and len(inner) == 1 else hints[field.name]
    return found


# type of a field: what its values are instances of, and what an error calls them
_KINDS: dict[Any, tuple[tuple[type, ...], str]] = {
    bool: ((bool,), "True or False"),
    int: ((Integral,), "a whole number"),
    float: ((Real,), "a number"),
    str: ((str,), "text"),
    Path: ((str, Path), "a path"),
}


def check_type(kind: Any, value: Any, name: str) -> None:
    """Raise BadInput for a value that is no bool, int, float, str or Path, whichever `kind` is."""
    classes, called = _KINDS[kind]
    if not isinstance(value, classes) or (isinstance(value, bool) and kind is not bool):
        raise BadInput(f"{name} is {value!r}: expected {called}")


def check(options: Any) -> None:
    """Raise BadInput for the first field of a dataclass whose value is of another type, or not one of its option's."""
    declared = options_in(type(options))
    for name, kind in _types(type(options)).items():
        value = getattr(options, name)
        if value is None:
            continue
        if kind in _KINDS:
            check_type(kind, value, name)
        elif get_origin(kind) in (tuple, Sequence) and (
            not isinstance(value, (list, tuple)) or not all(isinstance(each, str) for each in value)
        ):
            raise BadInput(f"{name} is {value!r}: expected a list of texts")
        if name in declared:
            declared[name].option.check(name, value)


@overload
def as_path(value: None, name: str) -> None: ...
@overload
def as_path(value: str | Path, name: str) -> Path: ...
def as_path(value: Any, name: str) -> Path | None:
    """The path that a function was given as text or as a path; None for None. Raises BadInput for what is neither."""
    if value is None or isinstance(value, Path):
        return value
    if isinstance(value, (str, os.PathLike)):
        return Path(value)
    raise BadInput(f"{name} is {value!r}: expected a path")


def values_of(kind: type[Any], given: dict[str, Any], what: str, besides: Sequence[str] = ()) -> dict[str, Any]:
    """The keyword arguments of a function as the values of a dataclass's fields, paths made of texts.

    what: the function's name, for the error. besides: fields that it sets otherwise. Raises BadInput for a name that is
    none of the fields, and for a path that is none.
    """
    types = _types(kind)
    known = [name for name in types if name not in besides]
    if unknown := [name for name in given if name not in known]:
        raise BadInput(f"{what} has no option {unknown[0]!r}; it has {', '.join(known)}")
    return {name: as_path(value, name) if types[name] is Path else value for name, value in given.items()}
