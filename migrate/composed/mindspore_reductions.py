"""Reductions that MindSpore computes with other defaults or dtypes than torch, under torch's argument names."""

from __future__ import annotations

from typing import Any

import mindspore
from mindspore import ops


def sum(input: Any, dim: Any = None, keepdim: bool = False, dtype: Any = None) -> Any:
    """The sum; of whole numbers and truth values in int64, as torch.sum."""
    if dtype is None and input.dtype in (mindspore.bool_, mindspore.uint8, mindspore.int32):
        dtype = mindspore.int64
    return ops.sum(input if dtype is None else input.astype(dtype), dim, keepdim)


def cumsum(input: Any, dim: int, dtype: Any = None) -> Any:
    """The running sum; of whole numbers and truth values in int64, as torch.cumsum."""
    if dtype is None and input.dtype in (mindspore.bool_, mindspore.uint8, mindspore.int32):
        dtype = mindspore.int64
    return ops.cumsum(input if dtype is None else input.astype(dtype), dim)


def count_nonzero(input: Any, dim: Any = None) -> Any:
    """How many values are not zero, in int64, as torch.count_nonzero."""
    return ops.sum((input != 0).astype(mindspore.int64), dim)


def var_mean(input: Any, dim: Any = None, unbiased: Any = None, correction: Any = 1, keepdim: bool = False) -> Any:
    """Variance and mean, as torch.var_mean: the squares are divided by `n - correction`.

    unbiased: torch's older word for a correction of 1 (True) or 0 (False).
    """
    if unbiased is not None:
        correction = 1 if unbiased else 0
    mean = ops.mean(input, dim, True)
    squares = ops.mean(ops.square(input - mean), dim, keepdim)
    count = input.size // mean.size
    return squares * (count / (count - correction)), mean if keepdim else ops.mean(input, dim, False)


def var(input: Any, dim: Any = None, unbiased: Any = None, correction: Any = 1, keepdim: bool = False) -> Any:
    """The variance, as torch.var: the squares are divided by `n - correction`, or as `unbiased` says."""
    return var_mean(input, dim, unbiased, correction, keepdim)[0]


def std_mean(input: Any, dim: Any = None, unbiased: Any = None, correction: Any = 1, keepdim: bool = False) -> Any:
    """Standard deviation and mean, as torch.std_mean."""
    variance, mean = var_mean(input, dim, unbiased, correction, keepdim)
    return ops.sqrt(variance), mean


def std(input: Any, dim: Any = None, unbiased: Any = None, correction: Any = 1, keepdim: bool = False) -> Any:
    """The standard deviation, as torch.std."""
    return ops.sqrt(var_mean(input, dim, unbiased, correction, keepdim)[0])


def max(input: Any, dim: Any = None, keepdim: bool = False, other: Any = None) -> Any:
    """torch.max in its three forms: the largest of all; along `dim`, with its places; or the larger of two tensors."""
    if isinstance(dim, mindspore.Tensor):  # torch.max(input, other)
        return ops.maximum(input, dim)
    if other is not None:
        return ops.maximum(input, other)
    if dim is None:
        return ops.amax(input)
    places = ops.argmax(input, dim, True)
    values = ops.gather_elements(input, dim, places)
    return (values, places) if keepdim else (values.squeeze(dim), places.squeeze(dim))


def min(input: Any, dim: Any = None, keepdim: bool = False, other: Any = None) -> Any:
    """torch.min in its three forms: the smallest of all; along `dim`, with its places; or the smaller of two."""
    if isinstance(dim, mindspore.Tensor):  # torch.min(input, other)
        return ops.minimum(input, dim)
    if other is not None:
        return ops.minimum(input, other)
    if dim is None:
        return ops.amin(input)
    places = ops.argmin(input, dim, True).astype(mindspore.int64)
    values = ops.gather_elements(input, dim, places)
    return (values, places) if keepdim else (values.squeeze(dim), places.squeeze(dim))


def median(input: Any, dim: Any = None, keepdim: bool = False) -> Any:
    """The middle value, the lower of two, and along `dim` its places too, as torch.median."""
    if dim is None:
        values = ops.sort(input.reshape(-1))[0]
        return values[(values.size - 1) // 2]
    middle = (input.shape[dim] - 1) // 2
    ordered, places = ops.sort(ops.swapaxes(input, dim, -1))
    values = ops.swapaxes(ordered[..., middle : middle + 1], dim, -1)
    where = ops.swapaxes(places[..., middle : middle + 1], dim, -1).astype(mindspore.int64)
    return (values, where) if keepdim else (values.squeeze(dim), where.squeeze(dim))


def argmin(input: Any, dim: Any = None, keepdim: bool = False) -> Any:
    """The place of the smallest value, in int64, as torch.argmin."""
    return ops.argmin(input, dim, keepdim).astype(mindspore.int64)


def any(input: Any, dim: Any = None, keepdim: bool = False) -> Any:
    """Whether some value is not zero, as torch.any; MindSpore's takes numbers wrongly on the CPU."""
    return ops.any(input if input.dtype == mindspore.bool_ else input != 0, dim, keepdim)


def all(input: Any, dim: Any = None, keepdim: bool = False) -> Any:
    """Whether no value is zero, as torch.all; `any` of MindSpore's CPU takes numbers wrongly."""
    return ops.all(input if input.dtype == mindspore.bool_ else input != 0, dim, keepdim)


def cummax(input: Any, dim: int) -> Any:
    """The largest value so far along `dim`, and its place, as torch.cummax; MindSpore's gradient has no CPU kernel."""
    places = ops.cummax(ops.stop_gradient(input), dim)[1].astype(mindspore.int64)
    return ops.gather_elements(input, dim, places), places


def cummin(input: Any, dim: int) -> Any:
    """The smallest value so far along `dim`, and its place, as torch.cummin; MindSpore's gradient has no CPU kernel."""
    places = ops.cummin(ops.stop_gradient(input), dim)[1].astype(mindspore.int64)
    return ops.gather_elements(input, dim, places), places


def bincount(input: Any, weights: Any = None, minlength: int = 0) -> Any:
    """How often each whole number occurs, in int64, or the sum of its weights, as torch.bincount."""
    counts = ops.bincount(input, weights, minlength)
    return counts.astype(mindspore.int64) if weights is None else counts
