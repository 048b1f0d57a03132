"""What an expression of a model was, as far as a translation depends on it: a tensor, a module, a class, a list, …

A kind goes through the worker's report as JSON, and `str` says it in words for messages.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, Literal


@dataclass(frozen=True)
class TensorKind:
    """A tensor, of a dtype and so many dimensions; parameter: one that a module trains."""

    dtype: str
    rank: int
    parameter: bool = False

    def __str__(self) -> str:
        return f"{'Parameter' if self.parameter else 'Tensor'} {self.dtype} {self.rank}"


@dataclass(frozen=True)
class ModuleKind:
    """A module of a class."""

    cls: str

    def __str__(self) -> str:
        return f"module {self.cls}"


@dataclass(frozen=True)
class CallableKind:
    """A class or a function by its name; of `functools.partial` what it calls."""

    what: Literal["class", "function", "partial"]
    name: str

    def __str__(self) -> str:
        return f"{self.what} {self.name}"


@dataclass(frozen=True)
class SequenceKind:
    """A list, a tuple, or a class of these such as a named tuple, and the kinds of its items."""

    type: str
    items: tuple[Kind, ...] = ()

    def __str__(self) -> str:
        return f"{self.type}({', '.join(map(str, self.items))})"


@dataclass(frozen=True)
class SizeKind:
    """The shape of a tensor of so many dimensions."""

    length: int

    def __str__(self) -> str:
        return f"Size {self.length}"


@dataclass(frozen=True)
class DictKind:
    """A dictionary by strings, and the kind of every value."""

    entries: tuple[tuple[str, Kind], ...] = ()

    def __str__(self) -> str:
        return f"dict {{{', '.join(f'{key}: {kind}' for key, kind in self.entries)}}}"


@dataclass(frozen=True)
class PlainKind:
    """A number, a string, None, or another object of Python's own, by its type."""

    type: str

    def __str__(self) -> str:
        return self.type


@dataclass(frozen=True)
class DtypeKind:
    """A dtype of torch's."""

    def __str__(self) -> str:
        return "dtype"


@dataclass(frozen=True)
class DeviceKind:
    """A device of torch's."""

    def __str__(self) -> str:
        return "device"


@dataclass(frozen=True)
class PythonModule:
    """A module that was imported."""

    name: str

    def __str__(self) -> str:
        return f"python {self.name}"


@dataclass(frozen=True)
class ObjectKind:
    """An object of some other class."""

    cls: str

    def __str__(self) -> str:
        return f"object {self.cls}"


Kind = (
    TensorKind
    | ModuleKind
    | CallableKind
    | SequenceKind
    | SizeKind
    | DictKind
    | PlainKind
    | DtypeKind
    | DeviceKind
    | PythonModule
    | ObjectKind
)
TYPES: dict[str, type[Kind]] = {
    "tensor": TensorKind,
    "module": ModuleKind,
    "callable": CallableKind,
    "sequence": SequenceKind,
    "size": SizeKind,
    "dict": DictKind,
    "plain": PlainKind,
    "dtype": DtypeKind,
    "device": DeviceKind,
    "python": PythonModule,
    "object": ObjectKind,
}
NAMES = {cls: name for name, cls in TYPES.items()}
NONE = PlainKind("NoneType")


def to_json(kind: Kind) -> list[Any]:
    """A kind as a list that JSON can hold: its name, and its fields."""
    if isinstance(kind, SequenceKind):
        return [NAMES[SequenceKind], kind.type, [to_json(item) for item in kind.items]]
    if isinstance(kind, DictKind):
        return [NAMES[DictKind], [[key, to_json(value)] for key, value in kind.entries]]
    return [NAMES[type(kind)], *vars(kind).values()]


def from_json(told: list[Any]) -> Kind:
    """The kind that `to_json` made a list of."""
    name, *fields = told
    if name == NAMES[SequenceKind]:
        return SequenceKind(fields[0], tuple(map(from_json, fields[1])))
    if name == NAMES[DictKind]:
        return DictKind(tuple((key, from_json(value)) for key, value in fields[0]))
    return TYPES[name](*fields)


def always_tensors(kinds: Iterable[Kind]) -> bool:
    """Whether something was a tensor, or a parameter, whenever it was seen."""
    return _always(kinds, TensorKind)


def always_computed(kinds: Iterable[Kind]) -> bool:
    """Whether something was a tensor whenever it was seen, and never a parameter."""
    found = [*kinds]
    return bool(found) and all(isinstance(kind, TensorKind) and not kind.parameter for kind in found)


def always_parameters(kinds: Iterable[Kind]) -> bool:
    """Whether something was a parameter whenever it was seen."""
    found = [*kinds]
    return bool(found) and all(isinstance(kind, TensorKind) and kind.parameter for kind in found)


def always_dictionaries(kinds: Iterable[Kind]) -> bool:
    """Whether something was a dictionary by strings whenever it was seen."""
    return _always(kinds, DictKind)


def always_sequences(kinds: Iterable[Kind], *types: str) -> bool:
    """Whether something was a list or the like, of one of these types, whenever it was seen."""
    found = [*kinds]
    return bool(found) and all(isinstance(kind, SequenceKind) and kind.type in types for kind in found)


def always_imported(kinds: Iterable[Kind]) -> bool:
    """Whether something was a module that is imported whenever it was seen."""
    return _always(kinds, PythonModule)


def holds_tensor(kind: Kind) -> bool:
    """Whether there is a tensor among the values of a kind."""
    if isinstance(kind, DictKind):
        return any(holds_tensor(value) for _, value in kind.entries)
    if isinstance(kind, SequenceKind):
        return any(map(holds_tensor, kind.items))
    return isinstance(kind, TensorKind) and not kind.parameter


def of_constant(value: Any) -> Kind:
    """The kind of a constant that the source has."""
    if isinstance(value, (list, tuple)):
        return SequenceKind(type(value).__name__, tuple(dict.fromkeys(map(of_constant, value))))
    return PlainKind(type(value).__name__)


def _always(kinds: Iterable[Kind], cls: type[Kind]) -> bool:
    found = [*kinds]
    return bool(found) and all(isinstance(kind, cls) for kind in found)
