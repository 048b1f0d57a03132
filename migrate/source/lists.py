"""What a list is asked to do, in words that MindSpore compiles.

Compiled, `x.insert(…)`, `x.pop()`, `x.extend(…)`, `x.reverse()` and `reversed(x)` run in Python: through what they give
flows no gradient, and what was a constant is none any more (`python benchmarks/graph_containers_mindspore.py`). Writing
into slices is compiled, and the same to Python, also where the list has other names. Neither changes, compiled, a list
that the caller goes on to use: the compiled step's comparison tells that.
"""

from __future__ import annotations

import ast
import copy

from .context import Context, Stage, handles
from .purity import always

METHODS = {f"builtins.list.{name}": name for name in ("extend", "insert", "pop", "reverse")}
SIMPLE = (ast.Assign, ast.AnnAssign, ast.AugAssign, ast.Return)


@handles(syntax=[ast.Expr, *SIMPLE], stage=Stage.GRAPH_MODE)
def spelled_out(node: ast.stmt, context: Context) -> list[ast.stmt] | None:
    """The statements for one that asks a list, which has a name in the function; None for any other."""
    call = node.value if isinstance(node, ast.Expr) else None
    if not isinstance(call, ast.Call):
        return _taken(node, context) if isinstance(node, SIMPLE) else None
    name, method = _asked(call, context)
    match method, call.args:
        case "extend", [items]:
            return [ast.AugAssign(ast.Name(name, ast.Store()), ast.Add(), context.visit(_listed(items, context)))]
        case "insert", [at, item] if isinstance(at, (ast.Constant, ast.Name)):
            at = context.visit(at)
            return [_write(name, at, copy.deepcopy(at), ast.List([context.visit(item)], ast.Load()))]
        case "reverse", []:
            return [_write(name, None, None, _backwards(ast.Name(name, ast.Load())))]
        case "pop", [] | [_]:
            gone = _without(name, call)
            return None if gone is None else [gone]
    return None


@handles("builtins.reversed")
def backwards(node: ast.Call, context: Context) -> ast.expr | None:
    """The slice for `reversed(x)` of a list or tuple; None for any other call."""
    callees = context.callees(node)
    if callees != ["builtins.reversed"] or len(node.args) != 1 or context.in_python:
        return None
    kinds = context.kinds(node.args[0])
    if not kinds or not all(kind.startswith(("list(", "tuple(")) for kind in kinds):
        return None
    found: ast.expr = context.generic_visit(_backwards(node.args[0]))
    return found


def _taken(node: ast.stmt, context: Context) -> list[ast.stmt] | None:
    """The statements for one that takes an item out of a list, `x = up(x, skips.pop())`."""
    value = getattr(node, "value", None)
    found = [] if value is None else [one for one in always(value) if _asked(one, context)[1] == "pop"]
    if len(found) != 1 or not isinstance(node, SIMPLE):
        return None
    call, (name, _) = found[0], _asked(found[0], context)
    assert isinstance(call, ast.Call)
    uses = [inner for inner in ast.walk(node) if isinstance(inner, ast.Name) and inner.id == name]
    gone = _without(name, call)
    if gone is None or len(uses) != 1 or (isinstance(node, ast.Return) and name in context.handed):
        return None
    at = call.args[0] if call.args else ast.UnaryOp(ast.USub(), ast.Constant(1))
    item = ast.copy_location(ast.Subscript(ast.Name(name, ast.Load()), at, ast.Load()), call)
    taken = _Put(call, item).visit(node)
    assert isinstance(taken, ast.stmt)
    return [*context.statement(taken), *([] if isinstance(node, ast.Return) else [gone])]


class _Put(ast.NodeTransformer):
    """Puts an expression in the place of another."""

    def __init__(self, old: ast.expr, new: ast.expr) -> None:
        self.old, self.new = old, new

    def visit(self, node: ast.AST) -> ast.AST:
        """The new one for the old one."""
        return self.new if node is self.old else self.generic_visit(node)


def _asked(node: ast.AST, context: Context) -> tuple[str, str]:
    """The name of the list, and what it is asked, where the function runs compiled; both empty for any other call."""
    owner = node.func.value if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) else None
    if not isinstance(owner, ast.Name) or owner.id not in context.own or context.in_python:
        return "", ""
    assert isinstance(node, ast.Call)
    callees = context.callees(node)
    method = METHODS.get(callees[0], "") if len(callees) == 1 and not node.keywords else ""
    return (owner.id, method) if method else ("", "")


def _listed(items: ast.expr, context: Context) -> ast.expr:
    """Items as a list, for `+=` takes nothing else when MindSpore compiles it."""
    if isinstance(items, ast.GeneratorExp):
        return ast.copy_location(ast.ListComp(items.elt, items.generators), items)
    kinds = context.kinds(items)
    if isinstance(items, (ast.List, ast.ListComp)) or (kinds and all(kind.startswith("list(") for kind in kinds)):
        return items
    return ast.List([ast.Starred(items, ast.Load())], ast.Load())


def _without(name: str, call: ast.Call) -> ast.stmt | None:
    """What takes the item out; None where it stands at a place that is computed."""
    try:
        at = ast.literal_eval(call.args[0]) if call.args else -1
    except ValueError:
        return None
    if not isinstance(at, int):
        return None
    begin: ast.expr | None = ast.Constant(at) if at >= 0 else ast.UnaryOp(ast.USub(), ast.Constant(-at))
    end: ast.expr | None = ast.Constant(at + 1) if at >= 0 else ast.UnaryOp(ast.USub(), ast.Constant(-at - 1))
    return _write(name, None if at == 0 else begin, None if at == -1 else end, ast.List([], ast.Load()))


def _write(name: str, begin: ast.expr | None, end: ast.expr | None, items: ast.expr) -> ast.stmt:
    target = ast.Subscript(ast.Name(name, ast.Load()), ast.Slice(begin, end), ast.Store())
    return ast.Assign([target], items)


def _backwards(items: ast.expr) -> ast.expr:
    step = ast.UnaryOp(ast.USub(), ast.Constant(1))
    return ast.Subscript(items, ast.Slice(step=step), ast.Load())


@handles("builtins.list.copy")
def copied(node: ast.Call, context: Context) -> ast.expr | None:
    """`[*x]` for `x.copy()`: Graph mode has no such method."""
    if not isinstance(node.func, ast.Attribute):
        return None
    return ast.List([ast.Starred(context.visit(node.func.value), ast.Load())], ast.Load())
