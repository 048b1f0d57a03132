"""What the functions of one model share while they are translated."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

from ...errors import UnknownRow
from ...mappings import table
from ...mappings.rows import Row
from ..analyze.names import find
from .crossing_calls import Namer
from .facts import Facts


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
    python: Callable[[str, str], None]  # notes that a file's name for something of Python's own is used
    problems: list[Problem]


def row_of(name: str) -> Row | None:
    """The row of a torch name, also of one that is no part of a model as it computes, such as an initializer."""
    if name.startswith("torch.nn.init."):
        try:
            return table.row(name)
        except UnknownRow:
            return None
    return find(name).row
