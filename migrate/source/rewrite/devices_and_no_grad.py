"""Devices: a model's questions about where its tensors are, answered as for torch's CPU; contexts such as no_grad, and
what asks for a gradient or refuses it (`requires_grad`).

MindSpore's device is that of the process, and all tensors of its nets are there; torch's model is compared on the CPU.
So a device is a string in the new file, a tensor's is `"cpu"`, and questions about it have a fixed answer. As in torch,
a device never equals a string; comparing one with anything else than a device, None or a string raises. So does a
condition on a device that cannot be written: in the run it may be the device "meta", on which models have no values.

What is computed inside of a context without gradients is cut off from its gradient there, each tensor where it is made;
a name for another tensor, `y = x`, is none. What a `finally` does stands before whatever leaves its block.

A model that asks its first parameter for a device or a dtype asks an attribute: graph mode has no generators. What it
asks of torch itself, such as its version, is answered as in the run.
"""

from __future__ import annotations

import ast
import copy
import operator
import re
from collections.abc import Callable, Iterable, Mapping
from typing import Any

from ...library_names import CONTAINERS, NOT_CONVERTED, TABLES
from ...source_files import blocks_of, comment, literal
from ..observe.observations import (
    NONE,
    DictKind,
    Kind,
    ModuleKind,
    ObjectKind,
    PlainKind,
    PythonModule,
    SequenceKind,
    TensorKind,
    always,
    callees_of,
    constants_of,
    kinds_of,
    replacing,
    set_callee,
    set_kinds,
)
from .context import UNSEEN, Context, Problem, Stage, Unwritable, handles, row_of

DEVICE = ObjectKind("torch.device")
DIFFERENTIATED = "torch keeps a gradient here; in MindSpore mindspore.grad of a function of this tensor gives it"
HERE = "cpu"
CLASS_OF_TENSORS = re.compile(r"torch\.(?:cuda\.)?(\w+)Tensor")
NUMBER = "torch.Tensor.get_device"  # -1 on a CPU
ANSWERS: dict[str, bool] = TABLES["tensor_answers"]
SIMPLE = (ast.Assign, ast.AnnAssign, ast.Expr)  # statements that surely run in a constructor
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
@handles("torch.get_default_device")
def number(call: ast.Call, context: Context) -> ast.expr:
    """`x.get_device()`, and the device where tensors are made."""
    return ast.Constant(-1 if callees_of(call) == [NUMBER] else HERE)


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
    match node.ops, others:
        case [ast.In() | ast.NotIn()], [ast.Name() | ast.Attribute() as keys] if is_device(node.left):
            return ast.Compare(_text(node.left, context), node.ops, [context.visit(keys)])
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


OF_PYTHON_ALONE = {"KeyError", "AttributeError", "NameError", "StopIteration"}  # which no tensor raises in torch
NO_GRADIENT: list[str] = TABLES["contexts_without_gradient"]
OF_PYTHON = {*TABLES["contexts_of_python"]}
RUNNING = "|".join([*TABLES["contexts_of_running"], *NO_GRADIENT])
HOW = re.compile(rf"(torch\.(\w+\.)*({RUNNING})|{'|'.join(OF_PYTHON)})$")
CONTEXTS = {*NO_GRADIENT, *TABLES["contexts_of_running"], *TABLES["contexts_with_gradient"], *OF_PYTHON}


def torch_context(call: ast.expr) -> str | None:
    """The name of the context that a call makes, such as `no_grad`, full for Python's; None for one that computes."""
    names = (callees_of(call) or [ast.unparse(call.func)]) if isinstance(call, ast.Call) else []
    last = {name.rpartition(".")[2] for name in names if "torch" in name} | {*names} & OF_PYTHON
    return last.pop() if len(last) == 1 and last <= CONTEXTS else None


def says_how(statement: ast.stmt, resolve: Callable[[ast.expr], str]) -> bool:
    """Whether a statement that did not run is a context that only affects how torch runs, or one without gradients."""
    made = [one.context_expr for one in statement.items] if isinstance(statement, ast.With) else []
    calls = [call.func for call in made if isinstance(call, ast.Call)]
    for called in calls:
        set_callee(called, resolve(called))
    return bool(calls) and len(calls) == len(made) and all(HOW.match(resolve(called)) for called in calls)


