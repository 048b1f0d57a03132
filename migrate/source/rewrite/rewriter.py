"""One function of a torch model as a function of a MindSpore Cell: its body normalised, its branches selected, and its
statements and expressions rewritten by the handlers that are registered for them."""

from __future__ import annotations

import ast
import copy
from typing import Any

from ..library_names import CELL_METHODS, NOT_CONVERTED, TABLES
from ..observe.observations import (
    NONE,
    CallableKind,
    Kind,
    ObjectKind,
    always_imported,
    callees_of,
    entries_of,
    kinds_of,
)
from ..source_files import local_names, none_anyway
from . import control_flow, graph_mode, library_lookups, modules, records, row_calls, tensors
from .context import (
    STATEMENTS,
    Context,
    Problem,
    Program,
    Stage,
    Unwritable,
    by_callee,
    by_syntax,
    handles,
    set_receivers,
)
from .control_flow import is_comment, pick_by_index, select_branches
from .graph_mode import expand_nested_comprehensions, hoist_walrus
from .signatures import SignatureRewriter, expand_kwargs
from .tensors import StridedSlices

# the files whose handlers are registered as they are imported
HANDLERS = (library_lookups, records, modules, tensors, graph_mode, control_flow)


class Rewriter(ast.NodeTransformer):
    """Rewrites the body of one function; `file` is where it stands, `owner` the class. It is a Context."""

    def __init__(self, program: Program, file: str, owner: str = "") -> None:
        self.program, self.file, self.owner = program, file, owner
        self.adds = False  # a cell to one that has its name already, which those inside do not learn by themselves
        self.in_type_check = False  # inside isinstance(…, …), where a class is a class
        self.local: set[str] = set()  # the names that belong to the function
        self.own: set[str] = set()  # those that belong to the innermost of the functions in it
        self.handed: set[str] = set()  # those of its parameters
        self.in_python = False  # whether MindSpore never compiles it
        self.strict = False  # what cannot be written is an error, and no part of the file

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
        entered = node.name == "forward" and self.owner in self.program.facts.classes.get("", ())
        missing = lambda node, text: ast.Expr(self.missing(node, text))  # noqa: E731
        body = select_branches(found, missing, entered=entered)
        if not self.in_python and control_flow.without_gradient_by_decorator(node):
            statements = control_flow.without_gradient(body, self)
        else:
            statements = [new for old in body for new in self.statement(old)]
        found.name, found.body = name, statements or [ast.Pass()]
        found.decorator_list = [kept for kept in node.decorator_list if _plain(kept)]
        SignatureRewriter(self.program, self.file).signature(found)
        return found

    def _normalise(self, function: ast.FunctionDef) -> None:
        """Spell out what Graph mode does not compile, and what MindSpore's CPU does not compute; in place."""
        if not self.in_python:
            expand_nested_comprehensions(function)
            pick_by_index(function)
        hoist_walrus(function)
        graph_mode.start_with_braces(function)
        expand_kwargs(function, self.program)
        StridedSlices(self.program).visit(function)

    def statement(self, node: ast.stmt) -> list[ast.stmt]:
        """What becomes of one statement: one, several or none."""
        if is_comment(node):
            return [node]
        found: list[ast.stmt] | None
        if isinstance(node, ast.Expr) and isinstance(node.value, ast.Call):
            for handler in by_callee(callees_of(node.value), Stage.STATEMENT):
                if (found := handler(node.value, self)) is not None:
                    return found
        for stage in STATEMENTS:
            for handler in by_syntax(node, stage):
                if (found := handler(node, self)) is not None:
                    return found
        return [self.visit(node)]

    def visit(self, node: ast.AST) -> Any:
        """An expression, rewritten by the first handler that takes it, or else part by part."""
        by_name = by_callee(callees_of(node), Stage.EXPRESSION) if isinstance(node, ast.Call) else ()
        try:
            for handler in (*by_name, *by_syntax(node, Stage.EXPRESSION)):
                if (found := handler(node, self)) is not None:
                    return found
            return self.generic_visit(node)
        except Unwritable as error:
            if self.strict or not isinstance(node, ast.Call):
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
        called = callees_of(call)
        function = call.func
        set_receivers(call, self._receivers(call))
        if self._of_module(function) and called and called[0] in self.program.translated:
            call.func = ast.Name(self.program.called(called[0]), ast.Load())
        elif isinstance(function, ast.Attribute):
            call.func = ast.Attribute(
                self.visit(function.value), CELL_METHODS.get(function.attr, function.attr), ast.Load()
            )
        else:
            call.func = self.visit(function)
        call.args = [self.visit(argument) for argument in call.args]
        words = TABLES["forwards"].get(called[0].removeprefix("module "), {}) if len(called) == 1 else {}
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
            entries = entries_of(word.value) if word.arg is None else None
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
        names = callees_of(call)
        if names == ["functools.partial"] and call.args:
            names = [kind.name for kind in kinds_of(call.args[0]) if isinstance(kind, CallableKind)]
        plain = (name.removeprefix("partial ") for name in names)
        return [name for name in plain if name in self.program.translated]

    def _of_module(self, function: ast.expr) -> bool:
        """Whether it is a name in a module, as `layers.Block`."""
        return isinstance(function, ast.Attribute) and always_imported(kinds_of(function.value))

    def read(self, kinds: list[Kind], attribute: str, seen: list[Any] | None) -> None:
        """Note that an attribute is read, of an expression of these kinds; see records.py."""
        for kind in kinds:
            if isinstance(kind, ObjectKind):
                self.program.reads.setdefault(kind.cls, {})[attribute] = seen

    def missing(self, node: ast.expr | ast.stmt, text: str) -> ast.Call:
        """What stands where something could not be written: an error that says so, and a line of the report."""
        self.program.problems.append(Problem(self.file, node.lineno, text))
        return ast.Call(self.name(NOT_CONVERTED), [ast.Constant(text)], [])


def _plain(decorator: ast.expr) -> bool:
    return isinstance(decorator, ast.Name) and decorator.id in ("staticmethod", "classmethod", "property")


@handles(syntax=[ast.Call])
def call(node: ast.Call, context: Context) -> ast.AST:
    """A call by the program's own source, or by the row of the mapping table."""
    callees = callees_of(node)
    as_base = any(name in context.program.translated and context.program.row(name) for name in callees)
    if not as_base and all(map(context.is_user_code, callees)):
        return context.kept(node)
    return row_calls.call_of_row(node, callees, context)


@handles(syntax=[ast.Subscript])
def item(node: ast.Subscript, context: Context) -> ast.AST:
    """A subscript; of `(a, b)[0]`, which some calls became, `a`."""
    found: ast.AST = context.generic_visit(node)
    match found:
        case ast.Subscript(ast.Tuple([first, *_]), ast.Constant(0), ast.Load()):
            return first
        case ast.Subscript(ast.Tuple([_, second, *_]), ast.Constant(1), ast.Load()):
            return second
    return found


@handles(syntax=[ast.Name])
def name(node: ast.Name, context: Context) -> ast.AST:
    """A name of Python's own, noted for the imports, or of a constant of the file."""
    if isinstance(node.ctx, ast.Load) and node.id not in context.local:
        node.id = context.program.python(context.file, node.id)
    return node
