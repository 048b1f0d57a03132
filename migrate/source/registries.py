"""What objects at a file's top only find for a model: `ACT2FN["gelu"]`, `ATTENTION.get_interface("eager", default)`.

Such an object is a library's way to a function, a class or a layer, and no part of the model that asked it. Where it
always gave the same one, that is written in its place.
"""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

from .crossing_calls import begun, written
from .module_api import CONTAINERS

if TYPE_CHECKING:
    from .translating import Translator


def found(node: ast.Call | ast.Subscript, translator: Translator) -> ast.expr | None:
    """The function, class or new layer that an object at the file's top gave; None for anything else."""
    asked = _asked(node)
    kinds = translator.facts.kinds(translator.file, node)
    if asked is None or asked.id in translator.local or len(kinds) != 1 or not _is_object(asked, translator):
        return None
    what, _, name = kinds[0].partition(" ")
    if what in ("function", "class") and name in translator.scope.theirs:
        return ast.Name(translator.scope.called(name), ast.Load())
    return _layer(name, translator) if what == "module" else None


def _asked(node: ast.Call | ast.Subscript) -> ast.Name | None:
    """The name in front: of `name[…]`, or of `name.method(…)`."""
    inner = node.value if isinstance(node, ast.Subscript) else getattr(node.func, "value", None)
    return inner if isinstance(inner, ast.Name) else None


def _is_object(asked: ast.Name, translator: Translator) -> bool:
    kinds = translator.facts.kinds(translator.file, asked)
    return len(kinds) == 1 and kinds[0].startswith("object ") and not kinds[0].startswith("object torch.")


def _layer(name: str, translator: Translator) -> ast.expr | None:
    """A new layer that needs no arguments; None for one that does."""
    scope = translator.scope
    row = scope.row(name)
    if row is not None and name not in CONTAINERS:
        needs = any(argument.required for argument in row.arguments)
        return None if needs else begun(row, written(row, {}, scope.name), scope.name)
    if name not in scope.theirs:
        return None
    takes = scope.signature(name)
    if takes is not None and (len(takes.args) > len(takes.defaults) + 1 or None in takes.kw_defaults):
        return None
    made = ast.Call(ast.Name(scope.called(name), ast.Load()), [], [])
    made.takes = [name]  # type: ignore[attr-defined]  # for unused.py
    return made