@handles(syntax=[ast.With], stage=Stage.STATEMENT)
def unwrap_context(node: ast.With, context: Context) -> list[ast.stmt] | None:
    """The statements inside contexts of torch; None where there is another context."""
    calls = [item.context_expr for item in node.items]
    if None in (names := [*map(torch_context, calls)]) or any(item.optional_vars for item in node.items):
        return None
    switched = (one for one in calls if isinstance(one, ast.Call) and torch_context(one) == "set_grad_enabled")
    switches = [one.args[0] for one in switched if one.args]
    if any(name in NO_GRADIENT for name in names) or any(literal(one) == (True, False) for one in switches):
        return without_gradient(node.body, context)
    switches = [one for one in switches if literal(one) != (True, True)]
    test = switches[0] if len(switches) == 1 else ast.BoolOp(ast.And(), switches) if switches else None
    cut = without_gradient(copy.deepcopy(node.body), context) if switches else []
    test = None if test is None else context.visit(test)
    kept = [new for old in node.body for new in context.statement(old)]
    return kept if test is None else [ast.If(test, kept, cut)]


def without_gradient(body: list[ast.stmt], context: Context) -> list[ast.stmt]:
    """The statements, rewritten, with `ops.stop_gradient` around every tensor that they make."""
    return [new for old in body for cut in _cut_off(old, context) for new in context.statement(cut)]


def _cut_off(statement: ast.stmt, context: Context) -> list[ast.stmt]:
    """torch's statement with `.detach()` of the tensors that it makes."""
    made = [item.context_expr for item in statement.items] if isinstance(statement, ast.With) else []
    if isinstance(statement, (ast.FunctionDef, ast.ClassDef)) or "enable_grad" in map(torch_context, made):
        return [statement]
    for block in blocks_of(statement):
        block[:] = [cut for one in block for cut in _cut_off(one, context)]
    value = getattr(statement, "value", None)
    if not isinstance(value, ast.expr):
        return [statement]
    if isinstance(statement, ast.Expr):
        if isinstance(value, ast.Call) and not always(kinds_of(value), TensorKind):  # found.append(x * 2)
            value.args = [*map(_detached, value.args)]
        while isinstance(value, ast.Call) and isinstance(value.func, ast.Attribute):  # found.mul_(2).add_(y)
            if value.func.attr.endswith("_"):
                value.args = [*map(_given, value.args)]
            value = value.func.value
        return [statement]
    target = statement.targets[0] if isinstance(statement, ast.Assign) else None
    if isinstance(value, ast.Call) and isinstance(target, ast.Tuple):
        reads = [n for n in ast.walk(context.function or value) if isinstance(n, ast.Name) and kinds_of(n)]
        targets = [name for name in ast.walk(target) if isinstance(name, ast.Name)]
        known = {name.id: [kind for n in reads if n.id == name.id for kind in kinds_of(n)] for name in targets}
        if not any(map(_holds, known.values())):  # a, b = self.encoder(x)
            names = [name for name, kinds in known.items() if always(kinds, TensorKind)]
            return [statement, *(_assigned(name, known[name], statement) for name in names)]
    into = isinstance(statement, ast.AugAssign) or isinstance(target, ast.Subscript)
    statement.value = _given(value) if into else _detached(value)  # type: ignore[attr-defined]
    return [statement]


def _assigned(name: str, kinds: list[Kind], after: ast.stmt) -> ast.stmt:
    """`name = name.detach()`."""
    there = set_kinds(ast.copy_location(ast.Name(name, ast.Load()), after), kinds)
    return ast.copy_location(ast.Assign([ast.copy_location(ast.Name(name, ast.Store()), after)], _cut(there)), after)


def _given(value: ast.expr) -> ast.expr:
    """What goes into another tensor, cut off from its gradient; a tensor under its own name, too."""
    dtypes = {kind.dtype[:5] for kind in kinds_of(value) if isinstance(kind, TensorKind)}
    return _cut(value) if isinstance(value, ast.Name) and dtypes & {"float", "bfloa", "compl"} else _detached(value)


