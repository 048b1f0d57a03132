"""One function of a torch model as a function of a MindSpore Cell, expression by expression."""

from __future__ import annotations

import ast
import copy
from typing import Any

from ...mappings.aliases import find
from . import contexts, dictionaries, empty_slices, in_place, lists, not_run, records, registries
from .by_inputs import is_comment
from .calls import Calls
from .comprehensions import looped
from .configurations import note
from .crossing_calls import held
from .hints import Hints
from .keywords import write_out
from .module_api import BEHIND, CONTAINERS, LIMITS, NAMES
from .picking import picked
from .pruning import pruned
from .questions import answered
from .scope import Scope
from .signatures import local_names
from .special_calls import special
from .steps import Steps
from .tensor_methods import ANSWERS, PAIR, PAIRS, dtype_name
from .walrus import spelled_out


class Translator(Calls):
    """Rewrites the body of one function; `file` is where it stands."""

    def __init__(self, scope: Scope, file: str, owner: str = "") -> None:
        self.scope, self.file, self.facts = scope, file, scope.facts
        self.hints = Hints(scope, file)
        self.adds = False  # a cell to one that has its name already, which those inside do not learn by themselves
        self.owner = owner  # the class in which the function stands
        self.asked = False  # inside isinstance(…, …), where a class is a class
        self.local: set[str] = set()  # the names that belong to the function
        self.own: set[str] = set()  # those that belong to the innermost of the functions in it
        self.handed: set[str] = set()  # those of its parameters
        self.in_python = False  # whether MindSpore never compiles it
        self.strict = False  # what cannot be written is an error, and no part of the file

    def function(self, node: ast.FunctionDef, name: str) -> ast.FunctionDef:
        """The definition under another name, with what ran of its body."""
        found = copy.deepcopy(node)
        self.local = self.own = set(local_names(found))
        self.handed = {argument.arg for argument in ast.walk(found.args) if isinstance(argument, ast.arg)}
        self.in_python = name == "__init__"
        if not self.in_python:
            looped(found)
            picked(found, self.facts, self.file)
        spelled_out(found)
        dictionaries.begun_empty(found, self.facts, self.file)
        write_out(found, self.scope, self.file)
        Steps(self.scope, self.file).visit(found)
        entered = node.name == "forward" and self.owner in self.facts.classes.get("", ())
        missing = lambda node, text: ast.Expr(self.missing(node, text))  # noqa: E731
        body = pruned(found, self.facts, self.file, missing, entered=entered)
        if not self.in_python and contexts.decorated(node):
            statements = contexts.without_gradient(body, self)
        else:
            statements = [new for old in body for new in self.statement(old)]
        found.name, found.body = name, statements or [ast.Pass()]
        found.decorator_list = [kept for kept in node.decorator_list if _plain(kept)]
        self.hints.signature(found)
        return found

    def statement(self, node: ast.stmt) -> list[ast.stmt]:
        """What becomes of one statement: one, several or none."""
        if is_comment(node):
            return [node]
        if isinstance(node, ast.Expr) and isinstance(node.value, ast.Call):
            found = special(self, node.value)
            if found is not None:
                return found
        ways = (in_place.statement, empty_slices.statement, lists.spelled_out, dictionaries.spelled_out)
        written_into = next((found for way in ways if (found := way(node, self))), None)
        if written_into is not None:
            return written_into
        if isinstance(node, ast.With):
            inside = contexts.unwrapped(node, self)
            if inside is not None:
                return inside
        if isinstance(node, ast.AnnAssign):
            node.annotation = self.hints.hint(node.annotation)
            node.value = node.value and self.visit(node.value)
            return [node]
        own = self.own
        if isinstance(node, ast.FunctionDef):
            self.own = set(local_names(node))
        for field in ("body", "orelse", "finalbody"):
            inner = getattr(node, field, None)
            if isinstance(inner, list) and inner and isinstance(inner[0], ast.stmt):
                setattr(node, field, [new for old in inner for new in self.statement(old)])
        self.own = own
        if isinstance(node, (ast.If, ast.While)):
            node.test = self.visit(node.test)
            if not node.body and not node.orelse:
                return []
            return answered(node) if isinstance(node, ast.If) else [node]
        if isinstance(node, ast.For):
            self.loop(node)
            return [node] if node.body else []
        if isinstance(node, (ast.With, ast.Try, ast.FunctionDef)):
            return [node]
        return [self.visit(node)]

    def loop(self, node: ast.For) -> None:
        """The head of a loop; MindSpore gives all modules with their names, and named ones as a dictionary."""
        modules = "torch.nn.Module.modules"
        if isinstance(node.iter, ast.Call) and self.facts.callees(self.file, node.iter) == [modules]:
            assert isinstance(node.iter.func, ast.Attribute)
            cells = ast.Attribute(self.visit(node.iter.func.value), "cells_and_names", ast.Load())
            node.target = ast.Tuple([ast.Name("_", ast.Store()), node.target], ast.Store())
            node.iter = ast.Call(cells, [], [])
        else:
            node.target, node.iter = self.visit(node.target), self.gone_over(node.iter)

    def visit_comprehension(self, node: ast.comprehension) -> ast.AST:
        """A loop inside of brackets."""
        node.target, node.iter = self.visit(node.target), self.gone_over(node.iter)
        node.ifs = [self.visit(test) for test in node.ifs]
        return node

    def gone_over(self, node: ast.expr) -> ast.expr:
        """What a loop goes over; of modules by name their names, for MindSpore compiles no loop over a Cell."""
        named = self.facts.kinds(self.file, node) == ["module torch.nn.ModuleDict"]
        found: ast.expr = self.visit(node)
        return ast.Call(ast.Attribute(found, "keys", ast.Load()), [], []) if named else found

    def visit_Subscript(self, node: ast.Subscript) -> ast.AST:  # noqa: N802
        """`(a, b)[0]`, which calls became that give two things in torch only, as `a`; what registries hold; outputs."""
        asked = registries.found(node, self)
        if asked is not None:
            return asked
        record = records.of_value(self.facts.records, self.facts.kinds(self.file, node.value))
        found = self.generic_visit((record and records.item(record, node)) or node)
        assert isinstance(found, ast.Subscript)
        known = isinstance(found.value, ast.Tuple) and isinstance(found.slice, ast.Constant)
        if known and isinstance(node.ctx, ast.Load) and found.slice.value in (0, 1):  # type: ignore[attr-defined]
            return found.value.elts[found.slice.value]  # type: ignore[attr-defined]
        return found

    def visit_IfExp(self, node: ast.IfExp) -> ast.AST:  # noqa: N802
        """`a if test else b`, of which one may not have run."""
        return not_run.either(node, self)

    def visit_BoolOp(self, node: ast.BoolOp) -> ast.AST:  # noqa: N802
        """`a or b`, of which the last may not have run."""
        return not_run.one_of(node, self)

    def callees(self, node: ast.Call) -> list[str]:
        """The functions and classes of theirs that a call gives arguments to, also by `partial`."""
        names = self.facts.callees(self.file, node)
        if names == ["functools.partial"] and node.args:
            names = self.facts.kinds(self.file, node.args[0])
        plain = (name.removeprefix("class ").removeprefix("function ").removeprefix("partial ") for name in names)
        return [name for name in plain if name in self.scope.theirs]

    def visit_Attribute(self, node: ast.Attribute) -> ast.AST:  # noqa: N802
        """A name of torch's as MindSpore's; anything else as it is."""
        found = self.named(node)
        if found is not None:
            return found
        kinds = self.facts.kinds(self.file, node.value)
        if kinds and set(kinds) <= LIMITS:
            limit = self.facts.constants(self.file, node)
            text = f"{ast.unparse(node)} was now one number and now another"
            return ast.Constant(limit[0]) if limit is not None and len(limit) == 1 else self.missing(node, text)
        note(self.scope.reads, kinds, node.attr, self.facts.constants(self.file, node))
        if len(kinds) == 1 and kinds[0].startswith("python "):
            seen = self.facts.constants(self.file, node)
            constant = self.scope.constant(kinds[0].removeprefix("python "), node.attr, seen)
            if constant is not None:
                return constant
        record = records.of_value(self.facts.records, kinds)
        inside = None if record is None else records.field(record, node)
        if inside is not None:
            return self.generic_visit(inside)
        if node.attr in ANSWERS and in_place.tensors(kinds):
            return ast.Constant(ANSWERS[node.attr])
        names = {self.held_as(kind, node.attr) for kind in kinds}
        if len(names) == 1:
            node.attr = names.pop()
        if kinds and node.attr in BEHIND and all(kind.removeprefix("module ") in BEHIND[node.attr] for kind in kinds):
            whole: Any = self.generic_visit(node)
            return ast.Subscript(whole, ast.Slice(ast.Constant(1)), ast.Load())
        if kinds and node.attr in PAIR and all(kind.partition("(")[0] in PAIRS for kind in kinds):
            return ast.Subscript(self.visit(node.value), ast.Constant(PAIR.index(node.attr)), ast.Load())
        return self.generic_visit(node)

    def held_as(self, kind: str, attribute: str) -> str:
        """The name in MindSpore of a tensor, or of a number, that a module of this kind holds."""
        row = self.scope.torch_base(kind.removeprefix("module ")) if kind.startswith("module ") else None
        if row is None:
            return attribute
        states = [state.mindspore for state in row.state if state.torch == attribute and state.mindspore]
        numbers = [a.to[0] for a in row.arguments if a.torch == attribute and a.verb is None and len(a.to) == 1]
        return next(iter([*states, *numbers]), attribute)

    def visit_Name(self, node: ast.Name) -> ast.AST:  # noqa: N802
        """A name of torch's as MindSpore's; of Python's own, noted for the imports."""
        if not isinstance(node.ctx, ast.Load):
            return node
        found = self.named(node)
        if found is None and node.id not in self.local:
            node.id = self.scope.python(self.file, node.id)
        return found if found is not None else node

    def named(self, node: ast.expr) -> ast.expr | None:
        """The MindSpore name for a class or function of torch's that is not called here; None for anything else."""
        kinds = self.facts.kinds(self.file, node)
        if len(kinds) != 1 or not kinds[0].startswith(("class ", "function ", "dtype")) or self.is_variable(node):
            return None
        if kinds[0] == "dtype":
            if isinstance(node, ast.Attribute) and self.facts.kinds(self.file, node.value) != ["python torch"]:
                return None  # x.dtype
            return self.scope.name(dtype_name(node.attr)) if isinstance(node, ast.Attribute) else None
        name = kinds[0].partition(" ")[2]
        if name in self.scope.theirs:  # a file may import it under another name
            return ast.Name(self.scope.called(name), ast.Load()) if isinstance(node, ast.Name) else None
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


def _plain(decorator: ast.expr) -> bool:
    return isinstance(decorator, ast.Name) and decorator.id in ("staticmethod", "classmethod", "property")
