"""Methods and facts of tensors that no row can say, and slices that MindSpore's CPU gets wrong."""

from __future__ import annotations

import ast
import copy
import re
from collections.abc import Callable, Mapping, Sequence
from typing import NamedTuple

from ..module_api import DEFAULT_DTYPE, LIMITS
from ..observe.instrument import sliced
from ..observe.kinds import DtypeKind, ObjectKind, SequenceKind, TensorKind, always_sequences, always_tensors
from .context import Context, ObservedArgument, Program, Stage, Unwritable, handles
from .row_calls import argument_of

PREFIX = "torch.Tensor."
# torch's other names of a dtype -> MindSpore's
DTYPES = {"float": "float32", "double": "float64", "half": "float16", "int": "int32", "long": "int64", "bool": "bool_"}
ITSELF = ("contiguous", "cpu", "cuda")  # one device for the process, one order in memory
# what a tensor is asked that MindSpore's has not, and the answer
ANSWERS = {"is_cuda": False, "is_mps": False, "is_sparse": False, "is_quantized": False, "is_meta": False}
# functions whose two results have names in torch
PAIRS = {"max", "min", "topk", "sort", "median", "nanmedian", "kthvalue", "mode", "cummax", "cummin"}
PAIR = ("values", "indices")


class Call(NamedTuple):
    """A call of a method: the tensor, and what it is given, rewritten."""

    tensor: ObservedArgument
    args: Sequence[ObservedArgument]
    named: Mapping[str, ObservedArgument]
    starred: bool  # whether one of the arguments is `*something`


Writer = Callable[[Call], ast.expr]


def _attribute(node: ast.expr, name: str) -> ast.expr:
    return ast.Attribute(node, name, ast.Load())


def _method(node: ast.expr, name: str, *args: ast.expr) -> ast.expr:
    return ast.Call(_attribute(node, name), list(args), [])


def _size(call: Call) -> ast.expr:
    shape = _attribute(call.tensor.node, "shape")
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
        sizes = [ast.Call(ast.Name("tuple", ast.Load()), sizes, [])]
    return _method(call.tensor.node, "reshape", *sizes)


def _to(call: Call) -> ast.expr:
    """The cast alone: a device, and how it is copied, are no concern of a tensor of MindSpore's."""
    for item in (*call.args, *call.named.values()):
        if item.kinds == [DtypeKind()]:
            return _method(call.tensor.node, "astype", item.node)
        if always_tensors(item.kinds):
            return _method(call.tensor.node, "astype", _attribute(item.node, "dtype"))
    return call.tensor.node


def _ndim(call: Call) -> ast.expr:
    return _attribute(call.tensor.node, "ndim")


def _numel(call: Call) -> ast.expr:
    return _attribute(call.tensor.node, "size")


def _itself(call: Call) -> ast.expr:
    return call.tensor.node


def _item(call: Call) -> ast.expr:
    return _method(call.tensor.node, "item")


def _numbers(call: Call) -> ast.expr:
    return _method(call.tensor.node, "tolist")


METHODS: dict[str, Writer] = {
    "size": _size,
    "view": _reshape,
    "reshape": _reshape,
    "to": _to,
    "type": _to,
    "type_as": _to,
    "dim": _ndim,
    "ndimension": _ndim,
    "numel": _numel,
    "nelement": _numel,
    "item": _item,
    "tolist": _numbers,
    **dict.fromkeys(ITSELF, _itself),
}


@handles(*(f"{PREFIX}{name}" for name in METHODS))
def method(node: ast.Call, context: Context) -> ast.expr | None:
    """A call of a method that MindSpore's tensors have under another name, or have as a fact."""
    callees = context.callees(node)
    if len(callees) != 1 or not isinstance(node.func, ast.Attribute):
        return None
    named = {word.arg: word.value for word in node.keywords if word.arg is not None}
    given = (copy.deepcopy(part) for part in (node.func.value, *node.args, *named.values()))
    tensor, *items = (argument_of(part, context) for part in given)
    count = len(node.args)
    starred = any(isinstance(item, ast.Starred) for item in node.args)
    call = Call(tensor, items[:count], dict(zip(named, items[count:], strict=True)), starred)
    return METHODS[callees[0].removeprefix(PREFIX)](call)


