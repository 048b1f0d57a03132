"""One function of a torch model as a function of a MindSpore Cell, expression by expression."""

from __future__ import annotations

import ast
import copy

from ...mappings.rows import Row
from ..analyze.names import find
from .crossing_calls import CannotWrite, Given, bound, held, through_variable, written
from .hints import hint, signature
from .module_api import CONSTANT, CONTAINERS, DROPPED, KEPT, METHODS, MODULES, NAMES, NOT_CONVERTED
from .pruning import pruned
from .scope import Problem, Scope, row_of


class Translator(ast.NodeTransformer):
    """Rewrites the body of one function; `file` is where it stands."""

    def __init__(self, scope: Scope, file: str) -> None:
        self.scope, self.file, self.facts = scope, file, scope.facts
        self.asked = False  # inside isinstance(…, …), where a class is a class

    def function(self, node: ast.FunctionDef, name: str) -> ast.FunctionDef:
        """The definition under another name, with what ran of its body."""
        found = copy.deepcopy(node)
        body = pruned(found, self.facts, self.file)
        statements = [new for old in body for new in self.statement(old)]
        found.name, found.body = name, statements or [ast.Pass()]
        found.decorator_list = [kept for kept in node.decorator_list if _plain(kept)]
        signature(found, self.scope.name)
        return found

    def statement(self, node: ast.stmt) -> list[ast.stmt]:
        """What becomes of one statement: one, several or none."""
        if isinstance(node, ast.Expr) and isinstance(node.value, ast.Call):
            special = self.special(node.value)
            if special is not None:
                return special
        if isinstance(node, ast.AnnAssign):
            node.annotation = hint(node.annotation)
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

    def special(self, call: ast.Call) -> list[ast.stmt] | None:
        """A call that stands alone and becomes something else than a call; None where it is one like others."""
        callees = self.facts.callees(self.file, call)
        if callees and all(name in DROPPED for name in callees):
            return []
        if callees == ["torch.nn.Module.register_buffer"]:
            return [self.buffer(call)]
        if callees == ["torch.nn.Module.add_module"] and isinstance(call.func, ast.Attribute):
            return [self.child(call, call.func.value)]
        if callees and all(name.startswith("torch.nn.init.") for name in callees):
            return self.initializer(call, callees)
        return None

    def child(self, call: ast.Call, owner: ast.expr) -> ast.stmt:
        """`add_module` as MindSpore does it: a SequentialCell keeps a list of its own, a CellDict is a dictionary."""
        name, cell = (self.visit(argument) for argument in call.args)
        kinds = self.facts.kinds(self.file, owner)
        if any(self.scope.derives(kind.removeprefix("module "), "torch.nn.ModuleDict") for kind in kinds):
            return ast.Assign([ast.Subscript(self.visit(owner), name, ast.Store())], cell)
        if any(self.scope.derives(kind.removeprefix("module "), "torch.nn.Sequential") for kind in kinds):
            helper = self.scope.name("msmigrate.migrate.composed.mindspore_containers.add_cell")
            return ast.Expr(ast.Call(helper, [self.visit(owner), name, cell], []))
        insert = ast.Attribute(self.visit(owner), "insert_child_to_cell", ast.Load())
        return ast.Expr(ast.Call(insert, [name, cell], []))

    def buffer(self, call: ast.Call) -> ast.stmt:
        """`self.name = Parameter(value, requires_grad=False)`: MindSpore saves nothing else in a checkpoint."""
        name, value = call.args[0], self.visit(call.args[1])
        known = isinstance(name, ast.Constant) and isinstance(name.value, str)
        if not known or not isinstance(call.func, ast.Attribute):
            raise CannotWrite("register_buffer with a name that is computed")
        false = [ast.keyword("name", name), ast.keyword("requires_grad", ast.Constant(False))]
        made = ast.Call(self.scope.name("mindspore.Parameter"), [value], false)
        return ast.Assign([ast.Attribute(call.func.value, str(ast.literal_eval(name)), ast.Store())], made)

    def initializer(self, call: ast.Call, callees: list[str]) -> list[ast.stmt]:
        """`tensor.set_data(initializer(Rule(…), tensor.shape, tensor.dtype))`."""
        row = row_of(callees[0])
        tensor = self.visit(copy.deepcopy(call.args[0]))
        try:
            if row is None:
                raise CannotWrite(f"{callees[0]} has no row in the mapping table")
            rule = written(row, self.given(row, call), self.scope.name)
        except CannotWrite as error:
            return [ast.Expr(self.missing(call, str(error)))]
        rule.args = rule.args[1:] if rule.args and ast.dump(rule.args[0]) == ast.dump(tensor) else rule.args
        facts = [ast.Attribute(copy.deepcopy(tensor), attribute, ast.Load()) for attribute in ("shape", "dtype")]
        values = ast.Call(self.scope.name("mindspore.common.initializer.initializer"), [rule, *facts], [])
        return [ast.Expr(ast.Call(ast.Attribute(tensor, "set_data", ast.Load()), [values], []))]

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
        if isinstance(function, ast.Attribute):
            node.func = ast.Attribute(self.visit(function.value), METHODS.get(function.attr, function.attr), ast.Load())
        else:
            node.func = self.visit(function)
        node.args = [self.visit(argument) for argument in node.args]
        node.keywords = [ast.keyword(keyword.arg, self.visit(keyword.value)) for keyword in node.keywords]
        return node

    def crossed(self, node: ast.Call, callees: list[str]) -> ast.AST:
        """A call of torch's as the call of its row."""
        last = {name.rpartition(".")[2] for name in callees}
        if all(name.startswith(MODULES) for name in callees) and last <= KEPT:
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
        callees = [name.removeprefix("partial ") for name in callees]
        if all(self.is_theirs(name) for name in callees):
            return self.kept(node)
        rows = {row.torch: row for name in callees for row in [row_of(name)] if row is not None}
        if len(rows) != 1 or any((row_of(name)) is None for name in callees):
            raise CannotWrite(f"{', '.join(callees)} has no row in the mapping table")
        row = next(iter(rows.values()))
        if self.is_variable(node.func):
            return through_variable(row, self.given(row, node), self.scope.name, self.visit(node.func))
        return written(row, self.given(row, node, method=_is_method(callees)), self.scope.name)

    def partial(self, node: ast.Call) -> ast.AST:
        """`partial` of a class of torch's: of the row's, with its arguments and torch's defaults."""
        kinds = self.facts.kinds(self.file, node.args[0])
        name = kinds[0].partition(" ")[2] if len(kinds) == 1 else ""
        row = None if self.is_theirs(name) or not kinds or not kinds[0].startswith("class ") else find(name).row
        if row is None:
            return self.kept(node)
        rest = ast.Call(node.args[0], node.args[1:], node.keywords)
        return held(row, self.given(row, rest), self.scope.name)

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
            inside = set(self.facts.kinds(self.file, word.value)) if word.arg is None else set()
            if not inside <= {"dict()", "dict(inplace)"}:
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
        tensors = {self.tensor(kind, node.attr) for kind in self.facts.kinds(self.file, node.value)}
        if len(tensors) == 1:
            node.attr = tensors.pop()
        return self.generic_visit(node)

    def tensor(self, kind: str, attribute: str) -> str:
        """The name in MindSpore of a tensor that a module of this kind holds."""
        row = find(kind.removeprefix("module ")).row if kind.startswith("module ") else None
        states = [] if row is None else [state.mindspore for state in row.state if state.torch == attribute]
        return states[0] or attribute if states else attribute

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
        if name in self.scope.theirs or not name.startswith(("torch.", "torchvision.", "timm.")):
            return None
        if name in NAMES or name in CONTAINERS:
            return self.scope.name(NAMES.get(name) or CONTAINERS[name])
        row = find(name).row
        if row is None or row.mindspore is None:
            return None
        return (
            self.scope.name(row.mindspore) if self.asked or row.kind == "function" else held(row, {}, self.scope.name)
        )


def _plain(decorator: ast.expr) -> bool:
    return isinstance(decorator, ast.Name) and decorator.id in ("staticmethod", "classmethod", "property")


def _is_method(callees: list[str]) -> bool:
    return all(name.startswith("torch.Tensor.") for name in callees)
