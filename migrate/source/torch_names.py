"""The names under which classes, functions and methods are documented, or else where they stand."""

from __future__ import annotations

import sys
from typing import Any

import torch

from ...mappings import table
from ...mappings.resolve import resolve
from ..simplified.torch_install import simplified_names

BUILT_IN = {
    "builtins._VariableFunctionsClass.": "torch.",
    "torch._VariableFunctionsClass.": "torch.",
    "torch._C._nn.": "torch.nn.functional.",
    "torch._tensor.": "torch.",
}

SIMPLIFIED = simplified_names()


def standing(found: Any) -> str:
    """Module and qualified name; for a function made in another, the name that its file's top gives it, if any."""
    module, name = getattr(found, "__module__", ""), getattr(found, "__qualname__", "")
    if "<locals>" in name:
        top = vars(sys.modules[module]) if module in sys.modules else {}
        name = next((key for key, value in top.items() if value is found), name)
    stands = f"{module}.{name}"
    return SIMPLIFIED.get(stands, stands)


def is_torch(cls: type) -> bool:
    """Whether a class is torch's own."""
    return cls.__module__.partition(".")[0] == "torch"


def public(name: str) -> str:
    """The name under which one calls what torch builds in."""
    for ours, theirs in BUILT_IN.items():
        if name.startswith(ours):
            return theirs + name.removeprefix(ours)
    return name


def defining(cls: type, method: Any) -> tuple[type, str]:
    """The class of a method resolution order in which a bound method stands, which `super()` may have found; and the
    name that it has there, which a decorator's function does not bear."""
    function, name = getattr(method, "__func__", None), method.__name__
    if function is not None:
        for base in cls.__mro__:
            if vars(base).get(name) is function:
                return base, name
        for base in cls.__mro__:
            for key, value in vars(base).items():
                if value is function:
                    return base, key
    return next((base for base in cls.__mro__ if name in vars(base)), cls), name


def documented_names() -> dict[int, tuple[Any, str]]:
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
