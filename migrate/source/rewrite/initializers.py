"""Assigning a tensor's values; and initial values of parameters, by functions of torch.nn.init, called or passed on,
and by `weight.data.normal_()`; and what a constructor runs, which is in training mode.

Values are assigned to a parameter's own memory, `ops.assign(weight, values)`; an initial value becomes
`tensor.set_data(initializer(Rule(…), tensor.shape, tensor.dtype))`. The weight of a Conv1d, which has one more axis in
MindSpore, is read and written in torch's shape.
"""

from __future__ import annotations

import ast
import copy
from collections.abc import Mapping
from typing import TypeGuard

from ....mappings.rows import Row
from ...library_names import TABLES
from ...source_files import literal, substitute
from ..observe.observations import (
    PlainKind,
    SizeKind,
    TensorKind,
    always,
    callees_of,
    kinds_of,
    of_constant,
    replacing,
    set_callee,
    set_kinds,
)
from .context import Context, Namer, ObservedArgument, Program, Stage, Unwritable, handles, row_of
from .row_calls import arguments_of, is_method, is_super, is_variable, write_call

# methods that fill a tensor with one number -> that number; None: their argument
VALUES = {"zero_": 0, "fill_": None}
FILLS: dict[str, str] = TABLES["fills"]
# methods of tensors whose result shares the memory of what they are called on, at least sometimes
SHARING = {
    *("view", "reshape", "transpose", "permute", "squeeze", "unsqueeze", "expand", "t", "detach", "contiguous", "to"),
    *("chunk", "split", "narrow", "select", "unbind", "flatten", "unflatten", "swapaxes", "movedim", "float", "type"),
    *("diagonal", "unfold", "view_as", "expand_as", "reshape_as", "type_as", "requires_grad_", "swapdims", "ravel"),
}
RESET = "msmigrate.nn.reset_parameters"
WITH_MODES = ("BatchNorm", "SyncBatchNorm", "InstanceNorm", "Dropout", "AlphaDropout", "FeatureAlphaDropout", "RReLU")
COPY = "transformers.initialization.copy_"  # (tensor, values)


def attribute(node: ast.expr, name: str) -> ast.expr:
    return ast.Attribute(node, name, ast.Load())


def method_call(node: ast.expr, name: str, *args: ast.expr) -> ast.expr:
    return ast.Call(attribute(node, name), list(args), [])


def underlying_tensor(node: ast.expr) -> ast.expr:
    """The tensor `x` of `x.data` and `x.detach()`, and `x[:, ::2]` of a call that reads it."""
    while True:
        if "written_as" in vars(node):
            node = vars(node)["written_as"]
        elif isinstance(node, ast.Attribute) and node.attr == "data":
            node = node.value
        elif isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr == "detach":
            node = node.func.value
        else:
            return node


def root_of(node: ast.expr) -> ast.expr:
    """The list or tensor `x` of its item `x[0][1]`."""
    while isinstance(node, ast.Subscript):
        node = node.value
    return node


def write_value(context: Context, source: ast.expr, target: ast.expr, value: ast.expr) -> list[ast.stmt]:
    """Give a tensor other values: a parameter stays the same object with its name, and a function's argument stays the
    caller's tensor.

    A parameter's own memory gets them: what is compiled, as MindSpore's optimizers are, never sees what `set_data` puts
    in place, and would train the weights of before; and to a view that is put there nothing can be assigned.
    """
    tensor = underlying_tensor(source)
    if vars(tensor).get("of_caller") and isinstance(target, ast.Name) and not is_parameter(tensor):
        return [ast.Expr(method_call(target, "copy_", value))]
    if isinstance(target, ast.Subscript) and not context.in_python and of_data(root_of(tensor)):
        return _write_part(context, root_of(tensor), target, value)
    if isinstance(target, ast.Subscript) or (
        isinstance(target, (ast.Name, ast.Attribute)) and not is_parameter(tensor)
    ):
        whole, of = root_of(target), root_of(tensor)
        if isinstance(target, ast.Subscript) and _is_data(of) and not context.in_python:
            place = context.visit(copy.deepcopy(underlying_tensor(of)))
            target = substitute(target, lambda node: place if node is whole else None)
        target.ctx = ast.Store()  # type: ignore[attr-defined]
        return [ast.Assign([target], value)]
    value = value if context.in_python else _stopped(context, value)
    return [ast.Expr(ast.Call(context.name("mindspore.ops.assign"), [target, value], []))]


