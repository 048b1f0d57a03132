"""What makes the model anew, from how the worker saw it made."""

from __future__ import annotations

import ast
import functools
import sys
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any

from ...mappings.rows import Row
from . import changed
from .crossing_calls import CannotWrite, Given, begun, bound, held, written
from .module_api import CONTAINERS, NAMES, NOT_CONVERTED
from .scope import Problem

if TYPE_CHECKING:
    from .assembling import Assembly

# a cell that was part of another keeps the names that its parameters had there, and one that came later has its own
NAMED = """for name, parameter in net.parameters_and_names():
    parameter.name = name"""


def made(value: Any, assembly: Assembly, wanted: str = "") -> ast.expr:
    """The expression for a value of the worker's report; see torch_described.py.

    wanted: the parameter that it goes to.
    """
    if isinstance(value, Mapping):
        if "call" in value:
            if "changed" not in value:
                return assembly.shared.once(value, wanted, lambda: _call(value, assembly))
            assembly.renamed = assembly.renamed or set(value["changed"]) != {"drawn"}
            after = functools.partial(
                changed.statements, changed=value["changed"], assembly=assembly, make=lambda item: made(item, assembly)
            )
            return assembly.shared.changed(value, wanted, lambda: _call(value, assembly), after)
        if "child" in value:  # taken out of a module that is no part of the model
            return _child(made(value["of"], assembly), value["child"])
        if "of" in value:  # one of an Enum
            assembly.define(value["of"])
            return ast.Attribute(_called(value["of"], assembly), value["name"], ast.Load())
        if "name" in value:
            assembly.define(value["name"])
            row = assembly.scope.row(value["name"]) if value["name"] not in assembly.scope.theirs else None
            return _called(value["name"], assembly) if row is None else held(row, {}, assembly.head.name)
        for kind, node in (("tuple", ast.Tuple), ("list", ast.List)):
            if kind in value:
                return node([made(item, assembly) for item in value[kind]], ast.Load())
        if "dict" in value:
            pairs = [(made(key, assembly), made(item, assembly)) for key, item in value["dict"]]
            return ast.Dict([key for key, _ in pairs], [item for _, item in pairs])
        return _missing(f"how this {value.get('unknown')} is made was not seen", assembly)
    return ast.parse(repr(value), mode="eval").body


def function_of(name: str, root: ast.expr, assembly: Assembly) -> ast.FunctionDef:
    """The function that makes the model; arguments that its class takes besides may be given to it."""
    classes = {node.name: node for node in assembly.definitions.values() if isinstance(node, ast.ClassDef)}
    call = root
    for statement in assembly.shared.before:
        if isinstance(statement, ast.Assign) and ast.unparse(statement.targets[0]) == ast.unparse(root):
            call = statement.value
    owner = ast.unparse(call.func) if isinstance(call, ast.Call) else ""
    head, more = f"def {name}() -> {owner if owner in classes else 'nn.Cell'}:", False
    if isinstance(root, ast.Call) and owner in classes:
        inits = [node for node in classes[owner].body if isinstance(node, ast.FunctionDef) and node.name == "__init__"]
        given = {word.arg for word in root.keywords}
        free = [argument.arg for init in inits for argument in init.args.args[1 + len(root.args) :]]
        more = bool(set(free) - given) and None not in given
    if more and isinstance(root, ast.Call):
        head = head.replace("()", "(**kwargs: Any)", 1)
        root.keywords.append(ast.keyword(None, ast.Name("kwargs", ast.Load())))
    maker = ast.parse(f"{head}\n    pass").body[0]
    assert isinstance(maker, ast.FunctionDef)
    body = [*assembly.shared.before]
    if assembly.renamed:
        if not isinstance(root, ast.Name):
            body.append(ast.Assign([ast.Name("net", ast.Store())], root))
            root = ast.Name("net", ast.Load())
        named = ast.parse(NAMED).body
        assert isinstance(named[0], ast.For)
        named[0].iter = ast.Call(ast.Attribute(root, "parameters_and_names", ast.Load()), [], [])
        body += named
    maker.body = [*body, ast.Return(root)]
    return maker


