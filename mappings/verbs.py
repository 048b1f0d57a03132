"""The few named computations that a row may ask for: of a value, back, and of an expression in source.

An argument verb turns one torch value into one MindSpore value (or several, as many as the row's `to` names); it sees
the other torch arguments, since `stride=None` means the kernel size. Its inverse gives a torch value that means the
same: `forward(inverse(forward(value)))` equals `forward(value)`. A value without counterpart raises ValueError with
the reason, which `table.translate` turns into `Unsupported`.

The verbs `layer` and `schedules`, whose values are torch calls with rows of their own, are in table.py; how the shapes
of state tensors change is in verb_registry.py.
"""

from __future__ import annotations

import ast
from collections.abc import Callable, Mapping, Sequence
from decimal import Decimal
from enum import Enum
from typing import Any, NamedTuple

from .rows import Call, Name
from .verb_registry import Loaded, Verbs


class ValueType(Enum):
    """The type of a value that an expression had when it ran, as far as a symbolic form depends on it."""

    INT = "int"
    FLOAT = "float"
    INT_TUPLE = "tuple of int"
    TUPLE = "tuple of something else"
    INT_LIST = "list of int"
    LIST = "list of something else"
    SIZE = "torch.Size"
    SIZE_OF_ONE = "torch.Size of one dimension"
    OTHER = "other"


Types = frozenset[ValueType] | None  # those that the values had; None: nobody has seen one
Symbolic = Callable[[ast.expr, Types], "list[ast.expr] | None"]


class Verb(NamedTuple):
    """One computation of an argument.

    description: in words, for people; nothing is decided by it.
    forward: `(value, torch arguments) -> MindSpore value(s)`.
    inverse: `MindSpore value(s) -> torch value`.
    symbolic: `(expression, types) -> MindSpore expressions`, as many as the argument has MindSpore names; it gives None
        where the types of the values leave open what to write. A verb without it crosses values only.
    none_differs: None crosses as another value, so that an expression crosses as itself only where it is not None.
    """

    description: str
    forward: Callable[[Any, Mapping[str, Any]], Any]
    inverse: Callable[[Any], Any]
    symbolic: Symbolic | None = None
    none_differs: bool = False


def complement(value: float) -> float:
    """1 - value, rounded in decimal so that 0.1 gives 0.9 and 0.9 gives 0.1; its own inverse."""
    return float(1 - Decimal(repr(float(value))))


def spread(value: Any, rank: int) -> tuple[int, ...]:
    """One integer for every spatial dimension, from an integer or a sequence of them."""
    values = tuple(value) if isinstance(value, Sequence) else (value,)
    return values * rank if len(values) == 1 else values