def is_parameter(node: ast.expr) -> bool:
    """Whether it is always a parameter that trains, or the `data` of one."""
    return always(kinds_of(underlying_tensor(node)), TensorKind, parameter=True)


def in_data(node: ast.expr) -> bool:
    """Whether it is a parameter that trains, or any tensor's `data`."""
    return is_parameter(node) or _is_data(node)


def of_data(node: ast.expr) -> bool:
    """Whether it is a parameter that trains, or the `data` of a local variable that may have a gradient."""
    tensor = underlying_tensor(node)
    known = [kind for kind in kinds_of(tensor) if isinstance(kind, TensorKind)]
    return is_parameter(node) or (_is_data(node) and isinstance(tensor, ast.Name) and _may_float(known))


def _may_float(known: list[TensorKind]) -> bool:
    return not known or any("float" in kind.dtype for kind in known)


def past_gradient(into: ast.expr, value: ast.expr, context: Context) -> ast.expr:
    """`y + stop_gradient(2 * y - y)` for `y.data.mul_(2)`, whose gradient torch computes as if y were as before."""
    under = underlying_tensor(into)
    known = [kind for kind in kinds_of(under) if isinstance(kind, TensorKind)]
    if under is into or not isinstance(under, ast.Name) or context.in_python or any(k.parameter for k in known):
        return value
    if not _may_float(known):
        return value
    return _with_change(context, context.visit(copy.deepcopy(under)), value)


def _with_change(context: Context, before: ast.expr, value: ast.expr) -> ast.expr:
    """`y + stop_gradient(value - y)`, whose gradient is y's own."""
    change = _stopped(context, ast.BinOp(value, ast.Sub(), before))
    return ast.BinOp(copy.deepcopy(before), ast.Add(), change)


def _free(name: str, context: Context, within: ast.AST | None = None) -> str:
    """A name for a local variable: this one, or one like it where the function has it already."""
    nodes = ast.walk(context.function or within or ast.Pass())
    taken = context.local | {n.id for n in nodes if isinstance(n, ast.Name)}
    return next(one for one in (name, f"{name}_values", *(f"{name}{k}" for k in range(2, 99))) if one not in taken)


def _stopped(context: Context, value: ast.expr) -> ast.expr:
    """`stop_gradient(value)`."""
    stop = context.name("mindspore.ops.stop_gradient")

    def is_stopped(node: ast.AST) -> bool:
        return isinstance(node, ast.Call) and ast.unparse(node.func) == ast.unparse(stop) and not node.keywords

    if is_stopped(value) or literal(value)[0]:
        return value
    inside = substitute(value, lambda node: node.args[0] if isinstance(node, ast.Call) and is_stopped(node) else None)
    return ast.Call(stop, [inside], [])


@handles(syntax=[ast.Attribute])
def read_data(node: ast.Attribute, context: Context) -> ast.expr | None:
    """`x.data` as `stop_gradient(x)` in what may be compiled: where a net assigns a parameter, too, a `data` was seen
    to make all compiled gradients zero."""
    if not isinstance(node.ctx, ast.Load) or not _is_data(node) or context.builds or context.in_python:
        return None
    return _stopped(context, context.visit(node.value))


def _is_data(node: ast.AST) -> bool:
    return isinstance(node, ast.Attribute) and node.attr == "data" and always(kinds_of(node.value), TensorKind)


