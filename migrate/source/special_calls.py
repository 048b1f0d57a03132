"""Calls that stand alone as statements and become something else than a call: modules, buffers, values set in place."""

from __future__ import annotations

import ast
import copy
from collections.abc import Mapping
from typing import TYPE_CHECKING

from ...mappings.rows import Row
from .crossing_calls import CannotWrite, Given, written
from .module_api import DROPPED, VALUES
from .scope import row_of

if TYPE_CHECKING:
    from .translating import Translator


def special(translator: Translator, call: ast.Call) -> list[ast.stmt] | None:
    """The statements for a call that stands alone; None where it is one like others."""
    callees = translator.facts.callees(translator.file, call)
    if callees and all(name in DROPPED for name in callees):
        return []
    if callees == ["torch.nn.Module.register_buffer"]:
        return [_buffer(translator, call)]
    if callees == ["torch.nn.Module.add_module"] and isinstance(call.func, ast.Attribute):
        return [_child(translator, call, call.func.value)]
    if callees and all(name.startswith("torch.nn.init.") for name in callees):
        return _initializer(translator, call, callees[0])
    if callees and all(name.startswith("torch.Tensor.") and name.endswith("_") for name in callees):
        return _in_place(translator, call)
    return None


def _child(translator: Translator, call: ast.Call, owner: ast.expr) -> ast.stmt:
    """`add_module` as MindSpore does it: a SequentialCell keeps a list of its own, NamedCells is a dictionary."""
    name, cell = (translator.visit(argument) for argument in call.args)
    kinds = translator.facts.kinds(translator.file, owner)
    owners = [kind.removeprefix("module ") for kind in kinds]
    into = translator.visit(owner)
    if any(translator.scope.derives(kind, "torch.nn.ModuleDict") for kind in owners):
        translator.adds = True
        return ast.Assign([ast.Subscript(into, name, ast.Store())], cell)
    if any(translator.scope.derives(kind, "torch.nn.Sequential") for kind in owners):
        translator.adds = True
        helper = translator.scope.name("msmigrate.migrate.composed.mindspore_containers.add_cell")
        return ast.Expr(ast.Call(helper, [into, name, cell], []))
    if isinstance(name, ast.Constant) and str(name.value).isidentifier():
        return ast.Assign([ast.Attribute(into, str(name.value), ast.Store())], cell)
    return ast.Expr(ast.Call(ast.Name("setattr", ast.Load()), [into, name, cell], []))


def _buffer(translator: Translator, call: ast.Call) -> ast.stmt:
    """`self.name = Parameter(value, requires_grad=False)`: MindSpore saves nothing else in a checkpoint."""
    name, value = call.args[0], translator.visit(call.args[1])
    known = isinstance(name, ast.Constant) and isinstance(name.value, str)
    if not known or not isinstance(call.func, ast.Attribute):
        raise CannotWrite("register_buffer with a name that is computed")
    false = [ast.keyword("name", name), ast.keyword("requires_grad", ast.Constant(False))]
    made = ast.Call(translator.scope.name("mindspore.Parameter"), [value], false)
    return ast.Assign([ast.Attribute(call.func.value, str(ast.literal_eval(name)), ast.Store())], made)


def _initializer(translator: Translator, call: ast.Call, name: str) -> list[ast.stmt]:
    """`tensor.set_data(initializer(Rule(…), tensor.shape, tensor.dtype))`."""
    row = row_of(name)
    tensor = translator.visit(_itself(copy.deepcopy(call.args[0])))
    try:
        if row is None:
            raise CannotWrite(f"{name} has no row in the mapping table")
        given = translator.given(row, call)
        rule = _mirrored(row, given, translator) or written(row, given, translator.scope.name)
    except CannotWrite as error:
        return [ast.Expr(translator.missing(call, str(error)))]
    rule.args = rule.args[1:] if rule.args and ast.dump(rule.args[0]) == ast.dump(tensor) else rule.args
    facts = [ast.Attribute(copy.deepcopy(tensor), attribute, ast.Load()) for attribute in ("shape", "dtype")]
    values = ast.Call(translator.scope.name("mindspore.common.initializer.initializer"), [rule, *facts], [])
    return [_set(translator, call.args[0], tensor, values)]


def _mirrored(row: Row, given: Mapping[str, Given], translator: Translator) -> ast.Call | None:
    """`uniform_(tensor, -bound, bound)` with a bound that is computed: the rule takes one bound for both sides."""
    low, high = (given.get(name) for name in ("a", "b"))
    if row.mindspore is None or low is None or high is None or isinstance(high.node, ast.Constant):
        return None
    if ast.unparse(low.node) != f"-{ast.unparse(high.node)}" or row.short != "uniform_":
        return None
    return ast.Call(translator.scope.name(row.mindspore), [], [ast.keyword("scale", high.node)])


def _in_place(translator: Translator, call: ast.Call) -> list[ast.stmt] | None:
    """`x.mul_(2)` as `x = x * 2`: what a tensor holds is set anew."""
    if not isinstance(call.func, ast.Attribute):
        return None
    target = _itself(call.func.value)
    if not isinstance(target, (ast.Name, ast.Attribute, ast.Subscript)):
        return None
    value = translator.visit(copy.deepcopy(call))
    if isinstance(target, ast.Subscript) and call.func.attr in VALUES:  # one number for all of them
        given = [*call.args, *(word.value for word in call.keywords)]
        number = VALUES[call.func.attr]
        value = translator.visit(given[0]) if number is None else ast.Constant(number)
    return [_set(translator, target, translator.visit(copy.deepcopy(target)), value)]


def _itself(node: ast.expr) -> ast.expr:
    """The tensor behind `x.data` and `x.detach()`."""
    while True:
        if isinstance(node, ast.Attribute) and node.attr == "data":
            node = node.value
        elif isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr == "detach":
            node = node.func.value
        else:
            return node


def _set(translator: Translator, source: ast.expr, target: ast.expr, value: ast.expr) -> ast.stmt:
    """Give a tensor other values: a parameter keeps its place and its name."""
    kinds = translator.facts.kinds(translator.file, _itself(source))
    if isinstance(target, (ast.Name, ast.Attribute, ast.Subscript)) and (
        isinstance(target, ast.Subscript) or not all(kind.startswith("Parameter") for kind in kinds)
    ):
        target.ctx = ast.Store()
        return ast.Assign([target], value)
    return ast.Expr(ast.Call(ast.Attribute(target, "set_data", ast.Load()), [value], []))
