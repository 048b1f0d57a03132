"""Picking and placing values, where MindSpore's operator is missing, wrong on the CPU or of another meaning.

The argument names are torch's; everything returns a new tensor, also where torch writes into the one it was given.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from mindspore import Tensor, ops
from mindspore import dtype as mstype


def getitem(a: Tensor, b: Any) -> Tensor:
    """a[b] for an index of numbers, slices, None and Ellipsis, one or several in a tuple.

    A slice with a step is taken value by value: the gradient of MindSpore's own crashes from rank 4 on. A tensor as an
    index stands alone: a[b] as it is, or ops.index_select.
    """
    x = a
    for axis, places, count in _index_plan(b, a.shape):
        if count == -2:
            x = ops.unsqueeze(x, axis)
        elif count == -1:
            x = ops.narrow(x, axis, places[0], 1).squeeze(axis)
        elif count == 0:
            x = ops.index_select(x, axis, Tensor(places))
        else:
            x = ops.narrow(x, axis, places[0], count)
    return x


@ops.constexpr
def _index_plan(index: Any, shape: Sequence[int]) -> Any:
    """The steps (axis, places, count) of an index; count -2: a new axis, -1: one place, 0: several, else a range."""
    items = list(index) if isinstance(index, (tuple, list)) else [index]
    named = sum(1 for item in items if item is not None and item is not Ellipsis)
    if not any(item is Ellipsis for item in items):
        items.append(Ellipsis)
    plan: list[Any] = []
    axis = place = 0  # of the result so far, and of the tensor
    for item in items:
        if item is Ellipsis:
            axis, place = axis + len(shape) - named, place + len(shape) - named
        elif item is None:
            plan.append((axis, (0,), -2))
            axis += 1
        elif isinstance(item, slice):
            places = tuple(range(*item.indices(shape[place])))
            if len(places) < shape[place]:
                near = places == tuple(range(places[0], places[0] + len(places)))
                plan.append((axis, places, len(places) if near else 0))
            axis, place = axis + 1, place + 1
        else:
            plan.append((axis, (item % shape[place],), -1))
            place += 1
    return tuple(plan)


def setitem(a: Tensor, b: Any, c: Any) -> Tensor:
    """The tensor that a[b] = c makes of a; a itself stays as it is."""
    x = ops.deepcopy(a)
    x[b] = c
    return x


def take(input: Tensor, index: Tensor) -> Tensor:
    """The values of the flat tensor at these places, in the shape of the index."""
    return ops.gather(input.reshape((-1,)), index, 0)


def take_along_dim(input: Tensor, indices: Tensor, dim: int | None = None) -> Tensor:
    """The values along `dim` at these places, both broadcast against each other in the other dimensions."""
    if dim is None:
        return ops.gather(input.reshape((-1,)), indices.reshape((-1,)), 0)
    axis = dim % input.ndim
    ours: tuple[int, ...] = ()
    theirs: tuple[int, ...] = ()
    for place in range(input.ndim):
        common = max(input.shape[place], indices.shape[place])
        ours = (*ours, input.shape[place] if place == axis else common)
        theirs = (*theirs, indices.shape[place] if place == axis else common)
    return ops.gather_elements(ops.broadcast_to(input, ours), axis, ops.broadcast_to(indices, theirs))


def index_add(input: Tensor, dim: int, index: Tensor, source: Tensor, alpha: float = 1) -> Tensor:
    """`input` plus alpha times the slices of `source` at the places that `index` names along `dim`."""
    places = _places(index, dim, source)
    return ops.tensor_scatter_elements(input, places, source * alpha, dim, "add")


def index_copy(input: Tensor, dim: int, index: Tensor, source: Tensor) -> Tensor:
    """`input` with the slices of `source` at the places that `index` names along `dim`."""
    return ops.tensor_scatter_elements(input, _places(index, dim, source), source, dim, "none")


def _places(index: Tensor, dim: int, source: Tensor) -> Tensor:
    """A vector of places along `dim` in the shape of `source`."""
    axis = dim % source.ndim
    return ops.broadcast_to(index.reshape((-1,) + (1,) * (source.ndim - axis - 1)), source.shape)


def masked_scatter(input: Tensor, mask: Tensor, source: Tensor) -> Tensor:
    """`input` with the first values of `source`, one after the other, where the mask is True; the mask broadcasts."""
    chosen = ops.broadcast_to(mask, input.shape)
    order = ops.cumsum(chosen.reshape((-1,)).astype(mstype.int32), 0) - 1
    values = ops.gather(source.reshape((-1,)), ops.maximum(order, 0), 0)
    return ops.where(chosen, values.reshape(input.shape), input)


def bucketize(input: Tensor, boundaries: Tensor, out_int32: bool = False, right: bool = False) -> Tensor:
    """The number of the interval between the boundaries that each value lies in; int64, or int32 if asked."""
    kind = mstype.int32 if out_int32 else mstype.int64
    above = ops.unsqueeze(input, -1) >= boundaries if right else ops.unsqueeze(input, -1) > boundaries
    return above.astype(mstype.int32).sum(-1).astype(kind)


def nonzero(input: Tensor, as_tuple: bool = False) -> Any:
    """The places of the values that are not zero, one row each; or one vector for every dimension, in a tuple."""
    places = ops.nonzero(input)
    return ops.unbind(places, 1) if as_tuple else places


def embedding(input: Tensor, weight: Tensor, padding_idx: int | None = None) -> Tensor:
    """The rows of `weight` that `input` names; the row `padding_idx` gets no gradient."""
    found = ops.gather(weight, input, 0)
    if padding_idx is None:
        return found
    hidden = ops.unsqueeze(input == padding_idx % weight.shape[0], -1)
    return ops.where(hidden, ops.stop_gradient(found), found)