def _write_part(context: Context, parameter: ast.expr, target: ast.expr, value: ast.expr) -> list[ast.stmt]:
    """`weight[:, 0] = value` of a copy `weight`, whose values the parameter gets: written to itself, it would have
    other memory than what is compiled reads.

    target: the part as MindSpore has it.
    """
    whole = root_of(target)
    name = ast.unparse(parameter).removesuffix(".data").rpartition(".")[2]
    name = _free(name if name.isidentifier() else "values", context)
    part = substitute(target, lambda node: ast.Name(name, ast.Load()) if node is whole else None)
    part.ctx = ast.Store()
    place = context.visit(copy.deepcopy(underlying_tensor(parameter)))
    one_row = of_one_row(parameter, context)
    read = in_torchs_shape(underlying_tensor(parameter), context) if one_row else copy.deepcopy(place)
    begin: list[ast.stmt] = [
        ast.Assign([ast.Name(name, ast.Store())], _stopped(context, read)),
        ast.Assign([part], _stopped(context, value)),
    ]
    written = in_shape_of_weight(parameter, ast.Name(name, ast.Load()), context)
    if not is_parameter(parameter):
        target = ast.Name(ast.unparse(place), ast.Store())
        return [*begin, ast.Assign([target], _with_change(context, place, written))]
    return [*begin, ast.Expr(ast.Call(context.name("mindspore.ops.assign"), [place, written], []))]


@handles("torch.nn.init.*", stage=Stage.STATEMENT)
def initialize(call: ast.Call, context: Context) -> list[ast.stmt] | None:
    """`torch.nn.init.normal_(tensor)`, as a statement."""
    found = None if is_variable(call.func, context) else _initialized(call, callees_of(call)[0], context)
    return found and _named_once(found, context)


def _named_once(found: list[ast.stmt], context: Context) -> list[ast.stmt]:
    """`weight = getattr(m, first_name(…))` in front of a statement that would have the expression three times."""
    match found:
        case [ast.Expr(ast.Call(ast.Attribute(ast.Call() as tensor, "set_data")) as whole)]:
            text = ast.unparse(tensor)
            texts = [str(n.value) for n in ast.walk(tensor) if isinstance(n, ast.Constant)]
            name = _free(next((one for one in texts if one.isidentifier()), "tensor"), context, tensor)
            short = substitute(
                whole,
                lambda n: ast.Name(name, ast.Load()) if isinstance(n, ast.Call) and ast.unparse(n) == text else None,
            )
            return [ast.Assign([ast.Name(name, ast.Store())], tensor), ast.Expr(short)]
    return found


@handles(syntax=[ast.Call])
def initialize_by_variable(call: ast.Call, context: Context) -> ast.expr | None:
    """`weight_init(tensor)`, where a variable holds one such function or another: the call stays, since each is passed
    on as a function that takes the same arguments."""
    names = [name.removeprefix("partial ") for name in callees_of(call)]
    filling = [fills(row_of(name)) for name in names]
    if not any(filling) or not is_variable(call.func, context):
        return None
    if not all(one or context.is_user_code(name) for one, name in zip(filling, names, strict=True)):
        return None
    if call.args:
        call.args[0] = underlying_tensor(call.args[0])
    return context.kept(call)


@handles("torch.nn.init.*")
def initialize_within(call: ast.Call, context: Context) -> ast.expr | None:
    """`nn.init.zeros_(weight)` within an expression, as in `lambda weight: nn.init.zeros_(weight)`."""
    plain = fills(row_of(callees_of(call)[0])) and not is_variable(call.func, context)
    return _as_expression(call, context) if plain else None


def begins(statement: ast.stmt) -> bool:
    """Whether it is a call of torch.nn.init: what that draws for a weight in another shape is given to the weight."""
    value = statement.value if isinstance(statement, ast.Expr) else None
    called = callees_of(value) if isinstance(value, ast.Call) else []
    return bool(called) and all(name.startswith("torch.nn.init.") for name in called)


