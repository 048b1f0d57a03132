"""Methods and facts of tensors that no row can say, slices that MindSpore's CPU gets wrong, and writing into tensors.

What writes into one: `x += y`, `x.add_(y)`; what draws its values stands in initializers.py.

MindSpore's tensors are values: the result gets the name of what was written into, so that both modes compute the same.
(`i = x; x += y` was seen to change `i` in Graph mode and not in PyNative.)
"""

from __future__ import annotations

import ast
import copy
from collections.abc import Callable, Mapping, Sequence
from typing import NamedTuple

from ....mappings.verbs import as_tuple
from ...library_names import TABLES, is_dtype
from ...source_files import literal, own_nodes
from ..observe.instrument import sliced
from ..observe.observations import (
    NONE,
    DictKind,
    DtypeKind,
    ObjectKind,
    PlainKind,
    SequenceKind,
    SizeKind,
    TensorKind,
    always,
    always_sequences,
    callees_of,
    constants_of,
    holds_tensor,
    kinds_of,
    of_constant,
    replacing,
    set_callee,
)
from .argument_kinds import NO_CAST, NUMPYS, pythons_number
from .context import (
    Context,
    ObservedArgument,
    Program,
    Stage,
    Unwritable,
    expression,
    fill_template,
    handles,
    row_of,
)
from .devices_and_no_grad import as_dtype
from .initializers import (
    VALUES,
    attribute,
    in_data,
    in_shape_of_weight,
    is_parameter,
    method_call,
    past_gradient,
    root_of,
    underlying_tensor,
    write_value,
)
from .row_calls import argument_of, is_method

PREFIX = "torch.Tensor."
LIMITS = {"torch.finfo", "torch.iinfo"}  # what numbers a dtype can hold
TEMPLATES: dict[str, str] = TABLES["tensor_methods"]
PAIR = ("values", "indices")


class Call(NamedTuple):
    """A call of a method: the tensor, and what it is given, rewritten."""

    tensor: ObservedArgument
    args: Sequence[ObservedArgument]
    named: Mapping[str, ObservedArgument]
    starred: bool  # whether one of the arguments is `*something`


Writer = Callable[[Call], ast.expr]


def _size(call: Call) -> ast.expr:
    shape = attribute(call.tensor.node, "shape")
    index = [*call.args, *call.named.values()]
    return ast.Subscript(shape, index[0].node, ast.Load()) if index else shape


def _reshape(call: Call) -> ast.expr:
    if any(DtypeKind() in item.kinds for item in call.args):
        raise Unwritable("torch.Tensor.view with a dtype, which reads the same bytes as another type")
    sizes = [item.node for item in (*call.args, *call.named.values())]
    if (
        len(sizes) == 1
        and call.args
        and any(isinstance(k, SequenceKind) and k.type == "list" for k in call.args[0].kinds)
    ):
        sizes = [as_tuple(sizes[0])]
    return method_call(call.tensor.node, "reshape", *sizes)


def _to(call: Call) -> ast.expr:
    """The cast alone: a device, and how it is copied, are no concern of a tensor of MindSpore's."""
    for item in (*call.args, *call.named.values()):
        kinds = {*item.kinds}
        if kinds == {DtypeKind()}:
            return method_call(call.tensor.node, "astype", item.node)
        if kinds == {DtypeKind(), NONE} and isinstance(item.node, (ast.Name, ast.Attribute)):
            given = ast.Compare(item.node, [ast.IsNot()], [ast.Constant(None)])
            cast = method_call(call.tensor.node, "astype", copy.deepcopy(item.node))
            return ast.IfExp(given, cast, copy.deepcopy(call.tensor.node))
        if always(item.kinds, TensorKind):
            return method_call(call.tensor.node, "astype", attribute(item.node, "dtype"))
        if not kinds <= NO_CAST or not (kinds or isinstance(item.node, (ast.Constant, ast.JoinedStr))):
            raise Unwritable(f"{ast.unparse(item.node)} may be a dtype or a device: write x.to(dtype=…), or the device")
    return call.tensor.node


