"""What the worker saw of a model's source, on the nodes of its syntax trees: what ran, and what expressions were."""

from __future__ import annotations

import ast
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, NamedTuple, TypeVar

from .kinds import NONE, CallableKind, DictKind, Kind, PlainKind, from_json

PROOF_FILES = ("weights.pth", "batch.npz")  # what torch_proof_worker.py leaves in its folder
_Node = TypeVar("_Node", bound=ast.AST)


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


@dataclass(frozen=True)
class Observed:
    """What was seen of one statement or expression; copies of a node share it.

    reached: whether it ran, of a statement. kinds: what an expression was. constants: the constants that it was; None
    for too many, or where something else was among them. callees: what was called there, by qualified names.
    """

    reached: bool = False
    kinds: list[Kind] = field(default_factory=list)
    constants: list[Any] | None = None
    callees: list[str] = field(default_factory=list)

    def __deepcopy__(self, memo: object) -> Observed:
        return self


NOT_OBSERVED = Observed()


def observed(node: ast.AST) -> Observed:
    """What was seen of a node; nothing of one that is not in the source, unless it was put in the place of another."""
    found: Observed = getattr(node, "observed", NOT_OBSERVED)
    return found


def reached(node: ast.stmt) -> bool:
    """Whether a statement ran."""
    return observed(node).reached


def kinds_of(node: ast.AST) -> list[Kind]:
    """What an expression was; empty where it did not run."""
    return observed(node).kinds


def constants_of(node: ast.AST) -> list[Any] | None:
    """The constants that an expression was; None for too many, or where something else was among them."""
    return observed(node).constants


def callees_of(call: ast.Call) -> list[str]:
    """What a call called, by qualified names."""
    return observed(call.func).callees


def entries_of(node: ast.AST) -> dict[str, list[Kind]] | None:
    """The keys of dictionaries that an expression was -> what stood there; None where it was something else."""
    entries: list[dict[str, Kind]] = []
    for kind in kinds_of(node):
        if not isinstance(kind, DictKind):
            return None
        entries.append(dict(kind.entries))
    keys = dict.fromkeys(key for one in entries for key in one)
    return {key: list(dict.fromkeys(one[key] for one in entries if key in one)) for key in keys}


def set_callee(function: ast.expr, name: str) -> None:
    """Note what would have been called at a place that did not run."""
    vars(function)["observed"] = replace(observed(function), callees=[name])


def set_kinds(node: _Node, kinds: Iterable[Kind]) -> _Node:
    """Note what an expression would have been that did not run, or is in no source; gives it back."""
    kinds = [*kinds]
    vars(node)["observed"] = Observed(kinds=kinds, constants=[None] if kinds == [NONE] else None)
    return node


def replacing(new: _Node, old: ast.AST) -> _Node:
    """The new node, with the place of the old one in the source and what was seen there."""
    if (seen := observed(old)) is not NOT_OBSERVED:
        vars(new)["observed"] = seen
    return ast.copy_location(new, old)


def parsed(file: str) -> ast.Module:
    """A file's tree, whose statements and expressions are numbered: by these numbers the worker reports on them."""
    tree = ast.parse(Path(file).read_bytes())
    nodes = (node for node in ast.walk(tree) if isinstance(node, (ast.stmt, ast.expr)))
    for number, node in enumerate(nodes):
        vars(node)["number"] = number
    return tree


def number_of(node: ast.AST) -> int:
    """The number that `parsed` gave a node, or the one that it is a copy of."""
    return int(vars(node)["number"])


class Observations:
    """The worker's report; see torch_observe_worker.py."""

    def __init__(self, report: Mapping[str, Any]) -> None:
        self.functions = [Function(f["file"], f["module"], f["name"], f["line"]) for f in report["functions"]]
        self.files: dict[str, str] = report.get("files", {})  # of modules whose classes were seen
        self.beside: dict[str, str] = report.get("beside", {})  # of the other modules of their packages
        self.names: dict[str, dict[str, str]] = report.get("names", {})  # of modules: what they import of theirs
        self.root: Any = report["root"]
        self.taken_out: bool = report.get("taken_out", False)  # whether modules stood in another one before
        self.records: dict[str, dict[str, Any]] = report.get("records", {})  # see records.py
        self.configurations: dict[str, dict[str, Any]] = report.get("configurations", {})
        self.classes: dict[str, list[str]] = report["classes"]
        self._sites: dict[tuple[str, int], list[int]] = {}
        for function in report["functions"]:
            for site in range(*function["sites"]):
                self._sites.setdefault((function["file"], report["nodes"][site]), []).append(site)
        self._reached = set(report["reached"])
        self._values = {int(site): [*map(from_json, kinds)] for site, kinds in report["values"].items()}
        self._constants = {int(site): values for site, values in report["constants"].items()}
        self._callees = {int(site): names for site, names in report["calls"].items()}
        kinds = {kind for seen in self._values.values() for kind in seen}
        handed_on = {kind.name for kind in kinds if isinstance(kind, CallableKind)}
        called = {name.removeprefix("partial ") for names in self._callees.values() for name in names}
        self.seen = handed_on | called  # the classes and functions that were the value of an expression, or were called

    def tree(self, file: str) -> ast.Module:
        """The parsed file, with what was seen of its nodes on these."""
        tree = parsed(file)
        for node in ast.walk(tree):
            if isinstance(node, (ast.stmt, ast.expr)) and (sites := self._sites.get((file, number_of(node)))):
                vars(node)["observed"] = Observed(
                    any(site in self._reached for site in sites),
                    list(dict.fromkeys(kind for site in sites for kind in self._values.get(site, ()))),
                    self._constants_at([site for site in sites if site in self._values]),
                    list(dict.fromkeys(name for site in sites for name in self._callees.get(site, ()))),
                )
        return tree

    def _constants_at(self, sites: list[int]) -> list[Any] | None:
        """The constants that were reported at some sites, None for too many or where there was something else."""
        values: list[Any] = []
        for site in sites:
            few = self._constants.get(site)
            if any(not isinstance(kind, PlainKind) for kind in self._values[site]):
                return None
            if few is None and self._values[site] != [NONE]:
                return None
            values += few or [None]
        return values or None

    def bases(self, name: str) -> list[str]:
        """A class of a module in the model, and its bases in the order in which Python looks things up."""
        orders = [found for found in self.classes.values() if name in found]
        first = next((found for found in orders if found[0] == name), orders[0] if orders else [name])
        return first[first.index(name) :]
