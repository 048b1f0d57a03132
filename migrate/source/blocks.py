"""The blocks of statements in a function, one after the other."""

from __future__ import annotations

import ast
from collections.abc import Callable

FIELDS = ("body", "orelse", "finalbody")


def in_blocks(function: ast.FunctionDef, change: Callable[[list[ast.stmt]], list[ast.stmt]]) -> None:
    """Give every block of a function the statements that `change` makes of its own, from the outside in; in place."""
    for node in ast.walk(function):
        for field in FIELDS:
            block = getattr(node, field, None)
            if isinstance(block, list) and block and isinstance(block[0], ast.stmt):
                setattr(node, field, change(block))
