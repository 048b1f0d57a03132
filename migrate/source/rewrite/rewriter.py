"""One function of a torch model as a function of a MindSpore Cell: its body normalised, its branches selected, and its
statements and expressions rewritten by the handlers that are registered for them."""

from __future__ import annotations

import ast
import copy
from typing import Any

from ....mappings.aliases import find
from ..module_api import CONTAINERS, FORWARDS, METHODS, NAMES, NOT_CONVERTED
from ..observe.kinds import NONE, CallableKind, DtypeKind, Kind, ModuleKind, ObjectKind, PythonModule, always_imported
from ..observe.observations import Observations
from ..source_files import local_names, none_anyway
from . import control_flow, graph_mode, in_place, library_lookups, modules, output_records, row_calls, tensors
from .context import STATEMENTS, Problem, Program, Stage, Unwritable, by_callee, by_syntax, set_receivers
from .control_flow import fold_constant_tests, is_comment, pick_by_index, select_branches
from .graph_mode import expand_nested_comprehensions, hoist_walrus
from .row_calls import is_variable, write_reference
from .signatures import SignatureRewriter, expand_kwargs
from .tensors import StridedSlices

# the files whose handlers are registered as they are imported
HANDLERS = (library_lookups, output_records, modules, in_place, tensors, graph_mode, control_flow)