def _type(call: Call) -> ast.expr:
    """`x.type(torch.LongTensor)` and `x.type("torch.LongTensor")`, the classes as dtypes; and `x.type(dtype)`. What
    `x.type()` gives is the dtype, too, so that a variable of such text has one."""
    if not (given := [*call.args, *call.named.values()]):
        return attribute(call.tensor.node, "dtype")
    kinds = {*given[0].kinds} if len(given) == 1 else set()
    if kinds != {DtypeKind()} and (kinds != {PlainKind("str")} or isinstance(given[0].node, ast.Constant)):
        raise Unwritable("torch.Tensor.type: write the dtype, as in x.to(torch.int64)")
    return method_call(call.tensor.node, "astype", given[0].node)


METHODS: dict[str, Writer] = {
    "size": _size,
    "view": _reshape,
    "reshape": _reshape,
    "to": _to,
    "type": _type,
    "type_as": lambda c: method_call(c.tensor.node, "astype", attribute((*c.args, *c.named.values())[0].node, "dtype")),
}


@handles(*(f"{PREFIX}{name}" for name in (*METHODS, *TEMPLATES)))
def method(node: ast.Call, context: Context) -> ast.expr | None:
    """A call of a method that MindSpore's tensors have under another name, or have as a fact."""
    callees = callees_of(node)
    if len(callees) != 1 or not isinstance(node.func, ast.Attribute):
        return None
    named = {word.arg: word.value for word in node.keywords if word.arg is not None}
    name = callees[0].removeprefix(PREFIX)
    given = [copy.deepcopy(part) for part in (node.func.value, *node.args, *named.values())]
    dtypes = [as_dtype(part, context) if name == "type" else None for part in given]
    tensor, *items = (
        argument_of(part, context) if dtype is None else ObservedArgument(dtype, [DtypeKind()], None)
        for part, dtype in zip(given, dtypes, strict=True)
    )
    count = len(node.args)
    starred = any(isinstance(item, ast.Starred) for item in node.args)
    call = Call(tensor, items[:count], dict(zip(named, items[count:], strict=True)), starred)
    return (
        METHODS[name](call) if name in METHODS else fill_template(TEMPLATES[name], {"self": tensor.node}, context.name)
    )


@handles(*LIMITS)
def limits(node: ast.Call, context: Context) -> ast.expr:
    """`torch.finfo(dtype)`, of which only the numbers are read, and written where they are."""
    return ast.Constant(None)


@handles(syntax=[ast.Attribute])
def fact(node: ast.Attribute, context: Context) -> ast.expr | None:
    """`finfo(dtype).max`; a result that has a name in torch only."""
    kinds = kinds_of(node.value)
    if kinds and all(isinstance(kind, ObjectKind) and kind.cls in LIMITS for kind in kinds):
        limit, sign = constants_of(node), {"max": 1, "min": -1}.get(node.attr)
        given = node.value.args if isinstance(node.value, ast.Call) and kinds == [ObjectKind("torch.finfo")] else []
        of_value = [one for one in given if not (isinstance(one, ast.Attribute) and is_dtype(one.attr))]
        if limit is not None and len(limit) == 1 and (sign is None or not of_value):  # a tensor may have another dtype
            return ast.Constant(limit[0])
        if sign is None or not given:
            return context.missing(node, f"{ast.unparse(node)} is not always one number, as far as that was seen")
        dtypes = [context.visit(one) for one in given]
        largest = ast.Call(context.name("msmigrate.nn.functional.largest"), dtypes, [])
        return largest if sign > 0 else ast.UnaryOp(ast.USub(), largest)
    if node.attr in PAIR and always_sequences(kinds, *TABLES["pairs"]):
        return ast.Subscript(context.visit(node.value), ast.Constant(PAIR.index(node.attr)), ast.Load())
    return None


@handles("torch.get_default_dtype")
def default_dtype(node: ast.Call, context: Context) -> ast.expr:
    """`torch.get_default_dtype()`, which a model that is written keeps: float32."""
    return context.name("mindspore.float32")


@handles(syntax=[ast.Attribute, ast.Name])
def number_of_torchs(node: ast.Attribute | ast.Name, context: Context) -> ast.expr | None:
    """`torch.pi` and the like, as Python's own number."""
    root: ast.expr = node
    while isinstance(root, ast.Attribute):
        root = root.value
    if not isinstance(root, ast.Name) or root.id in context.local:
        return None
    name = context.program.names(context.file).name(node)
    return expression(TABLES["numbers"][name], context.name) if name in TABLES["numbers"] else None


