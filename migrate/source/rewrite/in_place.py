"""Statements that write into a tensor: `x += y`, `x.add_(y)`, `self.weight.data.normal_()`.

MindSpore's tensors are values: the result gets the name of what was written into, so that both modes compute the same.
(`i = x; x += y` was seen to change `i` in Graph mode and not in PyNative.)
"""

from __future__ import annotations

import ast
import copy
from collections.abc import Mapping

from ....mappings.rows import Row
from ..module_api import COPY, VALUES
from ..observe.kinds import TensorKind, always_parameters, always_tensors
from .context import Context, ObservedArgument, Stage, Unwritable, handles, row_of
from .row_calls import arguments_of, write_call

# methods that fill a parameter -> the initializer that does the same
FILLS = {
    "torch.Tensor.normal_": "torch.nn.init.normal_",
    "torch.Tensor.uniform_": "torch.nn.init.uniform_",
    "torch.Tensor.zero_": "torch.nn.init.zeros_",
    "torch.Tensor.fill_": "torch.nn.init.constant_",
}
FUNCTIONS = ("torch.nn.functional.", "torch.")


def _writes(name: str) -> bool:
    return name.startswith(FUNCTIONS) and name.endswith("_") and not name.endswith(("__", "requires_grad_"))


def written_tensor(node: ast.expr, context: Context) -> ast.expr | None:
    """What a call writes into, `y` of `y.mul_(2).add_(x)` and of `F.relu_(y)`; None for any other call."""
    found: ast.expr | None = None
    while isinstance(node, ast.Call):
        callees = context.callees(node)
        if not callees or not all(map(_writes, callees)):
            break
        inner = node.func.value if _is_method(callees) and isinstance(node.func, ast.Attribute) else node.args[:1]
        node = inner if isinstance(inner, ast.expr) else inner[0]
        found = node
    return found


def _is_method(callees: list[str]) -> bool:
    return all(name.startswith("torch.Tensor.") for name in callees)


def underlying_tensor(node: ast.expr) -> ast.expr:
    """The tensor behind `x.data` and `x.detach()`."""
    while True:
        if isinstance(node, ast.Attribute) and node.attr == "data":
            node = node.value
        elif isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr == "detach":
            node = node.func.value
        else:
            return node


def write_value(context: Context, source: ast.expr, target: ast.expr, value: ast.expr) -> ast.stmt:
    """Give a tensor other values: a parameter keeps its place and its name."""
    kinds = context.kinds(underlying_tensor(source))
    if isinstance(target, (ast.Name, ast.Attribute, ast.Subscript)) and (
        isinstance(target, ast.Subscript) or not all(isinstance(kind, TensorKind) and kind.parameter for kind in kinds)
    ):
        target.ctx = ast.Store()
        return ast.Assign([target], value)
    return ast.Expr(ast.Call(ast.Attribute(target, "set_data", ast.Load()), [value], []))


def _parameter(node: ast.expr, context: Context) -> bool:
    return always_parameters(context.kinds(node))


@handles(syntax=[ast.AugAssign, ast.Expr], stage=Stage.IN_PLACE)
def write(node: ast.stmt, context: Context) -> list[ast.stmt] | None:
    """What becomes of a statement that writes into a tensor; None for any other."""
    if isinstance(node, ast.AugAssign) and not isinstance(node.target, ast.Subscript):
        if not always_tensors(context.kinds(node.target)):
            return None
        there = copy.deepcopy(node.target)
        there.ctx = ast.Load()
        value = context.visit(ast.BinOp(copy.deepcopy(there), node.op, node.value))
        return [_written_back(there, value, context)]
    if isinstance(node, ast.Expr) and isinstance(node.value, ast.Call):
        into = written_tensor(node.value, context)
        if into is not None and isinstance(underlying_tensor(into), (ast.Name, ast.Attribute, ast.Subscript)):
            value = _one_for_all(node.value, into, context) or context.visit(copy.deepcopy(node.value))
            return [_written_back(into, value, context)]
    return None


def _one_for_all(call: ast.Call, into: ast.expr, context: Context) -> ast.expr | None:
    """The number that `x[:, 0].fill_(number)` puts everywhere."""
    method = call.func.attr if isinstance(call.func, ast.Attribute) else ""
    if not isinstance(underlying_tensor(into), ast.Subscript) or method not in VALUES:
        return None
    given = [*call.args, *(word.value for word in call.keywords)]
    return context.visit(given[0]) if VALUES[method] is None else ast.Constant(VALUES[method])


