"""Calls that stand alone as statements and become something else than a call: modules, buffers, values set in place."""

from __future__ import annotations

import ast
import copy
from collections.abc import Mapping
from typing import TYPE_CHECKING

from ...mappings.rows import Row
from . import in_place, module_calls
from .crossing_calls import CannotWrite, Given, written
from .module_api import COPY, DROPPED, SIMPLIFIED
from .scope import row_of

if TYPE_CHECKING:
    from .translating import Translator


def special(translator: Translator, call: ast.Call) -> list[ast.stmt] | None:
    """The statements for a call that stands alone; None where it is one like others."""
    callees = translator.facts.callees(translator.file, call)
    beside = [name for name in callees if name.startswith(SIMPLIFIED) and name not in translator.scope.theirs]
    if callees and all(name in DROPPED or name in beside for name in callees):
        return []
    if callees == [COPY]:
        tensor = translator.visit(copy.deepcopy(call.args[0]))
        return [in_place.set_anew(translator, call.args[0], tensor, translator.visit(call.args[1]))]
    made = module_calls.statement(call, callees, translator)
    if made is not None:
        return made
    if callees == ["torch.nn.Module.add_module"] and isinstance(call.func, ast.Attribute):
        return [_child(translator, call, call.func.value)]
    if callees and all(name.startswith("torch.nn.init.") for name in callees):
        return _initializer(translator, call, callees[0])
    filled = in_place.fill(call, translator)
    return None if filled is None else _initializer(translator, *filled)


def _child(translator: Translator, call: ast.Call, owner: ast.expr) -> ast.stmt:
    """`add_module` as MindSpore does it: a SequentialCell keeps a list of its own, NamedCells is a dictionary."""
    given = [translator.visit(argument) for argument in (*call.args, *(word.value for word in call.keywords))]
    kinds = translator.facts.kinds(translator.file, owner)
    owners = [kind.removeprefix("module ") for kind in kinds]
    into = translator.visit(owner)
    if len(given) != 2:  # add_module(*pair)
        return ast.Expr(ast.Call(ast.Name("setattr", ast.Load()), [into, *given], []))
    name, cell = given
    if any(translator.scope.derives(kind, "torch.nn.ModuleDict") for kind in owners):
        translator.adds = True
        return ast.Assign([ast.Subscript(into, name, ast.Store())], cell)
    if any(translator.scope.derives(kind, "torch.nn.Sequential") for kind in owners):
        translator.adds = True
        helper = translator.scope.name("msmigrate.nn.add_cell")
        return ast.Expr(ast.Call(helper, [into, name, cell], []))
    if isinstance(name, ast.Constant) and str(name.value).isidentifier():
        return ast.Assign([ast.Attribute(into, str(name.value), ast.Store())], cell)
    return ast.Expr(ast.Call(ast.Name("setattr", ast.Load()), [into, name, cell], []))


def _initializer(translator: Translator, call: ast.Call, name: str) -> list[ast.stmt]:
    """`tensor.set_data(initializer(Rule(…), tensor.shape, tensor.dtype))`."""
    row = row_of(name)
    call.args[0] = in_place.itself(call.args[0])
    tensor = translator.visit(copy.deepcopy(call.args[0]))
    try:
        if row is None:
            raise CannotWrite(f"{name} has no row in the mapping table")
        given = translator.given(row, call)
        drawn = _between(row, given, tensor, translator)
        if drawn is not None:
            return [in_place.set_anew(translator, call.args[0], tensor, drawn)]
        rule = _mirrored(row, given, translator) or written(row, given, translator.scope.name)
    except CannotWrite as error:
        return [ast.Expr(translator.missing(call, str(error)))]
    rule.args = rule.args[1:] if rule.args and ast.dump(rule.args[0]) == ast.dump(tensor) else rule.args
    facts = [ast.Attribute(copy.deepcopy(tensor), attribute, ast.Load()) for attribute in ("shape", "dtype")]
    values = ast.Call(translator.scope.name("mindspore.common.initializer.initializer"), [rule, *facts], [])
    made = in_place.set_anew(translator, call.args[0], tensor, values)
    if isinstance(made, ast.Assign):  # set_data takes an initializer as it is; elsewhere one has no values yet
        made.value = ast.Call(ast.Attribute(values, "init_data", ast.Load()), [], [])
    return [made]


def _mirrored(row: Row, given: Mapping[str, Given], translator: Translator) -> ast.Call | None:
    """`uniform_(tensor, -bound, bound)` with a bound that is computed: the rule takes one bound for both sides."""
    low, high = (given.get(name) for name in ("a", "b"))
    if row.mindspore is None or low is None or high is None or isinstance(high.node, ast.Constant):
        return None
    if ast.unparse(low.node) != f"-{ast.unparse(high.node)}" or row.short != "uniform_":
        return None
    return ast.Call(translator.scope.name(row.mindspore), [], [ast.keyword("scale", high.node)])


def _between(row: Row, given: Mapping[str, Given], tensor: ast.expr, translator: Translator) -> ast.expr | None:
    """`uniform_(tensor, low, high)` with bounds that are not one number and its opposite: MindSpore's rule is
    symmetric, and what it draws is moved to the middle of the two. None for any other call."""
    if row.mindspore is None or row.short != "uniform_" or "generator" in given:
        return None
    zero, one = ast.Constant(0.0), ast.Constant(1.0)
    low, high = (given[name].node if name in given else bound for name, bound in (("a", zero), ("b", one)))
    if ast.unparse(low) in (f"-{ast.unparse(high)}", f"-({ast.unparse(high)})"):
        return None
    try:
        numbers = [float(ast.literal_eval(bound)) for bound in (low, high)]
    except (ValueError, TypeError, SyntaxError):
        half: ast.expr = ast.BinOp(ast.BinOp(high, ast.Sub(), low), ast.Div(), ast.Constant(2))
        middle: ast.expr = ast.BinOp(ast.BinOp(low, ast.Add(), high), ast.Div(), ast.Constant(2))
    else:
        if numbers[0] == -numbers[1]:
            return None
        half, middle = ast.Constant((numbers[1] - numbers[0]) / 2), ast.Constant(sum(numbers) / 2)
    rule = ast.Call(translator.scope.name(row.mindspore), [], [ast.keyword("scale", half)])
    facts = [ast.Attribute(copy.deepcopy(tensor), attribute, ast.Load()) for attribute in ("shape", "dtype")]
    drawn = ast.Call(translator.scope.name("mindspore.common.initializer.initializer"), [rule, *facts], [])
    values = ast.Call(ast.Attribute(drawn, "init_data", ast.Load()), [], [])
    return ast.BinOp(values, ast.Add(), copy.deepcopy(middle))
