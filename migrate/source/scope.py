"""What the functions of one model share while they are translated."""

from __future__ import annotations

import ast
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

from ...errors import UnknownRow
from ...mappings import table
from ...mappings.aliases import find
from ...mappings.rows import Row
from .crossing_calls import Namer
from .facts import Facts
from .imported import Imported
from .module_api import CONTAINERS


class Problem(NamedTuple):
    """What could not be written, where, and why."""

    file: str
    line: int
    text: str


class Scope(NamedTuple):
    """What the functions of one model share."""

    facts: Facts
    theirs: frozenset[str]  # qualified names of the classes and functions that are translated too
    name: Namer  # the expression for a qualified MindSpore name, which it notes for the imports
    derives: Callable[[str, str], bool]  # whether a module's class is another one, or has it among its bases
    is_global: Callable[[str, str], bool]  # whether a file defines or imports a name at its top
    python: Callable[[str, str], str]  # notes that a file's name for something of Python's own is used, and names it
    constant: Callable[[str, str, Sequence[Any] | None], ast.expr | None]  # of a module of theirs
    unseen: Callable[[str], bool]  # whether a class or function was neither a value nor called
    called: Callable[[str], str]  # the name of a class or function of theirs in the new file
    names: Callable[[str], Imported]  # what a file's names stand for
    problems: list[Problem]
    settings: frozenset[str]  # functions of theirs that only say how a package is set
    reads: dict[str, dict[str, list[Any] | None]]  # of configurations; see configurations.py
    signature: Callable[[str], ast.arguments | None]  # of a function or class of theirs

    def row(self, name: str) -> Row | None:
        """The row by which a call crosses; for a class of theirs that is made as its base of torch's is, that one's."""
        if name not in self.theirs:
            return row_of(name)
        for base in self.facts.bases(name):
            if base in self.theirs:
                if f"{base}.__init__" in self.theirs:
                    return None
            else:
                return None if base in CONTAINERS else row_of(base)
        return None

    def torch_base(self, name: str) -> Row | None:
        """The row of the class of torch's that a class of modules is, or comes from."""
        rows = (row_of(base) for base in self.facts.bases(name) if base not in self.theirs)
        return next((row for row in rows if row is not None), None)


def row_of(name: str) -> Row | None:
    """The row of a torch name, also of one that is no part of a model as it computes, such as an initializer."""
    if name.startswith("torch.nn.init."):
        try:
            return table.row(name)
        except UnknownRow:
            return None
    return find(name).row
