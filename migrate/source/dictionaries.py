"""Dictionaries of tensors that are made of pairs or of others, or filled one by one, as displays.

`OrderedDict([(name, x), …])` and `dict(…)` run in Python when MindSpore compiles: what comes out has no dtype, and the
step does not compile, or no gradient flows through it (`python benchmarks/graph_containers_mindspore.py`). Displays in
the same order are compiled; `{**others}` is not, and a loop over them is. `OrderedDict()` that is filled later is too,
but how many are in it is not known: the forward of torchvision's feature pyramids, which loop over them, was not
through the compiler after five minutes, and takes ten seconds with `{}`.
"""

from __future__ import annotations

import ast
from collections.abc import Callable, Sequence

from .context import Context, Stage, handles
from .facts import Facts

COPY = "builtins.dict.copy"
MAKERS = (["collections.OrderedDict"], ["builtins.dict"])
PLAIN = {"get", "items", "keys", "update", "values"}  # what a dict does as an OrderedDict does


def display(node: ast.Call, callees: Sequence[str], kinds: Callable[[ast.expr], list[str]]) -> ast.expr | None:
    """The display for a call that makes a dictionary of pairs, keywords or another one; None for any other call, and
    where no tensors are in it.

    kinds: what an expression was.
    """
    if callees == [COPY] and isinstance(node.func, ast.Attribute) and not node.args and _of_tensors(kinds(node)):
        return _again(node.func.value)
    if list(callees) not in MAKERS:
        return None
    words = {word.arg: word.value for word in node.keywords if word.arg is not None}
    if not node.args and words and len(words) == len(node.keywords) and _of_tensors(kinds(node)):
        return ast.Dict([ast.Constant(word) for word in words], [*words.values()])
    if len(node.args) != 1 or node.keywords:
        return None
    (pairs,) = node.args
    if _of_tensors(kinds(node)) and kinds(pairs):
        if all(kind.startswith("dict ") for kind in kinds(pairs)):
            return _again(pairs)
        if _pairs(pairs, kinds(pairs)):
            return _again(pairs, items=pairs)
    elements = pairs.elts if isinstance(pairs, (ast.List, ast.Tuple)) else [getattr(pairs, "elt", None)]
    found = [one.elts for one in elements if isinstance(one, ast.Tuple) and len(one.elts) == 2]
    if not found or len(found) < len(elements):
        return None
    if not all(kind.startswith("Tensor") for _, value in found for kind in kinds(value) or [""]):
        return None
    if isinstance(pairs, (ast.ListComp, ast.GeneratorExp)):
        return ast.DictComp(found[0][0], found[0][1], pairs.generators)
    return ast.Dict([key for key, _ in found], [value for _, value in found])


@handles("collections.OrderedDict", "builtins.dict", COPY)
def displayed(node: ast.Call, context: Context) -> ast.expr | None:
    """The display for a call that makes a dictionary of tensors."""
    shown = display(node, context.callees(node), context.kinds)
    return None if shown is None else context.generic_visit(shown)


@handles(syntax=[ast.Assign, ast.AnnAssign, ast.Return], stage=Stage.GRAPH_MODE)
def spelled_out(node: ast.stmt, context: Context) -> list[ast.stmt] | None:
    """The statements for `name = {**others, key: x}`; None for any other."""
    value = node.value if isinstance(node, (ast.Assign, ast.AnnAssign, ast.Return)) else None
    if not isinstance(value, ast.Dict) or None not in value.keys or context.in_python:
        return None
    target = node.targets[0] if isinstance(node, ast.Assign) and len(node.targets) == 1 else None
    target = node.target if isinstance(node, ast.AnnAssign) else target
    if isinstance(node, ast.Return):
        free = (name for name in ("found", *(f"found{number}" for number in range(1, 99))) if name not in context.local)
        target = ast.copy_location(ast.Name(next(free), ast.Store()), value)
    read = {inner.id for inner in ast.walk(value) if isinstance(inner, ast.Name)}
    if not isinstance(target, ast.Name) or target.id in read or not _plain_dictionaries(value, context):
        return None
    first: list[ast.stmt] = []
    for key, item in zip(value.keys, value.values, strict=True):
        made: ast.expr = _again(item) if key is None else ast.Dict([key], [item])
        if not first:
            first.append(ast.Assign([target], made))
        elif key is None:
            update = ast.Attribute(ast.Name(target.id, ast.Load()), "update", ast.Load())
            first.append(ast.Expr(ast.Call(update, [item], [])))
        else:
            first.append(ast.Assign([ast.Subscript(ast.Name(target.id, ast.Load()), key, ast.Store())], item))
    found = [new for one in first for new in context.statement(one)]
    return [*found, ast.Return(ast.Name(target.id, ast.Load()))] if isinstance(node, ast.Return) else found


def _plain_dictionaries(value: ast.Dict, context: Context) -> bool:
    """Whether what is unpacked in a display are dictionaries."""
    unpacked = [item for key, item in zip(value.keys, value.values, strict=True) if key is None]
    told = [context.kinds(item) for item in unpacked]
    return all(kinds and all(kind.startswith("dict ") for kind in kinds) for kinds in told)


def _again(others: ast.expr, items: ast.expr | None = None) -> ast.DictComp:
    """A dictionary of the same keys and values; items: pairs of these."""
    key, value = ast.Name("key", ast.Store()), ast.Name("value", ast.Store())
    pairs = items or ast.Call(ast.Attribute(others, "items", ast.Load()), [], [])
    loop = ast.comprehension(ast.Tuple([key, value], ast.Store()), pairs, [], 0)
    return ast.DictComp(ast.Name("key", ast.Load()), ast.Name("value", ast.Load()), [loop])


def _pairs(node: ast.expr, kinds: Sequence[str]) -> bool:
    """Whether it is known to be pairs, and not a mapping of some other kind, which a loop takes the keys of."""
    if isinstance(node, (ast.List, ast.Tuple, ast.ListComp, ast.GeneratorExp)):
        return False  # whose pairs are written one by one, or not
    of = node.func if isinstance(node, ast.Call) else None
    made = isinstance(of, ast.Name) and of.id in ("enumerate", "zip")
    made = made or (isinstance(of, ast.Attribute) and of.attr == "items")
    return made or all(kind.startswith(("list(", "tuple(")) for kind in kinds)


def _of_tensors(kinds: Sequence[str]) -> bool:
    return bool(kinds) and all(kind.startswith("dict ") and "Tensor" in kind for kind in kinds)


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
