"""From the dotted names of a translated call to Python objects, at run time, in whichever framework is there.

Nothing is imported until a name is resolved, so this module belongs to neither framework.
"""

from __future__ import annotations

import importlib
import sys
from types import BuiltinFunctionType, FunctionType, ModuleType
from typing import Any

from ..errors import BadInput
from .rows import Call, Name


def resolve(target: str) -> Any:
    """Return the object a dotted name stands for, importing the longest module prefix; raises BadInput."""
    parts = target.split(".")
    for cut in range(len(parts), 0, -1):
        module_name = ".".join(parts[:cut])
        try:
            found: Any = importlib.import_module(module_name)
        except ModuleNotFoundError as error:
            if error.name is not None and not (module_name == error.name or module_name.startswith(error.name + ".")):
                raise
            continue
        try:
            for part in parts[cut:]:
                found = getattr(found, part)
                if isinstance(found, ModuleType) and found.__name__.partition(".")[0] != parts[0]:
                    raise BadInput(f"{target} leads out of {parts[0]}, into {found.__name__}")
        except AttributeError:
            break
        return found
    raise BadInput(f"there is no {target} in the installed packages")


def value_of(value: Any) -> Any:
    """Turn one argument of a call into what Python passes: names are looked up, calls are made, the rest stays."""
    if isinstance(value, Name):
        return resolve(value)
    if isinstance(value, Call):
        return build(value)
    return value


def build(call: Call, *first: Any) -> Any:
    """Make the call, with `first` before the arguments it names: `build(call, optimizer)`, `build(call, params)`.

    Raises BadInput for a target that is of Python's standard library under another package's name.
    """
    kwargs = {name: value_of(value) for name, value in call.kwargs.items()}
    rest = [item for name in list(kwargs) if name.startswith("*") for item in kwargs.pop(name)]
    target = resolve(call.target)
    if isinstance(target, (type, FunctionType, BuiltinFunctionType)):
        home = (target.__module__ or "").partition(".")[0]
        if home in sys.stdlib_module_names and home != call.target.partition(".")[0]:
            raise BadInput(f"{call.target} is {target.__module__}.{target.__qualname__}, which no row may name")
    return target(*first, *rest, **kwargs)
