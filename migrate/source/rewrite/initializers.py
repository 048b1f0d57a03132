"""Assigning a tensor's values; and initial values of parameters, by functions of torch.nn.init, called or passed on,
and by `weight.data.normal_()`.

Each becomes `tensor.set_data(initializer(Rule(…), tensor.shape, tensor.dtype))`. What a tensor that is written into is
a view of, is found by the calls that made it; and a layer that writes into its input, `nn.ReLU(inplace=True)`, where
it did so in the run.
"""

from __future__ import annotations

import ast
import copy
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import NamedTuple, TypeGuard

from ....mappings.rows import Row
from ...library_names import TABLES
from ...source_files import substitute
from ..observe.instrument import always_evaluated
from ..observe.observations import (
    ModuleKind,
    PlainKind,
    SizeKind,
    TensorKind,
    always,
    callees_of,
    kinds_of,
    observed,
    of_constant,
    replacing,
    set_callee,
    set_kinds,
)
from .context import Context, Namer, ObservedArgument, Stage, Unwritable, handles, row_of
from .row_calls import arguments_of, is_method, is_super, is_variable, write_call

# methods that fill a tensor with one number -> that number; None: their argument
VALUES = {"zero_": 0, "fill_": None}
FILLS: dict[str, str] = TABLES["fills"]
RESET = "msmigrate.nn.reset_parameters"
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


def write_value(context: Context, source: ast.expr, target: ast.expr, value: ast.expr) -> ast.stmt:
    """Give a tensor other values: a parameter stays the same object with its name, and a function's argument stays the
    caller's tensor."""
    parameter = always(kinds_of(underlying_tensor(source)), TensorKind, parameter=True)
    if vars(underlying_tensor(source)).get("of_caller") and isinstance(target, ast.Name) and not parameter:
        return ast.Expr(ast.Call(ast.Attribute(target, "copy_", ast.Load()), [value], []))
    if isinstance(target, ast.Subscript) or (isinstance(target, (ast.Name, ast.Attribute)) and not parameter):
        target.ctx = ast.Store()
        return ast.Assign([target], value)
    return ast.Expr(ast.Call(ast.Attribute(target, "set_data", ast.Load()), [value], []))


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
            taken = context.local | {n.id for n in ast.walk(context.function or tensor) if isinstance(n, ast.Name)}
            free = (one for one in (*texts, "tensor", "tensor_of_layer") if one.isidentifier() and one not in taken)
            name = next(free)
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
    match _initialized(call, callees_of(call)[0], context):
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
    return [write_value(context, call.args[0], tensor, context.visit(call.args[1]))]


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
            return [write_value(context, whole, place, _in_shape_of(place, tensor, drawn))]
        values = _drawn(_rule(row, given, tensor, context.name), tensor, context.name)
    except Unwritable as error:
        return [ast.Expr(context.missing(call, str(error)))]
    if place is not tensor:
        return [write_value(context, whole, place, _in_shape_of(place, tensor, method_call(values, "init_data")))]
    made = write_value(context, whole, place, values)
    if isinstance(made, ast.Assign) or ".copy_(" in ast.unparse(made):  # only set_data takes one without values
        made = write_value(context, whole, place, method_call(values, "init_data"))
    return [made]


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

# methods of tensors whose result shares the memory of what they are called on, at least sometimes
SHARING = {
    *("view", "reshape", "transpose", "permute", "squeeze", "unsqueeze", "expand", "t", "detach", "contiguous", "to"),
    *("chunk", "split", "narrow", "select", "unbind", "flatten", "unflatten", "swapaxes", "movedim", "float", "type"),
    *("diagonal", "unfold", "view_as", "expand_as", "reshape_as", "type_as", "requires_grad_", "swapdims", "ravel"),
}
IN_ORDER = {"view", "view_as", "squeeze", "unsqueeze", "unflatten"}  # all of the values, in their order
TURNING = {"t", "transpose", "swapaxes", "swapdims"}  # what the same call turns back
ALWAYS = {  # what surely shares it
    *("chunk", "split", "narrow", "select", "unbind", "expand", "expand_as", "diagonal", "unfold", "permute"),
    *("movedim", "detach", *IN_ORDER, *TURNING),
}


# modules that may give back what they are given
UNCHANGED = {f"module torch.nn.{name}" for name in ("Identity", "Dropout", "Dropout1d", "Dropout2d", "Dropout3d")}


def view_of(node: ast.expr) -> tuple[ast.expr, list[ast.Call]]:
    """The expression whose memory a tensor shares, at least sometimes, and the calls by which, the last one first:
    `y` of `y.view(-1)` and of `torch.squeeze(y, 0)`."""
    calls: list[ast.Call] = []
    while isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
        callees = callees_of(node)
        of_torch = node.func.attr in SHARING and all(name.startswith("torch.") for name in callees)
        if not of_torch and not (callees and UNCHANGED.issuperset(callees)):
            break
        method = _is_method_call(node)
        if not method and not node.args:
            break
        calls.append(node)
        node = node.func.value if method else node.args[0]
    return node, calls