def fills(row: Row | None) -> TypeGuard[Row]:
    """Whether it is the row of a function of torch.nn.init that gives a tensor its values."""
    first = [] if row is None else [argument.torch for argument in row.arguments[:1]]
    return row is not None and row.torch.startswith("torch.nn.init.") and first == ["tensor"]


def _as_expression(call: ast.Call, context: Context) -> ast.expr:
    """An expression that writes into the tensor and returns it."""
    given = call.args[0] if call.args else None
    made = callees_of(given) if isinstance(given, ast.Call) else []
    new = bool(made) and all(name.startswith("torch.") and not is_method([name]) for name in made)
    match _initialized(call, callees_of(call)[0], context):
        case [ast.Expr(ast.Call(ast.Attribute(_, "set_data"), [values]))] if new:  # nothing but the result has it
            return method_call(values, "init_data") if ast.unparse(values).startswith("initializer(") else values
        case [ast.Expr(found)]:
            return found
        case [ast.Assign([ast.Name(tensor)], values)]:  # a lambda's argument stays the caller's tensor
            return method_call(ast.Name(tensor, ast.Load()), "copy_", values)
    raise Unwritable(f"{ast.unparse(call)} within an expression: write it as a statement")


def filling_function(row: Row, given: Mapping[str, ObservedArgument], name: Namer) -> ast.expr:
    """`nn.init.orthogonal_`, which is not called but passed on, as a function that takes the same arguments.

    given: the arguments of `partial`, rewritten. Raises Unwritable.
    """
    tensor = ast.Name("tensor", ast.Load())
    takes = [one for one in row.arguments[1:] if one.to and one.torch not in given]
    arguments = {"tensor": ObservedArgument(tensor, [TensorKind("float32", 1, parameter=True)], None), **given}
    for one in takes:
        kind = PlainKind("float") if one.required else of_constant(one.default)
        arguments[one.torch] = ObservedArgument(ast.Name(one.torch, ast.Load()), [kind], None)
    values = _between(row, arguments, tensor, name) or _drawn(_rule(row, arguments, tensor, name), tensor, name)
    parameters = [ast.arg("tensor"), *(ast.arg(one.torch) for one in takes)]
    defaults: list[ast.expr] = [ast.Constant(one.default) for one in takes if not one.required]
    return ast.Lambda(
        ast.arguments([], parameters, None, [], [], None, defaults), method_call(tensor, "set_data", values)
    )


def _rule(row: Row, given: Mapping[str, ObservedArgument], tensor: ast.expr, name: Namer) -> ast.Call:
    """The call of MindSpore's initializer, `Rule(…)`."""
    rule = _mirrored(row, given, name) or write_call(row, given, name)
    itself = {ast.dump(tensor), *(ast.dump(given[name].node) for name in ("tensor",) if name in given)}
    rule.args = rule.args[1:] if rule.args and ast.dump(rule.args[0]) in itself else rule.args
    return rule


@handles(*FILLS, stage=Stage.STATEMENT)
def fill(call: ast.Call, context: Context) -> list[ast.stmt] | None:
    """`weight.normal_(0, 1)` of a parameter by an initializer; not for one number in a part of it."""
    callees = callees_of(call)
    if len(callees) != 1 or not isinstance(call.func, ast.Attribute):
        return None
    tensor = underlying_tensor(call.func.value)
    if tensor is call.func.value and not always(kinds_of(tensor), TensorKind, parameter=True):
        return None
    if isinstance(tensor, ast.Subscript) and call.func.attr in VALUES:
        return None
    initializer = replacing(ast.Call(call.func, [tensor, *call.args], call.keywords), call)
    return _named_once(_initialized(initializer, FILLS[callees[0]], context), context)


