"""Lists over two loops, `[f(a, b) for a in x for b in y]`, as the loops that they are: MindSpore compiles only these.

Python runs either; a loop leaves its names behind, so a list whose names the function uses elsewhere stays as it is.
"""

from __future__ import annotations

import ast
import itertools
from collections import Counter

from .blocks import in_blocks
from .purity import INSIDE
from .walrus import spelled_out

NAME = "parts"  # of a list that has none


def looped(function: ast.FunctionDef) -> None:
    """Write such lists as loops, in statements before those that they stand in; in place."""
    names = Counter(node.id for node in ast.walk(function) if isinstance(node, ast.Name))
    names.update(argument.arg for argument in ast.walk(function) if isinstance(argument, ast.arg))
    naming = _Naming(names)
    for statement in [node for node in ast.walk(function) if isinstance(node, ast.stmt) and node is not function]:
        if not _named(statement, naming):
            for field in ("value", "test"):
                value = getattr(statement, field, None)
                if isinstance(value, ast.expr):
                    setattr(statement, field, naming.visit(value))
    spelled_out(function)
    _Plain(naming.given).visit(function)
    in_blocks(function, lambda block: [new for old in block for new in _loops(old, naming)])


class _Naming(ast.NodeTransformer):
    """Gives names to lists over two loops, `(parts := […])`."""

    def __init__(self, names: Counter[str]) -> None:
        self.names = names
        self.given: set[str] = set()

    def takes(self, node: ast.AST) -> bool:
        """Whether it is such a list, the names of whose loops stand nowhere else."""
        if not isinstance(node, ast.ListComp) or len(node.generators) < 2:
            return False
        inside = Counter(found.id for found in ast.walk(node) if isinstance(found, ast.Name))
        stored = {found.id for found in ast.walk(node) if isinstance(found, ast.Name) and _stored(found)}
        return all(inside[name] == self.names[name] for name in stored)

    def visit(self, node: ast.AST) -> ast.AST:
        """Anything that is no such list stays as it is, and so does what is in a list that is one."""
        if self.takes(node):
            assert isinstance(node, ast.ListComp)
            free = (f"{NAME}{number or ''}" for number in itertools.count())
            name = next(name for name in free if name not in self.names)
            self.names[name] += 1
            self.given.add(name)
            target = ast.copy_location(ast.Name(name, ast.Store()), node)
            return ast.copy_location(ast.NamedExpr(target, node), node)
        return node if isinstance(node, INSIDE) else self.generic_visit(node)


class _Plain(ast.NodeTransformer):
    """Takes names away again that could not be given in a statement before."""

    def __init__(self, given: set[str]) -> None:
        self.given = given

    def visit_NamedExpr(self, node: ast.NamedExpr) -> ast.AST:
        """`(parts := […])` as the list."""
        return node.value if node.target.id in self.given else self.generic_visit(node)


def _loops(statement: ast.stmt, naming: _Naming) -> list[ast.stmt]:
    """`name = […]` over two loops as these; any other statement as it is."""
    if not _named(statement, naming):
        return [statement]
    assert isinstance(statement, ast.Assign) and isinstance(statement.value, ast.ListComp)
    target, value = statement.targets[0], statement.value
    assert isinstance(target, ast.Name)
    grows = ast.Attribute(ast.Name(target.id, ast.Load()), "append", ast.Load())
    body: ast.stmt = ast.Expr(ast.Call(grows, [value.elt], []))
    for loop in reversed(value.generators):
        for test in reversed(loop.ifs):
            body = ast.If(test, [body], [])
        body = ast.For(loop.target, loop.iter, [body], [])
    made = [ast.Assign([target], ast.List([], ast.Load())), body]
    for node in (inner for one in made for inner in ast.walk(one)):
        if isinstance(node, (ast.stmt, ast.expr)) and not hasattr(node, "lineno"):
            ast.copy_location(node, statement if isinstance(node, ast.stmt) else value)  # by which it is known to run
    return made


def _named(statement: ast.stmt, naming: _Naming) -> bool:
    """Whether it is `name = […]` over two loops, neither of which reads the name."""
    if not isinstance(statement, ast.Assign) or not naming.takes(statement.value):
        return False
    names = {node.id for node in ast.walk(statement.value) if isinstance(node, ast.Name)}
    target = statement.targets[0]
    return len(statement.targets) == 1 and isinstance(target, ast.Name) and target.id not in names


def _stored(node: ast.Name) -> bool:
    return isinstance(node.ctx, ast.Store)
