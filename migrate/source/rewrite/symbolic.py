"""The verbs of the mapping table on expressions: what a number becomes that is only known when the model is built."""

from __future__ import annotations

import ast
from collections.abc import Callable

Expressions = list[ast.expr] | None  # as many as the argument has MindSpore names; None: it cannot be told
Symbolic = Callable[[ast.expr, list[str]], Expressions]


def _is(kinds: list[str], *allowed: str) -> bool:
    return bool(kinds) and all(any(kind.startswith(one) for one in allowed) for kind in kinds)


def _item(node: ast.expr, index: int) -> ast.expr:
    return ast.Subscript(node, ast.Constant(index), ast.Load())


def complement(node: ast.expr, kinds: list[str]) -> Expressions:
    """1 - momentum."""
    return [ast.BinOp(ast.Constant(1), ast.Sub(), node)] if _is(kinds, "float", "int") else None


def padding(rank: int) -> Symbolic:
    """`pad_mode` and the padding of every side: one number for all, or a pair for each dimension."""

    def crossed(node: ast.expr, kinds: list[str]) -> Expressions:
        if _is(kinds, "int"):
            return [ast.Constant("pad"), node]
        if not _is(kinds, "tuple(int", "list(int", "Size", "int"):
            return None
        if rank == 1:
            return [ast.Constant("pad"), _item(node, 0)]
        if isinstance(node, (ast.Tuple, ast.List)):
            return [ast.Constant("pad"), ast.Tuple([side for side in node.elts for _ in (0, 1)], ast.Load())]
        if not isinstance(node, (ast.Name, ast.Attribute)):
            return None
        sides: ast.expr = ast.Tuple([_item(node, index) for index in range(rank) for _ in (0, 1)], ast.Load())
        if "int" in kinds:  # now this, now that
            whole = ast.Call(ast.Name("isinstance", ast.Load()), [node, ast.Name("int", ast.Load())], [])
            sides = ast.IfExp(whole, node, sides)
        return [ast.Constant("pad"), sides]

    return crossed


def pool_padding(node: ast.expr, kinds: list[str]) -> Expressions:
    """MindSpore's pools take a number or one for each dimension, with 'pad'."""
    found = sides(node, kinds)
    return found and [ast.Constant("pad"), *found]


def sides(node: ast.expr, kinds: list[str]) -> Expressions:
    """A number, or one for each dimension in a tuple, which MindSpore's pools want."""
    if _is(kinds, "int", "float", "tuple(int"):
        return [node]
    listed = _is(kinds, "list(int", "tuple(int", "Size")
    return [ast.Call(ast.Name("tuple", ast.Load()), [node], [])] if listed else None


def single(node: ast.expr, kinds: list[str]) -> Expressions:
    """One number, also out of a tuple of one."""
    return [node] if _is(kinds, "int") else [_item(node, 0)] if _is(kinds, "tuple(int", "list(int") else None


def decimal(node: ast.expr, kinds: list[str]) -> Expressions:
    """A float, as MindSpore wants it."""
    if _is(kinds, "float"):
        return [node]
    return [ast.Call(ast.Name("float", ast.Load()), [node], [])] if _is(kinds, "int", "float") else None


def dims(node: ast.expr, kinds: list[str]) -> Expressions:
    """Numbers in a tuple."""
    if isinstance(node, ast.Tuple) or _is(kinds, "tuple", "Size"):
        return [node]
    if _is(kinds, "list"):
        return [ast.Call(ast.Name("tuple", ast.Load()), [node], [])]
    return [ast.Tuple([node], ast.Load())] if _is(kinds, "int") else None


def last_axis(node: ast.expr, kinds: list[str]) -> Expressions:
    """`normalized_shape` of one dimension, as a tuple."""
    if _is(kinds, "int"):
        return [ast.Tuple([node], ast.Load())]
    return (
        [ast.Call(ast.Name("tuple", ast.Load()), [node], [])] if _is(kinds, "list(int", "tuple(int", "Size 1") else None
    )


def same(node: ast.expr, kinds: list[str]) -> Expressions:
    """As it is: what MindSpore refuses is told when the layer is made."""
    return [node]


def twice(node: ast.expr, kinds: list[str]) -> Expressions:
    """For both."""
    return [node, node]


def negate(node: ast.expr, kinds: list[str]) -> Expressions:
    """-value."""
    return [ast.UnaryOp(ast.USub(), node)]


def whole(node: ast.expr, kinds: list[str]) -> Expressions:
    """A factor that takes every size to a whole number, as a float."""
    return decimal(node, kinds) if _is(kinds, "int") else None


SYMBOLIC: dict[str, Symbolic] = {
    "complement": complement,
    "conv1d_padding": padding(1),
    "conv2d_padding": padding(2),
    "conv3d_padding": padding(3),
    "transposed2d_padding": padding(2),
    "pool_padding": pool_padding,
    "stride_or_kernel": sides,
    "layer": same,
    "single": single,
    "decimal": decimal,
    "dims": dims,
    "last_axis": last_axis,
    "twice": twice,
    "whole_factor": whole,
    "negate": negate,
}
