"""Devices: a model's questions about where its tensors are, answered as for torch's CPU.

MindSpore's device is that of the process, and all tensors of its nets are there; the torch model is compared on the
CPU. So a device is a string in the new file, a tensor's is `"cpu"`, and questions about it have a fixed answer. As in
torch, a device never equals a string; comparing one with anything else than a device, None or a string raises. So does
a condition on a device that cannot be written: its value in the run is not that of a CPU, since a model runs without
values where possible, on the device "meta".
"""

from __future__ import annotations

import ast
import operator
from typing import Any

from ..library_names import NOT_CONVERTED, TABLES
from ..observe.observations import NONE, ObjectKind, PlainKind, TensorKind, always, callees_of, kinds_of
from ..source_files import literal
from .context import Context, Problem, Unwritable, handles

DEVICE = ObjectKind("torch.device")
HERE = "cpu"
NUMBER = "torch.Tensor.get_device"  # -1 on a CPU
ANSWERS: dict[str, bool] = TABLES["tensor_answers"]
OPERATORS: dict[type[ast.cmpop], Any] = {
    ast.Eq: operator.eq,
    ast.Is: operator.eq,
    ast.NotEq: operator.ne,
    ast.IsNot: operator.ne,
    ast.Lt: operator.lt,
    ast.LtE: operator.le,
    ast.Gt: operator.gt,
    ast.GtE: operator.ge,
    ast.In: lambda one, among: one in among,
    ast.NotIn: lambda one, among: one not in among,
}


def is_device(node: ast.AST) -> bool:
    """Whether an expression was always a device."""
    return {*kinds_of(node)} == {DEVICE}


def asks_for_device(node: ast.AST) -> bool:
    """Whether an expression depends on where a tensor is."""
    return any(
        _is_fact(inner) or (isinstance(inner, ast.Attribute) and inner.attr in ANSWERS and _of_tensor(inner))
        for inner in ast.walk(node)
    )


def _is_fact(node: ast.AST) -> bool:
    """Whether an expression is a device, or the type or the index of one."""
    facts = isinstance(node, ast.Attribute) and node.attr in ("type", "index") and is_device(node.value)
    return facts or is_device(node) or (isinstance(node, ast.Call) and callees_of(node) == [NUMBER])


def _is_tensors(node: ast.AST) -> bool:
    """Whether it is `x.device` of a tensor."""
    return isinstance(node, ast.Attribute) and node.attr == "device" and _of_tensor(node)


def _of_tensor(node: ast.Attribute) -> bool:
    return isinstance(node.ctx, ast.Load) and always(kinds_of(node.value), TensorKind)


@handles("torch.device")
def made(call: ast.Call, context: Context) -> ast.expr:
    """`torch.device("cuda", 1)` as a string, `"cuda:1"`."""
    words = {word.arg or "": word.value for word in call.keywords}
    given = [*call.args, *(words[name] for name in ("device", "type", "index") if name in words)]
    texts = [context.visit(one) for one in given]
    if not given or len(given) > 2 or PlainKind("int") in kinds_of(given[0]) or isinstance(literal(texts[0])[1], int):
        raise Unwritable(f"{ast.unparse(call)}: write the device's name")
    if len(texts) == 1 or literal(texts[1]) == (True, None):
        found: ast.expr = texts[0]
        return found
    known = [literal(text) for text in texts]
    if all(one for one, _ in known):
        return ast.Constant(":".join(str(value) for _, value in known))
    return ast.JoinedStr(
        [ast.FormattedValue(texts[0], -1), ast.Constant(":"), ast.FormattedValue(texts[1], -1)],
    )


@handles(NUMBER)
def number(call: ast.Call, context: Context) -> ast.expr:
    """`x.get_device()`."""
    return ast.Constant(-1)


@handles(syntax=[ast.Attribute])
def fact(node: ast.Attribute, context: Context) -> ast.expr | None:
    """`x.device` and `x.is_cuda` of a tensor, and the type and the index of a device."""
    if node.attr in ANSWERS and _of_tensor(node):
        return ast.Constant(ANSWERS[node.attr])
    if _is_tensors(node):
        return ast.Constant(HERE)
    if node.attr not in ("type", "index") or not isinstance(node.ctx, ast.Load) or not is_device(node.value):
        return None
    device = _text(node.value, context)
    known, text = literal(device)
    if known:
        kind, _, index = str(text).partition(":")
        return ast.Constant(kind) if node.attr == "type" else ast.Constant(int(index) if index else None)
    if node.attr == "index":
        return _unanswered(node, f"{ast.unparse(node)}: MindSpore's device is that of the process", context)
    parts = ast.Call(ast.Attribute(device, "partition", ast.Load()), [ast.Constant(":")], [])
    return ast.Subscript(parts, ast.Constant(0), ast.Load())


def _text(node: ast.expr, context: Context) -> ast.expr:
    """An expression, rewritten; the string for a variable that only holds a tensor's device."""
    if isinstance(node, ast.Name) and node.id in context.local - context.handed and context.function is not None:
        inside = [*ast.walk(context.function)]
        given = [n.value for n in inside if isinstance(n, ast.Assign) and [*map(ast.unparse, n.targets)] == [node.id]]
        stored = [n for n in inside if isinstance(n, ast.Name) and n.id == node.id and isinstance(n.ctx, ast.Store)]
        devices = [one for one in given if literal(one) == (True, HERE) or _is_tensors(one)]  # rewritten, or not yet
        if devices and len(devices) == len(stored):
            return ast.Constant(HERE)
    found: ast.expr = context.visit(node)
    return found


@handles(syntax=[ast.Compare])
def compared(node: ast.Compare, context: Context) -> ast.expr | None:
    """A comparison of devices, or of their types or indices: its value, where that is fixed."""
    sides = [node.left, *node.comparators]
    if not any(map(_is_fact, sides)):
        return None
    others = [side for side in sides if not is_device(side) and not _is_none(side)]
    if any(map(is_device, sides)) and others:
        if len(sides) == 2 and is_device(sides[0]) and all(map(_is_text, others)):
            return ast.Constant(isinstance(node.ops[0], (ast.NotEq, ast.NotIn, ast.IsNot)))  # torch's equal no string
        text = f"{ast.unparse(node)}: a device is compared with something else, compare device.type"
        return _unanswered(node, text, context)
    found = ast.Compare(_text(node.left, context), node.ops, [_text(side, context) for side in node.comparators])
    known = [literal(side) for side in (found.left, *found.comparators)]
    if not all(one for one, _ in known) or len(known) != 2:
        return found
    try:
        return ast.Constant(bool(OPERATORS[type(node.ops[0])](known[0][1], known[1][1])))
    except TypeError:  # the same comparison fails in Python too
        return found


def _unanswered(node: ast.expr, text: str, context: Context) -> ast.expr:
    """A call that raises where a question about a device has no answer; it is noted for the report."""
    problem = Problem(context.file, node.lineno, text)
    if problem not in context.program.problems:
        return context.program.missing(problem)
    return ast.Call(context.name(NOT_CONVERTED), [ast.Constant(text)], [])


def _is_none(node: ast.expr) -> bool:
    return literal(node) == (True, None) or kinds_of(node) == [NONE]


def _is_text(node: ast.expr) -> bool:
    """Whether it is a string, or several."""
    known, value = literal(node)
    texts = value if isinstance(value, (tuple, list, set)) else (value,)
    return (known and all(isinstance(text, str) for text in texts)) or {*kinds_of(node)} == {PlainKind("str")}
