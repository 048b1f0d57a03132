"""Tensors created, rearranged and cut as in torch, where MindSpore has no operator or one that fails on the CPU; and
distributions as torch.distributions has them, each a tuple of its tensors, which graph mode passes gradients through.

The argument names are torch's; functions that create tensors keep torch's rules for the dtype.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import mindspore
import numpy as np
from mindspore import Tensor, ops


def roll(input: Tensor, shifts: int | Sequence[int], dims: int | Sequence[int] | None = None) -> Tensor:
    """Shift the values along `dims`, so that those behind the end come in at the start; without dims the flat tensor.

    MindSpore's CPU has no kernel for ops.roll.
    """
    x = input.reshape((-1,)) if dims is None else input
    steps = (shifts,) if isinstance(shifts, int) else tuple(shifts)
    if dims is None:
        axes: tuple[int, ...] = (0,)
    else:
        axes = (dims,) if isinstance(dims, int) else tuple(dims)
    for step, axis in zip(steps, axes):  # noqa: B905  # MindSpore compiles no keyword of zip
        size = x.shape[axis]
        cut = (size - step) % size
        if cut != 0:
            x = ops.cat((ops.narrow(x, axis, cut, size - cut), ops.narrow(x, axis, 0, cut)), axis)
    return x.reshape(input.shape)


def pack(tensors: Sequence[Tensor], pattern: str) -> tuple[Tensor, list[tuple[int, ...]]]:
    """Flatten the axes that `*` stands for in a pattern of einops, such as "b * d", and join the tensors along them.

    Returns the joined tensor and the sizes that were flattened in each, as einops.pack does.
    """
    axes = pattern.split()
    before = axes.index("*")
    after = len(axes) - before - 1
    shapes = [x.shape[before : x.ndim - after] for x in tensors]
    flat = [x.reshape((*x.shape[:before], -1, *x.shape[x.ndim - after :])) for x in tensors]
    return ops.cat(flat, before), shapes


def unpack(tensor: Tensor, packed_shapes: Sequence[Sequence[int]], pattern: str) -> list[Tensor]:
    """Cut a tensor along the axis that `*` stands for, each part in its own shape: what einops.pack joined.

    packed_shapes: the sizes that each part has in place of the axis; one of all these may be -1.
    """
    before = pattern.split().index("*")
    head, tail = tensor.shape[:before], tensor.shape[before + 1 :]
    sizes = []
    for shape in packed_shapes:
        size = 1
        for one in shape:
            size = size * one
        sizes.append(size)
    rest = tensor.shape[before] - sum([size for size in sizes if size >= 0])  # for the part with a -1
    parts, start = [], 0
    for shape, size in zip(packed_shapes, sizes):  # noqa: B905  # MindSpore compiles no keyword of zip
        length = size if size >= 0 else rest
        parts.append(ops.narrow(tensor, before, start, length).reshape((*head, *shape, *tail)))
        start = start + length
    return parts


def largest(dtype: Any) -> float:
    """The largest number that a dtype of floating-point numbers holds, as torch.finfo(dtype).max; -largest is its min.

    Raises TypeError for another dtype.
    """
    if dtype == mindspore.float16:
        return 65504.0
    if dtype == mindspore.bfloat16:
        return 3.3895313892515355e38
    if dtype == mindspore.float32:
        return 3.4028234663852886e38
    if dtype == mindspore.float64:
        return 1.7976931348623157e308
    raise TypeError(f"{dtype} is no dtype of floating-point numbers")


def unflatten(input: Tensor, dim: int, sizes: Sequence[int]) -> Tensor:
    """Split one dimension into several of the given sizes, of which one may be -1."""
    shape = tuple(input.shape)
    axis = dim % len(shape)
    return input.reshape(shape[:axis] + tuple(sizes) + shape[axis + 1 :])


def reshape_as(input: Tensor, other: Tensor) -> Tensor:
    """The values in the shape of another tensor."""
    return input.reshape(other.shape)


def expand(input: Tensor, size: Sequence[int]) -> Tensor:
    """Repeat dimensions of size 1 up to `size`, whose -1 leaves one as it is; new dimensions come in front."""
    shape = tuple(input.shape)
    shape = (1,) * (len(size) - len(shape)) + shape
    wanted: tuple[int, ...] = ()
    for index in range(len(shape)):
        wanted = (*wanted, shape[index] if size[index] == -1 else size[index])
    return ops.broadcast_to(input, wanted)


def expand_as(input: Tensor, other: Tensor) -> Tensor:
    """Repeat dimensions of size 1 up to the shape of another tensor."""
    return ops.broadcast_to(input, other.shape)


def broadcast_tensors(*tensors: Tensor) -> tuple[Tensor, ...]:
    """Every tensor in the shape that all of them broadcast to."""
    shape: tuple[int, ...] = ()
    for tensor in tensors:
        own = tuple(tensor.shape)
        rank = max(len(shape), len(own))
        ours, theirs = (1,) * (rank - len(shape)) + shape, (1,) * (rank - len(own)) + own
        shape = ()
        for axis in range(rank):
            shape = (*shape, theirs[axis] if ours[axis] == 1 else ours[axis])
    found: tuple[Tensor, ...] = ()
    for tensor in tensors:
        found = (*found, ops.broadcast_to(tensor, shape))
    return found


def unfold_dimension(input: Tensor, dimension: int, size: int, step: int) -> Tensor:
    """Every window of `size` values along one dimension, `step` apart; the window's values form a last dimension.

    torch.Tensor.unfold; the Tensor.unfold of MindSpore is torch.nn.functional.unfold.
    """
    axis = dimension % input.ndim
    count = (input.shape[axis] - size) // step + 1
    parts = tuple([ops.narrow(input, axis, index * step, size).unsqueeze(axis) for index in range(count)])
    windows = ops.cat(parts, axis)  # the windows take the place of the dimension, with their values behind it
    return ops.movedim(windows, axis + 1, -1)


def select(input: Tensor, dim: int, index: int) -> Tensor:
    """One slice along a dimension, which is gone afterwards."""
    return ops.narrow(input, dim, index % input.shape[dim], 1).squeeze(dim)


def diag(input: Tensor, diagonal: int = 0) -> Tensor:
    """A matrix with the vector on a diagonal, or the diagonal of a matrix as a vector."""
    if input.ndim == 1:
        return ops.diag_embed(input, diagonal, -2, -1)
    return ops.diagonal(input, diagonal, 0, 1)


def meshgrid(tensors: Sequence[Tensor], indexing: str = "ij") -> Any:
    """Grids of coordinates from vectors, one tensor for each of them; a tuple.

    tensors: the vectors, or one list of them, as torch.meshgrid takes both.
    """
    vectors = tensors[0] if len(tensors) == 1 and isinstance(tensors[0], (list, tuple)) else tensors
    return ops.meshgrid(*vectors, indexing=indexing)


def size(input: Tensor, dim: int | None = None) -> Any:
    """The shape, or the size of one dimension."""
    return input.shape if dim is None else input.shape[dim]


def dim(input: Tensor) -> int:
    """The number of dimensions."""
    return len(input.shape)


def detached(value: Any) -> Any:
    """A tensor without its gradient, and so every tensor in a list, a tuple or a dictionary; anything else as it is."""
    if isinstance(value, Tensor):
        return ops.stop_gradient(value)
    if isinstance(value, (list, tuple)):
        parts = [detached(one) for one in value]
        return parts if isinstance(value, list) else tuple(parts)
    return {key: detached(one) for key, one in value.items()} if isinstance(value, dict) else value


def check_axes(input: Tensor, *numbers: int) -> None:
    """Raise ValueError for a tensor of another number of axes, as torch's norms do before they compute."""
    if input.ndim not in numbers:
        raise ValueError(f"expected an input of {' or '.join(map(str, numbers))} axes, got {input.ndim}")


