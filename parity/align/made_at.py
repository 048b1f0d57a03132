"""Where in the user's files a module or a tensor is made: the line of the class around it that assigns it."""

from __future__ import annotations

import ast
import inspect
from collections.abc import Iterator, Mapping
from functools import lru_cache
from pathlib import Path
from typing import Any

from ...input_files import LARGEST_PYTHON, python_tree, read_bytes
from ...migrate.model_spec import NOT_THEIRS


def made_at(modules: Mapping[str, Any], path: str) -> str:
    """`net.py, line 12` for the module or tensor of this dotted path; empty where no file of the user's says it.

    modules: path -> module, of the whole model. What stands in a list is made where the list is.
    """
    parts = path.split(".") if path else []
    for depth in range(len(parts) - 1, -1, -1):
        kind: Any = type(modules.get(".".join(parts[:depth])))
        found = _line(kind, parts[depth])
        if found:
            return found
    kind = type(modules[""])
    return _line(kind, "")


@lru_cache(4096)
def _line(kind: type, attribute: str) -> str:
    """Where a class of the user's assigns an attribute; where it does so nowhere in sight, the class's __init__."""
    begins = ""
    for each in inspect.getmro(kind):
        code = getattr(inspect.unwrap(vars(each).get("__init__", object)), "__code__", None)
        if code is None or not _theirs(code.co_filename):
            continue
        for node in ast.walk(_tree(code.co_filename)):
            if isinstance(node, ast.FunctionDef) and _begins(node) == code.co_firstlineno:
                lines = [line for assigned, line in _assigned(node) if assigned == attribute]
                where = f"{Path(code.co_filename).name}, line {{}}"
                if lines:
                    return where.format(lines[0])
                begins = begins or where.format(node.lineno)
    return begins


def _begins(node: ast.FunctionDef) -> int:
    return min([node.lineno, *(decorator.lineno for decorator in node.decorator_list)])


def _theirs(file: str) -> bool:
    return not file.startswith(("<", *NOT_THEIRS)) and "site-packages" not in Path(file).parts


@lru_cache(64)
def _tree(file: str) -> ast.Module:
    try:
        return python_tree(read_bytes(file, LARGEST_PYTHON))
    except (OSError, SyntaxError, ValueError):
        return ast.Module([], [])


def _assigned(function: ast.FunctionDef) -> Iterator[tuple[str, int]]:
    """Every attribute of self that a method assigns, and the line."""
    for node in ast.walk(function):
        targets: list[ast.expr] = []
        if isinstance(node, ast.Assign):
            targets = node.targets
        elif isinstance(node, ast.AnnAssign):
            targets = [node.target]
        for target in targets:
            for each in target.elts if isinstance(target, ast.Tuple | ast.List) else [target]:
                if isinstance(each, ast.Attribute) and isinstance(each.value, ast.Name) and each.value.id == "self":
                    yield each.attr, each.lineno
