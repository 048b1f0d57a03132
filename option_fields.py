"""An option of a command, declared once, as a field of the dataclass that its workflow, its API and its workers take;
and how what a caller passes, such as a function that builds a model, becomes the value of an option.

steps: Annotated[int, Option("Training steps to run.", least=1, most=100)] = 3
"""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence
from dataclasses import dataclass, fields
from numbers import Integral, Real
from pathlib import Path
from typing import Annotated, Any, NamedTuple, get_args, get_origin, get_type_hints, overload

from .errors import BadInput

STDOUT = Path("-")  # as the file of --json


@dataclass(frozen=True)
class Option:
    """What a command line needs to know of a field besides its name, its type and its default.

    flag: the option's name, if it is not the field's. choices: the values it may have. least, most: limits of a number.
    reads: the kind of thing that the option names, if that is read; None for a file to be written. any_case: whether a
    choice may be written in upper or lower case. stdout: for a JSON file, whether `-` or no name at all prints it to
    stdout in place of the text.
    """

    help: str
    flag: str | None = None
    metavar: str | None = None
    choices: Sequence[str] = ()
    least: float | None = None
    most: float | None = None
    reads: str | None = None
    any_case: bool = False
    stdout: bool = False

    def check(self, name: str, value: Any) -> None:
        """Raise BadInput for a value that is not one of the choices, or out of range."""
        values = value if isinstance(value, (list, tuple)) else (value,)
        known = [each.lower() for each in self.choices] if self.any_case else self.choices
        if known and (wrong := [each for each in values if (each.lower() if self.any_case else each) not in known]):
            raise BadInput(f"{name} is {wrong[0]!r}: expected one of {', '.join(self.choices)}")
        if self.least is not None and not self.least <= value <= (self.most or value):
            upto = "or more" if self.most is None else f"to {self.most:,}"
            raise BadInput(f"{name} is {value!r}: expected {self.least:,} {upto}")


SHAPES = Option("An input's shape, 1x3x224x224 or 1x16:int64; repeat it for each input.", flag="input", metavar="SHAPE")


class Declared(NamedTuple):
    """A field that is an option: its type without None, and its default."""

    option: Option
    type: Any
    default: Any


def options_in(kind: type[Any]) -> dict[str, Declared]:
    """The options that a dataclass declares, by the name of their fields."""
    hints, types = get_type_hints(kind, include_extras=True), _types(kind)
    options = {}
    for field in fields(kind):
        declared = [each for each in get_args(hints[field.name])[1:] if isinstance(each, Option)]
        if get_origin(hints[field.name]) is Annotated and declared:
            options[field.name] = Declared(declared[0], types[field.name], field.default)
    return options


def _types(kind: type[Any]) -> dict[str, Any]:
    """The type of every field, without None."""
    hints = get_type_hints(kind)
    types = {}
    for field in fields(kind):
        inner = [each for each in get_args(hints[field.name]) if each is not type(None)]
        optional = type(None) in get_args(hints[field.name])
        types[field.name] = inner[0] if optional and len(inner) == 1 else hints[field.name]
    return types


# type of a field: what its values are instances of, and what an error calls them
_KINDS: dict[Any, tuple[tuple[type, ...], str]] = {
    bool: ((bool,), "True or False"),
    int: ((Integral,), "a whole number"),
    float: ((Real,), "a number"),
    str: ((str,), "text"),
    Path: ((str, Path), "a path"),
}


def check_type(kind: Any, value: Any, name: str) -> None:
    """Raise BadInput for a value that is not of `kind`: bool, int, float, str or Path."""
    classes, called = _KINDS[kind]
    if not isinstance(value, classes) or (isinstance(value, bool) and kind is not bool):
        raise BadInput(f"{name} is {value!r}: expected {called}")


def check(options: Any) -> None:
    """Raise BadInput for the first field of a dataclass whose value has the wrong type or is not one of the choices."""
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
    """An argument that may be a string or a path, as a path; None for None. Raises BadInput for anything else."""
    if value is None or isinstance(value, Path):
        return value
    if isinstance(value, (str, os.PathLike)):
        return Path(value)
    raise BadInput(f"{name} is {value!r}: expected a path")


def values_of(kind: type[Any], given: dict[str, Any], what: str, besides: Sequence[str] = ()) -> dict[str, Any]:
    """The keyword arguments of a function as the values of a dataclass's fields, with strings made paths where needed.

    what: the function's name, for the error. besides: fields that the function sets itself. Raises BadInput for a name
    that is not one of the fields, and for a value that should be a path and is not.
    """
    types = _types(kind)
    known = [name for name in types if name not in besides]
    if unknown := [name for name in given if name not in known]:
        raise BadInput(f"{what} has no option {unknown[0]!r}; it has {', '.join(known)}")
    return {name: as_path(value, name) if types[name] is Path else value for name, value in given.items()}


def model_name(given: Any, argument: str) -> str:
    """The name by which a worker builds a model: FILE.py:FUNCTION.

    given: the name itself; or the function or class that builds the model, which has to be at the top of a file, for
        the worker imports that file.
    argument: the name of the argument, for the error.

    Raises BadInput for a model that is built already, which no other process can have, and for a function that is not
    in a file.
    """
    if isinstance(given, (str, Path)):
        return str(given)
    if not callable(given) or not hasattr(given, "__qualname__"):
        kind = type(given).__name__
        raise BadInput(
            f"{argument} is a {kind} that is built already: each framework runs in a process of its own, which has to "
            f"build it. Give the function that returns it, or its name: {argument}='FILE.py:FUNCTION'"
        )
    name = given.__qualname__
    if "." in name or "<" in name:
        raise BadInput(
            f"{argument}: {name} is defined inside something else, where no other process can call it: move it to the "
            "top of a file"
        )
    module = sys.modules.get(given.__module__)
    file = getattr(module, "__file__", None)
    if file is None or getattr(module, name, None) is not given:
        where = "a notebook or an interactive session" if given.__module__ == "__main__" else given.__module__
        raise BadInput(
            f"{argument}: {name} is defined in {where}, which no other process can import: write it into a file, and "
            "give that function or FILE.py:FUNCTION"
        )
    if given.__module__ != "__main__" and "." in given.__module__:
        return f"{given.__module__}:{name}"  # its file may import its neighbours relatively
    return f"{Path(file).absolute()}:{name}"


def with_model(values: dict[str, Any]) -> dict[str, Any]:
    """The options of a function, with the function or class that builds its model replaced by its name; BadInput."""
    return values if values.get("model") is None else {**values, "model": model_name(values["model"], "model")}
