"""Statements that write into a tensor: `x += y`, `x.add_(y)`, `self.weight.data.normal_()`.

MindSpore's tensors are values: the result gets the name of what was written into, so that both modes compute the same.
(`i = x; x += y` was seen to change `i` in Graph mode and not in PyNative.)
"""

from __future__ import annotations

import ast
import copy
from typing import TYPE_CHECKING

from .module_api import VALUES

if TYPE_CHECKING:
    from .translating import Translator

# methods that fill a parameter -> the initializer that does the same
FILLS = {
    "torch.Tensor.normal_": "torch.nn.init.normal_",
    "torch.Tensor.uniform_": "torch.nn.init.uniform_",
    "torch.Tensor.zero_": "torch.nn.init.zeros_",
    "torch.Tensor.fill_": "torch.nn.init.constant_",
}
FUNCTIONS = ("torch.nn.functional.", "torch.")
TENSORS = ("Tensor", "Parameter")


def tensors(kinds: list[str]) -> bool:
    """Whether something was a tensor whenever it was seen."""
    return bool(kinds) and all(kind.startswith(TENSORS) for kind in kinds)


def _writes(name: str) -> bool:
    return name.startswith(FUNCTIONS) and name.endswith("_") and not name.endswith(("__", "requires_grad_"))


def root(node: ast.expr, translator: Translator) -> ast.expr | None:
    """What a call writes into, `y` of `y.mul_(2).add_(x)` and of `F.relu_(y)`; None for any other call."""
    found: ast.expr | None = None
    while isinstance(node, ast.Call):
        callees = translator.facts.callees(translator.file, node)
        if not callees or not all(map(_writes, callees)):
            break
        inner = node.func.value if _is_method(callees) and isinstance(node.func, ast.Attribute) else node.args[:1]
        node = inner if isinstance(inner, ast.expr) else inner[0]
        found = node
    return found


def _is_method(callees: list[str]) -> bool:
    return all(name.startswith("torch.Tensor.") for name in callees)


def fill(call: ast.Call, translator: Translator) -> tuple[ast.Call, str] | None:
    """`weight.normal_(0, 1)` as the call of an initializer, and its name; None where it is no parameter's, and for one
    number in a part of one."""
    callees = translator.facts.callees(translator.file, call)
    if len(callees) != 1 or callees[0] not in FILLS or not isinstance(call.func, ast.Attribute):
        return None
    tensor = itself(call.func.value)
    if tensor is call.func.value and not _parameter(tensor, translator):
        return None
    if isinstance(tensor, ast.Subscript) and call.func.attr in VALUES:
        return None
    return ast.copy_location(ast.Call(call.func, [tensor, *call.args], call.keywords), call), FILLS[callees[0]]


def itself(node: ast.expr) -> ast.expr:
    """The tensor behind `x.data` and `x.detach()`."""
    while True:
        if isinstance(node, ast.Attribute) and node.attr == "data":
            node = node.value
        elif isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr == "detach":
            node = node.func.value
        else:
            return node


def set_anew(translator: Translator, source: ast.expr, target: ast.expr, value: ast.expr) -> ast.stmt:
    """Give a tensor other values: a parameter keeps its place and its name."""
    kinds = translator.facts.kinds(translator.file, itself(source))
    if isinstance(target, (ast.Name, ast.Attribute, ast.Subscript)) and (
        isinstance(target, ast.Subscript) or not all(kind.startswith("Parameter") for kind in kinds)
    ):
        target.ctx = ast.Store()
        return ast.Assign([target], value)
    return ast.Expr(ast.Call(ast.Attribute(target, "set_data", ast.Load()), [value], []))


def _parameter(node: ast.expr, translator: Translator) -> bool:
    kinds = translator.facts.kinds(translator.file, node)
    return bool(kinds) and all(kind.startswith("Parameter") for kind in kinds)


def statement(node: ast.stmt, translator: Translator) -> list[ast.stmt] | None:
    """What becomes of a statement that writes into a tensor; None for any other."""
    if isinstance(node, ast.AugAssign) and not isinstance(node.target, ast.Subscript):
        if not tensors(translator.facts.kinds(translator.file, node.target)):
            return None
        there = copy.deepcopy(node.target)
        there.ctx = ast.Load()
        value = translator.visit(ast.BinOp(copy.deepcopy(there), node.op, node.value))
        return [_written_back(there, value, translator)]
    if isinstance(node, ast.Expr) and isinstance(node.value, ast.Call):
        into = root(node.value, translator)
        if into is not None and isinstance(itself(into), (ast.Name, ast.Attribute, ast.Subscript)):
            value = _one_for_all(node.value, into, translator) or translator.visit(copy.deepcopy(node.value))
            return [_written_back(into, value, translator)]
    return None


def _one_for_all(call: ast.Call, into: ast.expr, translator: Translator) -> ast.expr | None:
    """The number that `x[:, 0].fill_(number)` puts everywhere."""
    method = call.func.attr if isinstance(call.func, ast.Attribute) else ""
    if not isinstance(itself(into), ast.Subscript) or method not in VALUES:
        return None
    given = [*call.args, *(word.value for word in call.keywords)]
    return translator.visit(given[0]) if VALUES[method] is None else ast.Constant(VALUES[method])


def _written_back(into: ast.expr, value: ast.expr, translator: Translator) -> ast.stmt:
    return set_anew(translator, into, translator.visit(copy.deepcopy(itself(into))), value)
