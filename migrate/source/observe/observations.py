"""What the worker saw of a model's source: which statements ran, and what every expression was."""

from __future__ import annotations

import ast
import functools
import itertools
from collections.abc import Iterable, Mapping
from typing import Any, NamedTuple

from .kinds import NONE, CallableKind, DictKind, Kind, PlainKind, from_json

MANY = object()  # more constants than are told


class Function(NamedTuple):
    """A function that ran: where its definition stands, and under which qualified name."""

    file: str
    module: str
    name: str  # as in __qualname__: `DenseNet.forward`
    line: int

    @property
    def qualified(self) -> str:
        """Module and name."""
        return f"{self.module}.{self.name}"


class Observations:
    """The worker's report, by the places of a file; see torch_observe_worker.py."""

    def __init__(self, report: Mapping[str, Any]) -> None:
        self.functions = [Function(f["file"], f["module"], f["name"], f["line"]) for f in report["functions"]]
        self.files: dict[str, str] = report.get("files", {})  # of modules whose classes were seen
        self.beside: dict[str, str] = report.get("beside", {})  # of the other modules of their packages
        self.names: dict[str, dict[str, str]] = report.get("names", {})  # of modules: what they import of theirs
        self.root: Any = report["root"]
        self.taken_out: bool = report.get("taken_out", False)  # whether modules stood in another one before
        self.records: dict[str, dict[str, Any]] = report.get("records", {})  # see output_records.py
        self.configurations: dict[str, dict[str, Any]] = report.get("configurations", {})  # see configurations.py
        self.classes: dict[str, list[str]] = report["classes"]
        self._numbers: dict[tuple[str, tuple[int, ...]], list[int]] = {}
        for function in report["functions"]:
            for number in range(*function["places"]):
                self._numbers.setdefault((function["file"], tuple(report["places"][number])), []).append(number)
        self._reached = set(report["reached"])
        self._values = {int(number): [*map(from_json, kinds)] for number, kinds in report["values"].items()}
        self._constants = {int(number): values for number, values in report["constants"].items()}
        self._calls = {int(number): names for number, names in report["calls"].items()}
        self._free = itertools.count(len(report["places"]))  # numbers of places that did not run

    @functools.cache  # noqa: B019  # of the one object that a command makes
    def seen(self) -> frozenset[str]:
        """The classes and functions that were the value of an expression, or were called."""
        kinds = {kind for told in self._values.values() for kind in told}
        held = {kind.name for kind in kinds if isinstance(kind, CallableKind)}
        called = {name.removeprefix("partial ") for names in self._calls.values() for name in names}
        return frozenset(held | called)

    def bases(self, name: str) -> list[str]:
        """A class of a module in the model, and its bases in the order in which Python looks things up."""
        orders = [found for found in self.classes.values() if name in found]
        first = next((found for found in orders if found[0] == name), orders[0] if orders else [name])
        return first[first.index(name) :]

    def entries(self, file: str, node: ast.AST) -> dict[str, list[Kind]] | None:
        """The keys of dictionaries that an expression was -> what stood there; None where it was something else."""
        told: list[dict[str, Kind]] = []
        for kind in self.kinds(file, node):
            if not isinstance(kind, DictKind):
                return None
            told.append(dict(kind.entries))
        keys = dict.fromkeys(key for one in told for key in one)
        return {key: list(dict.fromkeys(one[key] for one in told if key in one)) for key in keys}

    def reached(self, file: str, node: ast.stmt) -> bool:
        """Whether a statement ran."""
        return any(number in self._reached for number in self._at(file, node))

    def kinds(self, file: str, node: ast.AST) -> list[Kind]:
        """What an expression was; empty where it did not run."""
        if (attached := attached_kinds(node)) is not None:
            return attached
        found = (self._values.get(number, ()) for number in self._at(file, node))
        return list(dict.fromkeys(kind for kinds in found for kind in kinds))

    def callees(self, file: str, node: ast.Call) -> list[str]:
        """What a call called, by qualified names."""
        found = (self._calls.get(number, ()) for number in self._at(file, node.func))
        return list(dict.fromkeys(name for names in found for name in names))

    def constants(self, file: str, node: ast.AST) -> list[Any] | None:
        """The constants that an expression was; None for too many, or where something else was among them."""
        if (attached := attached_kinds(node)) is not None:
            return [None] if attached == [NONE] else None
        numbers = [number for number in self._at(file, node) if number in self._values]
        if not numbers or any(not isinstance(kind, PlainKind) for number in numbers for kind in self._values[number]):
            return None
        values: list[Any] = []
        for number in numbers:
            told = self._constants.get(number)
            if told is None and self._values[number] != [NONE]:
                return None
            values += told or [None]
        return values

    def tell_callee(self, file: str, function: ast.expr, name: str) -> None:
        """What would have been called at a place that did not run."""
        self._calls[self._told(file, function)] = [name]

    def tell_value(self, file: str, node: ast.expr, kind: Kind) -> None:
        """What an expression would have been that did not run."""
        self._values[self._told(file, node)] = [kind]

    def _told(self, file: str, node: ast.expr) -> int:
        number = next(self._free)
        self._numbers.setdefault((file, place(node)), []).append(number)
        return number

    def _at(self, file: str, node: ast.AST) -> list[int]:
        return self._numbers.get((file, place(node)), []) if hasattr(node, "lineno") else []


def attach_kinds(node: ast.expr, kinds: Iterable[Kind]) -> ast.expr:
    """An expression that stands in no source, with what it would have been; its copies have that too."""
    vars(node)["kinds"] = [*kinds]
    return node


def attached_kinds(node: ast.AST) -> list[Kind] | None:
    """What `attach_kinds` noted of an expression; None where it stands in the source."""
    found: list[Kind] | None = vars(node).get("kinds")
    return found


class Place(NamedTuple):
    """Where an expression or a statement stands in its file: lines from 1, columns in bytes from 0."""

    line: int
    column: int
    end_line: int
    end_column: int


def place(node: ast.AST) -> Place:
    """The place of a node that has one."""
    found: Any = node
    return Place(found.lineno, found.col_offset, found.end_lineno, found.end_col_offset)


PROOF_FILES = ("weights.pth", "batch.npz")  # what torch_proof_worker.py leaves in its folder
