"""Lists that grow by several items at once.

`names.extend(["a", "b"])` runs in Python when MindSpore compiles, and what is in the list then is no constant any more:
no key of a dictionary, no index. `names += ["a", "b"]` is the same to Python, and constants stay constants.
Neither changes, compiled, a list that the caller goes on to use: the compiled step's comparison tells that.
"""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from .translating import Translator


def grown(node: ast.stmt, translator: Translator) -> list[ast.stmt] | None:
    """The statement for `x.extend([…])` where x is the function's own name; None for any other."""
    call = node.value if isinstance(node, ast.Expr) else None
    if not isinstance(call, ast.Call) or not isinstance(call.func, ast.Attribute) or call.func.attr != "extend":
        return None
    owner = call.func.value
    if not isinstance(owner, ast.Name) or owner.id not in translator.local or len(call.args) != 1:
        return None
    kinds = translator.facts.kinds(translator.file, owner)
    if not isinstance(call.args[0], (ast.List, ast.ListComp)) or any(kind.startswith("module") for kind in kinds):
        return None
    return [ast.AugAssign(ast.Name(owner.id, ast.Store()), ast.Add(), translator.visit(call.args[0]))]