def _detached(value: ast.expr) -> ast.expr:
    """The expression, cut off from its gradient where it makes a tensor; so the items of a list or a dictionary."""
    if isinstance(value, (ast.Name, ast.Attribute, ast.Constant, ast.Starred)):
        return value
    if always(kinds_of(value), TensorKind):
        return _cut(value)
    if isinstance(value, (ast.Tuple, ast.List)):
        value.elts = [*map(_detached, value.elts)]
    elif isinstance(value, ast.Dict):
        value.values = [*map(_detached, value.values)]
    elif isinstance(value, (ast.ListComp, ast.GeneratorExp)):
        value.elt = _detached(value.elt)
    elif isinstance(value, ast.IfExp):
        value.body, value.orelse = _detached(value.body), _detached(value.orelse)
    elif isinstance(value, ast.Call) and (_holds(kinds_of(value)) or UNSEEN in kinds_of(value)):
        function = ast.copy_location(ast.Name("detached", ast.Load()), value)
        set_callee(function, "msmigrate.nn.functional.detached")
        return set_kinds(ast.copy_location(ast.Call(function, [value], []), value), kinds_of(value))
    return value


def _holds(kinds: Iterable[Kind]) -> bool:
    """Whether it was a list, a tuple or a dictionary of tensors now and then."""
    parts = [
        list(kind.items) if isinstance(kind, SequenceKind) else [one for _, one in kind.entries]
        for kind in kinds
        if isinstance(kind, (SequenceKind, DictKind))
    ]
    return any(_holds(part) or any(isinstance(kind, TensorKind) for kind in part) for part in parts)


def _cut(value: ast.expr) -> ast.expr:
    """`value.detach()`."""
    function = ast.copy_location(ast.Attribute(value, "detach", ast.Load()), value)
    set_callee(function, "torch.Tensor.detach")
    return set_kinds(ast.copy_location(ast.Call(function, [], []), value), kinds_of(value))


def without_gradient_by_decorator(node: ast.FunctionDef) -> bool:
    """Whether a function is one that torch runs without gradients."""
    names = [ast.unparse(item).partition("(")[0].rpartition(".")[2] for item in node.decorator_list]
    return any(name in NO_GRADIENT for name in names)


@handles("torch.Tensor.requires_grad_", stage=Stage.STATEMENT)
def freeze_parameter(call: ast.Call, context: Context) -> list[ast.stmt] | None:
    """`parameter.requires_grad = False`; of a tensor that the model computes with as `set_gradient` has it."""
    if not isinstance(call.func, ast.Attribute):
        return None
    if _is_computed_with(owner := call.func.value, context):
        flag = literal(flag_of(call, context))
        if flag == (True, False) and isinstance(owner, ast.Name):
            return [_without_gradient(owner, context)]
        return [comment(DIFFERENTIATED)] if flag == (True, True) else None
    target = ast.Attribute(context.visit(call.func.value), "requires_grad", ast.Store())
    return [ast.Assign([target], flag_of(call, context))]


@handles("torch.Tensor.requires_grad_")
def with_gradient(call: ast.Call, context: Context) -> ast.expr | None:
    """The tensor itself, where the model computes with it: it only matters to code that takes its gradient. For False
    without its gradient."""
    if not isinstance(call.func, ast.Attribute) or not _is_computed_with(owner := call.func.value, context):
        return None
    flag = literal(flag_of(call, context))
    if flag not in ((True, True), (True, False)):
        return None
    if flag == (True, False) and not isinstance(owner, ast.Name):
        return ast.Call(context.name("mindspore.ops.stop_gradient"), [context.visit(owner)], [])
    note = _without_gradient(owner, context) if isinstance(owner, ast.Name) and not flag[1] else comment(DIFFERENTIATED)
    if all(ast.unparse(note) != ast.unparse(one) for one in context.before):
        context.before.append(note)
    found: ast.expr = context.visit(owner)
    return found