class Rewriter(ast.NodeTransformer):
    """Rewrites the body of one function; `file` is where it stands, `owner` the class. It is a Context."""

    def __init__(self, program: Program, file: str, owner: str = "") -> None:
        self.program, self.file, self.owner = program, file, owner
        self.hints = SignatureRewriter(program, file)
        self.adds = False  # a cell to one that has its name already, which those inside do not learn by themselves
        self.in_type_check = False  # inside isinstance(…, …), where a class is a class
        self.local: set[str] = set()  # the names that belong to the function
        self.own: set[str] = set()  # those that belong to the innermost of the functions in it
        self.handed: set[str] = set()  # those of its parameters
        self.in_python = False  # whether MindSpore never compiles it
        self.strict = False  # what cannot be written is an error, and no part of the file

    @property
    def facts(self) -> Observations:
        """What the worker saw."""
        return self.program.facts

    def kinds(self, node: ast.AST) -> list[Kind]:
        """What an expression was; empty where it did not run."""
        return self.facts.kinds(self.file, node)

    def callees(self, call: ast.Call) -> list[str]:
        """What a call called, by qualified names."""
        return self.facts.callees(self.file, call)

    def constants(self, node: ast.AST) -> list[Any] | None:
        """The constants that an expression was; None for too many, or where something else was among them."""
        return self.facts.constants(self.file, node)

    def entries(self, node: ast.AST) -> dict[str, list[Kind]] | None:
        """The keys of dictionaries that an expression was -> what stood there; None where it was something else."""
        return self.facts.entries(self.file, node)

    def name(self, qualified: str) -> ast.expr:
        """The expression for a name of MindSpore's, of msmigrate's or of Python's library, noted for the imports."""
        return self.program.name(qualified)

    def function(self, node: ast.FunctionDef, name: str) -> ast.FunctionDef:
        """The definition under another name, with what ran of its body."""
        found = copy.deepcopy(node)
        self.local = self.own = set(local_names(found))
        self.handed = {argument.arg for argument in ast.walk(found.args) if isinstance(argument, ast.arg)}
        self.in_python = name == "__init__"
        self._normalise(found)
        entered = node.name == "forward" and self.owner in self.facts.classes.get("", ())
        missing = lambda node, text: ast.Expr(self.missing(node, text))  # noqa: E731
        body = select_branches(found, self.facts, self.file, missing, entered=entered)
        if not self.in_python and control_flow.without_gradient_by_decorator(node):
            statements = control_flow.without_gradient(body, self)
        else:
            statements = [new for old in body for new in self.statement(old)]
        found.name, found.body = name, statements or [ast.Pass()]
        found.decorator_list = [kept for kept in node.decorator_list if _plain(kept)]
        self.hints.signature(found)
        return found

    def _normalise(self, function: ast.FunctionDef) -> None:
        """Spell out what Graph mode does not compile, and what MindSpore's CPU does not compute; in place."""
        if not self.in_python:
            expand_nested_comprehensions(function)
            pick_by_index(function, self.facts, self.file)
        hoist_walrus(function)
        graph_mode.start_with_braces(function, self.facts, self.file)
        expand_kwargs(function, self.program, self.file)
        StridedSlices(self.program, self.file).visit(function)

    def statement(self, node: ast.stmt) -> list[ast.stmt]:
        """What becomes of one statement: one, several or none."""
        if is_comment(node):
            return [node]
        found: list[ast.stmt] | None
        if isinstance(node, ast.Expr) and isinstance(node.value, ast.Call):
            for handler in by_callee(self.callees(node.value), Stage.STATEMENT):
                if (found := handler(node.value, self)) is not None:
                    return found
        for stage in STATEMENTS:
            for handler in by_syntax(node, stage):
                if (found := handler(node, self)) is not None:
                    return found
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
            return fold_constant_tests(node) if isinstance(node, ast.If) else [node]
        if isinstance(node, ast.For):
            self._loop(node)
            return [node] if node.body else []
        if isinstance(node, (ast.With, ast.Try, ast.FunctionDef)):
            return [node]
        return [self.visit(node)]

    def _loop(self, node: ast.For) -> None:
        """The head of a loop; MindSpore gives all modules with their names, and named ones as a dictionary."""
        if isinstance(node.iter, ast.Call) and self.callees(node.iter) == ["torch.nn.Module.modules"]:
            assert isinstance(node.iter.func, ast.Attribute)
            cells = ast.Attribute(self.visit(node.iter.func.value), "cells_and_names", ast.Load())
            node.target = ast.Tuple([ast.Name("_", ast.Store()), node.target], ast.Store())
            node.iter = ast.Call(cells, [], [])
        else:
            node.target, node.iter = self.visit(node.target), self._iterated(node.iter)

    def visit_comprehension(self, node: ast.comprehension) -> ast.AST:
        """A loop inside of brackets."""
        node.target, node.iter = self.visit(node.target), self._iterated(node.iter)
        node.ifs = [self.visit(test) for test in node.ifs]
        return node

    def _iterated(self, node: ast.expr) -> ast.expr:
        """What a loop goes over; of modules by name their names, for MindSpore compiles no loop over a Cell."""
        named = self.kinds(node) == [ModuleKind("torch.nn.ModuleDict")]
        found: ast.expr = self.visit(node)
        return ast.Call(ast.Attribute(found, "keys", ast.Load()), [], []) if named else found

    def visit_Call(self, node: ast.Call) -> ast.AST:
        """A call: by what it called, by its form, by the program's own source, or by the row of the mapping table."""
        callees = self.callees(node)
        try:
            for handler in (*by_callee(callees, Stage.EXPRESSION), *by_syntax(node, Stage.EXPRESSION)):
                if (found := handler(node, self)) is not None:
                    return found
            as_base = any(name in self.program.translated and self.program.row(name) for name in callees)
            if not as_base and all(self.is_user_code(name) for name in callees):
                return self.kept(node)
            return row_calls.call_of_row(node, callees, self)
        except Unwritable as error:
            if self.strict:
                raise
            return self.missing(node, str(error))

    def is_user_code(self, name: str) -> bool:
        """Whether it is translated too, or of Python's own."""
        return (
            name in self.program.translated
            or name.rpartition(".")[0] in self.program.translated
            or (".<locals>." in name and not name.startswith("torch."))  # made in a function of the program
            or not name.startswith(("torch.", "torchvision.", "timm.", "module ", "object torch", "partial "))
            or name.startswith("module ")
        )

    def kept(self, call: ast.Call) -> ast.Call:
        """The same call with arguments that are rewritten."""
        called = self.callees(call)
        function = call.func
        set_receivers(call, self._receivers(call))
        if self._of_module(function) and called and called[0] in self.program.translated:
            call.func = ast.Name(self.program.called(called[0]), ast.Load())
        elif isinstance(function, ast.Attribute):
            call.func = ast.Attribute(self.visit(function.value), METHODS.get(function.attr, function.attr), ast.Load())
        else:
            call.func = self.visit(function)
        call.args = [self.visit(argument) for argument in call.args]
        words = FORWARDS.get(called[0].removeprefix("module "), {}) if len(called) == 1 else {}
        call.keywords = [
            ast.keyword(words.get(word.arg, word.arg) if word.arg else None, self.visit(word.value))
            for word in self._expanded(call)
            if word.arg is None or words.get(word.arg, word.arg)
        ]
        return call

    def _expanded(self, call: ast.Call) -> list[ast.keyword]:
        """The keywords; of a `**dictionary` of nothing but None, what is not None anyway."""
        found: list[ast.keyword] = []
        for word in call.keywords:
            entries = self.entries(word.value) if word.arg is None else None
            if entries is None or any(kinds != [NONE] for kinds in entries.values()):
                found.append(word)
                continue
            takes = [self.program.signature(name) for name in self._receivers(call)]
            for key in entries:
                if not all(one is None or none_anyway(one, key) for one in takes):
                    found.append(ast.keyword(key, ast.Constant(None)))
        return found

    def _receivers(self, call: ast.Call) -> list[str]:
        """The functions and classes of the program that a call gives arguments to, also by `partial`."""
        names = self.callees(call)
        if names == ["functools.partial"] and call.args:
            names = [kind.name for kind in self.kinds(call.args[0]) if isinstance(kind, CallableKind)]
        plain = (name.removeprefix("partial ") for name in names)
        return [name for name in plain if name in self.program.translated]

    def _of_module(self, function: ast.expr) -> bool:
        """Whether it is a name in a module, as `layers.Block`."""
        return isinstance(function, ast.Attribute) and always_imported(self.kinds(function.value))

    def visit_Subscript(self, node: ast.Subscript) -> ast.AST:
        """What a subscript gives, where a handler knows it; `(a, b)[0]`, which some calls became, as `a`."""
        for handler in by_syntax(node, Stage.EXPRESSION):
            if (replaced := handler(node, self)) is not None:
                return replaced
        found = self.generic_visit(node)
        match found:
            case ast.Subscript(ast.Tuple([first, *_]), ast.Constant(0), ast.Load()):
                return first
            case ast.Subscript(ast.Tuple([_, second, *_]), ast.Constant(1), ast.Load()):
                return second
        return found

    def visit_IfExp(self, node: ast.IfExp) -> ast.AST:
        """`a if test else b`, of which one may not have run."""
        return control_flow.conditional_expression(node, self)

    def visit_BoolOp(self, node: ast.BoolOp) -> ast.AST:
        """`a or b`, of which the last may not have run."""
        return control_flow.boolean_expression(node, self)

    def visit_Attribute(self, node: ast.Attribute) -> ast.AST:
        """A name of torch's as MindSpore's; what a handler knows; anything else as it is."""
        found = self._named(node)
        if found is not None:
            return found
        self.read(self.kinds(node.value), node.attr, self.constants(node))
        for handler in by_syntax(node, Stage.EXPRESSION):
            if (replaced := handler(node, self)) is not None:
                return replaced
        return self.generic_visit(node)

    def read(self, kinds: list[Kind], attribute: str, seen: list[Any] | None) -> None:
        """Note that an attribute is read, of an expression of these kinds; see configurations.py."""
        for kind in kinds:
            if isinstance(kind, ObjectKind):
                self.program.reads.setdefault(kind.cls, {})[attribute] = seen

    def visit_Name(self, node: ast.Name) -> ast.AST:
        """A name of torch's as MindSpore's; of Python's own, noted for the imports."""
        if not isinstance(node.ctx, ast.Load):
            return node
        found = self._named(node)
        if found is None and node.id not in self.local:
            node.id = self.program.python(self.file, node.id)
        return found if found is not None else node

    def _named(self, node: ast.expr) -> ast.expr | None:
        """The MindSpore name for a class or function of torch's that is not called here; None for anything else."""
        kinds = self.kinds(node)
        kind = kinds[0] if len(kinds) == 1 else None
        if not isinstance(kind, (CallableKind, DtypeKind)) or is_variable(node, self):
            return None
        if isinstance(kind, DtypeKind):
            if isinstance(node, ast.Attribute) and self.kinds(node.value) != [PythonModule("torch")]:
                return None  # x.dtype
            return self.name(tensors.dtype_name(node.attr)) if isinstance(node, ast.Attribute) else None
        if kind.what == "partial":
            return None
        name = kind.name
        if name in self.program.translated:  # a file may import it under another name
            return ast.Name(self.program.called(name), ast.Load()) if isinstance(node, ast.Name) else None
        if not name.startswith(("torch.", "torchvision.", "timm.")):
            return None
        if name in NAMES or name in CONTAINERS:
            return self.name(NAMES.get(name) or CONTAINERS[name])
        row = find(name).row
        if row is None or row.mindspore is None:
            return None
        plain = self.in_type_check or row.kind == "function"
        return self.name(row.mindspore) if plain else write_reference(row, {}, self.name)

    def missing(self, node: ast.expr | ast.stmt, text: str) -> ast.Call:
        """What stands where something could not be written: an error that says so, and a line of the report."""
        self.program.problems.append(Problem(self.file, node.lineno, text))
        return ast.Call(self.name(NOT_CONVERTED), [ast.Constant(text)], [])


def _plain(decorator: ast.expr) -> bool:
    return isinstance(decorator, ast.Name) and decorator.id in ("staticmethod", "classmethod", "property")