SHARED = "shared_with"  # attribute of a statement that did not run: what it may change as well
RANK = 3  # from here on the gradient of most crashes: "StridedSliceGrad, input memory out of bounds"
GETITEM = "msmigrate.nn.functional.getitem"


class StridedSlices(ast.NodeTransformer):
    """Writes `x[..., ::2]` as a call that takes the values one by one, and so what was empty, `x[:, :, :count]`."""

    def __init__(self, program: Program) -> None:
        self.program = program

    def visit_Subscript(self, node: ast.Subscript) -> ast.AST:
        """A subscript that is read; one that is written to stays."""
        subscript = copy.deepcopy(node)
        ranks = {kind.rank for kind in kinds_of(node.value) if isinstance(kind, TensorKind)}
        self.generic_visit(node)
        items = node.slice.elts if isinstance(node.slice, ast.Tuple) else [node.slice]
        empty = any(isinstance(item, ast.Slice) and _may_be_empty(item) for item in items)
        steps = any(isinstance(item, ast.Slice) and item.step is not None for item in items)
        crashes = steps and max(ranks, default=0) >= RANK and not _outer_axis(items, ranks)
        if not (crashes or (empty and ranks)) or not isinstance(node.ctx, ast.Load):
            return node
        if all(isinstance(item, ast.Slice) for item in items) and ranks == {len(items)}:
            first = next(place for place, item in enumerate(items) if not _whole(item))
            items = [*([ast.Constant(...)] if first else []), *items[first:]]
        index = ast.Tuple([_spelled(item) for item in items], ast.Load())
        found = replacing(ast.Call(self.program.name(GETITEM), [node.value, index], []), node)
        vars(found)["written_as"] = subscript
        return _located(found)

    def visit_AugAssign(self, node: ast.AugAssign) -> ast.AST:
        """`x[:, ::2] += y` as `x[:, ::2] = x[:, ::2] + y`, where it is read by such a call."""
        self.generic_visit(node)
        if not isinstance(node.target, ast.Subscript):
            return node
        there = copy.deepcopy(node.target)
        there.ctx = ast.Load()
        read = self.visit(there)
        if read is there:
            return node
        return replacing(ast.Assign([node.target], ast.BinOp(read, node.op, node.value)), node)


def _outer_axis(items: list[ast.expr], ranks: set[int]) -> bool:
    """Whether nothing but the first or the last axis is cut, whose gradient does not crash."""
    cut = [place for place, item in enumerate(items) if not _whole(item)]
    after_all = len(items) == 2 and literal(items[0]) == (True, ...)
    return cut == [0] or after_all or (cut == [len(items) - 1] and ranks == {len(items)})


def _may_be_empty(item: ast.Slice) -> bool:
    """Whether a slice ended where it began."""
    begins = item.lower is None or literal(item.lower) == (True, 0)
    ends = item.upper is not None and 0 in (constants_of(item.upper) or ())
    return (begins and ends) or True in (constants_of(item) or ())


def _located(call: ast.Call) -> ast.Call:
    """The call with places for what has none: that of the call."""
    for inner in ast.walk(call):
        if isinstance(inner, (ast.expr, ast.keyword)) and not hasattr(inner, "lineno"):
            replacing(inner, call)
    return call


def _whole(item: ast.expr) -> bool:
    """Whether it is `:`."""
    return isinstance(item, ast.Slice) and (item.lower, item.upper, item.step) == (None, None, None)


def _spelled(item: ast.expr) -> ast.expr:
    """`a:b:c` as `slice(a, b, c)`."""
    if not isinstance(item, ast.Slice):
        return item
    if _whole(item):
        return ast.Call(ast.Name("slice", ast.Load()), [ast.Constant(None)], [])
    given = [part or ast.Constant(None) for part in (item.lower, item.upper, item.step)]
    parts = [pythons_number(part, kinds_of(part))[0] for part in given]
    return ast.Call(ast.Name("slice", ast.Load()), parts, [])


