"""Signatures: type hints and defaults, which went by when a function was defined, and are read by their names."""

from __future__ import annotations

import ast
from collections.abc import Callable
from typing import Any

from .context import CannotWrite, Given, Program, row_of, set_receivers
from .crossing_calls import bound, held
from .module_api import CONTAINERS, NAMES
from .tensor_methods import dtype_name, is_dtype

UNNAMED = ("torch.dtype", "torch.device")  # MindSpore has no public class for these


class Hints(ast.NodeTransformer):
    """Rewrites what a file says outside the functions that ran."""

    def __init__(self, program: Program, file: str) -> None:
        self.program, self.file, self.resolve = program, file, program.names(file).name
        self.value = False  # inside a value, where a class brings torch's defaults along, and a string is no hint

    def hint(self, node: ast.expr) -> ast.expr:
        """A type hint with MindSpore's classes."""
        before, self.value = self.value, False
        found: ast.expr = self.visit(node)
        self.value = before
        return found

    def signature(self, function: ast.FunctionDef) -> None:
        """Rewrite the hints and defaults of a definition."""
        given = function.args
        for argument in (*given.posonlyargs, *given.args, *given.kwonlyargs, given.vararg, given.kwarg):
            if argument is not None and argument.annotation is not None:
                argument.annotation = self.hint(argument.annotation)
        if function.returns is not None:
            function.returns = self.hint(function.returns)
        given.defaults = [self._of_parameter(item) for item in given.defaults]
        given.kw_defaults = [None if item is None else self._of_parameter(item) for item in given.kw_defaults]

    def _of_parameter(self, node: ast.expr) -> ast.expr:
        """The default of a parameter, None for a class that nothing ever came to, and that the file does not have."""
        name = self.resolve(node) if isinstance(node, (ast.Name, ast.Attribute)) else ""
        theirs = name in self.program.translated or name.startswith("torch.")
        return ast.Constant(None) if name and not theirs and self.program.unseen(name) else self.default(node)

    def default(self, node: ast.expr) -> ast.expr:
        """A default: a class of torch's with torch's own defaults, also where `partial` gives some of them."""
        if isinstance(node, ast.Call) and self.resolve(node.func) == "functools.partial" and node.args:
            return self._partial(node)
        name = self.resolve(node) if isinstance(node, (ast.Name, ast.Attribute)) else ""
        if name.startswith("torch.") and is_dtype(name.removeprefix("torch.")):
            return self.program.name(dtype_name(name.removeprefix("torch.")))
        row = self.program.row(name) if name else None
        if row is not None and row.mindspore and self.resolve(node) not in {*NAMES, *self.program.translated}:
            return self.program.name(row.mindspore) if row.kind == "function" else held(row, {}, self.program.name)
        before, self.value = self.value, True
        named = isinstance(node, (ast.Name, ast.Attribute))
        found: Any = self._class(node) if named else self.generic_visit(node)  # type: ignore[arg-type]
        self.value = before
        return found

    def _partial(self, node: ast.Call) -> ast.expr:
        name = self.resolve(node.args[0])
        row = self.program.row(name)
        words = {word.arg: _given(self.default(word.value)) for word in node.keywords if word.arg is not None}
        if row is None:
            keywords = [ast.keyword(key, item.node) for key, item in words.items()]
            first = self.hint(node.args[0])
            rest = list(map(self.default, node.args[1:]))
            made = ast.Call(self.program.name("functools.partial"), [first, *rest], keywords)
            set_receivers(made, [name])
            return made
        try:
            found = held(row, bound(row, [_given(a) for a in node.args[1:]], words), self.program.name)
        except CannotWrite:
            return node
        if name in self.program.translated and isinstance(found, ast.Call):
            found.args[0] = self.hint(node.args[0])
        return found

    def visit_Name(self, node: ast.Name) -> ast.AST:
        """A class of torch's as MindSpore's; one of theirs by the name that it has where it is defined."""
        return self.default(node) if self.value else self._class(node)

    def visit_Attribute(self, node: ast.Attribute) -> ast.AST:
        """The same with a module in front."""
        return self.default(node) if self.value else self._class(node)

    def visit_Subscript(self, node: ast.Subscript) -> ast.AST:
        """`Final[bool]`, which tells TorchScript that an attribute is a constant, as `bool`."""
        final = self.resolve(node.value) in ("torch.jit.Final", "typing.Final")
        return self.visit(node.slice) if final and not self.value else self.generic_visit(node)

    def visit_Call(self, node: ast.Call) -> ast.AST:
        """`partial` inside a value."""
        partial = self.value and self.resolve(node.func) == "functools.partial"
        return self.default(node) if partial else self.generic_visit(node)

    def visit_Constant(self, node: ast.Constant) -> ast.AST:
        """A hint in quotes, which it need not be."""
        if self.value or not isinstance(node.value, str):
            return node
        try:
            found: ast.AST = self.visit(ast.parse(node.value, mode="eval").body)
        except SyntaxError:
            return node
        return found

    def _class(self, node: ast.Name | ast.Attribute) -> ast.expr:
        name = self.resolve(node)
        if name in self.program.translated:
            return ast.Name(self.program.called(name), ast.Load())
        if not name.startswith("torch."):
            if isinstance(node, ast.Name):
                node.id = self.program.python(self.file, node.id)
            return node
        if name in UNNAMED and not self.value:
            return self.program.name("typing.Any")
        if name in NAMES or name in CONTAINERS:
            return self.program.name(NAMES.get(name) or CONTAINERS[name])
        row = row_of(name)
        return self.program.name(row.mindspore) if row is not None and row.mindspore else node


def names_in(node: ast.AST, resolve: Callable[[ast.expr], str]) -> list[str]:
    """The full names of what an expression names."""
    return [resolve(inner) for inner in ast.walk(node) if isinstance(inner, (ast.Name, ast.Attribute))]


def _given(node: ast.expr) -> Given:
    try:
        constant = ast.literal_eval(node)
    except (ValueError, TypeError, SyntaxError):
        return Given(node, [], None)
    return Given(node, [type(constant).__name__], [constant])
