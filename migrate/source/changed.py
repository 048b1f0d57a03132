"""Statements for what was changed in a module after it was made; see torch_changes.py."""

from __future__ import annotations

import ast
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

from .module_api import NOT_CONVERTED
from .scope import Problem

if TYPE_CHECKING:
    from .assembling import Assembly

ADD, REPLACE = (f"msmigrate.nn.{name}" for name in ("add_cell", "replace_cell"))
Make = Callable[[Any], ast.expr]


def statements(net: str, changed: Mapping[str, Any], assembly: Assembly, make: Make) -> list[ast.stmt]:
    """First what trains no longer, then what was put in place, as people write it.

    net: the variable that holds the module. make: the expression for a described value. What cannot be written becomes
    a problem.
    """
    found = [statement for one in changed.get("frozen", ()) for statement in _frozen(net, one, assembly)]
    for pair in changed.get("tied", ()):
        target, source = (_parameter(net, pair[side], assembly) for side in ("parameter", "of"))
        target.ctx = ast.Store()
        found.append(ast.Assign([target], source))
    for text in changed.get("missed", ()):
        assembly.problems.append(Problem("", 0, text))
        found.append(ast.Expr(ast.Call(assembly.head.name(NOT_CONVERTED), [ast.Constant(text)], [])))
    for one in changed.get("numbers", ()):
        target = ast.Attribute(_at(net, one["path"]), one["name"], ast.Store())
        found.append(ast.Assign([target], make(one["value"])))
    drawn = [(one["first"], _drawn(net, one, assembly, make)) for one in changed.get("drawn", ())]
    found += [statement for first, statement in drawn if first]
    for one in changed.get("children", ()):
        *way, (name, within) = one["path"]
        found.append(_placed(_at(net, way), name, within, make(one["made"]), new=one["new"], assembly=assembly))
    return found + [statement for first, statement in drawn if not first]


def _drawn(net: str, told: Mapping[str, Any], assembly: Assembly, make: Make) -> ast.stmt:
    """`init_weights(net.head, std=0.02)`, or `net.apply(init_weights)`."""
    assembly.define(told["call"])
    function = ast.Name(assembly.called(told["call"]), ast.Load())
    owner = _at(net, told["path"])
    if told["applied"]:
        return ast.Expr(ast.Call(ast.Attribute(owner, "apply", ast.Load()), [function], []))
    words = [ast.keyword(key, make(value)) for key, value in told["kwargs"].items()]
    call = ast.Call(function, [owner, *map(make, told["args"])], words)
    call.takes = [told["call"]]  # type: ignore[attr-defined]  # for unused.py
    return ast.Expr(call)


def _at(net: str, path: list[list[str]]) -> ast.expr:
    """The module at a path, as `net.layer1[0]`."""
    found: ast.expr = ast.Name(net, ast.Load())
    for name, within in path:
        if within == "ModuleDict" or name.isdecimal():
            found = ast.Subscript(found, ast.Constant(int(name) if within != "ModuleDict" else name), ast.Load())
        else:
            found = ast.Attribute(found, name, ast.Load())
    return found


def _placed(owner: ast.expr, name: str, within: str, cell: ast.expr, *, new: bool, assembly: Assembly) -> ast.stmt:
    if within == "ModuleDict":
        return ast.Assign([ast.Subscript(owner, ast.Constant(name), ast.Store())], cell)
    if within and name.isdecimal() and new:
        return ast.Expr(ast.Call(ast.Attribute(owner, "append", ast.Load()), [cell], []))
    if within and name.isdecimal():
        return ast.Assign([ast.Subscript(owner, ast.Constant(int(name)), ast.Store())], cell)
    if within == "Sequential":
        helper = assembly.head.name(ADD if new else REPLACE)
        return ast.Expr(ast.Call(helper, [owner, ast.Constant(name), cell], []))
    if name.isidentifier():
        return ast.Assign([ast.Attribute(owner, name, ast.Store())], cell)
    return ast.Expr(ast.Call(ast.Name("setattr", ast.Load()), [owner, ast.Constant(name), cell], []))


def _frozen(net: str, told: Mapping[str, Any], assembly: Assembly) -> list[ast.stmt]:
    """`for parameter in net.layer1.get_parameters(): parameter.requires_grad = False`, or one parameter's."""
    owner = _at(net, told["path"])
    if not told["parameter"]:
        target: ast.expr = ast.Name("parameter", ast.Load())
        every = ast.Call(ast.Attribute(owner, "get_parameters", ast.Load()), [], [])
        return [ast.For(ast.Name("parameter", ast.Store()), every, [_untrained(target)], [])]
    return [_untrained(_parameter(net, told, assembly))]


def _parameter(net: str, told: Mapping[str, Any], assembly: Assembly) -> ast.Attribute:
    """One parameter of a module, by MindSpore's name."""
    row = assembly.scope.torch_base(told["class"])
    states = {state.torch: state.mindspore for state in row.state} if row is not None else {}
    held = states.get(told["parameter"], told["parameter"]) or told["parameter"]
    return ast.Attribute(_at(net, told["path"]), held, ast.Load())


def _untrained(parameter: ast.expr) -> ast.stmt:
    return ast.Assign([ast.Attribute(parameter, "requires_grad", ast.Store())], ast.Constant(False))
