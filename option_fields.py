"""An option of a command, declared once: a field of the dataclass that its workflow, its API and its workers take.

steps: Annotated[int, Option("Training steps to run.", least=1, most=100)] = 3
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, fields
from typing import Annotated, Any, NamedTuple, get_args, get_origin, get_type_hints

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
    hints = get_type_hints(kind, include_extras=True)
    found = {}
    for field in fields(kind):
        hint = hints[field.name]
        declared = [each for each in get_args(hint)[1:] if isinstance(each, Option)]
        if get_origin(hint) is Annotated and declared:
            inner = get_args(hint)[0]
            (inner,) = [each for each in get_args(inner) if each is not type(None)] if _is_optional(inner) else [inner]
            found[field.name] = Declared(declared[0], inner, field.default)
    return found


def _is_optional(hint: Any) -> bool:
    return type(None) in get_args(hint)


def check(options: Any) -> None:
    """Raise BadInput for the first field of a dataclass whose value its option does not allow."""
    for name, declared in options_in(type(options)).items():
        value = getattr(options, name)
        if value is not None:
            declared.option.check(name, value)