@handles("torch.manual_seed", "torch.random.manual_seed", stage=Stage.STATEMENT)
def seeded(call: ast.Call, context: Context) -> list[ast.stmt]:
    """`torch.manual_seed(seed)`: what is drawn after it is another, and the same each time."""
    seeds = [context.visit(one) for one in (*call.args, *(word.value for word in call.keywords))]
    return [ast.Expr(ast.Call(context.name("msmigrate.nn.functional.manual_seed"), seeds, []))]


@handles(COPY, stage=Stage.STATEMENT)
def copy_values(call: ast.Call, context: Context) -> list[ast.stmt]:
    """`copy_(tensor, values)`."""
    tensor = context.visit(copy.deepcopy(call.args[0]))
    return write_value(context, call.args[0], tensor, context.visit(call.args[1]))


def _initialized(call: ast.Call, name: str, context: Context) -> list[ast.stmt]:
    """`tensor.set_data(initializer(Rule(…), tensor.shape, tensor.dtype))`."""
    row = row_of(name)
    call.args[0] = underlying_tensor(call.args[0])
    tensor = context.visit(copy.deepcopy(call.args[0]))
    try:
        if row is None:
            raise Unwritable(f"{name} has no row in the mapping table")
        whole = _reshaped(call.args[0])
        place = tensor if whole is call.args[0] else context.visit(copy.deepcopy(whole))
        given = arguments_of(row, call, context)
        drawn = _between(row, given, tensor, context.name)
        if drawn is not None:
            return write_value(context, whole, place, _in_shape_of(place, tensor, drawn))
        values = _drawn(_rule(row, given, tensor, context.name), tensor, context.name)
    except Unwritable as error:
        return [ast.Expr(context.missing(call, str(error)))]
    if place is not tensor:
        return write_value(context, whole, place, _in_shape_of(place, tensor, method_call(values, "init_data")))
    set_whole = isinstance(place, (ast.Name, ast.Attribute)) <= is_parameter(whole) and not isinstance(
        place, ast.Subscript
    )
    if context.builds and set_whole:  # before anything is compiled
        return [ast.Expr(method_call(place, "set_data", values))]
    return write_value(context, whole, place, method_call(values, "init_data"))


RESHAPED = {f"torch.Tensor.{name}" for name in ("view", "reshape", "flatten")}


def _reshaped(node: ast.expr) -> ast.expr:
    """The tensor `weight` of `weight.view(n, -1)`; anything else, such as `getattr(self, name)`, unchanged."""
    if not isinstance(node, ast.Call) or not is_method(callees_of(node)) or not callees_of(node):
        return node
    if not RESHAPED.issuperset(callees_of(node)) or not isinstance(node.func, ast.Attribute):
        raise Unwritable(f"{ast.unparse(node)} is assigned values: assign them to the tensor itself")
    return underlying_tensor(node.func.value)


def _in_shape_of(place: ast.expr, tensor: ast.expr, values: ast.expr) -> ast.expr:
    """Values that were drawn in the shape of `tensor`, reshaped to that of their target."""
    return values if place is tensor else method_call(values, "reshape", attribute(copy.deepcopy(place), "shape"))


def _drawn(rule: ast.expr, tensor: ast.expr, name: Namer) -> ast.expr:
    """`initializer(Rule(…), tensor.shape, tensor.dtype)`."""
    shape, dtype = (attribute(copy.deepcopy(tensor), one) for one in ("shape", "dtype"))
    return ast.Call(name("mindspore.common.initializer.initializer"), [rule, shape, dtype], [])


def _mirrored(row: Row, given: Mapping[str, ObservedArgument], name: Namer) -> ast.Call | None:
    """`uniform_(tensor, -bound, bound)` with a computed bound: the rule takes one bound for both sides."""
    low, high = (given.get(one) for one in ("a", "b"))
    if row.mindspore is None or low is None or high is None or isinstance(high.node, ast.Constant):
        return None
    if ast.unparse(low.node) != f"-{ast.unparse(high.node)}" or row.short != "uniform_":
        return None
    return ast.Call(name(row.mindspore), [], [ast.keyword("scale", high.node)])


