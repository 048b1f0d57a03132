"""Picking and placing values, where MindSpore's operator is missing, wrong on the CPU or of another meaning.

The argument names are torch's; everything returns a new tensor, also where torch writes into the one it was given.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from mindspore import Parameter, Tensor, nn, ops
from mindspore import dtype as mstype
from mindspore.common.initializer import Normal, initializer


def getitem(a: Tensor, b: Any) -> Tensor:
    """a[b] for an index of numbers, slices, None and Ellipsis, one or several in a tuple.

    A slice with a step is taken value by value: the gradient of MindSpore's own crashes from rank 3 on. So does that of
    an empty slice, which gets no gradient. An index that is a tensor is not for this function: it is written as a[b],
    or as ops.index_select.
    """
    plan = _index_plan(b, a.shape)
    if plan is None:
        return ops.stop_gradient(a[b])
    x = a
    for axis, places, count in plan:
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
    """The steps (axis, places, count) of an index; count -2: a new axis, -1: one place, 0: several, else a range. None
    where a slice is empty."""
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
            if not places:
                return None
            if len(places) < shape[place]:
                near = places == tuple(range(places[0], places[0] + len(places)))
                plan.append((axis, places, len(places) if near else 0))
            axis, place = axis + 1, place + 1
        else:
            plan.append((axis, (item % shape[place],), -1))
            place += 1
    return tuple(plan)


def setitem(a: Tensor, b: Any, c: Any) -> Tensor:
    """The tensor that a would be after a[b] = c; a itself stays as it is."""
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
    return scatter_add(input, dim, _places(index, dim, source), source * alpha)


def index_copy(input: Tensor, dim: int, index: Tensor, source: Tensor) -> Tensor:
    """`input` with the slices of `source` at the places that `index` names along `dim`."""
    return ops.tensor_scatter_elements(input, _places(index, dim, source), source, dim, "none")


def index_fill(input: Tensor, dim: int, index: Tensor, value: float | Tensor) -> Tensor:
    """`input` with one value at the places that `index` names along `dim`; MindSpore's own takes none of int64."""
    return ops.index_fill(input, dim, index.astype(mstype.int32), value)


def _places(index: Tensor, dim: int, source: Tensor) -> Tensor:
    """A vector of places along `dim` in the shape of `source`."""
    axis = dim % source.ndim
    return ops.broadcast_to(index.reshape((-1,) + (1,) * (source.ndim - axis - 1)), source.shape)


def masked_scatter(input: Tensor, mask: Tensor, source: Tensor) -> Tensor:
    """`input` with the first values of `source`, one after the other, where the mask is True; the mask broadcasts."""
    if source.size == 0:  # there is nothing to put anywhere
        return input
    chosen = ops.broadcast_to(mask, input.shape)
    order = ops.cumsum(chosen.reshape((-1,)).astype(mstype.int32), 0) - 1
    values = ops.gather(source.reshape((-1,)), ops.maximum(order, 0), 0)
    return ops.where(chosen, values.reshape(input.shape), input)


def bucketize(input: Tensor, boundaries: Tensor, out_int32: bool = False, right: bool = False) -> Tensor:
    """The number of the interval between the boundaries that each value lies in; int64, or int32 with out_int32."""
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