def type_as(input: Tensor, tensor: Tensor) -> Tensor:
    """The values in the dtype of another tensor."""
    return ops.cast(input, tensor.dtype)


def contiguous(input: Tensor) -> Tensor:
    """The tensor itself: MindSpore has no choice of memory layout."""
    return input


def stride(input: Tensor, dim: int | None = None) -> Any:
    """The distance, in values, of neighbours along each dimension, or along one, if the values lie in order."""
    found: tuple[int, ...] = ()
    step = 1
    for size in reversed(input.shape):
        found = (step, *found)
        step = step * size
    return found if dim is None else found[dim]


def as_strided(input: Tensor, size: Sequence[int], stride: Sequence[int], storage_offset: int | None = None) -> Tensor:
    """The values at these strides among the tensor's own, which lie in order; the windows may overlap.

    size: of the result. stride: how far neighbours along each of its dimensions are from each other, in values.
    storage_offset: where its first value is.
    """
    places = ops.zeros((1,) * len(size), mindspore.int32) + (0 if storage_offset is None else storage_offset)
    for axis in range(len(size)):
        shape = (1,) * axis + (size[axis],) + (1,) * (len(size) - axis - 1)
        places = places + ops.arange(size[axis]).astype(mindspore.int32).reshape(shape) * stride[axis]
    return ops.gather(input.reshape((-1,)), places.reshape((-1,)), 0).reshape(tuple(size))


