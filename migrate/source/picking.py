"""Loops over a list of modules that run one of them, as TorchScript needed them written: `layers[n](x)`.

    for i, layer in enumerate(layers):
        if i == n:
            out = layer(x)

MindSpore compiles such a loop with every branch of it; in a feature pyramid its step was not through the compiler after
five minutes. Only where every number that n was is one of the loop's is it written as what it picks.
"""

from __future__ import annotations

import ast
import copy

from .blocks import in_blocks
from .facts import Facts
from .purity import has_no_effect

LIST = "module torch.nn.ModuleList"


def picked(function: ast.FunctionDef, facts: Facts, file: str) -> None:
    """Write such loops as what they pick, and no value before that is lost in it; in place."""

    def change(block: list[ast.stmt]) -> list[ast.stmt]:
        found: list[ast.stmt] = []
        for statement in block:
            inside = _picked(statement, facts, file)
            if inside and found and _lost(found[-1], inside[0]):
                found.pop()
            found += inside or [statement]
        return found

    in_blocks(function, change)


def _picked(loop: ast.stmt, facts: Facts, file: str) -> list[ast.stmt]:
    """What the loop does for the one module that it picks; empty for any other statement."""
    if not isinstance(loop, ast.For) or loop.orelse or len(loop.body) != 1 or not isinstance(loop.body[0], ast.If):
        return []
    test, body = loop.body[0].test, loop.body[0].body
    match loop:
        case ast.For(
            target=ast.Tuple(elts=[ast.Name(id=number), ast.Name(id=module)]),
            iter=ast.Call(func=ast.Name(id="enumerate"), args=[modules], keywords=[]),
        ):
            pass
        case _:
            return []
    if facts.kinds(file, modules) != [LIST] or not has_no_effect(modules) or loop.body[0].orelse:
        return []
    match test:
        case ast.Compare(left=ast.Name(id=left), ops=[ast.Eq()], comparators=[wanted]) if left == number:
            known, asked = facts.constants(file, test.left), facts.constants(file, wanted)
        case _:
            return []
    if not known or not asked or not set(asked) <= set(known) or not has_no_effect(wanted):
        return []
    if any(isinstance(node, (ast.Break, ast.Continue, ast.Return)) for part in body for node in ast.walk(part)):
        return []
    names = {node.id for node in ast.walk(wanted) if isinstance(node, ast.Name)}
    stored = {node.id for part in body for node in ast.walk(part) if isinstance(node, ast.Name) and _stored(node)}
    if stored & {number, module} or names & (stored | {number, module}):
        return []
    picking = ast.copy_location(ast.Subscript(modules, wanted, ast.Load()), modules)
    return [_Picks(number, module, wanted, picking).visit(part) for part in body]


class _Picks(ast.NodeTransformer):
    """Puts what the loop picks in the place of its names."""

    def __init__(self, number: str, module: str, wanted: ast.expr, picking: ast.expr) -> None:
        self.by = {number: wanted, module: picking}

    def visit_Name(self, node: ast.Name) -> ast.AST:
        """The number or the module; known by the place where it was read."""
        return ast.copy_location(copy.deepcopy(self.by[node.id]), node) if node.id in self.by else node


def _lost(before: ast.stmt, after: ast.stmt) -> bool:
    """Whether a statement only gives a name a value that the one after it replaces unread."""
    if not isinstance(before, ast.Assign) or not isinstance(after, ast.Assign) or not has_no_effect(before.value):
        return False
    texts = {ast.unparse(target) for target in (*before.targets, *after.targets)}
    target = after.targets[0]
    reads = {node.id for node in ast.walk(after.value) if isinstance(node, ast.Name)}
    return len(texts) == 1 and isinstance(target, ast.Name) and target.id not in reads


def _stored(node: ast.Name) -> bool:
    return isinstance(node.ctx, ast.Store)