def _between(row: Row, given: Mapping[str, ObservedArgument], tensor: ast.expr, name: Namer) -> ast.expr | None:
    """`uniform_(tensor, low, high)` with bounds that are not symmetric: MindSpore's rule is symmetric, and its draws
    are shifted to the middle of the two. None for any other call."""
    if row.mindspore is None or row.short != "uniform_" or "generator" in given:
        return None
    zero, one = ast.Constant(0.0), ast.Constant(1.0)
    low, high = (given[one].node if one in given else bound for one, bound in (("a", zero), ("b", one)))
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
        half, middle = (ast.Constant(float(f"{n / 2:.12g}")) for n in (numbers[1] - numbers[0], sum(numbers)))
    rule = ast.Call(name(row.mindspore), [], [ast.keyword("scale", half)])
    values = method_call(_drawn(rule, tensor, name), "init_data")
    return ast.BinOp(values, ast.Add(), copy.deepcopy(middle))


@handles("torch.nn.*")
def reset_parameters(call: ast.Call, context: Context) -> ast.expr | None:
    """`layer.reset_parameters()` of a torch layer, and `super().reset_parameters()` in a class that derives from
    one."""
    resets = all(name.endswith(".reset_parameters") for name in callees_of(call))
    if not resets or not isinstance(call.func, ast.Attribute):
        return None
    if is_super(call.func):
        row = context.program.torch_base(context.owner)
        names = [state.mindspore for state in row.state if state.mindspore] if row is not None else []
        return ast.Call(context.name(RESET), [ast.Name("self", ast.Load()), *map(ast.Constant, names)], [])
    return ast.Call(context.name(RESET), [context.visit(call.func.value)], [])


# What a tensor that is written into is a view of


@handles("torch.Tensor.resize_", "torch.Tensor.resize_as_")
def resized(call: ast.Call, context: Context) -> ast.expr | None:
    """`x.new().resize_(3, 4)` as `x.new_empty(3, 4)`; None for a tensor that holds something."""
    new, empty = call.func.value if isinstance(call.func, ast.Attribute) else call, "torch.Tensor.new"
    if not isinstance(new, ast.Call) or callees_of(new) != [empty] or new.args or new.keywords or not call.args:
        return None
    sizes = call.args
    if callees_of(call) == ["torch.Tensor.resize_as_"]:
        sizes = [replacing(ast.Attribute(call.args[0], "shape", ast.Load()), call.args[0])]
        set_kinds(sizes[0], [SizeKind(0)])
    assert isinstance(new.func, ast.Attribute)
    function = replacing(ast.Attribute(new.func.value, "new_empty", ast.Load()), new.func)
    set_callee(function, "torch.Tensor.new_empty")
    found: ast.expr = context.visit(replacing(ast.Call(function, sizes, []), call))
    return found


def of_one_row(node: ast.expr, context: Context) -> bool:
    """Whether it is the weight of a layer where MindSpore's has another 1 in its shape: Conv1d, a Conv2d of one row."""
    node = underlying_tensor(node)
    if not isinstance(node, ast.Attribute) or node.attr != "weight":
        return False
    return context.program.all_derive(kinds_of(node.value), TABLES["one_row"])


def in_torchs_shape(node: ast.expr, context: Context) -> ast.expr:
    """Such a weight without that 1."""
    return ast.Call(context.name("mindspore.ops.squeeze"), [context.visit(node), ast.Constant(2)], [])


def in_shape_of_weight(into: ast.expr, value: ast.expr, context: Context) -> ast.expr:
    """A value for all of a tensor, with that 1 for such a weight."""
    if not of_one_row(into, context):
        return value
    return ast.Call(context.name("mindspore.ops.unsqueeze"), [value, ast.Constant(2)], [])


