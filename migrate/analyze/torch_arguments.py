"""What a module of torch was made with: the class whose row speaks of it, and its constructor's arguments."""

from __future__ import annotations

import functools
import inspect
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import cache
from typing import Any

import torch

from .names import rows_by_name
from .torch_values import encode

CONTAINERS = (
    *(torch.nn.Sequential, torch.nn.ModuleList, torch.nn.ModuleDict),
    *(torch.nn.ParameterList, torch.nn.ParameterDict),
)
HARMLESS = {"__init__", "extra_repr", "reset_parameters", "__repr__", "_load_from_state_dict", "__setstate__"}
NOTED = "_msmigrate_made_with"


@cache
def public_name(cls: type) -> str:
    """The shortest name under which a class is found: `torch.nn.Conv2d`, not `torch.nn.modules.conv.Conv2d`."""
    parts = cls.__module__.split(".")
    for length in range(1, len(parts)):
        module = sys.modules.get(".".join(parts[:length]))
        if getattr(module, cls.__qualname__, None) is cls:
            return f"{'.'.join(parts[:length])}.{cls.__qualname__}"
    return f"{cls.__module__}.{cls.__qualname__}"


@cache
def standing_for(cls: type) -> str:
    """The class that has a row, or its base that has one where it only constructs it otherwise; else its own name."""
    overridden: set[str] = set()
    for base in cls.__mro__:
        if public_name(base) in rows_by_name():
            if any(name in overridden for name in dir(base)):
                break
            return public_name(base)
        overridden |= {name for name, value in vars(base).items() if callable(value)} - HARMLESS
    return public_name(cls)


def operator_name(module: torch.nn.Module) -> str:
    """The class that stands for a module: see standing_for."""
    cls: Any = type(module)
    return standing_for(cls)


def class_name(module: torch.nn.Module) -> str:
    """The public name of a module's own class."""
    cls: Any = type(module)
    return public_name(cls)


def container(module: torch.nn.Module) -> str | None:
    """The container of torch.nn that a module is or extends, if it is one."""
    return next((public_name(base) for base in CONTAINERS if isinstance(module, base)), None)


@contextmanager
def noting_arguments() -> Iterator[None]:
    """Let every module of torch.nn that is built inside the block remember what its constructor was given."""
    classes = [cls for cls in vars(torch.nn).values() if isinstance(cls, type) and "__init__" in vars(cls)]
    before = {cls: cls.__init__ for cls in classes if issubclass(cls, torch.nn.Module)}  # type: ignore[misc]
    for cls, constructor in before.items():
        cls.__init__ = _noting(cls, constructor)  # type: ignore[misc]
    try:
        yield
    finally:
        for cls, constructor in before.items():
            cls.__init__ = constructor  # type: ignore[misc]


def _noting(cls: type, constructor: Callable[..., None]) -> Callable[..., None]:
    signature = inspect.signature(constructor)

    @functools.wraps(constructor)
    def init(self: Any, *args: Any, **kwargs: Any) -> None:
        constructor(self, *args, **kwargs)
        try:
            bound = signature.bind(self, *args, **kwargs).arguments
        except TypeError:
            return
        given = {name: value for name, value in bound.items() if name not in ("self", "args", "kwargs")}
        self.__dict__.setdefault(NOTED, {})[public_name(cls)] = {**given, **bound.get("kwargs", {})}

    return init


def constructor_arguments(module: torch.nn.Module, name: str) -> dict[str, Any]:
    """The arguments that make such a module, encoded: as its attributes stand now, and as it was given the others."""
    given = vars(module).get(NOTED, {}).get(name, {})
    found: dict[str, Any] = {}
    for argument in rows_by_name()[name].arguments:
        attribute = getattr(module, argument.torch, None)
        if isinstance(attribute, torch.Tensor) or argument.torch in ("device", "dtype"):
            continue  # `bias` is a flag for the constructor and a tensor of the module
        if argument.torch in vars(module) and not callable(attribute):
            found[argument.torch] = encode(attribute)
        elif argument.torch in given:
            found[argument.torch] = encode(given[argument.torch])
        elif argument.torch == "bias" and NOTED not in vars(module) and module._parameters.get("bias", ...) is None:
            found["bias"] = False  # nobody saw it being made, and it has none
    return {"args": [], "kwargs": found}
