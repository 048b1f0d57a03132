"""Expressions that did not run, beside one that did: `Dropout(rate) if rate > 0 else Identity()`, `norm or LayerNorm`.

What they would have been is read from the names of the file. Where that does not suffice, only what ran is written.
"""

from __future__ import annotations

import ast
import builtins
import copy

from .context import CannotWrite, Context, row_of
from .instrument import EXPRESSIONS
from .module_api import CONTAINERS, NAMES

SAFE = {*dir(builtins)} - {"eval", "exec", "super", "locals", "globals"}


def ran(node: ast.expr, context: Context) -> bool:
    """Whether an expression was evaluated; a constant counts as such."""
    if isinstance(node, EXPRESSIONS):
        return bool(context.kinds(node))
    return True


def either(node: ast.IfExp, context: Context) -> ast.expr:
    """`a if test else b`, of which one may not have run."""
    sides = [_side(side, context) for side in (node.body, node.orelse)]
    if None in sides:
        return next(side for side in sides if side is not None)
    test = context.visit(node.test)
    body, orelse = sides
    assert body is not None and orelse is not None
    return ast.copy_location(ast.IfExp(test, body, orelse), node)


def one_of(node: ast.BoolOp, context: Context) -> ast.expr:
    """`a or b`, of which the last may not have run."""
    values = [side for side in (_side(value, context) for value in node.values) if side is not None]
    return values[0] if len(values) == 1 else ast.copy_location(ast.BoolOp(node.op, values), node)


def static(node: ast.expr, context: Context) -> ast.expr | None:
    """A value that calls torch where no function did, at a file's top; None for any other, and where it is unknown."""
    resolve = context.program.names(context.file).name
    calls = [inner.func for inner in ast.walk(node) if isinstance(inner, ast.Call)]
    return _read(node, context) if any(resolve(call).startswith("torch.") for call in calls) else None


def _side(node: ast.expr, context: Context) -> ast.expr | None:
    """The expression, rewritten; None for one that did not run, and of which too little is known."""
    if not ran(node, context):
        return _read(node, context)
    found: ast.expr = context.visit(node)
    return found


def _read(node: ast.expr, context: Context) -> ast.expr | None:
    before = context.strict
    context.strict = True
    try:
        _tell(node, context)
        found: ast.expr = context.visit(copy.deepcopy(node))
    except CannotWrite:
        return None
    finally:
        context.strict = before
    return found


def _tell(node: ast.expr, context: Context) -> None:
    """Note what the names in an expression stand for; raises CannotWrite where they stand for something unknown."""
    resolve = context.program.names(context.file).name
    calls = {id(inner.func) for inner in ast.walk(node) if isinstance(inner, ast.Call)}
    told: set[int] = set()
    for inner in ast.walk(node):
        if not isinstance(inner, (ast.Name, ast.Attribute)) or id(inner) in told:
            continue
        name = resolve(inner)
        if name:
            told |= {id(part) for part in ast.walk(inner)}
        called = id(inner) in calls
        if not name.startswith("torch."):
            if (name and name.partition(".")[0] not in ("math", "functools")) or (called and not _built_in(inner)):
                raise CannotWrite(f"{ast.unparse(inner)} did not run")
            continue
        if called:
            context.facts.tell_callee(context.file, inner, name)
            if isinstance(inner, ast.Attribute):
                context.facts.tell_value(context.file, inner.value, f"python {resolve(inner.value)}")
        elif name not in NAMES and name not in CONTAINERS and row_of(name) is None:
            raise CannotWrite(f"{ast.unparse(inner)} did not run")
        else:
            row = row_of(name)
            kind = "function" if row is not None and row.kind == "function" else "class"
            context.facts.tell_value(context.file, inner, f"{kind} {name}")


def _built_in(node: ast.expr) -> bool:
    return isinstance(node, ast.Name) and node.id in SAFE


def harmless(node: ast.AST) -> bool:
    """Whether an error's text can be kept as it stands: it calls nothing but Python's own functions."""
    return all(_built_in(inner.func) for inner in ast.walk(node) if isinstance(inner, ast.Call))