@handles(syntax=[ast.Subscript, ast.BinOp, ast.UnaryOp, ast.Attribute])
def of_torchs_shape(node: ast.expr, context: Context) -> ast.expr | None:
    """What is computed with such a weight, with `w[:, :, 0]`, `2 * w`, `-w` and `w.shape`."""
    match node:
        case ast.Subscript(value, index, ctx) if isinstance(ctx, ast.Load) and of_one_row(value, context):
            return ast.Subscript(in_torchs_shape(value, context), context.visit(index), ctx)
        case ast.BinOp(left, operator, right) if of_one_row(left, context) or of_one_row(right, context):
            sides = [in_torchs_shape(n, context) if of_one_row(n, context) else context.visit(n) for n in (left, right)]
            return ast.BinOp(sides[0], operator, sides[1])
        case ast.UnaryOp(operator, operand) if of_one_row(operand, context):
            return ast.UnaryOp(operator, in_torchs_shape(operand, context))
        case ast.Attribute(value, "shape" | "ndim" | "mT" as name, ast.Load()) if of_one_row(value, context):
            return ast.Attribute(in_torchs_shape(value, context), name, ast.Load())
    return None


@handles(syntax=[ast.Assign], stage=Stage.IN_PLACE)
def weight_of_one_row(node: ast.Assign, context: Context) -> list[ast.stmt] | None:
    """`layer.weight = nn.Parameter(values)`, `layer.weight.data[:, :, 0] = 0`, `w = layer.weight` of such a weight."""
    match node.targets:
        case [ast.Name(name) as target] if of_one_row(node.value, context):
            if not isinstance(context.function, ast.FunctionDef) or _written_to(name, context.function):
                return None
            return [ast.Assign([target], in_torchs_shape(node.value, context))]
        case [ast.Attribute() as target] if of_one_row(target, context) and isinstance(node.value, ast.Call):
            made = context.visit(node.value)
            if not (
                isinstance(made, ast.Call)
                and made.args
                and node.value.args
                and not of_one_row(node.value.args[0], context)
            ):
                return None
            made.args[0] = in_shape_of_weight(target, made.args[0], context)
            return [ast.Assign([context.visit(target)], made)]
        case [ast.Subscript(value, index) as target] if of_one_row(value, context) and context.in_python:
            if isinstance(index, ast.Tuple) and len(index.elts) > 2 and not any(map(_counts_no_axis, index.elts[:2])):
                index.elts.insert(2, ast.Constant(0))
                return None
            if not isinstance(node.value, ast.Constant):
                raise Unwritable(f"{ast.unparse(target)}: that weight has four axes in MindSpore; name three here")
    return None


def _written_to(name: str, function: ast.FunctionDef) -> bool:
    """Whether a function may write into the tensor that a variable holds, or change it otherwise."""
    for inner in ast.walk(function):
        match inner:
            case ast.Attribute(ast.Name(used), attr, ctx) if used == name:
                if attr.endswith("_") or attr in ("data", "grad") or not isinstance(ctx, ast.Load):
                    return True
            case ast.Subscript(ast.Name(used), _, ast.Store()) | ast.AugAssign(ast.Name(used)) if used == name:
                return True
            case ast.Call() if any(isinstance(part, ast.Name) and part.id == name for part in ast.walk(inner)):
                if not all(map(_only_reads, callees_of(inner))):
                    return True
    return False


def _only_reads(callee: str) -> bool:
    """Whether it is a function of torch's, or Python's own, that writes into nothing."""
    of_torch = callee.startswith(("torch.", "builtins.")) and not callee.startswith("torch.nn.init.")
    return of_torch and not callee.endswith("_")


def _counts_no_axis(item: ast.expr) -> bool:
    """Whether a part of an index is no index of one axis: `...`, None, or a mask."""
    kinds = kinds_of(item)
    return (isinstance(item, ast.Constant) and item.value in (..., None)) or any(
        isinstance(kind, TensorKind) for kind in kinds
    )