def back(part: ast.expr, calls: list[ast.Call], whole: ast.expr) -> ast.expr | None:
    """The values of a view in the shape of the tensor that it is a view of; None where that is not known."""
    names = [call.func.attr for call in calls if isinstance(call.func, ast.Attribute)]
    kinds, found = kinds_of(whole), copy.deepcopy(calls[0])
    if {*names} <= IN_ORDER:
        sizes = [SizeKind(kind.rank) for kind in kinds if isinstance(kind, TensorKind)]
        shape = set_kinds(ast.Attribute(whole, "shape", ast.Load()), sizes)
        found = ast.Call(ast.Attribute(part, "reshape", ast.Load()), [shape], [])
        set_callee(found.func, "torch.Tensor.reshape")
        return set_kinds(found, kinds)
    if (
        len(names) != 1
        or names[0] not in TURNING
        or any(isinstance(n, ast.Call) for one in found.args for n in ast.walk(one))
    ):
        return None
    if isinstance(found.func, ast.Attribute) and _is_method_call(found):
        found.func.value = part
    else:
        found.args[0] = part
    return set_kinds(found, kinds)


def _is_method_call(call: ast.Call) -> bool:
    """Whether it is called on a tensor; of code that did not run it is taken for one."""
    return all(name.startswith("torch.Tensor.") for name in callees_of(call))


def shares(target: ast.Subscript, function: ast.AST | None) -> bool:
    """Whether what is written into may be a part of another tensor, which changes with it: all but an item, or a slice
    of a variable that holds a new tensor."""
    name, index = target.value, target.slice.elts if isinstance(target.slice, ast.Tuple) else [target.slice]
    if not isinstance(name, ast.Name):
        return True
    if not any(isinstance(item, ast.Slice) for item in index):
        return False
    given = [
        node
        for node in ast.walk(function or name)
        if isinstance(node, ast.Assign) and name.id in (getattr(target, "id", "") for target in node.targets)
    ]
    before = [node for node in given if node.lineno < name.lineno]
    last = max(before, key=lambda node: node.lineno, default=None)
    reaching = [last, *(node for node in given if node.lineno >= name.lineno)]
    return not all(node is not None and _makes_new(node.value) for node in reaching)


def _makes_new(value: ast.expr) -> bool:
    if isinstance(value, ast.Call) and isinstance(value.func, ast.Attribute):  # torch.zeros(2, 4).float() is new, too
        return value.func.attr not in SHARING or _makes_new(value.func.value)
    return isinstance(value, (ast.Call, ast.BinOp, ast.UnaryOp, ast.Compare))


@dataclass(frozen=True)
class View:
    """A name for a part of the tensor `base`: what the index picks, what the expression `made` gives, or all of it."""

    base: str
    index: ast.expr | None = None
    made: ast.expr | None = None
    sure: bool = True  # whether it is a tensor: not in code that did not run, whose numbers may be items of a list

    def names(self) -> set[str]:
        """The names that it depends on."""
        inside = [node for part in (self.index, self.made) if part is not None for node in ast.walk(part)]
        return {self.base, *(node.id for node in inside if isinstance(node, ast.Name))}


def views_of(statement: ast.stmt) -> Iterator[tuple[str, View]]:
    """The names that an assignment makes a part of a tensor, or all of it."""
    if not isinstance(statement, ast.Assign):
        return
    first, *others = statement.targets
    if isinstance(first, ast.Name):
        yield from ((one.id, View(first.id)) for one in others if isinstance(one, ast.Name))
    for target in statement.targets:
        pairs: list[tuple[ast.expr, ast.expr]] = [(target, statement.value)]
        if isinstance(target, ast.Tuple) and isinstance(statement.value, ast.Tuple):
            pairs = [*zip(target.elts, statement.value.elts, strict=False)]
        for one, value in pairs:
            match one, value:
                case ast.Name(id=name), ast.Name(id=base):
                    yield name, View(base)
                case ast.Name(id=name), ast.Subscript(value=ast.Name(id=base), slice=ast.Constant(str()) as index):
                    yield name, View(base, index)
                case ast.Name(id=name), ast.Subscript(value=ast.Name(id=base), slice=index) if is_basic(index):
                    yield name, View(base, index)
                case ast.Name(id=name), ast.Call() if isinstance(whole := view_of(value)[0], ast.Name):
                    yield name, View(whole.id, None, value)
                case ast.Tuple(elts=elts), ast.Call() if isinstance(whole := view_of(value)[0], ast.Name):
                    for number, each in enumerate(elts):
                        if isinstance(each, ast.Name):
                            yield each.id, View(whole.id, None, ast.Subscript(value, ast.Constant(number), ast.Load()))


def is_basic(index: ast.expr) -> bool:
    """Whether an index has only numbers and slices: for any other, torch makes a copy."""
    items = index.elts if isinstance(index, ast.Tuple) else [index]
    return all(
        isinstance(item, ast.Slice)
        or always(kinds_of(item), PlainKind)
        or isinstance(getattr(item.operand if isinstance(item, ast.UnaryOp) else item, "value", None), (int, type(...)))
        for item in items
    )


