"""MindSpore's choices at the kinks of functions: ops, mint, methods of tensors, and the functions inside layers."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from typing import Any
from unittest.mock import patch

import numpy as np
from mindspore import Tensor, nn, ops
from mindspore.ops import auto_generate, functional_overload
from mindspore.ops.auto_generate import pyboost_inner_prim
from mindspore.ops.operations import nn_ops

from .kinks import EVENLY, KINKED, KINKS, POOLED, function_name, of_input, of_output, packed

Made = Callable[..., "np.ndarray | None"]  # the choice of a call, from its output and arguments; None: no choice


def _array(x: Any) -> Any:
    return x.asnumpy() if isinstance(x, Tensor) else x


def _sides(*kinks: float) -> Made:
    return lambda _, x, *__: of_input(x.asnumpy(), kinks)


def _positive(output: Any, *_: Any) -> np.ndarray:
    return of_output(output.asnumpy())


def _first_above(_: Any, one: Any, other: Any) -> np.ndarray | None:
    """Which elements of the first are above the second's; None for numbers and indices, which have no gradient."""
    above, same = np.greater(_array(one), _array(other)), np.equal(_array(one), _array(other))
    return packed([above], [same]) if above.ndim and _has_gradient(one, other) else None


def _clamped(_: Any, x: Any, min: Any = None, max: Any = None) -> np.ndarray | None:
    """Both bounds let the gradient through where an element is equal to them."""
    bounds = [
        (above, end) for above, end in ((np.greater_equal, min), (np.greater, max)) if isinstance(end, (int, float))
    ]
    if not bounds or not _has_gradient(x):
        return None
    values = x.asnumpy()
    return packed([above(values, end) for above, end in bounds], [values == end for _, end in bounds])


def _source(_: Any, x: Any, *__: Any, **___: Any) -> np.ndarray | None:
    """The input of a maximum: the choice follows from it."""
    return x.asnumpy() if _has_gradient(x) else None


def _has_gradient(*tensors: Any) -> bool:
    return any(isinstance(x, Tensor) and x.is_floating_point() for x in tensors)


def _class(name: str, *rooms: Any) -> type | None:
    """A class of MindSpore's that this version may not have."""
    return next((found for room in rooms if isinstance(found := getattr(room, name, None), type)), None)


# the primitive that is called in the end -> the kind that its calls are recorded as, and the function for their choice
PRIMITIVES: dict[type | None, tuple[str, Made]] = {
    ops.ReLU: ("ReLU", _positive),
    ops.ReLU6: ("ReLU6", _sides(*KINKS["ReLU6"])),
    ops.HSwish: ("Hardswish", _sides(*KINKS["Hardswish"])),
    ops.HSigmoid: ("Hardsigmoid", _sides(*KINKS["Hardsigmoid"])),
    ops.SeLU: ("SELU", _sides(0.0)),
    ops.PReLU: ("PReLU", _sides(0.0)),
    ops.Abs: ("Abs", _sides(0.0)),
    _class("LeakyReLUExt", auto_generate): ("LeakyReLU", _sides(0.0)),
    _class("ClampScalar", auto_generate): ("Clamp", _clamped),
    ops.Maximum: ("Maximum", _first_above),
    ops.Minimum: ("Minimum", _first_above),
    ops.MaxPool: ("MaxPool", _source),
    ops.MaxPool3D: ("MaxPool", _source),
    nn_ops.MaxPoolWithArgmaxV2: ("MaxPool", _source),
    nn_ops.MaxPool3DWithArgmax: ("MaxPool", _source),
    _class("FuncMaxPool2D", auto_generate): ("MaxPool", _source),
    _class("_PyboostAdaptiveMaxPool2DPrim", pyboost_inner_prim): ("MaxPool", _source),
    ops.ArgMaxWithValue: ("Max", _source),
    ops.ArgMinWithValue: ("Min", _source),
    _class("_PyboostArgMaxWithValuePrim", pyboost_inner_prim): ("Max", _source),
    _class("_PyboostArgMinWithValuePrim", pyboost_inner_prim): ("Min", _source),
    ops.ReduceMax: (f"Max{EVENLY}", _source),
    ops.ReduceMin: (f"Min{EVENLY}", _source),
    _class("_PyboostReduceMaxPrim", pyboost_inner_prim): (f"Max{EVENLY}", _source),
    _class("_PyboostReduceMinPrim", pyboost_inner_prim): (f"Min{EVENLY}", _source),
}


