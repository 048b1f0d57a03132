"""What a function takes out of its own `**kwargs`; compiled, MindSpore takes nothing out of an empty dictionary."""

from __future__ import annotations

import ast


def taken(function: ast.FunctionDef) -> list[ast.stmt]:
    """The statements `kwargs.pop("name", None)` of a function that only asks for single names of its `**kwargs`.

    Nobody sees what is left of those, so these statements do nothing, and every other `kwargs.pop("name", default)` is
    made a `kwargs.get`, in place.
    """
    if function.args.kwarg is None:
        return []
    rest = function.args.kwarg.arg
    uses = [node for node in ast.walk(function) if isinstance(node, ast.Name) and node.id == rest]
    asked = [node for node in ast.walk(function) if isinstance(node, ast.Call) and _asks(node, rest)]
    names = [node.args[0].value for node in asked]  # type: ignore[attr-defined]
    if len(uses) != len(asked) or len(set(names)) != len(names):
        return []
    for call in asked:
        call.func.attr = "get"  # type: ignore[attr-defined]
    return [node for node in ast.walk(function) if isinstance(node, ast.Expr) and node.value in asked]


def _asks(call: ast.Call, rest: str) -> bool:
    """Whether it is `rest.pop("name", constant)` or `rest.get(…)`, also with a default that is read off an object."""
    function = call.func
    if not isinstance(function, ast.Attribute) or function.attr not in ("pop", "get") or len(call.args) != 2:
        return False
    name, default = call.args
    plain = (ast.Constant, ast.Name, ast.Attribute, ast.expr_context)
    known = isinstance(name, ast.Constant) and all(isinstance(node, plain) for node in ast.walk(default))
    return known and ast.unparse(function.value) == rest and not call.keywords
