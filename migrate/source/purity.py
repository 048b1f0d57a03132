"""Whether an expression only computes a value, so that nothing is lost without it."""

from __future__ import annotations

import ast

ONLY_COMPUTE = {
    *("abs", "bool", "dict", "float", "getattr", "hasattr", "int", "isinstance", "len", "list", "max", "min", "range"),
    *("round", "set", "sorted", "str", "sum", "tuple", "zip"),
}


def has_no_effect(node: ast.AST) -> bool:
    """Whether evaluating it does nothing else; what is not known counts as doing something."""
    return all(_plain(inner) for inner in ast.walk(node))


def _plain(node: ast.AST) -> bool:
    if isinstance(node, (ast.Await, ast.Yield, ast.YieldFrom, ast.NamedExpr)):
        return False
    if not isinstance(node, ast.Call):
        return True
    text = ast.unparse(node.func)
    return text in ONLY_COMPUTE or text.startswith("math.") or text in ("partial", "functools.partial")
