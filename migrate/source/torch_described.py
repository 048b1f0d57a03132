"""Words for the values that a torch model's source computes, and for how its objects were made."""

from __future__ import annotations

import functools
import json
import types
from collections.abc import Mapping
from enum import Enum
from typing import Any

import torch

from ...mappings import table
from ...mappings.resolve import resolve
from .module_api import ROWS_FIRST

MANY = 20  # keys of a dictionary that are told
FEW = 4  # distinct constants that are told of one expression
DEEP = 2  # levels of a list that are told
PLAIN = (bool, int, float, str, type(None))
Creation = tuple[Any, Any, tuple[Any, ...], dict[str, Any]]  # an object, which is held, what made it, and of what


class Describer:
    """Collects what instrumented functions report: statements, values and calls, by the number of their place."""

    def __init__(self) -> None:
        self.hit: set[int] = set()
        self.kinds: dict[int, dict[str, None]] = {}
        self.constants: dict[int, list[Any] | None] = {}
        self.called: dict[int, dict[str, None]] = {}
        self.creations: dict[int, Creation] = {}  # by classes
        self.built: dict[int, Creation] = {}  # modules, by functions
        self.names = _documented_names()

    def reached(self, number: int) -> None:
        """A statement is about to run."""
        self.hit.add(number)

    def value(self, number: int, value: Any) -> Any:
        """An expression had this value, which is given back."""
        self.kinds.setdefault(number, {}).setdefault(self.kind(value))
        if isinstance(value, PLAIN):
            known = self.constants.setdefault(number, [])
            if known is not None and not any(
                value is one or (type(value) is type(one) and value == one) for one in known
            ):
                self.constants[number] = [*known, value] if len(known) < FEW else None
        return value

    def call(self, number: int, function: Any) -> Any:
        """This is about to be called; gives back what to call, which for a class notes how the object is made."""
        self.called.setdefault(number, {}).setdefault(self.name(function))
        builder = isinstance(function, types.FunctionType) and not hasattr(function, "__wrapped__")
        if not (builder or isinstance(function, (type, functools.partial))) or function in (type, object):
            return function

        def made(*args: Any, **kwargs: Any) -> Any:
            found = function(*args, **kwargs)
            if not builder:
                self.creations.setdefault(id(found), (found, function, args, kwargs))
            elif isinstance(found, torch.nn.Module):  # the last to hand it on, and so the outermost
                self.built[id(found)] = (found, function, args, kwargs)
            return found

        return made

    def kind(self, value: Any, deep: int = DEEP) -> str:
        """What a value is, in a word: `Tensor float32 4`, `int`, `list(int)`, `module torch.nn.Conv2d`."""
        if isinstance(value, torch.Tensor):
            what = "Parameter" if isinstance(value, torch.nn.Parameter) else "Tensor"
            return f"{what} {str(value.dtype).removeprefix('torch.')} {value.dim()}"
        if isinstance(value, torch.nn.Module):
            return f"module {self.name(type(value))}"
        if isinstance(value, type):
            return f"class {self.name(value)}"
        if isinstance(value, types.ModuleType):
            return f"python {value.__name__}"
        if isinstance(value, functools.partial):
            return f"partial {self.name(value.func)}"
        if isinstance(value, torch.Size):
            return f"Size {len(value)}"
        if isinstance(value, (list, tuple)):
            inside = dict.fromkeys(self.kind(item, deep - 1) for item in value) if deep else {}
            return f"{type(value).__name__}({', '.join(inside)})"
        if isinstance(value, dict) and all(isinstance(key, str) for key in value):
            told = value.items() if deep and len(value) <= MANY else ()
            return f"dict {json.dumps({key: self.kind(item, deep - 1) for key, item in told})}"
        if isinstance(value, (torch.dtype, torch.device)):
            return type(value).__name__
        if callable(value) and hasattr(value, "__name__"):
            return f"function {self.name(value)}"
        return type(value).__name__ if isinstance(value, PLAIN) else f"object {self.name(type(value))}"

    def name(self, found: Any) -> str:
        """The name under which a class or function is documented, or else where it stands."""
        if isinstance(found, functools.partial):
            return f"partial {self.name(found.func)}"
        known = self.names.get(id(found))
        if known:
            return known[1]
        stands = f"{getattr(found, '__module__', '')}.{getattr(found, '__qualname__', '')}"
        if stands in ROWS_FIRST:
            return ROWS_FIRST[stands]
        owner = getattr(found, "__self__", None)
        if owner is not None and not isinstance(owner, (types.ModuleType, type)):
            if isinstance(owner, torch.Tensor):
                return f"torch.Tensor.{found.__name__}"
            return _public(f"{self.name(_defining(type(owner), found))}.{found.__name__}")
        if isinstance(found, torch.nn.Module):
            return f"module {self.name(type(found))}"
        if not hasattr(found, "__qualname__"):
            return f"object {self.name(type(found))}"
        return _public(f"{found.__module__ or 'builtins'}.{found.__qualname__}")

    def made(self, value: Any, *, root: bool = False) -> Any:
        """How to make a value anew, as plain JSON: `{"call": class, "args": …}`, `{"name": …}`, lists and constants.

        root: it is the model itself, which is told by its class; a module inside by the function that builds it.
        """
        if isinstance(value, PLAIN):
            return value
        if isinstance(value, (list, tuple)) and type(value) in (list, tuple):
            return {type(value).__name__: [self.made(item) for item in value]}
        if isinstance(value, Mapping):
            return {"dict": [[self.made(key), self.made(item)] for key, item in value.items()]}
        if isinstance(value, functools.partial):
            return self._call("functools.partial", (value.func, *value.args), value.keywords)
        if isinstance(value, Enum):
            return {"of": self.name(type(value)), "name": value.name}
        if isinstance(value, type) or (callable(value) and hasattr(value, "__qualname__")):
            return {"name": self.name(value)}
        for creation in (None if root else self.built.get(id(value)), self.creations.get(id(value))):
            if creation is not None:
                _, maker, args, kwargs = creation
                if isinstance(maker, functools.partial):
                    told = self._call(self.name(maker.func), (*maker.args, *args), {**maker.keywords, **kwargs})
                else:
                    told = self._call(self.name(maker), args, kwargs)
                if not _unknown(told):
                    return told
        return {"unknown": self.kind(value)}

    def _call(self, name: str, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> dict[str, Any]:
        told = {key: self.made(item) for key, item in kwargs.items()}
        return {"call": name, "args": [self.made(item) for item in args], "kwargs": told}

    def classes(self, model: torch.nn.Module) -> dict[str, list[str]]:
        """Every module's path -> its class and the bases of that."""
        modules = model.named_modules(remove_duplicate=False)
        return {path: [self.name(base) for base in type(module).__mro__] for path, module in modules}

    def classes_seen(self) -> set[str]:
        """The names of the classes that were called, or were the value of an expression."""
        kinds = {kind for told in self.kinds.values() for kind in told}
        called = {name for told in self.called.values() for name in told}
        return called | {kind.partition(" ")[2] for kind in kinds if kind.startswith(("class ", "object "))}

    def as_json(self) -> dict[str, Any]:
        """What was reported."""
        return {
            "reached": sorted(self.hit),
            "values": {number: list(kinds) for number, kinds in self.kinds.items()},
            "constants": self.constants,
            "calls": {number: list(names) for number, names in self.called.items()},
        }


def _unknown(told: Any) -> bool:
    """Whether something in a value is told as unknown."""
    if isinstance(told, dict):
        return "unknown" in told or any(_unknown(item) for item in told.values())
    return isinstance(told, list) and any(_unknown(item) for item in told)


BUILT_IN = {
    "builtins._VariableFunctionsClass.": "torch.",
    "torch._VariableFunctionsClass.": "torch.",
    "torch._C._nn.": "torch.nn.functional.",
    "torch._tensor.": "torch.",
}


def _public(name: str) -> str:
    """The name under which one calls what torch builds in."""
    for ours, theirs in BUILT_IN.items():
        if name.startswith(ours):
            return theirs + name.removeprefix(ours)
    return name


def _defining(cls: type, method: Any) -> type:
    """The class of a method resolution order in which a bound method stands, which `super()` may have found."""
    function, name = getattr(method, "__func__", None), method.__name__
    exact = (base for base in cls.__mro__ if function is not None and vars(base).get(name) is function)
    named = (base for base in cls.__mro__ if name in vars(base))
    return next(exact, None) or next(named, cls)


def _documented_names() -> dict[int, tuple[Any, str]]:
    """The objects that the mapping table names, which are held, with the name of their row, or an alias."""
    found: dict[int, tuple[Any, str]] = {}
    for row in table.rows():
        for name in (row.torch, *row.aliases):
            if name.startswith(("torch.", "operator.")):  # other packages' source is translated
                try:
                    thing = resolve(name)
                except Exception:  # what this version of torch does not have
                    continue
                found.setdefault(id(thing), (thing, name))
    for name, thing in vars(torch.nn).items():
        if isinstance(thing, type):
            found.setdefault(id(thing), (thing, f"torch.nn.{name}"))
    return found