@handles(syntax=[ast.Assign], stage=Stage.IN_PLACE)
def set_gradient(node: ast.Assign, context: Context) -> list[ast.stmt] | None:
    """A comment for `x.requires_grad = True` of a tensor that the model computes with, and for False
    `x = stop_gradient(x)`."""
    target = node.targets[0]
    if not isinstance(target, ast.Attribute) or target.attr != "requires_grad":
        return None
    if not _is_computed_with(target.value, context):
        return None
    if literal(node.value) == (True, True):
        return [comment(DIFFERENTIATED)]
    if literal(node.value) != (True, False) or not isinstance(target.value, ast.Name):
        raise Unwritable(f"{ast.unparse(target)} is not of a parameter, and MindSpore differentiates functions")
    return [_without_gradient(target.value, context)]


@handles(syntax=[ast.Attribute])
def gradient_asked(node: ast.Attribute, context: Context) -> ast.expr | None:
    """An error for `x.requires_grad`: MindSpore's tensors have no such flag, and the run takes no gradients."""
    asks = node.attr == "requires_grad" and isinstance(node.ctx, ast.Load) and not context.strict
    text = f"{ast.unparse(node)} is not known: MindSpore differentiates functions; ask self.training"
    return context.missing(node, text) if asks and _is_computed_with(node.value, context) else None


def _without_gradient(tensor: ast.Name, context: Context) -> ast.stmt:
    """`x = stop_gradient(x)`: torch lets no gradient through a tensor whose flag is False. Raises Unwritable where
    another name is this tensor."""
    for node in ast.walk(context.function or tensor):
        if isinstance(node, ast.Assign) and isinstance(node.value, ast.Name) and node.value.id == tensor.id:
            raise Unwritable(f"{tensor.id}.requires_grad, and {ast.unparse(node.targets[0])} is the same tensor")
    cut = ast.Call(context.name("mindspore.ops.stop_gradient"), [ast.Name(tensor.id, ast.Load())], [])
    return ast.fix_missing_locations(ast.Assign([ast.Name(tensor.id, ast.Store())], cut, lineno=tensor.lineno))


def _is_computed_with(node: ast.expr, context: Context) -> bool:
    """Whether an expression was a tensor that a model computes with: not a parameter, and not used in `__init__`, where
    it may be trained."""
    inside = context.function is not None and context.function.name != "__init__"
    kinds = kinds_of(node)
    return inside and bool(kinds) and all(isinstance(kind, TensorKind) and not kind.parameter for kind in kinds)


def flag_of(call: ast.Call, context: Context) -> ast.expr:
    """What a call such as `requires_grad_(False)` or `train()` sets: True where it says nothing."""
    values = [*call.args, *(word.value for word in call.keywords)]
    return context.visit(values[0]) if values else ast.Constant(True)


@handles("builtins.next")
def first_parameter(node: ast.Call, context: Context) -> ast.expr | None:
    """`next(self.parameters())` in what a forward runs: the attribute that it is, `self.embedding.embedding_table`."""
    asks = len(node.args) == 1 and not node.keywords and ast.unparse(node.args[0]) == "self.parameters()"
    if not asks or context.builds or context.in_python:
        return None
    found = _first_parameter(context)
    return None if found is None else context.visit(set_kinds(found, kinds_of(node)))


def _first_parameter(context: Context) -> ast.expr | None:
    """The first parameter of the class's objects, whatever its arguments: its own first one, else the weight of its
    first layer that has any; None where that is not known."""
    _, cls = context.program.class_of(context.owner) or ("", None)
    functions = [] if cls is None else [node for node in cls.body if isinstance(node, ast.FunctionDef)]
    init = next((function for function in functions if function.name == "__init__"), None)
    bases = [name for name in context.program.facts.bases(context.owner)[1:] if "." in name]
    derived = [order[0] for order in context.program.facts.orders if context.owner in order[1:]]
    others = (one for name in derived for one in (context.program.class_of(name) or ("", None))[1:])
    if init is None or bases[:1] != ["torch.nn.Module"] or "register_" in ast.unparse(init):
        return None
    if any(getattr(node, "name", "") == "__init__" for cls in others for node in getattr(cls, "body", ())):
        return None
    kinds = context.program.attributes(context.owner)
    if not all(
        kinds.get(name) for part in init.body if not isinstance(part, SIMPLE) for name in stored_attributes(part)
    ):
        return None  # a branch that did not run
    of_own = any(isinstance(kind, TensorKind) for _, kind in _made(init, kinds))  # torch has these first
    for statement in init.body:
        made = [(name, kind) for name, kind in _made(statement, kinds) if isinstance(kind, TensorKind) is of_own]
        if not made:
            continue
        if len(made) > 1 or not isinstance(statement, SIMPLE):
            return None
        ((name, kind),) = made
        attribute = ast.Attribute(ast.Name("self", ast.Load()), name, ast.Load())
        if isinstance(kind, TensorKind):
            return attribute
        known = _begins_with_weight(kind.cls)
        return ast.Attribute(set_kinds(attribute, [kind]), "weight", ast.Load()) if known else None
    return None


