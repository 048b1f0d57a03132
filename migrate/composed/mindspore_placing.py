"""Placing values at places that tensors name, with torch's argument names; every function returns a new tensor."""

from __future__ import annotations

from collections.abc import Sequence

from mindspore import Tensor, ops
from mindspore import dtype as mstype


def index_put(input: Tensor, indices: Sequence[Tensor], values: Tensor, accumulate: bool = False) -> Tensor:
    """`input` with `values` at input[indices], or added there; one mask, or places along the first dimensions.

    A mask takes one value, for the number of its places depends on values. MindSpore's own index_put takes vectors of
    places with a vector of values alone.
    """
    if len(indices) == 1 and indices[0].dtype == mstype.bool_:
        mask = indices[0].reshape(tuple(indices[0].shape) + (1,) * (input.ndim - indices[0].ndim))
        placed = ops.broadcast_to(values.reshape((1,) * input.ndim), input.shape)
        return ops.where(ops.broadcast_to(mask, input.shape), input + placed if accumulate else placed, input)
    places = ops.zeros((1,), mstype.int64)
    for axis in range(len(indices)):
        size = input.shape[axis]
        own = indices[axis].astype(mstype.int64)
        places = places * size + ops.where(own < 0, own + size, own)
    rest = tuple(input.shape[len(indices) :])
    flat = input.reshape((-1, *rest))
    placed = ops.broadcast_to(values, tuple(places.shape) + rest).reshape((-1, *rest))
    rows = places.reshape((-1,) + (1,) * len(rest))
    rows = ops.broadcast_to(rows, placed.shape)
    filled = ops.tensor_scatter_elements(flat, rows, placed, 0, "add" if accumulate else "none")
    return filled.reshape(input.shape)


def scatter_reduce(
    input: Tensor, dim: int, index: Tensor, src: Tensor, reduce: str, include_self: bool = True
) -> Tensor:
    """`input` with the sums or means of those values of `src` that `index` sends to one place along `dim`.

    reduce: sum or mean. include_self: the value that was there counts as well; where none is sent it stays.
    """
    values = src
    for axis in range(index.ndim):
        values = ops.narrow(values, axis, 0, index.shape[axis])
    ones = ops.ones_like(values)
    base = input
    if not include_self:
        base = input * ops.tensor_scatter_elements(ops.ones_like(input), index, ops.zeros_like(values), dim)
    found = ops.tensor_scatter_elements(base, index, values, dim, "add")
    if reduce == "mean":
        start = ops.ones_like(input) if include_self else ops.zeros_like(input)
        number = ops.tensor_scatter_elements(start, index, ones, dim, "add")
        found = found / ops.maximum(number, ops.ones_like(number))
    return found
