"""Which arguments a call may change: of one of the script's functions, those that it writes to or hands on."""

from __future__ import annotations

import ast
from collections import Counter
from collections.abc import Callable, Iterator

from .. import library_names as names
from ..read_script.abstract_values import ListValue, ScriptFunction, Value
from ..read_script.syntax import root


def changed_arguments(
    call: ast.Call,
    value: Callable[[ast.expr], Value | None],
    passed: Callable[[ast.expr], bool],
    known: dict[int, set[str]],
) -> list[ast.expr]:
    """The arguments whose objects a call may change: of one of the script's functions, those that it changes; a list
    that takes something does not change it.

    value: gives the value of an expression. passed: whether a callee, such as print, changes nothing. known: what was
    found of functions, by their ids.
    """
    called = value(call.func)
    if not isinstance(called, ScriptFunction) or isinstance(called.node, ast.Lambda):
        method = call.func if isinstance(call.func, ast.Attribute) and call.func.attr in TAKING else None
        takes = method is not None and isinstance(value(method.value), ListValue)
        return [] if takes else [one for one in call.args if not _is_plain(one)]
    if id(called.node) not in known:
        known[id(called.node)] = _changed_names(called.node, passed)
    names = [one.arg for one in (*called.node.args.posonlyargs, *called.node.args.args)][called.receiver is not None :]
    starred = next((at for at, one in enumerate(call.args) if isinstance(one, ast.Starred)), len(names))
    kept = {at for at, name in enumerate(names[:starred]) if name not in known[id(called.node)]}
    return [one for at, one in enumerate(call.args) if at not in kept and not _is_plain(one)]


TAKING = ("append", "insert", "extend")  # methods of lists
OF_LOGS = ("mkdir", "add_scalar", "add_scalars", "add_image", "add_images", "add_histogram", "add_text", "add_figure")
MAKING_PLAIN = ("len", "int", "float", "str", "bool", "repr", "format", "isinstance", "range")


def _is_plain(node: ast.AST) -> bool:
    """Whether an expression makes a new number or string, so that what is done with it changes no other object."""
    if isinstance(node, ast.Call):
        made = isinstance(node.func, ast.Attribute) and node.func.attr in names.PLAIN_RESULTS
        return made or getattr(node.func, "id", "") in MAKING_PLAIN
    return isinstance(node, (ast.JoinedStr, ast.Compare))


def _names_in(node: ast.AST) -> set[str]:
    """The names in an expression of whose objects its value may be a part."""
    parts = () if _is_plain(node) else ast.iter_child_nodes(node)
    return ({node.id} if isinstance(node, ast.Name) else set()).union(*map(_names_in, parts))


def _changed_names(function: ast.FunctionDef | ast.AsyncFunctionDef, passed: Callable[[ast.expr], bool]) -> set[str]:
    """The names whose objects a function may change, by an attribute, an element, `+=` or a call, or hands back."""
    found: set[str] = set()
    aliases: dict[str, set[str]] = {}  # a name -> the names whose object, or a part of it, it may be
    read = Counter(part.attr for part in ast.walk(function) if isinstance(part, ast.Attribute))
    for node in ast.walk(function):
        written: list[ast.expr] = []
        for target, value in _bindings(node):
            if isinstance(target, ast.Attribute) and read[target.attr] == 1:
                continue  # it is kept, and nothing here changes it
            inside = _names_in(value)
            for part in (part for part in ast.walk(target) if isinstance(part, ast.Name)):
                aliases.setdefault(part.id, set()).update(inside)
        if isinstance(node, (ast.Assign, ast.Delete)):
            written = [one for one in node.targets if isinstance(one, (ast.Attribute, ast.Subscript))]
        elif isinstance(node, ast.AugAssign):
            written = [node.target]
        elif isinstance(node, ast.Expr) and isinstance(node.value, ast.Call) and not passed(node.value.func):
            given = (keyword.value for keyword in node.value.keywords)
            written = [node.value.func, *node.value.args, *given]
        elif isinstance(node, ast.Return) and node.value is not None:
            written = [node.value]
        found |= {at.id for one in written if not _is_plain(one) and isinstance(at := root(one), ast.Name)}
    waiting = list(found)
    while waiting:
        more = aliases.get(waiting.pop(), set()) - found
        found |= more
        waiting += more
    return found


def _bindings(node: ast.AST) -> Iterator[tuple[ast.expr, ast.expr]]:
    """What a node binds, and to what."""
    if isinstance(node, ast.Assign):
        yield from ((target, node.value) for target in node.targets)
    elif isinstance(node, (ast.For, ast.AsyncFor, ast.comprehension)):
        over, target = node.iter, node.target
        if isinstance(over, ast.Call) and getattr(over.func, "id", "") == "enumerate" and isinstance(target, ast.Tuple):
            target = target.elts[-1]  # the first is a number
        yield target, over
    elif isinstance(node, (ast.AnnAssign, ast.NamedExpr)) and node.value is not None:
        yield node.target, node.value
    elif isinstance(node, ast.withitem) and node.optional_vars is not None:
        yield node.optional_vars, node.context_expr
