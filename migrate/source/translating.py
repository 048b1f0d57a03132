"""One function of a torch model as a function of a MindSpore Cell, expression by expression."""

from __future__ import annotations

import ast
import copy
from collections.abc import Mapping

from ...mappings.rows import Row
from ..analyze.names import find
from .crossing_calls import CannotWrite, Given, bound, held, through_variable, written
from .hints import Hints
from .keywords import write_out
from .module_api import CONSTANT, CONTAINERS, GROWING, KEPT, METHODS, MODULES, NAMES, NOT_CONVERTED
from .plainly import plainly
from .pruning import pruned
from .scope import Problem, Scope
from .special_calls import special


class Translator(ast.NodeTransformer):
    """Rewrites the body of one function; `file` is where it stands."""

    def __init__(self, scope: Scope, file: str, owner: str = "") -> None:
        self.scope, self.file, self.facts = scope, file, scope.facts
        self.hints = Hints(scope, file)
        self.adds = False  # a cell to one that has its name already, which those inside do not learn by themselves
        self.owner = owner  # the class in which the function stands
        self.asked = False  # inside isinstance(…, …), where a class is a class

    def function(self, node: ast.FunctionDef, name: str) -> ast.FunctionDef:
        """The definition under another name, with what ran of its body."""
        found = copy.deepcopy(node)
        write_out(found, self.scope, self.file)
        body = pruned(found, self.facts, self.file)
        statements = [new for old in body for new in self.statement(old)]
        found.name, found.body = name, statements or [ast.Pass()]
        found.decorator_list = [kept for kept in node.decorator_list if _plain(kept)]
        self.hints.signature(found)
        return found

    def statement(self, node: ast.stmt) -> list[ast.stmt]:
        """What becomes of one statement: one, several or none."""
        if isinstance(node, ast.Expr) and isinstance(node.value, ast.Call):
            found = special(self, node.value)
            if found is not None:
                return found
        if isinstance(node, ast.AnnAssign):
            node.annotation = self.hints.hint(node.annotation)
            node.value = node.value and self.visit(node.value)
            return [node]
        for field in ("body", "orelse", "finalbody"):
            inner = getattr(node, field, None)
            if isinstance(inner, list) and inner and isinstance(inner[0], ast.stmt):
                setattr(node, field, [new for old in inner for new in self.statement(old)])
        if isinstance(node, (ast.If, ast.While)):
            node.test = self.visit(node.test)
            return [node] if node.body or node.orelse else []
        if isinstance(node, ast.For):
            self.loop(node)
            return [node] if node.body else []
        if isinstance(node, (ast.With, ast.Try, ast.FunctionDef)):
            return [node]
        return [self.visit(node)]

    def loop(self, node: ast.For) -> None:
        """The head of a loop; one over all modules gets the names too, as MindSpore gives them."""
        modules = "torch.nn.Module.modules"
        if isinstance(node.iter, ast.Call) and self.facts.callees(self.file, node.iter) == [modules]:
            assert isinstance(node.iter.func, ast.Attribute)
            cells = ast.Attribute(self.visit(node.iter.func.value), "cells_and_names", ast.Load())
            node.target = ast.Tuple([ast.Name("_", ast.Store()), node.target], ast.Store())
            node.iter = ast.Call(cells, [], [])
        else:
            node.target, node.iter = self.visit(node.target), self.visit(node.iter)

    def visit_Call(self, node: ast.Call) -> ast.AST:
        """A call, by what it called."""
        callees = self.facts.callees(self.file, node)
        constants = self.facts.constants(self.file, node)
        if callees and all(name in CONSTANT for name in callees) and constants is not None and len(constants) == 1:
            return ast.Constant(constants[0])
        if callees and callees[0] in ("builtins.isinstance", "builtins.issubclass"):
            self.asked = True
            node = self.kept(node)
            self.asked = False
            return node
        if callees != ["functools.partial"] and all(self.is_theirs(name) for name in callees):
            return self.kept(node)
        try:
            return self.crossed(node, callees)
        except CannotWrite as error:
            return self.missing(node, str(error))

    def is_theirs(self, name: str) -> bool:
        """Whether it is translated too, or of Python's own."""
        return (
            name in self.scope.theirs
            or name.rpartition(".")[0] in self.scope.theirs
            or not name.startswith(("torch.", "torchvision.", "timm.", "module ", "object torch", "partial "))
            or name.startswith("module ")
        )

    def kept(self, node: ast.Call) -> ast.Call:
        """The same call with arguments that are rewritten."""
        function = node.func
        node.takes = self.callees(node)  # type: ignore[attr-defined]  # for unused.py
        if isinstance(function, ast.Attribute):
            node.func = ast.Attribute(self.visit(function.value), METHODS.get(function.attr, function.attr), ast.Load())
        else:
            node.func = self.visit(function)
        node.args = [self.visit(argument) for argument in node.args]
        node.keywords = [ast.keyword(keyword.arg, self.visit(keyword.value)) for keyword in node.keywords]
        return node

    def callees(self, node: ast.Call) -> list[str]:
        """The functions and classes of theirs that a call gives arguments to, also by `partial`."""
        names = self.facts.callees(self.file, node)
        if names == ["functools.partial"] and node.args:
            names = self.facts.kinds(self.file, node.args[0])
        plain = (name.removeprefix("class ").removeprefix("function ").removeprefix("partial ") for name in names)
        return [name for name in plain if name in self.scope.theirs]

    def crossed(self, node: ast.Call, callees: list[str]) -> ast.AST:
        """A call of torch's as the call of its row."""
        last = {name.rpartition(".")[2] for name in callees}
        if all(name.startswith(MODULES) for name in callees) and last <= KEPT:
            grows = last <= GROWING and isinstance(node.func, ast.Attribute)
            self.adds = self.adds or (grows and not isinstance(node.func.value, ast.Name))  # type: ignore[attr-defined]
            return self.kept(node)
        if all(name in CONTAINERS for name in callees) and len(set(callees)) == 1:
            node = self.kept(node)
            node.func = self.scope.name(CONTAINERS[callees[0]])
            return node
        if callees == ["torch.nn.Parameter"] or callees == ["torch.nn.parameter.Parameter"]:
            value = self.visit(node.args[0])
            return ast.Call(self.scope.name("mindspore.Parameter"), [value], [])
        if callees == ["functools.partial"]:
            return self.partial(node)
        if _is_super(node.func):
            return self.base(node)
        callees = [name.removeprefix("partial ") for name in callees]
        rows = {name: self.scope.row(name) for name in callees}
        for name, row in rows.items():
            if row is None and not self.is_theirs(name):
                raise CannotWrite(f"{name} has no row in the mapping table")
        if self.is_variable(node.func):
            return self.any_of(node, rows)
        row = next(iter(rows.values()))
        if row is None or len(rows) > 1:
            return self.any_of(node, rows)
        given = self.given(row, node, method=_is_method(callees))
        plain = plainly(row.torch, given, self.scope.name)
        if plain is not None:
            return plain
        call = written(row, given, self.scope.name)
        if callees[0] in self.scope.theirs:  # a class that is made as its base is
            call.func = self.visit(node.func)
        return call

    def any_of(self, node: ast.Call, rows: Mapping[str, Row | None]) -> ast.Call:
        """A call of what a variable holds, now this and now that: written where it is one call for all of them."""
        calls = []
        for row in rows.values():
            copied = copy.deepcopy(node)
            function = self.visit(copied.func)
            if row is None:
                calls.append(self.kept(copied))
            else:
                calls.append(through_variable(row, self.given(row, copied), self.scope.name, function))
        if len({ast.dump(call) for call in calls}) > 1:
            raise CannotWrite(f"{' and '.join(rows)} take these arguments each in its own way")
        return calls[0]

    def base(self, node: ast.Call) -> ast.Call:
        """`super().__init__(…)` of a class that comes from one of torch's."""
        row = self.scope.torch_base(self.owner)
        if row is None:
            raise CannotWrite(f"{ast.unparse(node.func)} of {self.owner}")
        call = written(row, self.given(row, node), self.scope.name)
        call.func = node.func
        return call

    def partial(self, node: ast.Call) -> ast.AST:
        """`partial` of a class of torch's: of the row's, with its arguments and torch's defaults."""
        kinds = self.facts.kinds(self.file, node.args[0])
        name = kinds[0].partition(" ")[2] if len(kinds) == 1 else ""
        row = self.scope.row(name) if kinds and kinds[0].startswith("class ") else None
        if row is None:
            return self.kept(node)
        rest = ast.Call(node.args[0], node.args[1:], node.keywords)
        found = held(row, self.given(row, rest), self.scope.name)
        if name in self.scope.theirs and isinstance(found, ast.Call):
            found.args[0] = self.visit(node.args[0])
        return found

    def is_variable(self, function: ast.expr) -> bool:
        """Whether what is called is the value of a variable, and no name that a module defines or imports."""
        if isinstance(function, ast.Name):
            return not self.scope.is_global(self.file, function.id)
        return isinstance(function, ast.Attribute) and not any(
            kind.startswith(("python ", "Tensor", "Parameter")) for kind in self.facts.kinds(self.file, function.value)
        )

    def given(self, row: Row, node: ast.Call, *, method: bool = False) -> dict[str, Given]:
        """What the call gives for each of the row's arguments."""
        positional: list[Given] = []
        if method and isinstance(node.func, ast.Attribute):
            positional.append(self.item(node.func.value))
        for argument in node.args:
            if isinstance(argument, ast.Starred):
                raise CannotWrite(f"{row.torch} with *{ast.unparse(argument.value)}")
            positional.append(self.item(argument))
        for word in node.keywords:
            inside = self.facts.entries(self.file, word.value) if word.arg is None else {}
            if inside is None or not set(inside) <= {"inplace"}:
                raise CannotWrite(f"{row.torch} with **{ast.unparse(word.value)}")
        named = {word.arg: self.item(word.value) for word in node.keywords if word.arg is not None}
        return bound(row, positional, named)

    def item(self, node: ast.expr) -> Given:
        """An argument, rewritten, with what it was."""
        kinds, constants = self.facts.kinds(self.file, node), self.facts.constants(self.file, node)
        return Given(self.visit(node), kinds, constants)

    def missing(self, node: ast.expr, text: str) -> ast.Call:
        """What stands where something could not be written: an error that says so, and a line of the report."""
        self.scope.problems.append(Problem(self.file, node.lineno, text))
        return ast.Call(self.scope.name(NOT_CONVERTED), [ast.Constant(text)], [])

    def visit_Attribute(self, node: ast.Attribute) -> ast.AST:
        """A name of torch's as MindSpore's; anything else as it is."""
        found = self.named(node)
        if found is not None:
            return found
        names = {self.held_as(kind, node.attr) for kind in self.facts.kinds(self.file, node.value)}
        if len(names) == 1:
            node.attr = names.pop()
        return self.generic_visit(node)

    def held_as(self, kind: str, attribute: str) -> str:
        """The name in MindSpore of a tensor, or of a number, that a module of this kind holds."""
        row = self.scope.torch_base(kind.removeprefix("module ")) if kind.startswith("module ") else None
        if row is None:
            return attribute
        states = [state.mindspore for state in row.state if state.torch == attribute and state.mindspore]
        numbers = [a.to[0] for a in row.arguments if a.torch == attribute and a.verb is None and len(a.to) == 1]
        return next(iter([*states, *numbers]), attribute)

    def visit_Name(self, node: ast.Name) -> ast.AST:
        """A name of torch's as MindSpore's; of Python's own, noted for the imports."""
        if not isinstance(node.ctx, ast.Load):
            return node
        found = self.named(node)
        if found is None:
            self.scope.python(self.file, node.id)
        return found if found is not None else node

    def named(self, node: ast.expr) -> ast.expr | None:
        """The MindSpore name for a class or function of torch's that is not called here; None for anything else."""
        kinds = self.facts.kinds(self.file, node)
        if len(kinds) != 1 or not kinds[0].startswith(("class ", "function ", "dtype")) or self.is_variable(node):
            return None
        if kinds[0] == "dtype":
            return self.scope.name(f"mindspore.{node.attr}") if isinstance(node, ast.Attribute) else None
        name = kinds[0].partition(" ")[2]
        if name in self.scope.theirs:  # a file may import it under another name
            return ast.Name(name.rpartition(".")[2], ast.Load()) if isinstance(node, ast.Name) else None
        if not name.startswith(("torch.", "torchvision.", "timm.")):
            return None
        if name in NAMES or name in CONTAINERS:
            return self.scope.name(NAMES.get(name) or CONTAINERS[name])
        row = find(name).row
        if row is None or row.mindspore is None:
            return None
        return (
            self.scope.name(row.mindspore) if self.asked or row.kind == "function" else held(row, {}, self.scope.name)
        )


def _is_super(function: ast.expr) -> bool:
    return (
        isinstance(function, ast.Attribute)
        and isinstance(function.value, ast.Call)
        and isinstance(function.value.func, ast.Name)
        and function.value.func.id == "super"
    )


def _plain(decorator: ast.expr) -> bool:
    return isinstance(decorator, ast.Name) and decorator.id in ("staticmethod", "classmethod", "property")


def _is_method(callees: list[str]) -> bool:
    return all(name.startswith("torch.Tensor.") for name in callees)