def tensor_split(
    input: Tensor,
    indices_or_sections: int | Sequence[int] | None = None,
    dim: int = 0,
    sections: int | None = None,
    indices: Sequence[int] | None = None,
) -> tuple[Tensor, ...]:
    """Parts along `dim`: a number of them, the first ones longer by one if need be, or those between indices."""
    if sections is not None:
        return ops.tensor_split(input, sections, dim)
    return ops.tensor_split(input, indices_or_sections if indices is None else tuple(indices), dim)


def hsplit(
    input: Tensor,
    indices_or_sections: int | Sequence[int] | None = None,
    sections: int | None = None,
    indices: Sequence[int] | None = None,
) -> tuple[Tensor, ...]:
    """tensor_split along the second dimension, of a vector along its only one."""
    return tensor_split(input, indices_or_sections, 1 if input.ndim > 1 else 0, sections, indices)


def vsplit(
    input: Tensor,
    indices_or_sections: int | Sequence[int] | None = None,
    sections: int | None = None,
    indices: Sequence[int] | None = None,
) -> tuple[Tensor, ...]:
    """tensor_split along the first dimension."""
    return tensor_split(input, indices_or_sections, 0, sections, indices)


def dsplit(
    input: Tensor,
    indices_or_sections: int | Sequence[int] | None = None,
    sections: int | None = None,
    indices: Sequence[int] | None = None,
) -> tuple[Tensor, ...]:
    """tensor_split along the third dimension."""
    return tensor_split(input, indices_or_sections, 2, sections, indices)