def _made(part: ast.stmt, kinds: Mapping[str, list[Kind]]) -> list[tuple[str, TensorKind | ModuleKind]]:
    """The attributes of `self` that a part of a constructor sets to parameters, or to modules that may have some."""
    found = [(name, kind) for name in stored_attributes(part) for kind in kinds.get(name, ())]
    return [
        (name, kind)
        for name, kind in found
        if (isinstance(kind, TensorKind) and kind.parameter)
        or (isinstance(kind, ModuleKind) and not _is_empty(kind.cls))
    ]


def _is_empty(cls: str) -> bool:
    """Whether a module of this class has no parameters: a layer without tensors."""
    row = row_of(cls)
    return row is not None and row.kind == "layer" and not row.state and cls not in CONTAINERS


def _begins_with_weight(cls: str) -> bool:
    """Whether the first parameter of a layer is its weight, whatever its arguments: that of a norm is not."""
    row = row_of(cls)
    switches = () if row is None else {argument.torch for argument in row.arguments} & {"affine", "elementwise_affine"}
    return row is not None and bool(row.state) and row.state[0].torch == "weight" and not switches


# Questions about torch itself, answered by their value in the run


@handles(syntax=[ast.Compare, ast.Call, ast.Attribute])
def version_asked(node: ast.Compare | ast.Call | ast.Attribute, context: Context) -> ast.expr | None:
    """`torch.__version__ >= "1.5.0"`, or `newer(torch.__version__, "1.5.0")`, as its value in the run."""
    given: list[ast.expr] = [node]
    if isinstance(node, ast.Call):
        given = [node.func, *node.args, *(word.value for word in node.keywords)]
    asking = [part for part in given if any(map(_is_version, ast.walk(part)))]
    fixed = isinstance(node, ast.Compare) or all(part in asking or literal(part)[0] for part in given[1:])
    return _only_constant(node) if asking and fixed else None


def _is_version(node: ast.AST) -> bool:
    if not isinstance(node, ast.Attribute) or node.attr != "__version__":
        return False
    return always(kinds_of(node.value), PythonModule)


def as_dtype(node: ast.expr, context: Context) -> ast.expr | None:
    """One of torch's classes of tensors, or its name, as the dtype of its values; None for anything else."""
    if isinstance(node, ast.IfExp):
        body, other = as_dtype(node.body, context), as_dtype(node.orelse, context)
        return ast.IfExp(context.visit(node.test), body, other) if body and other else None
    name = node.value if isinstance(node, ast.Constant) else None
    if isinstance(node, (ast.Name, ast.Attribute)):
        name = context.program.names(context.file).name(node)
    found = CLASS_OF_TENSORS.fullmatch(name) if isinstance(name, str) else None
    dtype = TABLES["legacy_dtypes"].get(found[1]) if found else None
    return None if dtype is None else context.name(f"mindspore.{dtype}")


@handles(syntax=[ast.Compare])
def class_of_tensors_asked(node: ast.Compare, context: Context) -> ast.expr | None:
    """`x.type() == "torch.HalfTensor"` by the dtype, and as on a CPU for a class of CUDA's tensors; refuses other
    comparisons with such a text, for in the new file `x.type()` is a dtype."""
    match node:
        case ast.Compare(
            ast.Call(func, [], []) as asked, [ast.Eq() | ast.NotEq() as how], [ast.Constant(str() as text)]
        ):
            dtype = as_dtype(node.comparators[0], context) if callees_of(asked) == ["torch.Tensor.type"] else None
            if dtype is not None and text.startswith("torch.cuda."):
                return ast.Constant(isinstance(how, ast.NotEq))
            if dtype is not None and isinstance(func, ast.Attribute):
                return ast.Compare(ast.Attribute(context.visit(func.value), "dtype", ast.Load()), [how], [dtype])
    texts = [literal(side)[1] for side in (node.left, *node.comparators)]
    if any(isinstance(text, str) and CLASS_OF_TENSORS.fullmatch(text) for text in texts):
        raise Unwritable("a text for a class of tensors: compare dtypes, as in x.dtype == torch.float32")
    return None