def _largest(kind: str, other: str) -> Callable[..., tuple[str, np.ndarray | None]]:
    """`x.max(…)` and `mint.max(x, …)`: of two tensors, along an axis with indices, or of all elements, where equal ones
    share the gradient."""

    def made(output: Any, x: Any, *args: Any, **named: Any) -> tuple[str, np.ndarray | None]:
        second = args[0] if args else named.get("other")
        if isinstance(second, Tensor):
            return other, _first_above(output, x, second)
        along = second is not None or any(named.get(axis) is not None for axis in ("axis", "dim"))
        return (kind if along else f"{kind}{EVENLY}"), _source(output, x)

    return made


# methods of tensors, and functions of mint, which call no primitive from Python -> the same
OVERLOADED: dict[str, Callable[..., tuple[str, np.ndarray | None]]] = {
    "max": _largest("Max", "Maximum"),
    "min": _largest("Min", "Minimum"),
    "maximum": lambda *given: ("Maximum", _first_above(*given)),
    "minimum": lambda *given: ("Minimum", _first_above(*given)),
    "clamp": lambda *given, **named: ("Clamp", _clamped(*given, **named)),
    "clip": lambda *given, **named: ("Clamp", _clamped(*given, **named)),
    "abs": lambda output, x: ("Abs", _sides(0.0)(output, x)),
}


Keep = Callable[[str, int, str, np.ndarray], None]


@contextmanager
def function_choices(cells: Mapping[str, tuple[nn.Cell, str | None]], keep: Keep) -> Iterator[None]:
    """Within this block, pass every such call to `keep`: name (`layer1.relu()`), number, kind and choice.

    cells: the Cells that torch has too, by torch's path, with their torch class; calls inside a layer with kinks are
    left out, since the layer's own choice is recorded. PyNative only.
    """
    inside: list[str | None] = [""]  # the innermost module that torch has too; None: a layer recorded by its own name
    calls: dict[str, int] = {}

    def entering(path: str, kind: str | None) -> object:
        def hook(_: nn.Cell, __: tuple[Any, ...]) -> None:
            inside.append(None if kind in (*KINKED, *POOLED) else path)

        return hook

    def leaving(*_: Any) -> None:
        inside.pop()

    def tell(kind: str, made: np.ndarray | None) -> None:
        if made is None or inside[-1] is None:
            return
        name = function_name(inside[-1], kind)
        number = calls.get(name, 0)
        calls[name] = number + 1
        keep(name, number, kind, made)

    def primitive(kind: str, made: Made, call: Callable[..., Any]) -> Callable[..., Any]:
        def wrapper(self: Any, *args: Any, **named: Any) -> Any:
            output = call(self, *args, **named)
            if inside[-1] is not None:
                tell(kind, made(output, *args, **named))
            return output

        return wrapper

    def overloaded(made: Callable[..., Any], call: Callable[..., Any], bound: int) -> Callable[..., Any]:
        def wrapper(*given: Any, **named: Any) -> Any:
            inside.append(None)  # the calls that it makes itself are not recorded
            try:
                output = call(*given, **named)
            finally:
                inside.pop()
            given = given[bound:] or (named.pop("input"),)
            if inside[-1] is not None and _has_gradient(given[0]):
                tell(*made(output, *given, **named))
            return output

        return wrapper

    with ExitStack() as undo:
        for path, (cell, kind) in cells.items():
            undo.callback(cell.register_forward_pre_hook(entering(path, kind)).remove)
            undo.callback(cell.register_forward_hook(leaving).remove)
        for one, (kind, made) in PRIMITIVES.items():
            if one is not None:
                undo.enter_context(patch.object(one, "__call__", primitive(kind, made, one.__call__)))
        for name, how in OVERLOADED.items():
            undo.enter_context(patch.object(Tensor, name, overloaded(how, getattr(Tensor, name), 0)))
            mint = getattr(functional_overload, f"_{name}_instance", None)
            if mint is not None:  # patch the class: compiled code has to find the object as it is
                undo.enter_context(patch.object(type(mint), "__call__", overloaded(how, type(mint).__call__, 1)))
        yield