def channel_shuffle(input: Tensor, groups: int) -> Tensor:
    """The channels, one of each group in turn."""
    shape = tuple(input.shape)
    x = input.reshape((shape[0], groups, shape[1] // groups, *shape[2:]))
    return x.swapaxes(1, 2).reshape(shape)


def full(size: Any, fill_value: Any, dtype: Any = None) -> Any:
    """A tensor full of one value, as torch.full: int64, bool or float32 as the value is, where no dtype is given."""
    if dtype is None:
        dtype = mindspore.float32
        if isinstance(fill_value, bool):
            dtype = mindspore.bool_
        elif isinstance(fill_value, int):
            dtype = mindspore.int64
    return ops.full(size, fill_value, dtype=dtype)


def new_zeros(input: Any, size: Any, dtype: Any = None) -> Any:
    """Zeros of the dtype of `input`, as torch.Tensor.new_zeros."""
    return ops.zeros(size, input.dtype if dtype is None else dtype)


def new_tensor(input: Any, data: Any, dtype: Any = None) -> Any:
    """A tensor of the given numbers, of the dtype of `input`, as torch.Tensor.new_tensor."""
    return mindspore.tensor(data, input.dtype if dtype is None else dtype)


def new_ones(input: Any, size: Any, dtype: Any = None) -> Any:
    """Ones of the dtype of `input`, as torch.Tensor.new_ones."""
    return ops.ones(size, input.dtype if dtype is None else dtype)


def new_full(input: Any, size: Any, fill_value: Any, dtype: Any = None) -> Any:
    """A tensor full of one value, of the dtype of `input`, as torch.Tensor.new_full."""
    return ops.full(size, fill_value, dtype=input.dtype if dtype is None else dtype)


def masked_fill(input: Any, mask: Any, value: Any) -> Any:
    """What `input.masked_fill(mask, value)` gives: a number as one of `input`'s kind, which ops.masked_fill needs."""
    return ops.masked_fill(input, mask, Tensor(value, input.dtype))


def arange(start: Any = 0, end: Any = None, step: Any = 1, dtype: Any = None) -> Any:
    """The numbers from `start` to before `end`, as torch.arange; one number alone is the end."""
    if end is None:
        start, end = 0, start
    return ops.arange(start, end, step, dtype=dtype)


def linspace(start: Any, end: Any, steps: int, dtype: Any = None) -> Tensor:
    """`steps` numbers from `start` to `end`, both among them, as torch.linspace: float32 where no dtype is given.

    Raises ValueError for a dtype of whole numbers, which torch cuts off one by one.
    """
    if dtype is None or dtype == mindspore.float32:
        return ops.linspace(start, end, steps)
    if dtype not in (mindspore.float64, mindspore.float16, mindspore.bfloat16):
        raise ValueError(f"linspace in {dtype}: it makes floating-point numbers")
    first, last = mindspore.tensor(start, mindspore.float64), mindspore.tensor(end, mindspore.float64)
    return ops.linspace(first, last, steps).astype(dtype)


def tensor(data: Any, dtype: Any = None) -> Any:
    """A tensor of the given numbers, as torch.tensor: float32, int64 or bool where no dtype is given."""
    return mindspore.tensor(data, dtype)


def manual_seed(seed: int) -> None:
    """Seed what MindSpore draws, also for new layers; what NumPy draws stays as it was."""
    state = np.random.get_state()
    mindspore.set_seed(seed)
    mindspore.manual_seed(seed)
    np.random.set_state(state)


def rand(size: Any, dtype: Any = None) -> Any:
    """Values drawn uniformly from [0, 1), as torch.rand."""
    return ops.rand(*size, dtype=dtype)


def randn(size: Any, dtype: Any = None) -> Any:
    """Values drawn from the standard normal distribution, as torch.randn."""
    return ops.randn(*size, dtype=dtype)


def randint(low: int, high: int, size: Any, dtype: Any = None) -> Any:
    """Whole numbers drawn from [low, high), in int64, as torch.randint."""
    return ops.randint(low, high, tuple(size)).astype(mindspore.int64 if dtype is None else dtype)


def randperm(n: int, dtype: Any = None) -> Any:
    """The numbers below n in a random order, in int64, as torch.randperm."""
    return ops.argsort(ops.rand(n)).astype(mindspore.int64 if dtype is None else dtype)


def normal(mean: Any = 0.0, std: Any = 1.0, size: Any = None) -> Any:
    """Values drawn from normal distributions, as torch.normal: of numbers and a size, or of tensors, to which no
    gradient goes back."""
    if size is None:
        size = (mean + std).shape
    return ops.stop_gradient(mean + std * ops.standard_normal(size))


def bernoulli(input: Any) -> Any:
    """Zeros and ones; each is one with the probability at its place in `input`, as torch.bernoulli."""
    return (ops.rand_like(input) < input).astype(input.dtype)


def filled_normal(input: Any, mean: float = 0.0, std: float = 1.0) -> Any:
    """What `input.normal_(mean, std)` leaves in `input`: values drawn from one normal distribution."""
    return (mean + std * ops.standard_normal(input.shape)).astype(input.dtype)


def filled_uniform(input: Any, low: float = 0.0, high: float = 1.0) -> Any:
    """What `input.uniform_(low, high)` leaves in `input`: values drawn evenly between two numbers."""
    return (low + (high - low) * ops.rand(input.shape)).astype(input.dtype)


def filled_bernoulli(input: Any, p: float = 0.5) -> Any:
    """What `input.bernoulli_(p)` leaves in `input`: ones with this probability, and zeros."""
    return (ops.rand(input.shape) < p).astype(input.dtype)


def multinomial(input: Any, num_samples: int, replacement: bool = False) -> Any:
    """Indices drawn by their weights, in int64, as torch.multinomial; torch raises for more draws than weights above
    0."""
    if replacement and num_samples > 1:
        drawn = ops.multinomial(input, num_samples, True)
    else:  # ops.multinomial adds 1e-6 to every weight here, and draws places whose weight is 0
        _, drawn = ops.topk(input / -ops.log(ops.rand(input.shape)), num_samples)
    return drawn.astype(mindspore.int64)


def copy(input: Any, src: Any) -> Any:
    """What `input.copy_(src)` leaves in `input`: `src` in its shape and dtype."""
    return ops.broadcast_to(src, input.shape).astype(input.dtype)


def tree_flatten(tree: Any) -> tuple[list[Any], Any]:
    """The leaves of nested lists, tuples and dicts, in order, and the structure around them, for tree_unflatten.

    Raises TypeError for classes derived from these: torch flattens some of them, and takes others as they are.
    """
    if not isinstance(tree, (list, tuple, dict)):
        return [tree], None
    if type(tree) not in (list, tuple, dict):
        raise TypeError(f"{type(tree).__name__} in a tree: give only lists, tuples and dicts")
    leaves: list[Any] = []
    parts = []
    for part in tree.values() if isinstance(tree, dict) else tree:
        found, inside = tree_flatten(part)
        leaves += found
        parts.append((len(found), inside))
    return leaves, (type(tree), list(tree) if isinstance(tree, dict) else [], parts)


def tree_unflatten(leaves: Any, treespec: Any) -> Any:
    """The tree that tree_flatten took apart, with other leaves. Raises ValueError where there are more or fewer."""
    rest = list(leaves)
    if treespec is None:
        if len(rest) != 1:
            raise ValueError(f"{len(rest)} leaves for a tree of 1")
        return rest[0]
    kind, keys, parts = treespec
    if len(rest) != sum(count for count, _ in parts):
        raise ValueError(f"{len(rest)} leaves for a tree of {sum(count for count, _ in parts)}")
    made = []
    for count, inside in parts:
        made.append(tree_unflatten(rest[:count], inside))
        rest = rest[count:]
    return dict(zip(keys, made, strict=True)) if kind is dict else kind(made)


# Distributions: pairs of tensors and functions of them, for compiled code passes no gradient through an object that is
# made of tensors (`python benchmarks/graph_outputs_mindspore.py`).


def normal_distribution(loc: Any, scale: Any) -> tuple[Any, Any]:
    """torch's Normal as a pair: the mean and the standard deviation, in one shape."""
    return broadcast_tensors(_beside(loc, scale), _beside(scale, loc))


def normal_sample(distribution: Any, sample_shape: Any = ()) -> Any:
    """Values drawn from a Normal, to which no gradient goes back."""
    return ops.stop_gradient(normal_rsample(distribution, sample_shape))


def normal_rsample(distribution: Any, sample_shape: Any = ()) -> Any:
    """Values drawn from a Normal, whose gradients go to its mean and standard deviation."""
    loc, scale = distribution
    return loc + ops.standard_normal((*sample_shape, *loc.shape)).astype(loc.dtype) * scale


def normal_log_prob(distribution: Any, value: Any) -> Any:
    """The logarithm of a Normal's density at `value`."""
    loc, scale = distribution
    return -((value - loc) ** 2) / (2 * scale**2) - ops.log(scale) - 0.9189385332046727  # log(sqrt(2 pi))


def normal_cdf(distribution: Any, value: Any) -> Any:
    """The share of a Normal below `value`."""
    loc, scale = distribution
    return 0.5 * (1 + ops.erf((value - loc) / scale / 1.4142135623730951))  # sqrt(2)


def normal_entropy(distribution: Any) -> Any:
    """The entropy of a Normal."""
    return 1.4189385332046727 + ops.log(distribution[1])  # 1 / 2 + log(sqrt(2 pi))


def normal_kl_divergence(p: Any, q: Any) -> Any:
    """The Kullback-Leibler divergence of two Normals."""
    ratio = (p[1] / q[1]) ** 2
    return 0.5 * (ratio + ((p[0] - q[0]) / q[1]) ** 2 - 1 - ops.log(ratio))


def categorical_distribution(probs: Any = None, logits: Any = None) -> tuple[Any, Any]:
    """torch's Categorical as a pair: the probabilities of the last axis, which sum up to 1, and their logarithms."""
    if logits is not None:
        logits = logits - ops.logsumexp(logits, -1, True)
        return ops.softmax(logits, -1), logits
    probs = probs / ops.sum(probs, -1, keepdim=True)
    return probs, ops.log(_inside(probs))


def categorical_sample(distribution: Any, sample_shape: Any = ()) -> Any:
    """Indices drawn from a Categorical, int64."""
    probs, count = distribution[0], 1
    for size in sample_shape:
        count = count * size
    drawn = multinomial(ops.stop_gradient(probs).reshape((-1, probs.shape[-1])), count, True)
    return drawn.swapaxes(0, 1).reshape((*sample_shape, *probs.shape[:-1]))


def categorical_log_prob(distribution: Any, value: Any) -> Any:
    """The logarithms of the probabilities of indices."""
    logits = distribution[1]
    index, first = broadcast_tensors(value.astype(mindspore.int64), logits[..., 0])
    logits = ops.broadcast_to(logits, (*first.shape, logits.shape[-1]))
    return ops.gather_elements(logits, logits.ndim - 1, index.expand_dims(-1)).squeeze(-1)


def categorical_entropy(distribution: Any) -> Any:
    """The entropy of a Categorical."""
    probs, logits = distribution
    lowest = -largest(logits.dtype)
    return -ops.sum(probs * ops.where(logits < lowest, lowest, logits), -1)


def categorical_kl_divergence(p: Any, q: Any) -> Any:
    """The Kullback-Leibler divergence of two Categoricals."""
    terms = p[0] * (p[1] - q[1])
    terms = ops.where(ops.equal(q[0], 0), ops.full_like(terms, float("inf")), terms)
    return ops.sum(ops.where(ops.equal(p[0], 0), ops.zeros_like(terms), terms), -1)


def bernoulli_distribution(probs: Any = None, logits: Any = None) -> tuple[Any, Any]:
    """torch's Bernoulli as a pair: the probabilities of a one, and the logits."""
    if logits is not None:
        logits = _beside(logits, None)
        return ops.sigmoid(logits), logits
    probs = _beside(probs, None)
    inside = _inside(probs)
    return probs, ops.log(inside) - ops.log1p(-inside)


def bernoulli_sample(distribution: Any, sample_shape: Any = ()) -> Any:
    """Zeros and ones drawn from a Bernoulli."""
    probs = ops.stop_gradient(distribution[0])
    return bernoulli(ops.broadcast_to(probs, (*sample_shape, *probs.shape)))


def bernoulli_log_prob(distribution: Any, value: Any) -> Any:
    """The logarithms of the probabilities of zeros and ones."""
    logits, value = broadcast_tensors(distribution[1], value)
    return -_cross_entropy(logits, value)


def bernoulli_entropy(distribution: Any) -> Any:
    """The entropy of a Bernoulli."""
    probs, logits = distribution
    return _cross_entropy(logits, probs)


def _cross_entropy(logits: Any, probs: Any) -> Any:
    """The cross-entropy of each Bernoulli, for which MindSpore's CPU is nearer to exact than for a softplus."""
    ones = ops.ones_like(logits)
    return ops.binary_cross_entropy_with_logits(logits, probs.astype(logits.dtype), ones, ones, "none")


def bernoulli_kl_divergence(p: Any, q: Any) -> Any:
    """The Kullback-Leibler divergence of two Bernoullis whose probabilities are neither 0 nor 1."""
    ones = p[0] * (ops.softplus(-q[1]) - ops.softplus(-p[1]))
    return ones + (1 - p[0]) * (ops.softplus(q[1]) - ops.softplus(p[1]))


def _beside(value: Any, other: Any) -> Any:
    """A tensor as it is, and a number as one of the dtype of the `other` parameter, float32 where that is none."""
    if isinstance(value, Tensor):
        return value
    return ops.full((), value, dtype=other.dtype if isinstance(other, Tensor) else mindspore.float32)


def _inside(probs: Any) -> Any:
    """Probabilities between the smallest step of their dtype and 1 less this."""
    step = 2.0**-23
    if probs.dtype == mindspore.float64:
        step = 2.0**-52
    elif probs.dtype == mindspore.float16:
        step = 2.0**-10
    return ops.where(probs < step, step, ops.where(probs > 1 - step, 1 - step, probs))
