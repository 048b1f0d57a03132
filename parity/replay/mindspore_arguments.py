"""What MindSpore's layers were made with, and where a Cell of the user's computes: kept while a net is built."""

from __future__ import annotations

import inspect
import weakref
from collections.abc import Mapping
from typing import Any

from mindspore import nn

from ..align.model_structure import made_at, runs_at, statement
from .module_calls import Made

PLAIN = (bool, int, float, str, type(None))
_made: dict[int, tuple[tuple[Any, ...], dict[str, Any]]] = {}  # id of a Cell that is there -> what it was given


def remember_arguments() -> None:
    """Remember of every Cell that is made from now on in this process what arguments it is given."""
    own_new = nn.Cell.__new__

    def new(kind: type, *args: Any, **kwargs: Any) -> Any:
        cell: nn.Cell = own_new(kind) if own_new is object.__new__ else own_new(kind, *args, **kwargs)
        if kind.__module__.startswith("mindspore."):
            weakref.finalize(cell, _made.pop, id(cell), None)
            _made[id(cell)] = (args, kwargs)
        return cell

    nn.Cell.__new__ = staticmethod(new)


def made_of(net: nn.Cell, cells: Mapping[str, nn.Cell], paths: Mapping[str, str]) -> dict[str, Made]:
    """How each Cell was made that is one of MindSpore's own layers, and where a Cell of the user's computes; paths:
    torch path -> Cell path."""
    there, found = dict(net.cells_and_names()), {}
    for name, cell in cells.items():
        if id(cell) not in _made:
            found[name] = Made("", {}, place=runs_at(type(cell)))
            continue
        args, kwargs = _made[id(cell)]
        names = list(inspect.signature(type(cell).__init__).parameters)[1:]
        try:
            bound = inspect.signature(type(cell).__init__).bind(cell, *args, **kwargs)
        except TypeError:
            continue
        bound.apply_defaults()
        given = {**bound.arguments, **bound.arguments.get("kwargs", {})}
        plain = {
            key: value for key, value in given.items() if _is_plain(value) and key not in ("self", "args", "kwargs")
        }
        target = f"mindspore.nn.{type(cell).__name__}"
        line, place = statement(there, paths[name]), made_at(there, paths[name])
        found[name] = Made(target, plain, tuple(names[: len(args)]), line, place if line else "")
    return found


def _is_plain(value: Any) -> bool:
    return isinstance(value, PLAIN) or (isinstance(value, (tuple, list)) and all(isinstance(v, PLAIN) for v in value))
