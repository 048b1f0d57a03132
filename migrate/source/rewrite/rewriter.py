"""One function of a torch model as a function of a MindSpore Cell: its body normalised, its branches selected, and its
statements and expressions rewritten by the handlers that are registered for them."""

from __future__ import annotations

import ast
import copy

from ..observe.observations import callees_of
from ..source_files import local_names
from . import axis_patterns, control_flow, graph_mode, library_lookups, modules, records, row_calls, tensors
from .context import Context, handles
from .control_flow import pick_by_index, select_branches
from .graph_mode import expand_nested_comprehensions, hoist_walrus
from .signatures import SignatureRewriter, expand_kwargs
from .tensors import StridedSlices

# the files whose handlers are registered as they are imported
HANDLERS = (axis_patterns, library_lookups, records, modules, tensors, graph_mode, control_flow)


def rewrite_function(node: ast.FunctionDef, name: str, context: Context) -> ast.FunctionDef:
    """The definition under another name, with what ran of its body."""
    found = copy.deepcopy(node)
    context.local = context.own = set(local_names(found))
    context.handed = {argument.arg for argument in ast.walk(found.args) if isinstance(argument, ast.arg)}
    context.in_python = name == "__init__"
    _normalise(found, context)
    entered = node.name == "forward" and context.owner in context.program.facts.classes.get("", ())
    body = select_branches(found, lambda node, text: ast.Expr(context.missing(node, text)), entered=entered)
    if not context.in_python and control_flow.without_gradient_by_decorator(node):
        statements = control_flow.without_gradient(body, context)
    else:
        statements = [new for old in body for new in context.statement(old)]
    found.name, found.body = name, statements or [ast.Pass()]
    kept = ("staticmethod", "classmethod", "property")
    found.decorator_list = [item for item in node.decorator_list if isinstance(item, ast.Name) and item.id in kept]
    SignatureRewriter(context.program, context.file).signature(found)
    return found


def _normalise(function: ast.FunctionDef, context: Context) -> None:
    """Spell out what Graph mode does not compile, and what MindSpore's CPU does not compute; in place."""
    if not context.in_python:
        expand_nested_comprehensions(function)
        pick_by_index(function)
    hoist_walrus(function)
    graph_mode.start_with_braces(function)
    expand_kwargs(function, context.program)
    StridedSlices(context.program).visit(function)


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
