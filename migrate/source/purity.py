"""Whether an expression only computes a value, so that nothing is lost without it; and which of its parts it always
computes."""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator

INSIDE = (ast.Lambda, ast.ListComp, ast.SetComp, ast.DictComp, ast.GeneratorExp)  # which have names of their own
ONLY_COMPUTE = {
    *("abs", "bool", "dict", "float", "getattr", "hasattr", "int", "isinstance", "len", "list", "max", "min", "range"),
    *("round", "set", "sorted", "str", "sum", "tuple", "zip"),
}


def has_no_effect(node: ast.AST) -> bool:
    """Whether evaluating it does nothing else; what is not known counts as doing something."""
    return all(_plain(inner) for inner in ast.walk(node))


def always(node: ast.AST) -> Iterator[ast.AST]:
    """The parts that are computed wherever an expression is, and itself, innermost and leftmost first."""
    children: Iterable[ast.AST] = ast.iter_child_nodes(node)
    if isinstance(node, INSIDE):
        return
    if isinstance(node, ast.BoolOp):
        children = node.values[:1]
    elif isinstance(node, ast.IfExp):
        children = [node.test]
    elif isinstance(node, ast.Compare):
        children = [node.left, *node.comparators[:1]]
    for child in children:
        yield from always(child)
    yield node


def _plain(node: ast.AST) -> bool:
    if isinstance(node, (ast.Await, ast.Yield, ast.YieldFrom, ast.NamedExpr)):
        return False
    if not isinstance(node, ast.Call):
        return True
    text = ast.unparse(node.func)
    return text in ONLY_COMPUTE or text.startswith("math.") or text in ("partial", "functools.partial")