@handles(syntax=[ast.Assign], stage=Stage.IN_PLACE)
def guard_empty_slice(node: ast.stmt, context: Context) -> list[ast.stmt] | None:
    """`x[:, a:b] = y` under `if 0 not in x[:, a:b].shape`, where the slice was seen empty; None for any other."""
    into = node.targets[0] if isinstance(node, ast.Assign) else None
    _refuse_shared(node, into.value if isinstance(into, ast.Subscript) else None)
    if not isinstance(node, ast.Assign) or not sliced(node) or True not in (constants_of(node.targets[0]) or ()):
        return None
    written: ast.Assign = context.visit(node)
    there = copy.deepcopy(written.targets[0])
    assert isinstance(there, ast.Subscript)
    there.ctx = ast.Load()
    test = ast.Compare(ast.Constant(0), [ast.NotIn()], [ast.Attribute(there, "shape", ast.Load())])
    return [replacing(ast.If(test, [written], []), node)]


# Writing into tensors


def _refuse_shared(node: ast.stmt, into: ast.expr | None) -> None:
    """Raise Unwritable for a statement that did not run and may write into what has two names, but for numbers and
    lists; into: what it writes into, None for a tensor."""
    kinds = kinds_of(into) if into is not None else []
    of_python = bool(kinds) and all(isinstance(kind, (PlainKind, SequenceKind, DictKind)) for kind in kinds)
    if SHARED in vars(node) and not of_python:
        raise Unwritable(vars(node)[SHARED])


FUNCTIONS = ("torch.nn.functional.", "torch.")


def _writes(name: str) -> bool:
    return name.startswith(FUNCTIONS) and name.endswith("_") and not name.endswith(("__", "requires_grad_"))


def written_tensor(node: ast.expr) -> ast.expr | None:
    """What a call writes into, `y` of `y.mul_(2).add_(x)` and of `F.relu_(y)`; None for any other call."""
    found: ast.expr | None = None
    while isinstance(node, ast.Call):
        callees = callees_of(node)
        if not callees or not all(map(_writes, callees)):
            break
        inner = node.func.value if is_method(callees) and isinstance(node.func, ast.Attribute) else node.args[:1]
        node = inner if isinstance(inner, ast.expr) else inner[0]
        found = node
    return found


def gives_back(function: ast.FunctionDef) -> bool:
    """Whether a function gives anything back."""
    return any(
        isinstance(node, (ast.Yield, ast.YieldFrom)) or (isinstance(node, ast.Return) and node.value is not None)
        for node in own_nodes(function)
    )


def note_of_caller(function: ast.FunctionDef) -> None:
    """Note on the names of a function's arguments that what is written into them is all that it does: where it gives
    nothing back."""
    for inner in [node for node in ast.walk(function) if isinstance(node, ast.FunctionDef)]:
        nodes = [*ast.walk(inner)]
        if gives_back(inner):
            continue
        bound = {
            n.id for node in nodes if isinstance(node, ast.Assign) for n in node.targets if isinstance(n, ast.Name)
        }
        for node in nodes:
            if isinstance(node, ast.Name) and node.id not in bound and node.id in {a.arg for a in inner.args.args}:
                vars(node)["of_caller"] = True


@handles(syntax=[ast.AugAssign, ast.Expr], stage=Stage.IN_PLACE)
def write(node: ast.stmt, context: Context) -> list[ast.stmt] | None:
    """What becomes of a statement that writes into a tensor; None for any other."""
    _refuse_shared(node, node.target if isinstance(node, ast.AugAssign) else None)
    if isinstance(node, ast.AugAssign):
        in_part = not context.in_python and in_data(root_of(node.target))
        if not (in_part if isinstance(node.target, ast.Subscript) else always(kinds_of(node.target), TensorKind)):
            return None
        there = copy.deepcopy(node.target)
        there.ctx = ast.Load()
        value = context.visit(ast.BinOp(copy.deepcopy(there), node.op, node.value))
        return _written_back(there, past_gradient(there, value, context), context)
    if isinstance(node, ast.Expr) and isinstance(node.value, ast.Call):
        into = written_tensor(node.value)
        if into is not None and isinstance(underlying_tensor(into), (ast.Name, ast.Attribute, ast.Subscript)):
            value = _one_for_all(node.value, into, context) or context.visit(copy.deepcopy(node.value))
            return _written_back(into, past_gradient(into, value, context), context)
        if into is not None and is_parameter(into):
            return _written_back(into, context.visit(copy.deepcopy(node.value)), context)
        if into is not None:
            gives = f"{ast.unparse(node)} writes into what {ast.unparse(into)} gives"
            raise Unwritable(f"{gives}: give that a name, write into it, and use it")
    return None


