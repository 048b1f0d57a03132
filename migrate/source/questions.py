"""Questions of which a part is answered already, such as `x is None and not torch.jit.is_scripting()`."""

from __future__ import annotations

import ast


def answered(statement: ast.If) -> list[ast.stmt]:
    """The question without the parts that are True or False as they stand; or one of its branches."""
    statement.test = _simpler(statement.test)
    if isinstance(statement.test, ast.Constant) and isinstance(statement.test.value, bool):
        return statement.body if statement.test.value else statement.orelse
    return [statement]


def _simpler(test: ast.expr) -> ast.expr:
    """An expression that is as true as the other one, where only that counts."""
    if isinstance(test, ast.UnaryOp) and isinstance(test.op, ast.Not):
        test.operand = _simpler(test.operand)
        return ast.Constant(not test.operand.value) if _known(test.operand) else test  # type: ignore[attr-defined]
    if not isinstance(test, ast.BoolOp):
        return test
    decides = isinstance(test.op, ast.Or)  # True or …, False and …
    values: list[ast.expr] = []
    for value in map(_simpler, test.values):
        if not _known(value):
            values.append(value)
        elif value.value is decides:  # type: ignore[attr-defined]
            values.append(value)
            break  # what follows is never computed
    if not values:
        return ast.Constant(not decides)
    return values[0] if len(values) == 1 else ast.copy_location(ast.BoolOp(test.op, values), test)


def _known(node: ast.expr) -> bool:
    return isinstance(node, ast.Constant) and isinstance(node.value, bool)
