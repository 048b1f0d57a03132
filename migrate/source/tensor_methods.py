"""Methods and facts of tensors that one writes otherwise in MindSpore than by a function: shapes, types, devices."""

from __future__ import annotations

import ast
import re
from collections.abc import Callable, Mapping, Sequence
from typing import NamedTuple

from .crossing_calls import CannotWrite, Given

PREFIX = "torch.Tensor."
# torch's other names of a dtype -> MindSpore's
DTYPES = {"float": "float32", "double": "float64", "half": "float16", "int": "int32", "long": "int64", "bool": "bool_"}
CASTS = ("float", "double", "half", "int", "long", "bool")
ITSELF = ("contiguous", "cpu", "cuda")  # one device for the process, one order in memory
# what a tensor is asked that MindSpore's has not, and the answer
ANSWERS = {"is_cuda": False, "is_mps": False, "is_sparse": False, "is_quantized": False, "is_meta": False}
# functions whose two results have names in torch
PAIRS = {"max", "min", "topk", "sort", "median", "nanmedian", "kthvalue", "mode", "cummax", "cummin"}
PAIR = ("values", "indices")


class Call(NamedTuple):
    """A call of a method: the tensor, and what it is given, rewritten."""

    tensor: Given
    args: Sequence[Given]
    named: Mapping[str, Given]
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
    if any("dtype" in item.kinds for item in call.args):
        raise CannotWrite("torch.Tensor.view with a dtype, which reads the same bytes as another type")
    sizes = [item.node for item in (*call.args, *call.named.values())]
    if len(sizes) == 1 and call.args and any(kind.startswith("list") for kind in call.args[0].kinds):
        sizes = [ast.Call(ast.Name("tuple", ast.Load()), sizes, [])]
    return _method(call.tensor.node, "reshape", *sizes)


def _to(call: Call) -> ast.expr:
    """The cast alone: a device, and how it is copied, are no concern of a tensor of MindSpore's."""
    for item in (*call.args, *call.named.values()):
        if item.kinds == ["dtype"]:
            return _method(call.tensor.node, "astype", item.node)
        if item.kinds and all(kind.startswith(("Tensor", "Parameter")) for kind in item.kinds):
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


def is_method(callees: list[str]) -> bool:
    """Whether what is called is a method that stands here, and is not written by a row of the table."""
    return len(callees) == 1 and callees[0].startswith(PREFIX) and callees[0].removeprefix(PREFIX) in METHODS


def method(callees: list[str], call: Call) -> ast.expr:
    """The expression for a method's call; raises CannotWrite."""
    return METHODS[callees[0].removeprefix(PREFIX)](call)


def is_dtype(attribute: str) -> bool:
    """Whether a name in torch is a dtype's."""
    plain = r"u?int(8|16|32|64)|float(16|32|64)|bfloat16|complex(64|128)"
    return attribute in DTYPES or re.fullmatch(plain, attribute) is not None


def dtype_name(attribute: str) -> str:
    """MindSpore's name for a dtype of torch's: `long` is mindspore.int64."""
    return f"mindspore.{DTYPES.get(attribute, attribute)}"