def conv_padding(rank: int, *, alike: bool = False) -> Verb:
    """torch `padding` to MindSpore `(pad_mode, padding)`: each dimension's padding before and after, written out.

    MindSpore's own 'same' pads a strided convolution on the right only, so 'same' becomes numbers as well
    (torch allows it at stride 1: d·(k-1) in all, the odd one behind). alike: one number for both ends of the one
    dimension.
    """

    def forward(value: Any, args: Mapping[str, Any]) -> tuple[str, Any]:
        if value == "valid":
            value = 0
        if value == "same":
            totals = [
                dilation * (kernel - 1)
                for kernel, dilation in zip(
                    spread(args["kernel_size"], rank), spread(args["dilation"], rank), strict=True
                )
            ]
            sides = [side for total in totals for side in (total // 2, total - total // 2)]
        else:
            sides = [side for side in spread(value, rank) for _ in (0, 1)]
        if not any(sides):
            return "valid", 0
        if alike and sides[0] != sides[1]:
            raise ValueError("MindSpore's Conv1d pads both ends alike")
        return "pad", sides[0] if alike else tuple(sides)

    def inverse(values: tuple[str, Any]) -> Any:
        pad_mode, padding = values
        if pad_mode == "valid":
            return 0
        sides = spread(padding, 2 * rank)
        return tuple(sides[::2]) if sides[::2] == sides[1::2] else "same"

    return Verb("numbers on every side, written out", forward, inverse, _sides_expression(rank))


def transposed_padding(rank: int) -> Verb:
    """torch `padding` of a transposed convolution to MindSpore `(pad_mode, padding)`: every side, written out.

    MindSpore's 'valid' is another size where the stride exceeds the kernel, so that no padding is written as numbers
    too.
    """

    def forward(value: Any, args: Mapping[str, Any]) -> tuple[str, Any]:
        sides = spread(value, rank)
        return "pad", sides[0] if rank == 1 else tuple(side for side in sides for _ in (0, 1))

    def inverse(values: tuple[str, Any]) -> Any:
        padding = values[1]
        return padding if rank == 1 else tuple(padding[::2])

    symbolic = _sides_expression(rank)
    return Verb("numbers on every side, written out", forward, inverse, symbolic)


def _output_padding(value: Any, args: Mapping[str, Any]) -> tuple[int, ...]:
    """torch `output_padding` of a transposed convolution over images, as less `padding` behind."""
    sides: list[int] = []
    for before, more in zip(spread(args["padding"], 2), spread(value, 2), strict=True):
        if more > before:
            raise ValueError("MindSpore fills what it adds with zeros, and only as much padding can be left out")
        sides += [before, before - more]
    return tuple(sides)


def _from_output_padding(padding: tuple[int, ...]) -> tuple[int, ...]:
    return tuple(before - behind for before, behind in zip(padding[::2], padding[1::2], strict=True))


def _flat_dilation(value: Any, args: Mapping[str, Any]) -> tuple[int, ...]:
    dilation = spread(value, 3)
    if dilation[0] != 1:
        raise ValueError("MindSpore's has no dilation in depth")
    return dilation


def _whole_factor(value: Any, args: Mapping[str, Any]) -> Any:
    """torch `scale_factor` where it takes every size to a whole number."""
    factors = value if isinstance(value, Sequence) else (value,)
    if value is not None and any(factor != int(factor) for factor in factors):
        raise ValueError("MindSpore takes the ratio of the sizes instead, which is another where that is rounded")
    if value is None:
        return None
    return tuple(map(float, value)) if isinstance(value, Sequence) else float(value)


def _recompute(value: Any, args: Mapping[str, Any]) -> bool | None:
    """MindSpore wants True beside a factor; with whole factors it makes no difference."""
    return True if args["scale_factor"] is not None else None


def _pool_padding(value: Any, args: Mapping[str, Any]) -> tuple[str, Any]:
    """torch `padding` to `(pad_mode, padding)`; MindSpore wants "pad" for ceil_mode, dilation, divisors, indices."""
    plain = (
        not any(spread(value, 2))
        and not args["ceil_mode"]
        and args.get("dilation", 1) == 1  # of (1, 1) MindSpore says that it is none but with "pad"
        and args.get("count_include_pad", True)
        and args.get("divisor_override") is None
        and not args.get("return_indices", False)
    )
    return ("valid", 0) if plain else ("pad", value)


def pool_sides(rank: int) -> Verb:
    """torch `padding` of a function that pools, to MindSpore's: one number, or that of every side, in so many
    dimensions."""

    def forward(value: Any, args: Mapping[str, Any]) -> Any:
        sizes = spread(value, rank)  # or one in a tuple for all
        return sizes[0] if len(set(sizes)) == 1 else tuple(size for size in sizes for _ in (0, 1))

    def symbolic(node: ast.expr, types: Types) -> list[ast.expr] | None:
        found = _sides_expression(rank)(node, types)
        return found and found[1:]

    def inverse(value: Any) -> Any:
        return value if isinstance(value, int) else tuple(value[::2])

    return Verb("one number, or a number for every side", forward, inverse, symbolic)


def _single(value: Any, args: Mapping[str, Any]) -> Any:
    return spread(value, 1)[0]


def _channels(value: Any, args: Mapping[str, Any]) -> Any:
    """torch's one number for all channels has no counterpart."""
    if not isinstance(value, Sequence):
        raise ValueError(
            f"MindSpore wants one for each channel: [{value}] of grey images, {[value] * 3} of coloured ones"
        )
    return value


def _dims(value: Any, args: Mapping[str, Any]) -> tuple[Any, ...]:
    """`view(2, 3)` and `view((2, 3))` both mean (2, 3)."""
    if not isinstance(value, Sequence):
        return (value,)
    return tuple(value[0]) if len(value) == 1 and isinstance(value[0], Sequence) else tuple(value)


def _tensor(value: Any, args: Mapping[str, Any]) -> Any:
    """A list of numbers (or anything with `tolist`) becomes a float32 MindSpore tensor; None stays None."""
    if hasattr(value, "tolist"):
        value = value.tolist()
    if not isinstance(value, Sequence):
        return value
    return Call("mindspore.Tensor", {"input_data": list(value), "dtype": Name("mindspore.float32")})


def _from_tensor(value: Any) -> Any:
    return list(value.kwargs["input_data"]) if isinstance(value, Call) else value


def _half_width(value: float, args: Mapping[str, Any]) -> float:
    """The upper bound b of U(a, b) as the half width of U(-scale, scale)."""
    if args["a"] != -value:
        raise ValueError("MindSpore's Uniform is symmetric around zero")
    return float(value)


def _last_axis(value: Any, args: Mapping[str, Any]) -> tuple[int, ...]:
    """`normalized_shape` of one dimension, as a tuple."""
    shape = spread(value, 1)
    if len(shape) != 1:
        raise ValueError("MindSpore counts several axes from the front only, which needs the rank of the input")
    return shape


def _kernel_if_none(value: Any, args: Mapping[str, Any]) -> Any:
    return args["kernel_size"] if value is None else value


def _same(value: Any) -> Any:
    return value


def _of(types: Types, *allowed: ValueType) -> bool:
    """Whether the types are known and all among the allowed ones."""
    return types is not None and bool(types) and types <= {*allowed}


def _item(node: ast.expr, index: int) -> ast.expr:
    return ast.Subscript(node, ast.Constant(index), ast.Load())


def _called(function: str, node: ast.expr) -> ast.expr:
    return ast.Call(ast.Name(function, ast.Load()), [node], [])


def as_tuple(node: ast.expr) -> ast.expr:
    """The tuple for a list, `(a, b)` for `[a, b]`."""
    if isinstance(node, (ast.List, ast.Tuple)):
        return ast.Tuple(node.elts, ast.Load())
    return _called("tuple", node)


def _complement_expression(node: ast.expr, types: Types) -> list[ast.expr] | None:
    known = types is None or _of(types, ValueType.FLOAT, ValueType.INT)
    return [ast.BinOp(ast.Constant(1), ast.Sub(), node)] if known else None


def _negative_expression(node: ast.expr, types: Types) -> list[ast.expr] | None:
    return [ast.UnaryOp(ast.USub(), node)]


def _sides_expression(rank: int) -> Symbolic:
    """`pad_mode` and the padding of every side: one number for all, or a pair for each dimension."""

    def symbolic(node: ast.expr, types: Types) -> list[ast.expr] | None:
        if types is None or not _of(types, ValueType.INT, *_SIZES):
            return None
        if types == {ValueType.INT}:
            return [ast.Constant("pad"), node]
        if rank == 1:
            one = _single_expression(node, types & {ValueType.INT, ValueType.INT_TUPLE, ValueType.INT_LIST})
            return [ast.Constant("pad"), *(one or [_item(node, 0)])] if one or ValueType.INT not in types else None
        if isinstance(node, (ast.Tuple, ast.List)):
            return [ast.Constant("pad"), ast.Tuple([side for side in node.elts for _ in (0, 1)], ast.Load())]
        if not isinstance(node, (ast.Name, ast.Attribute)):  # which is computed once
            both = ast.parse("tuple(side for side in sides for _ in (0, 1))", mode="eval").body
            assert isinstance(both, ast.Call) and isinstance(both.args[0], ast.GeneratorExp)
            both.args[0].generators[0].iter = node
            return None if ValueType.INT in types else [ast.Constant("pad"), both]
        sides: ast.expr = ast.Tuple([_item(node, index) for index in range(rank) for _ in (0, 1)], ast.Load())
        if ValueType.INT in types:  # now this, now that
            whole = ast.Call(ast.Name("isinstance", ast.Load()), [node, ast.Name("int", ast.Load())], [])
            sides = ast.IfExp(whole, node, sides)
        return [ast.Constant("pad"), sides]

    return symbolic


def _pool_padding_expression(node: ast.expr, types: Types) -> list[ast.expr] | None:
    """MindSpore's pools take a number or one for each dimension, with 'pad'."""
    sizes = _window_expression(node, types)
    return sizes and [ast.Constant("pad"), *sizes]


def _window_expression(node: ast.expr, types: Types) -> list[ast.expr] | None:
    """A number, or one for each dimension in a tuple, which MindSpore's pools want."""
    if _of(types, ValueType.INT, ValueType.FLOAT, ValueType.INT_TUPLE):
        return [node]
    return [as_tuple(node)] if _of(types, *_SIZES) else None


def _single_expression(node: ast.expr, types: Types) -> list[ast.expr] | None:
    """One number, also out of a tuple of one."""
    if _of(types, ValueType.INT):
        return [node]
    if _of(types, ValueType.INT_TUPLE, ValueType.INT_LIST):
        return [_item(node, 0)]
    read_again = isinstance(node, (ast.Name, ast.Attribute))
    if not read_again or not _of(types, ValueType.INT, ValueType.INT_TUPLE, ValueType.INT_LIST):
        return None
    whole = ast.Call(ast.Name("isinstance", ast.Load()), [node, ast.Name("int", ast.Load())], [])
    return [ast.IfExp(whole, node, _item(node, 0))]


def _float_expression(node: ast.expr, types: Types) -> list[ast.expr] | None:
    if _of(types, ValueType.FLOAT):
        return [node]
    return [_called("float", node)] if _of(types, ValueType.INT, ValueType.FLOAT) else None


def _tensor_expression(node: ast.expr, types: Types) -> list[ast.expr] | None:
    """A tensor, which has been written as MindSpore's already, or None."""
    return [node] if _of(types, ValueType.OTHER) else None


def _whole_factor_expression(node: ast.expr, types: Types) -> list[ast.expr] | None:
    """A factor that takes every size to a whole number, as a float; or one for each axis."""
    if _of(types, ValueType.INT_TUPLE, ValueType.INT_LIST):
        return [_called("tuple", ast.Call(ast.Name("map", ast.Load()), [ast.Name("float", ast.Load()), node], []))]
    return [_called("float", node)] if _of(types, ValueType.INT) else None


def _dims_expression(node: ast.expr, types: Types) -> list[ast.expr] | None:
    """Numbers in a tuple."""
    if isinstance(node, ast.Tuple) or _of(
        types, ValueType.TUPLE, ValueType.INT_TUPLE, ValueType.SIZE, ValueType.SIZE_OF_ONE
    ):
        return [node]
    if _of(types, ValueType.LIST, ValueType.INT_LIST):
        return [as_tuple(node)]
    return [ast.Tuple([node], ast.Load())] if _of(types, ValueType.INT) else None


def _last_axis_expression(node: ast.expr, types: Types) -> list[ast.expr] | None:
    """`normalized_shape` of one dimension, as a tuple."""
    if _of(types, ValueType.INT):
        return [ast.Tuple([node], ast.Load())]
    several = _of(types, ValueType.INT_LIST, ValueType.INT_TUPLE, ValueType.SIZE_OF_ONE)
    return [as_tuple(node)] if several else None


def _twice_expression(node: ast.expr, types: Types) -> list[ast.expr] | None:
    return [node, node]


_SIZES = (ValueType.INT_TUPLE, ValueType.INT_LIST, ValueType.SIZE, ValueType.SIZE_OF_ONE)
_BUILT_IN: dict[str, Verb] = {
    "complement": Verb("1 - value", lambda value, args: complement(value), complement, _complement_expression),
    "conv1d_padding": conv_padding(1, alike=True),
    "conv1d_sides": conv_padding(1),
    "conv2d_padding": conv_padding(2),
    "conv3d_padding": conv_padding(3),
    "transposed1d_padding": transposed_padding(1),
    "transposed2d_padding": transposed_padding(2),
    "transposed3d_padding": transposed_padding(3),
    "output_padding": Verb("as much less padding behind", _output_padding, _from_output_padding),
    "flat_dilation": Verb("one number for every dimension", _flat_dilation, _same),
    "whole_factor": Verb("as a float", _whole_factor, _same, _whole_factor_expression),
    "recompute": Verb("True beside a factor", _recompute, _same),
    "pool_padding": Verb(
        "'valid' where nothing is padded, else 'pad'",
        _pool_padding,
        lambda values: values[1],
        _pool_padding_expression,
    ),
    "pool1d_sides": pool_sides(1),
    "pool2d_sides": pool_sides(2),
    "pool3d_sides": pool_sides(3),
    "stride_or_kernel": Verb("None becomes the kernel size", _kernel_if_none, _same, _window_expression, True),
    "single_or_kernel": Verb(
        "None becomes the kernel size; one number, not a tuple of one",
        lambda value, args: _single(_kernel_if_none(value, args), args),
        lambda value: (value,),
        _single_expression,
        True,
    ),
    "twice": Verb("for both", lambda value, args: (value, value), lambda values: values[0], _twice_expression),
    "decimal": Verb("as a float", lambda value, args: float(value), _same, _float_expression),
    "single": Verb("one number, not a tuple of one", _single, lambda value: (value,), _single_expression),
    "channels": Verb("a number for each channel", _channels, _same),
    "dims": Verb("numbers one by one or in a tuple", _dims, _same, _dims_expression),
    "tensor": Verb("a list becomes a float32 tensor", _tensor, _from_tensor, _tensor_expression),
    "negate": Verb("-value", lambda value, args: -value, lambda value: -value, _negative_expression),
    "both_signs": Verb("-value and value", lambda value, args: (-value, value), lambda values: values[1]),
    "half_width": Verb("bounds of U(-scale, scale)", _half_width, _same),
    "last_axis": Verb("one dimension, as a tuple", _last_axis, _same, _last_axis_expression),
    "divisor": Verb(
        "None becomes 0",
        lambda value, args: 0 if value is None else value,
        lambda value: value or None,
        none_differs=True,
    ),
}


def _loaded(verb: Loaded) -> Verb:
    return Verb(verb.description, verb.forward, verb.inverse, verb.symbolic)


VERBS: Verbs[Verb] = Verbs(_BUILT_IN, _loaded)