@handles(*LIMITS)
def limits(node: ast.Call, context: Context) -> ast.expr:
    """`torch.finfo(dtype)`, of which only the numbers are read, and written where they are."""
    return ast.Constant(None)


@handles(syntax=[ast.Attribute])
def fact(node: ast.Attribute, context: Context) -> ast.expr | None:
    """`finfo(dtype).max`; what a tensor is asked that MindSpore's has not; a result that has a name in torch only."""
    kinds = context.kinds(node.value)
    if kinds and all(isinstance(kind, ObjectKind) and kind.cls in LIMITS for kind in kinds):
        limit = context.constants(node)
        text = f"{ast.unparse(node)} was now one number and now another"
        return ast.Constant(limit[0]) if limit is not None and len(limit) == 1 else context.missing(node, text)
    if node.attr in ANSWERS and always_tensors(kinds):
        return ast.Constant(ANSWERS[node.attr])
    if node.attr in PAIR and always_sequences(kinds, *PAIRS):
        return ast.Subscript(context.visit(node.value), ast.Constant(PAIR.index(node.attr)), ast.Load())
    return None


@handles(DEFAULT_DTYPE)
def default_dtype(node: ast.Call, context: Context) -> ast.expr:
    """`torch.get_default_dtype()`."""
    return context.name("mindspore.float32")


def is_dtype(attribute: str) -> bool:
    """Whether a name in torch is a dtype's."""
    plain = r"u?int(8|16|32|64)|float(16|32|64)|bfloat16|complex(64|128)"
    return attribute in DTYPES or re.fullmatch(plain, attribute) is not None


def dtype_name(attribute: str) -> str:
    """MindSpore's name for a dtype of torch's: `long` is mindspore.int64."""
    return f"mindspore.{DTYPES.get(attribute, attribute)}"


RANK = 4  # from here on the gradient crashes: "StridedSliceGrad, input memory out of bounds"
GETITEM = "msmigrate.nn.functional.getitem"


class StridedSlices(ast.NodeTransformer):
    """Writes `x[..., ::2]` as a call that takes the values one by one."""

    def __init__(self, program: Program, file: str) -> None:
        self.program, self.file = program, file

    def visit_Subscript(self, node: ast.Subscript) -> ast.AST:
        """A subscript that is read; one that is written to stays."""
        kinds = self.program.facts.kinds(self.file, node.value)
        self.generic_visit(node)
        items = node.slice.elts if isinstance(node.slice, ast.Tuple) else [node.slice]
        stepped = any(isinstance(item, ast.Slice) and item.step is not None for item in items)
        if not (
            stepped
            and isinstance(node.ctx, ast.Load)
            and any(isinstance(kind, TensorKind) and kind.rank >= RANK for kind in kinds)
        ):
            return node
        index = ast.Tuple([_spelled(item) for item in items], ast.Load())
        found = ast.copy_location(ast.Call(self.program.name(GETITEM), [node.value, index], []), node)
        return _located(found)


def _located(call: ast.Call) -> ast.Call:
    """The call with places for what has none: that of the call, which no statement of theirs is told by."""
    for inner in ast.walk(call):
        if isinstance(inner, (ast.expr, ast.keyword)) and not hasattr(inner, "lineno"):
            ast.copy_location(inner, call)
    return call


def _spelled(item: ast.expr) -> ast.expr:
    """`a:b:c` as `slice(a, b, c)`."""
    if not isinstance(item, ast.Slice):
        return item
    parts = [part or ast.Constant(None) for part in (item.lower, item.upper, item.step)]
    return ast.Call(ast.Name("slice", ast.Load()), parts, [])


@handles(syntax=[ast.Assign], stage=Stage.IN_PLACE)
def guard_empty_slice(node: ast.stmt, context: Context) -> list[ast.stmt] | None:
    """`x[:, a:b] = y` under `if 0 not in x[:, a:b].shape`, where the slice was seen empty; None for any other."""
    if not isinstance(node, ast.Assign) or not sliced(node) or True not in (context.constants(node.targets[0]) or ()):
        return None
    written: ast.Assign = context.visit(node)
    there = copy.deepcopy(written.targets[0])
    assert isinstance(there, ast.Subscript)
    there.ctx = ast.Load()
    test = ast.Compare(ast.Constant(0), [ast.NotIn()], [ast.Attribute(there, "shape", ast.Load())])
    return [ast.copy_location(ast.If(test, [written], []), node)]
