"""Classes and functions of torch's that are not called where they stand but handed on, by `partial` too."""

from __future__ import annotations

import ast
from collections.abc import Mapping

from ....mappings.rows import Row
from ..library_names import COUNTERPARTS, dtype_name
from ..observe.observations import CallableKind, DtypeKind, PythonModule, always, kinds_of
from .context import Context, Namer, ObservedArgument, handles
from .initializers import filling_function, fills
from .row_calls import arguments_of, is_variable, only_as_seen, write_call


def write_reference(row: Row, given: Mapping[str, ObservedArgument], name: Namer) -> ast.expr:
    """A class that is not called here but handed on, with torch's defaults where MindSpore has others; a function that
    fills a tensor as one that does."""
    if fills(row):
        return filling_function(row, given, name)
    call = write_call(row, given, name, partial=True)
    if not call.args and not call.keywords:
        return call.func
    partial = name("functools.partial")
    return ast.Call(partial, [call.func, *call.args], call.keywords)


@handles("functools.partial")
def partial(node: ast.Call, context: Context) -> ast.AST:
    """`partial` of a class of torch's: of the row's, with its arguments and torch's defaults."""
    kinds = kinds_of(node.args[0])
    kind = kinds[0] if len(kinds) == 1 else None
    name = kind.name if isinstance(kind, CallableKind) and kind.what != "partial" else ""
    row = context.program.row(name) if name else None
    if row is None:
        return context.kept(node)
    rest = ast.Call(node.args[0], node.args[1:], node.keywords)
    arguments = arguments_of(row, rest, context)
    found = write_reference(row, arguments, context.name)
    only_as_seen(arguments, node, context)
    if name in context.program.translated and isinstance(found, ast.Call):
        found.args[0] = context.visit(node.args[0])
    return found


@handles(syntax=[ast.Attribute, ast.Name])
def handed_on(node: ast.Attribute | ast.Name, context: Context) -> ast.expr | None:
    """The MindSpore name for a class or function of torch's that is not called here; None for anything else."""
    kinds = kinds_of(node)
    kind = kinds[0] if len(kinds) == 1 and isinstance(node.ctx, ast.Load) else None
    if not isinstance(kind, (CallableKind, DtypeKind)) or is_variable(node, context):
        return None
    if isinstance(kind, DtypeKind):
        of_torch = isinstance(node, ast.Attribute) and kinds_of(node.value) == [PythonModule("torch")]  # no x.dtype
        return context.name(dtype_name(node.attr)) if isinstance(node, ast.Attribute) and of_torch else None
    if kind.what == "partial":
        return None
    name = kind.name
    if name in context.program.translated or name in context.program.definitions:  # a file may call it otherwise
        of_file = isinstance(node, ast.Name) or always(kinds_of(node.value), PythonModule)
        return ast.Name(context.program.called(name), ast.Load()) if of_file else None
    if not name.startswith(("torch.", "torchvision.", "timm.")):
        return None
    if name in COUNTERPARTS:
        return context.name(COUNTERPARTS[name])
    row = context.program.row(name)
    if row is None or row.mindspore is None:
        return None
    plain = context.in_type_check or (row.kind == "function" and not fills(row))
    return context.name(row.mindspore) if plain else write_reference(row, {}, context.name)
