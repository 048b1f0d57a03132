"""What needs the values in order, and comparisons of whole tensors, where MindSpore's CPU lacks them."""

from __future__ import annotations

from typing import Any

from mindspore import Tensor, ops
from mindspore import dtype as mstype


def unique(
    input: Tensor, sorted: bool = True, return_inverse: bool = False, return_counts: bool = False, dim: None = None
) -> Any:
    """The different values, smallest first; if asked for, also which of them stands at each place, and how often."""
    values, order = ops.sort(input.reshape((-1,)))
    count = values.shape[0]
    start = ops.ones((1,), mstype.bool_)
    fresh = ops.cat((start, ops.not_equal(ops.narrow(values, 0, 1, count - 1), ops.narrow(values, 0, 0, count - 1))))
    found: tuple[Tensor, ...] = (ops.masked_select(values, fresh),)
    if return_inverse:
        rank = ops.cumsum(fresh.astype(mstype.int64), 0) - 1
        places = ops.tensor_scatter_elements(ops.zeros_like(rank), order, rank, 0)
        found = (*found, places.reshape(input.shape))
    if return_counts:
        ends = ops.masked_select(ops.arange(1, count + 1), ops.cat((ops.narrow(fresh, 0, 1, count - 1), start)))
        starts = ops.masked_select(ops.arange(count), fresh)
        found = (*found, ends - starts)
    return found if len(found) > 1 else found[0]


def quantile(
    input: Tensor, q: float | Tensor, dim: int | None = None, keepdim: bool = False, interpolation: str = "linear"
) -> Tensor:
    """The values below which the shares `q` of those along `dim` lie; one dimension in front for a vector of shares.

    interpolation: linear, lower, higher, midpoint or nearest. NaN where a value is NaN.
    """
    x = input.reshape((-1,)) if dim is None else input
    axis = 0 if dim is None else dim % x.ndim
    count = x.shape[axis]
    rows = ops.moveaxis(x, axis, -1)
    values = ops.sort(rows, -1)[0]
    shares = q.reshape((-1,)) if isinstance(q, Tensor) else ops.full((1,), q, dtype=x.dtype)
    rank = ops.stop_gradient(shares * (count - 1))
    if interpolation == "lower":
        rank = ops.floor(rank)
    elif interpolation == "higher":
        rank = ops.ceil(rank)
    elif interpolation == "nearest":
        rank = ops.round(rank)
    low = ops.floor(rank)
    below = ops.gather(values, low.astype(mstype.int32), -1)
    above = ops.gather(values, ops.ceil(rank).astype(mstype.int32), -1)
    weight = 0.5 * (rank > low).astype(x.dtype) if interpolation == "midpoint" else rank - low
    found = below + (above - below) * weight
    void = ops.not_equal(rows, rows).any(-1, True)
    found = ops.where(void, ops.full_like(found, float("nan")), found)
    if keepdim:
        ones = (1,) * input.ndim
        found = ops.moveaxis(ops.unsqueeze(found, -2), -2, axis) if dim is not None else found.reshape((*ones, -1))
    if isinstance(q, Tensor) and q.ndim > 0:
        return ops.moveaxis(found, -1, 0)
    return found.squeeze(-1)


def allclose(input: Tensor, other: Tensor, rtol: float = 1e-05, atol: float = 1e-08, equal_nan: bool = False) -> Tensor:
    """Whether all values are close: one truth value, as a tensor."""
    return ops.isclose(input, other, rtol, atol, equal_nan).all()


def equal(input: Tensor, other: Tensor) -> Tensor:
    """Whether shape and all values are the same: one truth value, as a tensor."""
    if tuple(input.shape) != tuple(other.shape):
        return Tensor(False)
    return ops.equal(input, other).all()