@handles(*TABLES["framework_questions"])
def framework_question(node: ast.Call, context: Context) -> ast.expr | None:
    """`torch.jit.is_scripting()` and the like, whose value is a constant here."""
    return _only_constant(node)


@handles("torch.distributed.is_initialized", "torch.distributed.distributed_c10d.is_initialized")
def runs_on_several_devices(node: ast.Call, context: Context) -> ast.expr:
    """`GlobalComm.INITED`: mint.distributed.is_initialized(), which says the same, is not compiled."""
    return ast.Attribute(context.name("mindspore.communication.GlobalComm"), "INITED", ast.Load())


@handles(syntax=[ast.Call])
def setting(node: ast.Call, context: Context) -> ast.expr | None:
    """A package's settings, and questions about torch's modules, such as `hasattr(F, "scaled_dot_product_attention")`,
    as constants."""
    callees = callees_of(node)
    plain = bool(callees) and not node.args and not node.keywords and context.program.settings.issuperset(callees)
    kinds = kinds_of(node.args[0]) if node.args else []
    asks_torch = bool(kinds) and all(isinstance(k, PythonModule) and k.name.startswith("torch") for k in kinds)
    return _only_constant(node) if plain or asks_torch else None


def _only_constant(node: ast.expr) -> ast.expr | None:
    constants = constants_of(node)
    return ast.Constant(constants[0]) if constants is not None and len(constants) == 1 else None


def stored_attributes(part: ast.AST) -> list[str]:
    """The attributes of `self` that a part of a constructor sets."""
    inside = [node for node in ast.walk(part) if isinstance(node, ast.Attribute) and isinstance(node.ctx, ast.Store)]
    return [node.attr for node in inside if ast.unparse(node.value) == "self"]


def without_try(statement: ast.stmt, context: Context) -> list[ast.stmt]:
    """The statement; for a `try` that replaces one error by another, or catches errors of Python's, its body."""
    caught = [one for one in getattr(statement, "handlers", ()) if not isinstance(one.body[-1], ast.Raise)]
    types = {name for one in caught for name in ast.unparse(one.type or one).strip("()").split(", ")}
    if not isinstance(statement, ast.Try) or not types <= OF_PYTHON_ALONE:
        return [statement]
    because = "MindSpore compiles no try, so the error goes on"
    said = (Problem(context.file, one.lineno, f"{ast.unparse(one).partition(':')[0]}: {because}") for one in caught)
    context.program.left_out += [one for one in said if one not in context.program.left_out]
    return before_leaving([*statement.body, *statement.orelse], statement.finalbody) + statement.finalbody


def before_leaving(body: list[ast.stmt], last: list[ast.stmt], *, rounds: bool = True) -> list[ast.stmt]:
    """Statements that run others before they leave their block, as a `finally` does, which MindSpore does not compile.

    rounds: whether `break` and `continue` leave it, which is not so in a loop inside of it.
    """
    found: list[ast.stmt] = []
    for statement in body if last else []:
        inside = rounds and not isinstance(statement, (ast.For, ast.While))
        for name in () if isinstance(statement, (ast.FunctionDef, ast.ClassDef)) else ("body", "orelse", "finalbody"):
            if getattr(statement, name, None):
                setattr(statement, name, before_leaving(getattr(statement, name), last, rounds=inside))
        if isinstance(statement, ast.Return) and statement.value is not None:
            given = ast.Assign([ast.Name("returned", ast.Store())], statement.value)
            found.append(ast.fix_missing_locations(replacing(given, statement)))
            statement.value = replacing(ast.Name("returned", ast.Load()), statement.value)
        if isinstance(statement, ast.Return) or (rounds and isinstance(statement, (ast.Break, ast.Continue))):
            found += copy.deepcopy(last)
        found.append(statement)
    return found if last else body
