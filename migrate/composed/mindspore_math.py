"""Functions element by element that MindSpore does not have, or computes otherwise, under torch's argument names."""

from __future__ import annotations

from typing import Any

import mindspore
from mindspore import ops


def rsub(input: Any, other: Any, alpha: Any = 1) -> Any:
    """`other - alpha * input`, as torch.rsub."""
    return other - (input if alpha == 1 else input * alpha)


def float_power(input: Any, exponent: Any) -> Any:
    """`input ** exponent` in float64, as torch.float_power computes it, whatever the dtypes are."""
    if isinstance(input, mindspore.Tensor):
        input = ops.cast(input, mindspore.float64)
    if isinstance(exponent, mindspore.Tensor):
        exponent = ops.cast(exponent, mindspore.float64)
    return ops.pow(input, exponent)


def bitwise_not(input: Any) -> Any:
    """`~input`: of truth values the opposite, of whole numbers `-1 - input`, as torch.bitwise_not."""
    if input.dtype == mindspore.bool_:
        return ops.logical_not(input)
    return -1 - input


def fmin(input: Any, other: Any) -> Any:
    """The smaller of two values, and the number where one is NaN, as torch.fmin; MindSpore's has no CPU kernel."""
    return ops.where(ops.logical_or(input <= other, ops.isnan(other)), input, other)


def clamp(input: Any, min: Any = None, max: Any = None) -> Any:
    """`input` between two bounds, as torch.clamp: NaN stays, and a value at a bound passes no gradient on.

    Where the bound is a tensor, a value at it shares the gradient with it. MindSpore's own turns NaN into a bound, and
    passes the whole gradient on.
    """
    if isinstance(min, mindspore.Tensor):
        input = ops.where(ops.isnan(input), input, ops.maximum(input, min))
    elif min is not None:
        input = ops.where(input <= min, min, input)
    if isinstance(max, mindspore.Tensor):
        input = ops.where(ops.isnan(input), input, ops.minimum(input, max))
    elif max is not None:
        input = ops.where(input >= max, max, input)
    return input
