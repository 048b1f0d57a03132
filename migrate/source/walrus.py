"""Names given inside an expression, `if (n := len(x)) > 3:`, which MindSpore does not compile.

The name is given in a statement before, where nothing is lost by that: the value is always computed, and nothing
before it in the statement does anything or reads the name. `if a and (n := b):` without `else` becomes two questions.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from .blocks import in_blocks
from .instrument import place
from .purity import always, has_no_effect

SIMPLE = (ast.If, ast.Assign, ast.AnnAssign, ast.Expr, ast.Return)


def spelled_out(function: ast.FunctionDef) -> None:
    """Give such names in statements of their own, at the place of the statement that they stood in; in place."""
    in_blocks(function, lambda block: [new for old in block for new in _apart(old)])


def _apart(statement: ast.stmt) -> list[ast.stmt]:
    """The statement, after those for the names given in it."""
    field = "test" if isinstance(statement, ast.If) else "value"
    value = getattr(statement, field, None) if isinstance(statement, SIMPLE) else None
    before: list[ast.stmt] = []
    while value is not None and (found := next(_named(value), None)) and _first(found, value):
        target = ast.copy_location(ast.Name(found.target.id, ast.Store()), found.target)
        before.append(ast.copy_location(ast.Assign([target], found.value), statement))
        value = _Read(found).visit(value)
        setattr(statement, field, value)
    return [*before, *_in_two(statement)]


def _in_two(statement: ast.stmt) -> list[ast.stmt]:
    """`if a and (n := b):` as one question inside of another; any other statement as it is."""
    if not isinstance(statement, ast.If) or statement.orelse or not isinstance(statement.test, ast.BoolOp):
        return [statement]
    test = statement.test
    if not isinstance(test.op, ast.And):
        return [statement]
    given = [n for n, part in enumerate(test.values) if n and next(_named(part), None)]
    if not given:
        return [statement]
    first, rest = (_all_of(part, test) for part in (test.values[: given[0]], test.values[given[0] :]))
    inner = ast.copy_location(ast.If(rest, statement.body, []), statement)
    return [ast.copy_location(ast.If(first, _apart(inner), []), statement)]


def _all_of(parts: list[ast.expr], test: ast.BoolOp) -> ast.expr:
    return parts[0] if len(parts) == 1 else ast.copy_location(ast.BoolOp(ast.And(), parts), test)


def _named(node: ast.AST) -> Iterator[ast.NamedExpr]:
    """The names given wherever an expression is computed, innermost and leftmost first."""
    return (found for found in always(node) if isinstance(found, ast.NamedExpr))


def _first(found: ast.NamedExpr, value: ast.expr) -> bool:
    """Whether nothing that is computed before it does anything, or reads the name."""
    start, around = place(found)[:2], {id(node) for node in ast.walk(found)}
    for node in ast.walk(value):
        if not isinstance(node, ast.expr) or id(node) in around or place(node)[:2] >= start:
            continue
        if isinstance(node, ast.Name) and node.id == found.target.id:
            return False
        ends_before = place(node)[2:] <= start
        if ends_before and not has_no_effect(node):
            return False
    return True


class _Read(ast.NodeTransformer):
    """Puts the name where it was given; at the place of its value, so that what is known of that is known of it."""

    def __init__(self, found: ast.NamedExpr) -> None:
        self.found = found

    def visit_NamedExpr(self, node: ast.NamedExpr) -> ast.AST:
        if node is not self.found:
            return self.generic_visit(node)
        return ast.copy_location(ast.Name(node.target.id, ast.Load()), node.value)
