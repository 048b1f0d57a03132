"""What makes the model names once what stands in it more than once: a module in two places is one module."""

from __future__ import annotations

import ast
import copy
import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any


class Shared:
    """The objects of a worker's report that occur more than once, as variables of the function that makes the model.

    taken: names that mean something else. free: whether the model itself may be called `net`. `before` are the
    assignments, in the order in which they need each other.
    """

    def __init__(self, root: Any, taken: Iterable[str], *, free: bool = False) -> None:
        self.many = {key for key, count in Counter(_ids(root, set())).items() if count > 1}
        self.root, self.free = root, free
        self.taken = set(taken)
        self.names: dict[int, ast.expr] = {}
        self.before: list[ast.stmt] = []

    def once(self, value: Mapping[str, Any], wanted: str, make: Callable[[], ast.expr]) -> ast.expr:
        """The expression for an object: its variable, where it has one. wanted: what it is called where it goes."""
        key = value.get("id")
        if key not in self.many:
            return make()
        if key not in self.names:
            found = make()
            if isinstance(found, ast.Call):
                name = self._name(wanted or _words(value))
                self.before.append(ast.Assign([ast.Name(name, ast.Store())], found))
                found = ast.Name(name, ast.Load())
            self.names[key] = found
        return copy.deepcopy(self.names[key])

    def changed(
        self,
        value: Mapping[str, Any],
        wanted: str,
        make: Callable[[], ast.expr],
        after: Callable[[str], list[ast.stmt]],
    ) -> ast.expr:
        """The variable of an object that is changed after it is made, by what `after` writes for its name."""
        key = value["id"]
        if key not in self.names:
            name = "net" if value is self.root and self.free else self._name(wanted or _words(value))
            self.before.append(ast.Assign([ast.Name(name, ast.Store())], make()))
            self.names[key] = ast.Name(name, ast.Load())
            self.before += after(name)
        return copy.deepcopy(self.names[key])

    def _name(self, wanted: str) -> str:
        name, number = wanted, 1
        while name in self.taken:
            number += 1
            name = f"{wanted}{number}"
        self.taken.add(name)
        return name


def _ids(value: Any, seen: set[int]) -> Iterator[int]:
    """The objects of a report, each as often as it stands there; what stands in one that was seen does not count."""
    if isinstance(value, Mapping):
        key = value.get("id")
        if key is not None:
            yield key
            if key in seen:
                return
            seen.add(key)
        value = list(value.values())
    if isinstance(value, list):
        for item in value:
            yield from _ids(item, seen)


def _words(value: Mapping[str, Any]) -> str:
    """`basic_block` for a BasicBlock, and for a partial of one."""
    name = str(value["call"])
    if name == "functools.partial" and value["args"] and isinstance(value["args"][0], Mapping):
        name = value["args"][0].get("name", name)
    return re.sub(r"(?<=[a-z0-9])(?=[A-Z])", "_", name.rpartition(".")[2]).lower()
