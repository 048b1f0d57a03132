"""Slices with a step of tensors of many dimensions, whose gradient MindSpore's CPU does not compute."""

from __future__ import annotations

import ast

from .context import Program

RANK = 4  # from here on the gradient crashes: "StridedSliceGrad, input memory out of bounds"
GETITEM = "msmigrate.migrate.composed.mindspore_indexing.getitem"


class Steps(ast.NodeTransformer):
    """Writes `x[..., ::2]` as a call that takes the values one by one."""

    def __init__(self, program: Program, file: str) -> None:
        self.program, self.file = program, file

    def visit_Subscript(self, node: ast.Subscript) -> ast.AST:
        """A subscript that is read; one that is written to stays."""
        kinds = self.program.facts.kinds(self.file, node.value)
        self.generic_visit(node)
        items = node.slice.elts if isinstance(node.slice, ast.Tuple) else [node.slice]
        stepped = any(isinstance(item, ast.Slice) and item.step is not None for item in items)
        if not (stepped and isinstance(node.ctx, ast.Load) and any(_rank(kind) >= RANK for kind in kinds)):
            return node
        index = ast.Tuple([_spelled(item) for item in items], ast.Load())
        found = ast.copy_location(ast.Call(self.program.name(GETITEM), [node.value, index], []), node)
        return _located(found)


def _located(call: ast.Call) -> ast.Call:
    """The call with places for what has none: that of the call, which no statement of theirs is told by."""
    for inner in ast.walk(call):
        if isinstance(inner, (ast.expr, ast.keyword)) and not hasattr(inner, "lineno"):
            ast.copy_location(inner, call)
    return call


def _rank(kind: str) -> int:
    words = kind.split(" ")
    return int(words[2]) if words[0] in ("Tensor", "Parameter") else 0


def _spelled(item: ast.expr) -> ast.expr:
    """`a:b:c` as `slice(a, b, c)`."""
    if not isinstance(item, ast.Slice):
        return item
    parts = [part or ast.Constant(None) for part in (item.lower, item.upper, item.step)]
    return ast.Call(ast.Name("slice", ast.Load()), parts, [])