@handles(syntax=[ast.Assign], stage=Stage.IN_PLACE)
def data_given(node: ast.Assign, context: Context) -> list[ast.stmt] | None:
    """`parameter.data = values`, as it is made and as it runs; None for any other."""
    match node:
        case ast.Assign([ast.Attribute(owner, "data")], value) if is_parameter(owner):
            given = in_shape_of_weight(owner, context.visit(value), context)
            return write_value(context, owner, context.visit(owner), given)
        case ast.Assign([ast.Attribute(ast.Name(), "data") as into], value) if in_data(into) and not context.in_python:
            return _written_back(into, past_gradient(into, context.visit(value), context), context)
        case ast.Assign([ast.Attribute(ast.Attribute() as owner, "data") as into], value) if in_data(into):
            return write_value(context, owner, context.visit(owner), context.visit(value))
        case ast.Assign([ast.Subscript() as into], value) if in_data(root_of(into)) and not context.in_python:
            return write_value(context, into, context.visit(copy.deepcopy(into)), context.visit(value))
    return None


def _one_for_all(call: ast.Call, into: ast.expr, context: Context) -> ast.expr | None:
    """The number that `x[:, 0].fill_(number)` puts everywhere."""
    method = call.func.attr if isinstance(call.func, ast.Attribute) else ""
    if not isinstance(underlying_tensor(into), ast.Subscript) or method not in VALUES:
        return None
    given = [*call.args, *(word.value for word in call.keywords)]
    return context.visit(given[0]) if VALUES[method] is None else ast.Constant(VALUES[method])


def _written_back(into: ast.expr, value: ast.expr, context: Context) -> list[ast.stmt]:
    value = in_shape_of_weight(into, value, context)
    return write_value(context, into, context.visit(copy.deepcopy(underlying_tensor(into))), value)


# torch's old constructors -> the dtype of what they make
LEGACY = {
    **dict.fromkeys(("torch.Tensor", "torch.FloatTensor"), "float32"),
    **{f"torch.{name}Tensor": dtype for name, dtype in TABLES["legacy_dtypes"].items()},
}


@handles(*LEGACY)
def legacy_constructor(call: ast.Call, context: Context) -> ast.expr:
    """`torch.FloatTensor(4, 8)` as zeros, for torch leaves open what is in it; of a list or an array as a Tensor."""
    (name, *others), given = callees_of(call), call.args
    dtype = context.name(f"mindspore.{LEGACY[name]}")
    opened = [one.value if isinstance(one, ast.Starred) else one for one in given]
    kinds = [kind for one in opened for kind in kinds_of(one) or ([of_constant(literal(one)[1])] * literal(one)[0])]
    sizes = all(kind in (PlainKind("int"), PlainKind("bool")) or isinstance(kind, SizeKind) for kind in kinds)
    sizes |= len(given) > 1  # it takes nothing else then
    starred = len(given) == 1 and isinstance(given[0], ast.Starred)
    if given and kinds and not others and (starred or sizes):
        shape = given[0].value if isinstance(given[0], ast.Starred) else given[0]
        whole = starred or isinstance(kinds[0], SizeKind)
        sized = context.visit(shape) if whole else ast.Tuple([context.visit(one) for one in given], ast.Load())
        return ast.Call(context.name("mindspore.ops.zeros"), [sized, dtype], [])
    made = [ObjectKind("numpy.ndarray"), ObjectKind("builtins.range")]
    plain = all(isinstance(kind, SequenceKind) or kind in made for kind in kinds)
    if len(given) != 1 or not kinds or others or not plain or any(map(holds_tensor, kinds)):
        raise Unwritable(
            f"{ast.unparse(call)} of something else than sizes or numbers: write torch.tensor or torch.empty"
        )
    values = context.visit(given[0])
    if made[1] in kinds:
        values = ast.Call(ast.Name("list", ast.Load()), [values], [])
    return ast.Call(context.name("mindspore.Tensor"), [values, dtype], [])


ONE_NUMBER = {"torch.ones": 1.0, "torch.zeros": 0.0, "torch.empty": 0.0}


def _says_dtype(settings: ast.expr) -> bool:
    """Whether a dictionary may give a call a dtype: one whose entries are not known may."""
    return not always(kinds_of(settings), DictKind) or any(
        dict(kind.entries).get("dtype", NONE) != NONE for kind in kinds_of(settings) if isinstance(kind, DictKind)
    )