def _written_back(into: ast.expr, value: ast.expr, context: Context) -> ast.stmt:
    return write_value(context, into, context.visit(copy.deepcopy(underlying_tensor(into))), value)


@handles("torch.nn.init.*", stage=Stage.STATEMENT)
def initialize(call: ast.Call, context: Context) -> list[ast.stmt]:
    """`torch.nn.init.normal_(tensor)`."""
    return _initialized(call, context.callees(call)[0], context)


@handles(*FILLS, stage=Stage.STATEMENT)
def fill(call: ast.Call, context: Context) -> list[ast.stmt] | None:
    """`weight.normal_(0, 1)` of a parameter, as the initializer does it; not one number in a part of one."""
    callees = context.callees(call)
    if len(callees) != 1 or not isinstance(call.func, ast.Attribute):
        return None
    tensor = underlying_tensor(call.func.value)
    if tensor is call.func.value and not _parameter(tensor, context):
        return None
    if isinstance(tensor, ast.Subscript) and call.func.attr in VALUES:
        return None
    initializer = ast.copy_location(ast.Call(call.func, [tensor, *call.args], call.keywords), call)
    return _initialized(initializer, FILLS[callees[0]], context)


@handles(COPY, stage=Stage.STATEMENT)
def copy_values(call: ast.Call, context: Context) -> list[ast.stmt]:
    """`copy_(tensor, values)`."""
    tensor = context.visit(copy.deepcopy(call.args[0]))
    return [write_value(context, call.args[0], tensor, context.visit(call.args[1]))]


def _initialized(call: ast.Call, name: str, context: Context) -> list[ast.stmt]:
    """`tensor.set_data(initializer(Rule(…), tensor.shape, tensor.dtype))`."""
    row = row_of(name)
    call.args[0] = underlying_tensor(call.args[0])
    tensor = context.visit(copy.deepcopy(call.args[0]))
    try:
        if row is None:
            raise Unwritable(f"{name} has no row in the mapping table")
        given = arguments_of(row, call, context)
        drawn = _between(row, given, tensor, context)
        if drawn is not None:
            return [write_value(context, call.args[0], tensor, drawn)]
        rule = _mirrored(row, given, context) or write_call(row, given, context.name)
    except Unwritable as error:
        return [ast.Expr(context.missing(call, str(error)))]
    rule.args = rule.args[1:] if rule.args and ast.dump(rule.args[0]) == ast.dump(tensor) else rule.args
    facts = [ast.Attribute(copy.deepcopy(tensor), attribute, ast.Load()) for attribute in ("shape", "dtype")]
    values = ast.Call(context.name("mindspore.common.initializer.initializer"), [rule, *facts], [])
    made = write_value(context, call.args[0], tensor, values)
    if isinstance(made, ast.Assign):  # set_data takes an initializer as it is; elsewhere one has no values yet
        made.value = ast.Call(ast.Attribute(values, "init_data", ast.Load()), [], [])
    return [made]


def _mirrored(row: Row, given: Mapping[str, ObservedArgument], context: Context) -> ast.Call | None:
    """`uniform_(tensor, -bound, bound)` with a bound that is computed: the rule takes one bound for both sides."""
    low, high = (given.get(name) for name in ("a", "b"))
    if row.mindspore is None or low is None or high is None or isinstance(high.node, ast.Constant):
        return None
    if ast.unparse(low.node) != f"-{ast.unparse(high.node)}" or row.short != "uniform_":
        return None
    return ast.Call(context.name(row.mindspore), [], [ast.keyword("scale", high.node)])


def _between(row: Row, given: Mapping[str, ObservedArgument], tensor: ast.expr, context: Context) -> ast.expr | None:
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
    rule = ast.Call(context.name(row.mindspore), [], [ast.keyword("scale", half)])
    facts = [ast.Attribute(copy.deepcopy(tensor), attribute, ast.Load()) for attribute in ("shape", "dtype")]
    drawn = ast.Call(context.name("mindspore.common.initializer.initializer"), [rule, *facts], [])
    values = ast.Call(ast.Attribute(drawn, "init_data", ast.Load()), [], [])
    return ast.BinOp(values, ast.Add(), copy.deepcopy(middle))
