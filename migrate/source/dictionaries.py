"""Dictionaries of tensors that are made of pairs, as displays.

`OrderedDict([(name, x), …])` and `dict(…)` run in Python when MindSpore compiles, and what comes out has no dtype: the
step does not compile. `{name: x, …}` does, in the same order.
"""

from __future__ import annotations

import ast
from collections.abc import Callable, Sequence

MAKERS = (["collections.OrderedDict"], ["builtins.dict"])


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