@handles(*ONE_NUMBER)
def one_number(call: ast.Call, context: Context) -> ast.expr | None:
    """`torch.ones([])`, as a tensor without axes, which MindSpore's kernels of ones and zeros do not make."""
    words = {word.arg: word.value for word in call.keywords if word.arg not in ("device", "size")}
    if None in words and not _says_dtype(words[None]):
        del words[None]
    sizes = [*call.args, *(word.value for word in call.keywords if word.arg == "size")]
    name = callees_of(call)[0]
    plain = bool(sizes) and literal(sizes[0]) in ((True, []), (True, ()))
    empty = bool(sizes) and any(kind in (SequenceKind("list"), SequenceKind("tuple")) for kind in kinds_of(sizes[0]))
    if len(sizes) != 1 or not (plain or empty) or {*words} - {"dtype"}:
        return None
    dtype = context.visit(words["dtype"]) if words else context.name("mindspore.float32")
    shape: ast.expr = ast.Tuple([], ast.Load())
    if not plain:  # a list that was empty now and then
        shape = ast.Call(ast.Name("tuple", ast.Load()), [context.visit(sizes[0])], [])
    value = ast.Constant(ONE_NUMBER[name])
    return ast.Call(context.name("mindspore.ops.full"), [shape, value], [ast.keyword("dtype", dtype)])


@handles("torch.autograd.variable.Variable", "torch.autograd.Variable")
def variable(call: ast.Call, context: Context) -> ast.expr:
    """`Variable(tensor)`, which is the tensor itself since torch 0.4."""
    wanted = [word for word in call.keywords if word.arg not in ("data", "volatile")]
    given = [*call.args, *(word.value for word in call.keywords if word.arg == "data")]
    if len(given) != 1 or any(literal(word.value) != (True, False) for word in wanted):
        raise Unwritable(f"{ast.unparse(call)}: write the tensor, or nn.Parameter where it is to be trained")
    found: ast.expr = context.visit(given[0])
    return found


@handles("torch.is_tensor")
def is_tensor(call: ast.Call, context: Context) -> ast.expr:
    """`torch.is_tensor(x)` as a question of its class."""
    values = [context.visit(one) for one in (*call.args, *(word.value for word in call.keywords))]
    return ast.Call(ast.Name("isinstance", ast.Load()), [*values, context.name("mindspore.Tensor")], [])


@handles("torch.Tensor.new")
def new(call: ast.Call, context: Context) -> ast.expr:
    """`x.new(3, 4)`, of which torch leaves open what is in it, as zeros; `x.new(numbers)` as a tensor of them."""
    assert isinstance(call.func, ast.Attribute)
    given = [kinds_of(one) or [of_constant(literal(one)[1])] * literal(one)[0] for one in call.args]
    sizes = all(kinds and all(kind == PlainKind("int") for kind in kinds) for kinds in given)
    shape = len(given) == 1 and always(given[0], SizeKind)
    if len(given) == 1 and isinstance(one := call.args[0], ast.Starred) and always(kinds_of(one.value), SizeKind):
        shape, call.args = True, [one.value]  # `x.new(*y.size())`
    if not call.keywords and call.args and (sizes or shape):
        name, nodes = "torch.Tensor.new_zeros", call.args
    elif not call.keywords and len(given) == 1 and always_sequences(given[0], "list", "tuple"):
        name, nodes = "torch.Tensor.new_tensor", call.args
    else:
        raise Unwritable(f"{ast.unparse(call)}: write new_zeros(sizes) or new_tensor(numbers)")
    function = replacing(ast.Attribute(call.func.value, name.rpartition(".")[2], ast.Load()), call.func)
    set_callee(function, name)
    found: ast.expr = context.visit(replacing(ast.Call(function, nodes, []), call))
    return found


OF_BITS: dict[type[ast.AST], str] = {ast.RShift: "torch.bitwise_right_shift", ast.LShift: "torch.bitwise_left_shift"}


