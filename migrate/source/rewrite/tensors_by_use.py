"""Which variables of a function are tensors, by the methods and attributes that the function uses of them.

For code that did not run, whose variables have no other type: the branch of a loss, where no targets were given.
"""

from __future__ import annotations

import ast
import sys
from collections.abc import Callable

from ....mappings.aliases import row_of
from ..library_names import MODULE_METHODS, OF_ARRAYS, TENSOR, telling_method

TELLING = {"size", "dim", "numel", "new_zeros", "new_ones", "new_full", "new_empty", "new_tensor", "masked_fill"}
PLAIN_ATTRIBUTES = {"shape", "dtype", "device", "ndim", "data", "grad", "T", "mT", "H"}
OF_PYTHON = frozenset(name for kind in (str, bytes, list, tuple, dict, set, int, float) for name in dir(kind))


def tensors_by_use(function: ast.AST, resolve: Callable[[ast.expr], str], *, of_module: bool) -> list[str]:
    """The variables of a function whose methods and attributes say that they are tensors.

    resolve: the full name of what is called, empty for a variable. of_module: whether it is a method of a module, to
    which no arrays are passed: `mean` or `view`, which arrays have too, say it as well there, unless a function of
    Python's or of a library of arrays has given the variable.
    """
    used: dict[str, set[str]] = {}
    called: dict[str, set[str]] = {}
    arrays: set[str] = set()
    for node in ast.walk(function):
        if isinstance(node, ast.Attribute) and (owner := _item_of(node.value)) not in ("", "self"):
            used.setdefault(owner, set()).add(node.attr)
        elif isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
            called.setdefault(_item_of(node.func.value), set()).add(node.func.attr)
        elif isinstance(node, ast.Assign) and isinstance(node.value, ast.Call):
            of_python = resolve(node.value.func).partition(".")[0] in {*sys.stdlib_module_names, *OF_ARRAYS}
            arrays |= {target.id for target in node.targets if of_python and isinstance(target, ast.Name)}
    return [
        name
        for name, attributes in used.items()
        if any(one in TELLING or telling_method(one) == TENSOR for one in attributes)
        or (
            of_module
            and name not in arrays
            and any(map(_has_row, called.get(name, ())))
            and all(one in PLAIN_ATTRIBUTES or one in MODULE_METHODS or _has_row(one) for one in attributes)
        )
    ]


def _item_of(node: ast.expr) -> str:
    """The variable, of itself or of its items: `x` of `x[0][1:]`; empty for anything else."""
    while isinstance(node, ast.Subscript):
        node = node.value
    return node.id if isinstance(node, ast.Name) else ""


def _has_row(method: str) -> bool:
    """Whether it is a method of tensors that has a row, and none of Python's own objects or of modules."""
    return method not in OF_PYTHON and method not in MODULE_METHODS and row_of(f"torch.Tensor.{method}") is not None
