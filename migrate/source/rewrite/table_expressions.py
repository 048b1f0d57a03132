"""Expressions for what the tables say: a value, and a call that is plainer than its row's."""

from __future__ import annotations

import ast
import copy
import math
from collections.abc import Mapping, Sequence
from typing import Any

from ....mappings.rows import Call, Name
from ..library_names import TABLES
from ..observe.observations import Kind, TensorKind
from ..source_files import substitute
from .context import Namer, ObservedArgument


def fill_template(template: str, nodes: Mapping[str, ast.expr], name: Namer) -> ast.expr:
    """The expression of a template such as `input.size`, with these in the place of its names."""

    def fill(node: ast.AST) -> ast.expr | None:
        text = ast.unparse(node) if isinstance(node, (ast.Name, ast.Attribute)) else ""
        if text.startswith(("mindspore.", "msmigrate.")):
            return name(text)
        return copy.deepcopy(nodes[text]) if isinstance(node, ast.Name) else None

    found: ast.expr = substitute(ast.parse(template, mode="eval").body, fill)
    return found


def write_template(torch: str, given: Mapping[str, ObservedArgument], name: Namer) -> ast.expr | None:
    """The expression for a call, by torch's names of the arguments; None where there is no plainer way."""
    names = set(given)
    wide = "input" in given and _is_wide(given["input"].kinds)
    for row, arguments, template in (*TABLES["plain_calls"], *(TABLES["plain_calls_of_wide"] if wide else ())):
        if row == torch and {*arguments} == names:
            return fill_template(template, {key: item.node for key, item in given.items()}, name)
    return None


def _is_wide(kinds: Sequence[Kind]) -> bool:
    """Whether something was always a tensor of such a dtype."""
    return bool(kinds) and all(
        isinstance(kind, TensorKind) and kind.dtype.startswith(("float", "bfloat16", "int64")) for kind in kinds
    )


def expression(value: Any, name: Namer) -> ast.expr:
    """A value of the table as an expression; names and calls are looked up by `name`."""
    if isinstance(value, Name):
        return name(str(value))
    if isinstance(value, Call):
        keywords = [ast.keyword(key, expression(item, name)) for key, item in value.kwargs.items()]
        return ast.Call(name(value.target), [], keywords)
    if isinstance(value, (tuple, list)):
        items = [expression(item, name) for item in value]
        return ast.Tuple(items, ast.Load()) if isinstance(value, tuple) else ast.List(items, ast.Load())
    if isinstance(value, float) and not math.isfinite(value):
        return ast.Call(ast.Name("float", ast.Load()), [ast.Constant(str(value))], [])
    return ast.parse(repr(value), mode="eval").body