@handles(syntax=[ast.BinOp, ast.UnaryOp])
def bits(node: ast.BinOp | ast.UnaryOp, context: Context) -> ast.expr | None:
    """`x >> 2` of a tensor, which MindSpore's have not, and `~x` of integers, which gives bools there, as calls."""
    parts = [node.operand] if isinstance(node, ast.UnaryOp) else [node.left, node.right]
    kinds = [kind for part in parts for kind in kinds_of(part) if isinstance(kind, TensorKind)]
    inverted = isinstance(node.op, ast.Invert) and any(kind.dtype != "bool" for kind in kinds)
    row = row_of("torch.bitwise_not" if inverted else OF_BITS.get(type(node.op), ""))
    if row is None or row.mindspore is None or not kinds:
        return None
    return ast.Call(context.name(row.mindspore), [context.visit(part) for part in parts], [])


ARRAY, RANGE = ObjectKind("numpy.ndarray"), ObjectKind("builtins.range")


@handles(syntax=[ast.Subscript])
def indexed_by_numpys(node: ast.Subscript, context: Context) -> ast.expr | None:
    """`x[:, places]` with a tensor for an array of NumPy's, `x[:count]` with a Python number for one of NumPy's, a list
    for a range, and a mask of bytes as one of bools: MindSpore's tensors take these for no index."""
    items = node.slice.elts if isinstance(node.slice, ast.Tuple) else [node.slice]
    parts = [
        part for item in items for part in ([*ast.iter_child_nodes(item)] if isinstance(item, ast.Slice) else [item])
    ]
    of_numpy = any(kind in (ARRAY, RANGE) or kind in NUMPYS for part in parts for kind in kinds_of(part))
    if not (of_numpy or any(map(_old_mask, parts))) or not always(kinds_of(node.value), TensorKind):
        return None
    visited = [_index(item, context) for item in items]
    index = ast.Tuple(visited, ast.Load()) if isinstance(node.slice, ast.Tuple) else visited[0]
    return ast.Subscript(context.visit(node.value), index, node.ctx)


def _index(item: ast.expr, context: Context) -> ast.expr:
    if isinstance(item, ast.Slice):
        bounds = (item.lower, item.upper, item.step)
        return ast.Slice(*(None if bound is None else _index(bound, context) for bound in bounds))
    kinds, visited = kinds_of(item), context.visit(item)
    if _old_mask(item):
        return ast.Call(context.name("mindspore.ops.cast"), [visited, context.name("mindspore.bool_")], [])
    if kinds == [RANGE]:
        return ast.Call(ast.Name("list", ast.Load()), [visited], [])
    if kinds == [ARRAY]:
        return ast.Call(context.name("mindspore.Tensor"), [visited], [])
    return pythons_number(visited, kinds)[0]


def _old_mask(index: ast.AST) -> bool:
    """Whether it is a tensor of bytes, as masks were before torch had bools."""
    bytes_ = isinstance(index, ast.Call) and callees_of(index) == ["torch.Tensor.byte"]
    return bytes_ or any(isinstance(kind, TensorKind) and kind.dtype == "uint8" for kind in kinds_of(index))


TUPLES = {"_single": 1, "_pair": 2, "_triple": 3, "_quadruple": 4}  # of torch.nn.modules.utils


@handles(*(f"torch.nn.modules.utils.{name}" for name in TUPLES))
def as_often(call: ast.Call, context: Context) -> ast.expr:
    """`_pair(size)`: what is several numbers as a tuple, and one number twice."""
    count = TUPLES[callees_of(call)[0].rpartition(".")[2]]
    value = ast.unparse(context.visit(copy.deepcopy(call.args[0])))
    text = f"tuple({value}) if isinstance({value}, (tuple, list)) else ({value},) * {count}"
    return ast.parse(text, mode="eval").body


@handles("torch.spmm", "torch.sparse.mm", "torch.dsmm")
def sparse_product(call: ast.Call, context: Context) -> ast.expr:
    """A product with a sparse matrix, of which MindSpore's nets take the dense one."""
    if len(call.args) != 2 or call.keywords:
        raise Unwritable(f"{ast.unparse(call)}: write torch.mm(matrix, other)")
    return ast.Call(context.name("mindspore.ops.matmul"), [context.visit(one) for one in call.args], [])


@handles("torch.Size.numel")
def numel_of_size(call: ast.Call, context: Context) -> ast.expr:
    """`math.prod(x.shape[1:])` for `x.shape[1:].numel()`, of which a tuple has none."""
    assert isinstance(call.func, ast.Attribute)
    return ast.Call(context.name("math.prod"), [context.visit(call.func.value)], [])
