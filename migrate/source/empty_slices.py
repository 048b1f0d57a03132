"""Writing into a slice that may hold nothing, which MindSpore's CPU does not survive (`memcpy_s error`)."""

from __future__ import annotations

import ast
import copy

from .context import Context, Stage, handles
from .instrument import sliced


@handles(syntax=[ast.Assign], stage=Stage.IN_PLACE)
def guard_empty_slice(node: ast.stmt, context: Context) -> list[ast.stmt] | None:
    """`x[:, a:b] = y` under `if 0 not in x[:, a:b].shape`, where the slice was seen empty; None for any other."""
    if not isinstance(node, ast.Assign) or not sliced(node) or True not in (context.constants(node.targets[0]) or ()):
        return None
    written: ast.Assign = context.visit(node)
    there = copy.deepcopy(written.targets[0])
    assert isinstance(there, ast.Subscript)
    there.ctx = ast.Load()
    test = ast.Compare(ast.Constant(0), [ast.NotIn()], [ast.Attribute(there, "shape", ast.Load())])
    return [ast.copy_location(ast.If(test, [written], []), node)]