def called(value: Any) -> Iterator[str]:
    """The classes and functions that make the model."""
    if isinstance(value, Mapping):
        if "call" in value:
            yield value["call"]
        value = list(value.values())
    if isinstance(value, list):
        for item in value:
            yield from called(item)


def _call(value: Mapping[str, Any], assembly: Assembly) -> ast.expr:
    name, args, kwargs = value["call"], value["args"], value["kwargs"]
    assembly.define(name)
    if name == "functools.partial" and isinstance(args[0], Mapping) and "name" in args[0]:
        row = assembly.scope.row(args[0]["name"])
        if row is not None:
            return _crossed(row, args[0]["name"], args[1:], kwargs, assembly, partial=True)
    row = assembly.scope.row(name)
    if row is not None and name not in CONTAINERS:
        return _crossed(row, name, args, kwargs, assembly)
    names = assembly.parameters(name)
    words = [ast.keyword(key, made(item, assembly, key)) for key, item in kwargs.items()]
    given = [made(item, assembly, names[place] if place < len(names) else "") for place, item in enumerate(args)]
    found = ast.Call(_called(name, assembly), given, words)
    inner = args[0].get("name", "") if args and isinstance(args[0], Mapping) else ""
    found.takes = [inner if name == "functools.partial" else name]  # type: ignore[attr-defined]  # for unused.py
    return found


def _child(parent: ast.expr, name: str) -> ast.expr:
    """The child of a module by its name, which may be a number."""
    if name.isidentifier():
        return ast.Attribute(parent, name, ast.Load())
    return ast.Subscript(parent, ast.Constant(int(name) if name.isdecimal() else name), ast.Load())


def _crossed(
    row: Row, name: str, args: list[Any], kwargs: Mapping[str, Any], assembly: Assembly, *, partial: bool = False
) -> ast.expr:
    """The call of the row's class, or of one of theirs that is made as its base is."""
    try:
        given = bound(row, [_given(a, assembly) for a in args], {k: _given(v, assembly) for k, v in kwargs.items()})
        found = held(row, given, assembly.head.name) if partial else written(row, given, assembly.head.name)
    except CannotWrite as error:
        return _missing(str(error), assembly)
    if name in assembly.scope.theirs:
        assembly.define(name)
        if partial and isinstance(found, ast.Call):
            found.args[0] = _called(name, assembly)
        elif isinstance(found, ast.Call):
            found.func = _called(name, assembly)
    return found if partial else begun(row, found, assembly.head.name)


def _given(value: Any, assembly: Assembly) -> Given:
    """A value as an argument: numbers and tuples of them are known."""
    node = made(value, assembly)
    try:
        constant = ast.literal_eval(node)
    except (ValueError, TypeError, SyntaxError):
        return Given(node, [], None)
    inside = dict.fromkeys(type(item).__name__ for item in constant) if isinstance(constant, (tuple, list)) else {}
    kind = type(constant).__name__ + (f"({', '.join(inside)})" if isinstance(constant, (tuple, list)) else "")
    return Given(node, [kind], [constant])


def _missing(text: str, assembly: Assembly) -> ast.Call:
    assembly.problems.append(Problem("", 0, text))
    return ast.Call(assembly.head.name(NOT_CONVERTED), [ast.Constant(text)], [])


def _called(name: str, assembly: Assembly) -> ast.expr:
    if name in CONTAINERS or name in NAMES:
        return assembly.head.name(CONTAINERS.get(name) or NAMES[name])
    module, _, last = name.rpartition(".")
    if module in sys.stdlib_module_names:
        return assembly.head.of(module, last)
    return ast.Name(assembly.called(name), ast.Load())
