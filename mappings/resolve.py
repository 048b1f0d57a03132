"""From the dotted names of a translated call to Python objects, at run time, in whichever framework is there.

Nothing is imported until a name is resolved, so this module belongs to neither framework.
"""

from __future__ import annotations

import importlib
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
    """Make the call, with `first` before the arguments it names: `build(call, optimizer)`, `build(call, params)`."""
    kwargs = {name: value_of(value) for name, value in call.kwargs.items()}
    rest = kwargs.pop("*args", ())
    return resolve(call.target)(*first, *rest, **kwargs)
