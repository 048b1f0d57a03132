"""The few named computations that a row may ask for, each with its inverse.

An argument verb turns one torch value into one MindSpore value (or several, as many as the row's `to` names); it sees
the other torch arguments, since `stride=None` means the kernel size. Its inverse gives a torch value that means the
same: `forward(inverse(forward(value)))` equals `forward(value)`. A value without counterpart raises ValueError with
the reason, which `table.translate` turns into `Unsupported`.

How the shapes of state tensors change is told in shapes.py.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from decimal import Decimal
from typing import Any, NamedTuple

from .rows import Call, Name
from .user_verbs import Verbs


class Verb(NamedTuple):
    """`forward(value, torch arguments) -> MindSpore value(s)` and `inverse(MindSpore value(s)) -> torch value`."""

    says: str
    forward: Callable[[Any, Mapping[str, Any]], Any]
    inverse: Callable[[Any], Any]


def complement(value: float) -> float:
    """1 - value, rounded in decimal so that 0.1 gives 0.9 and 0.9 gives 0.1; its own inverse."""
    return float(1 - Decimal(repr(float(value))))


def spread(value: Any, rank: int) -> tuple[int, ...]:
    """One integer for every spatial dimension, from an integer or a sequence of them."""
    return tuple(value) if isinstance(value, Sequence) else (value,) * rank


def conv_padding(rank: int) -> Verb:
    """torch `padding` to MindSpore `(pad_mode, padding)`: each dimension's padding before and after, written out.

    MindSpore's own 'same' pads a strided convolution on the right only, so 'same' becomes numbers as well
    (torch allows it at stride 1: d·(k-1) in all, the odd one behind).
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
        if rank == 1 and sides[0] != sides[1]:
            raise ValueError("MindSpore's Conv1d pads both ends alike")
        return "pad", sides[0] if rank == 1 else tuple(sides)

    def inverse(values: tuple[str, Any]) -> Any:
        pad_mode, padding = values
        if pad_mode == "valid":
            return 0
        sides = spread(padding, 2 * rank)
        return tuple(sides[::2]) if sides[::2] == sides[1::2] else "same"

    return Verb("numbers on every side, written out", forward, inverse)


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

    return Verb("numbers on every side, written out", forward, inverse)


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
        and spread(args.get("dilation", 1), 2) == (1, 1)
        and args.get("count_include_pad", True)
        and args.get("divisor_override") is None
        and not args.get("return_indices", False)
    )
    return ("valid", 0) if plain else ("pad", value)


def _single(value: Any, args: Mapping[str, Any]) -> Any:
    return spread(value, 1)[0]


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


def _schedules(value: Any, args: Mapping[str, Any]) -> list[tuple[str, dict[str, Any]]]:
    """Pairs (torch schedule, its arguments) to pairs (MindSpore schedule, its arguments)."""
    from . import table

    calls = []
    for name, inner in value:
        found = table.row(name)
        # those that hold others, set the optimizer's own rates, or move by what is measured
        alone = any(argument.torch in ("schedulers", "max_lr", "patience") for argument in found.arguments)
        if found.kind != "schedule" or alone:
            raise ValueError(f"{found.torch} cannot stand inside another schedule")
        calls.append(table.translate(name, inner))
    return [(call.target, call.kwargs) for call in calls]


def _from_schedules(value: Any) -> list[tuple[str, dict[str, Any]]]:
    from . import table

    names = {row.mindspore: row.torch for row in table.rows("schedule")}
    return [(names[target], table.inverse(names[target], kwargs)) for target, kwargs in value]


def _layer(value: Any, args: Mapping[str, Any]) -> Call | None:
    """A pair (torch layer, its arguments) to the call that makes it in MindSpore."""
    from . import table

    return None if value is None else table.translate(value[0], value[1])


def _from_layer(value: Call | None) -> list[Any] | None:
    from . import table

    if value is None:
        return None
    rows = (*table.rows("layer"), *table.rows("module"))
    name = next(row.torch for row in rows if row.mindspore == value.target)
    return [name, table.inverse(name, value.kwargs)]


def _kernel_if_none(value: Any, args: Mapping[str, Any]) -> Any:
    return args["kernel_size"] if value is None else value


def _same(value: Any) -> Any:
    return value


_BUILT_IN: dict[str, Verb] = {
    "complement": Verb("1 - value", lambda value, args: complement(value), complement),
    "conv1d_padding": conv_padding(1),
    "conv2d_padding": conv_padding(2),
    "conv3d_padding": conv_padding(3),
    "transposed1d_padding": transposed_padding(1),
    "transposed2d_padding": transposed_padding(2),
    "transposed3d_padding": transposed_padding(3),
    "output_padding": Verb("as much less padding behind", _output_padding, _from_output_padding),
    "flat_dilation": Verb("one number for every dimension", _flat_dilation, _same),
    "whole_factor": Verb("as a float", _whole_factor, _same),
    "recompute": Verb("True beside a factor", _recompute, _same),
    "pool_padding": Verb("'valid' where nothing is padded, else 'pad'", _pool_padding, lambda values: values[1]),
    "stride_or_kernel": Verb("None becomes the kernel size", _kernel_if_none, _same),
    "twice": Verb("for both", lambda value, args: (value, value), lambda values: values[0]),
    "decimal": Verb("as a float", lambda value, args: float(value), _same),
    "single": Verb("one number, not a tuple of one", _single, lambda value: (value,)),
    "dims": Verb("numbers one by one or in a tuple", _dims, _same),
    "tensor": Verb("a list becomes a float32 tensor", _tensor, _from_tensor),
    "negate": Verb("-value", lambda value, args: -value, lambda value: -value),
    "both_signs": Verb("-value and value", lambda value, args: (-value, value), lambda values: values[1]),
    "half_width": Verb("bounds of U(-scale, scale)", _half_width, _same),
    "last_axis": Verb("one dimension, as a tuple", _last_axis, _same),
    "divisor": Verb("None becomes 0", lambda value, args: 0 if value is None else value, lambda value: value or None),
    "layer": Verb("a layer by its own row", _layer, _from_layer),
    "schedules": Verb("every schedule by its own row", _schedules, _from_schedules),
}
VERBS: Verbs[Verb] = Verbs(_BUILT_IN, Verb)