LOST = "lost"  # attribute of a call's node: why its writing into an argument cannot be converted


def mark(view: View, name: str, *, unknown: bool = False) -> None:
    """Mark the call that makes a view as one that cannot be written, where it may give a tensor of its own, or where
    what is written into the view cannot be put back."""
    made = view.made.value if isinstance(view.made, ast.Subscript) else view.made
    calls = view_of(made)[1] if made is not None else []
    unsure = any(isinstance(call.func, ast.Attribute) and call.func.attr not in ALWAYS for call in calls)
    if calls and (unknown or unsure):
        text = f"{ast.unparse(calls[0])} may share its values with `{view.base}`, and one of the two is written into"
        refuse(calls[0], f"{text} before the other is read (`{name}`): write with an index, or use .clone()")


def refuse(call: ast.Call, why: str) -> None:
    """Let a call be one that cannot be written, whatever it calls."""
    vars(call)[LOST] = why
    vars(call.func).pop("observed", None)


class ChangedInPlace(NamedTuple):
    """A call that changes a tensor under a name, as that of a layer with `inplace=True` does; how: see `Observed`."""

    call: ast.Call
    name: ast.Name
    how: str

    def apart(self, statement: ast.stmt) -> tuple[ast.stmt, ast.stmt] | None:
        """`x = self.act(x)`, and the statement with x in place of the call; None where that would not be the same."""
        if not self.how or not self._may_go_first(statement):
            return None
        first: ast.expr = self.call
        instead: ast.expr = replacing(ast.Name(self.name.id, ast.Load()), self.call)
        if self.how != "itself":  # the first layer of a Sequential
            layer = ast.Subscript(copy.deepcopy(self.call.func), ast.Constant(0), ast.Load())
            first = ast.Call(set_kinds(layer, []), [copy.deepcopy(self.name)], [])
            set_callee(layer, "module torch.nn.ReLU")
            set_kinds(first, kinds_of(self.call))
            instead = self.call
        if self.how == "rest":
            all_layers = set_kinds(copy.deepcopy(self.call.func), [ModuleKind("torch.nn.Sequential")])
            whole = ast.Subscript(all_layers, ast.Slice(ast.Constant(1), None, None), ast.Load())
            instead = replacing(ast.Call(whole, self.call.args, self.call.keywords), self.call)
        made = replacing(ast.Assign([ast.Name(self.name.id, ast.Store())], first), statement)
        ast.fix_missing_locations(made)
        made.end_lineno, made.end_col_offset = (
            statement.lineno,
            statement.col_offset,
        )  # what the statement reads is after
        left = substitute(statement, lambda node: instead if node is self.call else None)
        return made, ast.fix_missing_locations(left)

    def is_read(self, statement: ast.stmt, name: str) -> bool:
        """Whether the statement reads a name, but for what it has computed with it before the call."""
        return any(self._at_hand(node, statement) is not None for node in self._reads(statement, name))

    def _reads(self, statement: ast.stmt, name: str) -> list[ast.Name]:
        """Where the statement reads a name, but for the call itself and what is in it."""
        inside = {*ast.walk(self.call)}
        names = [node for node in ast.walk(statement) if isinstance(node, ast.Name) and node.id == name]
        return [node for node in names if isinstance(node.ctx, ast.Load) and node not in inside]

    def _at_hand(self, read: ast.Name, statement: ast.stmt) -> ast.expr | None:
        """What the call changes too where a name is read: behind the call the name, before it a name, or a view of it,
        that has been read and not yet computed with; None for anything else."""
        if (read.lineno, read.col_offset) >= (self.call.lineno, self.call.col_offset):
            return read
        around = [node for node in ast.walk(statement) if any(inner is self.call for inner in ast.walk(node))]
        waiting = [child for node in around for child in ast.iter_child_nodes(node) if child not in around]
        part = next((child for child in waiting if any(inner is read for inner in ast.walk(child))), None)
        whole, calls = view_of(part) if isinstance(part, ast.expr) else (None, [])
        shared = all(callees_of(c) == IDENTITY or getattr(c.func, "attr", "") in ALWAYS for c in calls)
        return part if isinstance(part, ast.expr) and whole is read and shared else None

    def _may_go_first(self, statement: ast.stmt) -> bool:
        """Whether nothing that the statement computes before the call computes with the tensor."""
        return all(self._at_hand(node, statement) is not None for node in self._reads(statement, self.name.id))


IDENTITY = ["module torch.nn.Identity"]


def changed_in_place(statement: ast.stmt) -> Iterator[ChangedInPlace]:
    """What a statement changes so, the first to run first."""
    field = {ast.If: "test", ast.For: "iter"}.get(type(statement), "value")
    value = getattr(statement, field, None)
    for call in [] if value is None else always_evaluated(value):
        if not isinstance(call, ast.Call):
            continue
        words = {word.arg: word.value for word in call.keywords}
        for key, how in observed(call.func).changed.items():
            given = call.args[int(key)] if key.isdigit() and int(key) < len(call.args) else words.get(key)
            if isinstance(given, ast.Name):
                yield ChangedInPlace(call, given, how)