def index_put(input: Tensor, indices: Sequence[Tensor], values: Tensor, accumulate: bool = False) -> Tensor:
    """`input` with `values` at input[indices], or added there; one mask, or places along the first dimensions.

    With a mask there can be only one value, because the number of its places depends on values. MindSpore's own
    index_put takes only vectors of places with a vector of values.
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
    filled = scatter_add(flat, 0, rows, placed) if accumulate else ops.tensor_scatter_elements(flat, rows, placed, 0)
    return filled.reshape(input.shape)


def scatter_add(input: Tensor, dim: int, index: Tensor, src: Tensor) -> Tensor:
    """`input` plus those values of `src` that `index` sends to a place along `dim`; of a larger tensor the first ones.

    ops.tensor_scatter_elements adds them in several threads on the CPU, and now and then loses one where two go to the
    same place.
    """
    values = _first_of(src, index)
    places = ops.zeros((1,), mstype.int64)
    for axis in range(input.ndim):
        own = index.astype(mstype.int64)
        if axis != dim % input.ndim:
            own = ops.arange(index.shape[axis]).reshape((-1,) + (1,) * (input.ndim - axis - 1)).astype(mstype.int64)
        places = places * input.shape[axis] + own
    places = ops.broadcast_to(places, index.shape).reshape((-1, 1))
    return ops.tensor_scatter_add(input.reshape((-1,)), places, values.reshape((-1,))).reshape(input.shape)


def scatter(input: Tensor, dim: int, index: Tensor, src: Any = None, value: Any = None) -> Tensor:
    """`input` with a number, or the values of a tensor, where `index` says along `dim`; of a larger tensor the first
    values.

    src: the tensor, or the number by position, as in torch. value: the number.
    """
    if value is not None or isinstance(src, (bool, int, float)):
        number = src if value is None else value
        return ops.scatter(input, dim, index, ops.full_like(index, number, dtype=input.dtype))
    return ops.scatter(input, dim, index, _first_of(src, index))


def _first_of(values: Tensor, index: Tensor) -> Tensor:
    """As many values along each axis as there are places in the index."""
    for axis in range(index.ndim):
        values = ops.narrow(values, axis, 0, index.shape[axis])
    return values


def scatter_reduce(
    input: Tensor, dim: int, index: Tensor, src: Tensor, reduce: str, include_self: bool = True
) -> Tensor:
    """`input` with the sums or means of those values of `src` that `index` sends to the same place along `dim`.

    reduce: sum or mean. include_self: the value that was there counts as well; it stays where no value is sent.
    """
    values = _first_of(src, index)
    ones = ops.ones_like(values)
    base = input
    if not include_self:
        base = input * ops.tensor_scatter_elements(ops.ones_like(input), index, ops.zeros_like(values), dim)
    found = scatter_add(base, dim, index, values)
    if reduce == "mean":
        start = ops.ones_like(input) if include_self else ops.zeros_like(input)
        number = scatter_add(start, dim, index, ones)
        found = found / ops.maximum(number, ops.ones_like(number))
    return found


class PaddedEmbedding(nn.Embedding):
    """An Embedding whose row `padding_idx` gets no gradient, as in torch; MindSpore's goes on training it."""

    def construct(self, ids: Tensor) -> Tensor:
        """The vectors of the ids, in a last dimension."""
        found = super().construct(ids)
        hidden = ops.unsqueeze(ids == self.padding_idx, -1)
        return ops.where(hidden, ops.stop_gradient(found), found)


def embedding_from_pretrained(
    embeddings: Tensor, *, freeze: bool = True, padding_idx: int | None = None
) -> nn.Embedding:
    """An Embedding that begins with these vectors, (number, width), and trains only where it is not frozen."""
    number, width = embeddings.shape
    if padding_idx is None:
        made = nn.Embedding(number, width)
    else:
        made = PaddedEmbedding(number, width, padding_idx=padding_idx % number)
    made.embedding_table.set_data(embeddings)  # the row of padding_idx, too, which MindSpore begins with zeros
    made.embedding_table.requires_grad = not freeze
    return made


class EmbeddingBag(nn.Cell):
    """The sum, mean or maximum of the embeddings of each bag."""

    def __init__(self, num_embeddings: int, embedding_dim: int, mode: str = "mean") -> None:
        super().__init__()
        self.mode = mode
        self.weight = Parameter(initializer(Normal(1.0, 0.0), (num_embeddings, embedding_dim)), name="weight")

    def construct(
        self, input: Tensor, offsets: Tensor | None = None, per_sample_weights: Tensor | None = None
    ) -> Tensor:
        """input: (bags, size) of integers, or (values,), where `offsets` (bags,) says where each bag begins.

        per_sample_weights: a factor for each of the values, of which the sum is taken, as the mode has to be.
        """
        found = ops.gather(self.weight, input, 0)
        if per_sample_weights is not None:
            if self.mode != "sum":
                raise ValueError(f"weights of the values are for the mode 'sum', not for '{self.mode}'")
            found = found * ops.expand_dims(per_sample_weights, -1)
        if offsets is None:
            if self.mode == "max":
                return ops.amax(found, 1)
            return ops.sum(found, 1) if self.mode == "sum" else ops.mean(found, 1)
        places = ops.expand_dims(ops.arange(input.shape[0]), 0)
        begun = (ops.expand_dims(offsets, 1) <= places).astype(found.dtype)  # (bags, values)
        following = ops.cat((begun[1:], ops.zeros_like(begun[:1])), 0)
        inside = begun - following
        count = ops.maximum(ops.sum(inside, 1, True), ops.ones_like(inside[:, :1]))
        if self.mode == "max":
            shifted = ops.expand_dims(found, 0) + ops.expand_dims((inside - 1) * 1e30, 2)
            return ops.where(ops.sum(inside, 1, True) > 0, ops.amax(shifted, 1), ops.zeros_like(found[:1]))
        total = ops.matmul(inside, found)
        return total if self.mode == "sum" else total / count
