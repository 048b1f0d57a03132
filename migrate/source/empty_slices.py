"""Writing into a slice that may hold nothing, which MindSpore's CPU does not survive (`memcpy_s error`)."""

from __future__ import annotations

import ast
import copy
from typing import TYPE_CHECKING

from .instrument import sliced

if TYPE_CHECKING:
    from .translating import Translator


def statement(node: ast.stmt, translator: Translator) -> list[ast.stmt] | None:
    """`x[:, a:b] = y` under `if 0 not in x[:, a:b].shape`, where the slice was seen empty; None for any other."""
    if not sliced(node) or True not in (translator.facts.constants(translator.file, node.targets[0]) or ()):
        return None
    written: ast.Assign = translator.visit(node)
    there = copy.deepcopy(written.targets[0])
    assert isinstance(there, ast.Subscript)
    there.ctx = ast.Load()
    test = ast.Compare(ast.Constant(0), [ast.NotIn()], [ast.Attribute(there, "shape", ast.Load())])
    return [ast.copy_location(ast.If(test, [written], []), node)]
