"""Dictionaries of tensors that are made of pairs, or filled one by one, as displays.

`OrderedDict([(name, x), …])` and `dict(…)` run in Python when MindSpore compiles, and what comes out has no dtype: the
step does not compile. `{name: x, …}` does, in the same order. `OrderedDict()` that is filled later compiles, but how
many are in it is not known: the forward of torchvision's feature pyramids, which loop over them, was not through the
compiler after five minutes, and takes ten seconds with `{}`.
"""

from __future__ import annotations

import ast
from collections.abc import Callable, Sequence

from .facts import Facts

MAKERS = (["collections.OrderedDict"], ["builtins.dict"])
PLAIN = {"get", "items", "keys", "update", "values"}  # what a dict does as an OrderedDict does


def display(node: ast.Call, callees: Sequence[str], kinds: Callable[[ast.expr], list[str]]) -> ast.expr | None:
    """The display for a call that makes a dictionary of pairs; None for any other call, and where no tensors are in it.

    kinds: what an expression was.
    """
    if list(callees) not in MAKERS or len(node.args) != 1 or node.keywords:
        return None
    (pairs,) = node.args
    elements = pairs.elts if isinstance(pairs, (ast.List, ast.Tuple)) else [getattr(pairs, "elt", None)]
    found = [one.elts for one in elements if isinstance(one, ast.Tuple) and len(one.elts) == 2]
    if not found or len(found) < len(elements):
        return None
    if not all(kind.startswith("Tensor") for _, value in found for kind in kinds(value) or [""]):
        return None
    if isinstance(pairs, (ast.ListComp, ast.GeneratorExp)):
        return ast.DictComp(found[0][0], found[0][1], pairs.generators)
    return ast.Dict([key for key, _ in found], [value for _, value in found])


def begun_empty(function: ast.FunctionDef, facts: Facts, file: str) -> None:
    """Begin the dictionaries of a function that get tensors alone with `{}`, in place of `OrderedDict()`."""
    statements = [node for node in ast.walk(function) if isinstance(node, ast.Assign) and len(node.targets) == 1]
    for statement in statements:
        call, target = statement.value, statement.targets[0]
        if not isinstance(call, ast.Call) or not isinstance(target, ast.Name) or call.args or call.keywords:
            continue
        filled = [other.value for other in statements if _item_of(other.targets[0], target.id)]
        kinds = [kind for value in filled for kind in facts.kinds(file, value) or [""]]
        tensors = bool(kinds) and all(kind.startswith("Tensor") for kind in kinds)
        if tensors and facts.callees(file, call) in MAKERS and _methods(function, target.id) <= PLAIN:
            statement.value = ast.copy_location(ast.Dict([], []), call)


def _item_of(target: ast.expr, name: str) -> bool:
    """Whether something is written into an item of a name."""
    return isinstance(target, ast.Subscript) and isinstance(target.value, ast.Name) and target.value.id == name


def _methods(function: ast.FunctionDef, name: str) -> set[str]:
    """What a function asks a name for."""
    attributes = (node for node in ast.walk(function) if isinstance(node, ast.Attribute))
    return {node.attr for node in attributes if isinstance(node.value, ast.Name) and node.value.id == name}
