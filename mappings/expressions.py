"""Small expressions over named whole numbers, such as "2*n+1" or "h >= k", worked out without running anything."""

from __future__ import annotations

import ast
import operator
from collections.abc import Callable, Mapping
from typing import Any

from ..printable import quoted

LONGEST = 100  # letters
ARITHMETIC: dict[type[ast.operator], Callable[[Any, Any], Any]] = {
    ast.Add: operator.add,
    ast.Sub: operator.sub,
    ast.Mult: operator.mul,
    ast.FloorDiv: operator.floordiv,
    ast.Mod: operator.mod,
}
COMPARISONS: dict[type[ast.cmpop], Callable[[Any, Any], bool]] = {
    ast.Lt: operator.lt,
    ast.LtE: operator.le,
    ast.Eq: operator.eq,
    ast.NotEq: operator.ne,
    ast.GtE: operator.ge,
    ast.Gt: operator.gt,
}


def names(text: str) -> set[str]:
    """Return the names in an expression; raises ValueError for what is none."""
    tree = _tree(text)
    return {node.id for node in ast.walk(tree) if isinstance(node, ast.Name)}


def value(text: str, known: Mapping[str, Any]) -> Any:
    """Return what an expression comes to: a whole number, or whether a comparison holds.

    Raises ValueError for what is no expression, KeyError for an unknown name.
    """
    return _value(_tree(text), known)


def is_sized(text: Any, sizes: Mapping[str, Any]) -> bool:
    """Whether it is an expression over nothing but these names, at least one of them."""
    if not isinstance(text, str):
        return False
    try:
        found = names(text)
    except ValueError:
        return False
    return bool(found) and found <= set(sizes)


def _tree(text: str) -> ast.expr:
    if len(text) > LONGEST:
        raise ValueError(f"{text[:20]!r}… is too long for an expression")
    try:
        tree = ast.parse(text, mode="eval").body
        _value(tree, None)
    except (SyntaxError, TypeError, ZeroDivisionError):
        raise ValueError(f"{quoted(text)} is no expression over whole numbers and names") from None
    return tree


def _value(node: ast.expr, known: Mapping[str, Any] | None) -> Any:
    """The value of a node; without `known`, 1 for every name, to see that all of it can be worked out."""
    if isinstance(node, ast.Constant) and type(node.value) is int:
        return node.value
    if isinstance(node, ast.Name):
        return 1 if known is None else known[node.id]
    if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.USub):
        return -_value(node.operand, known)
    if isinstance(node, ast.BinOp) and type(node.op) in ARITHMETIC:
        left, right = _value(node.left, known), _value(node.right, known)
        if known is None:
            return 1
        return ARITHMETIC[type(node.op)](left, right)
    if isinstance(node, ast.Compare):
        sides = [_value(side, known) for side in (node.left, *node.comparators)]
        tests = [COMPARISONS.get(type(test), _unknown) for test in node.ops]
        return False not in [test(left, right) for test, left, right in zip(tests, sides[:-1], sides[1:], strict=True)]
    raise ValueError(f"{quoted(ast.unparse(node))} is no whole number, name, sum, difference, product or comparison")


def _unknown(left: Any, right: Any) -> bool:
    raise ValueError("'in' and 'is' compare no numbers")
