"""Tables of classes and functions at a file's top, such as `{"relu": nn.ReLU, …}`: what nothing chose goes."""

from __future__ import annotations

import ast
from collections.abc import Callable


class Choices(ast.NodeTransformer):
    """Takes out of dictionaries and sets the classes and functions that no expression was.

    resolve: the full name of a name in the file, empty for what is none of its top. unseen: whether a full name is that
    of a class or function that was no value and was not called.
    """

    def __init__(self, resolve: Callable[[ast.expr], str], unseen: Callable[[str], bool]) -> None:
        self.resolve, self.unseen = resolve, unseen

    def visit_Dict(self, node: ast.Dict) -> ast.AST:
        """A dictionary, by its values."""
        kept = [(key, found) for key, value in zip(node.keys, node.values, strict=True) if (found := self.kept(value))]
        return ast.Dict([key for key, _ in kept], [value for _, value in kept])

    def visit_Set(self, node: ast.Set) -> ast.AST:
        """A set; an empty one is written as a call."""
        kept = [found for item in node.elts if (found := self.kept(item))]
        return ast.Set(kept) if kept else ast.Call(ast.Name("set", ast.Load()), [], [])

    def visit_Call(self, node: ast.Call) -> ast.AST:
        """`dict(relu=nn.ReLU)`."""
        if isinstance(node.func, ast.Name) and node.func.id == "dict":
            words = [(word.arg, self.kept(word.value)) for word in node.keywords]
            node.keywords = [ast.keyword(key, value) for key, value in words if value is not None]
        return node

    def kept(self, node: ast.expr) -> ast.expr | None:
        """The value of an entry, of two the one that was chosen; None where nothing chose it."""
        if isinstance(node, ast.IfExp):
            sides = [side for side in (self.kept(node.body), self.kept(node.orelse)) if side is not None]
            return node if len(sides) == 2 else next(iter(sides), None)
        if isinstance(node, ast.Call) and self.resolve(node.func) == "functools.partial" and node.args:
            return node if self.kept(node.args[0]) is not None else None
        name = self.resolve(node) if isinstance(node, (ast.Name, ast.Attribute)) else ""
        if not name:
            found: ast.expr = self.visit(node)
            return found
        return None if self.unseen(name) else node