def shares(target: ast.Subscript, function: ast.AST | None) -> bool:
    """Whether what is written into may be a part of another tensor, which changes with it: all but a variable that
    holds a new tensor, or an item of an argument. An item of an item, `x[0][1] = 2`, is one of the variable."""
    sliced, name = _is_sliced(target), target.value
    while isinstance(name, ast.Subscript) and not _is_sliced(name):
        name = name.value
    if not isinstance(name, ast.Name):
        return True
    bound: list[tuple[int, bool]] = []  # in which line, and whether to a new tensor
    for node in ast.walk(function or name):
        if isinstance(node, (ast.Assign, ast.For)):
            targets = node.targets if isinstance(node, ast.Assign) else [node.target]
            names = [part for each in targets for part in ast.walk(each) if isinstance(part, ast.Name)]
            if any(part.id == name.id and isinstance(part.ctx, ast.Store) for part in names):
                bound.append((node.lineno, isinstance(node, ast.Assign) and _makes_new(node.value)))
    last = max((each for each in bound if each[0] < name.lineno), default=(0, not sliced))
    reaching = [last, *(each for each in bound if each[0] >= name.lineno)]
    return not all(new for _, new in reaching)


def _is_sliced(target: ast.Subscript) -> bool:
    index = target.slice.elts if isinstance(target.slice, ast.Tuple) else [target.slice]
    return any(isinstance(item, ast.Slice) for item in index)


def _makes_new(value: ast.expr) -> bool:
    if isinstance(value, ast.Call) and isinstance(value.func, ast.Attribute):  # torch.zeros(2, 4).float() is new, too
        return value.func.attr not in SHARING or _makes_new(value.func.value)
    return isinstance(value, (ast.Call, ast.BinOp, ast.UnaryOp, ast.Compare))


# Modules that run while the net is made


@handles(syntax=[ast.Assign, ast.AnnAssign, ast.AugAssign, ast.Expr], stage=Stage.IN_PLACE)
def run_as_it_is_made(node: ast.stmt, context: Context) -> None:
    """Training mode around what a constructor runs, as `self.features(torch.zeros(size))`: torch's modules are in it
    from the start, without a call of `train`; MindSpore's are not."""
    program, made = context.program, getattr(context.function, "name", "") == "__init__"
    runs = made and program.derives(context.owner, "torch.nn.Module") and _runs_modules(node, program)
    if runs and _has_modes(program):
        for around, training in ((context.before, True), (context.after, False)):
            itself, mode = ast.Name("self", ast.Load()), ast.keyword("training", ast.Constant(training))
            around.append(ast.Expr(ast.Call(context.name("msmigrate.nn.set_mode"), [itself], [mode])))


def _runs_modules(node: ast.AST, program: Program, *, within: bool = True) -> bool:
    """Whether a statement runs a module or asks for the mode, itself or by a function of the model that it calls."""
    if any(isinstance(one, ast.Attribute) and one.attr == "training" for one in ast.walk(node)):
        return True
    for call in (one for one in ast.walk(node) if isinstance(one, ast.Call)):
        functions = [program.functions[name] for name in callees_of(call) if name in program.functions]
        plain = [program.node(one) for one in functions if not one.name.endswith("__init__")]
        runs = any(name.startswith("module ") or name.endswith(".forward") for name in callees_of(call))
        if runs or (within and any(one is not None and _runs_modules(one, program, within=False) for one in plain)):
            return True
    return False


def _has_modes(program: Program) -> bool:
    """Whether the model computes otherwise in training: by its layers, or as its own files ask whether it trains."""
    if any(name.rpartition(".")[2].startswith(WITH_MODES) for of in program.facts.classes.values() for name in of):
        return True
    nodes = (node for file in program.own_files for node in ast.walk(program.tree(file)))
    return any(isinstance(node, ast.Attribute) and node.attr == "training" for node in nodes)
