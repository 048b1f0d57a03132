"""Norms and products of matrices that MindSpore's CPU lacks or computes otherwise, under torch's argument names, and
layers whose weight is computed by one: weight_norm and spectral_norm."""

from __future__ import annotations

from typing import Any

import mindspore
from mindspore import Parameter, Tensor, nn, ops

from .normalization import normalize


def vector_norm(x: Any, ord: Any = 2, dim: Any = None, keepdim: bool = False, dtype: Any = None) -> Any:
    """The norm of all values along `dim` (None: of all), as torch.linalg.vector_norm.

    The gradient of a norm that is 0 is 0, where a square root's own would be infinite. Of half precision it is summed
    in float32, as torch does.
    """
    if dtype is not None:
        x = x.astype(dtype)
    if x.dtype in (mindspore.float16, mindspore.bfloat16):
        return vector_norm(x.astype(mindspore.float32), ord, dim, keepdim).astype(x.dtype)
    sizes = ops.abs(x)
    if ord == float("inf"):
        return ops.amax(sizes, dim, keepdim)
    if ord == float("-inf"):
        return ops.amin(sizes, dim, keepdim)
    if ord == 0:
        return ops.sum((x != 0).astype(x.dtype), dim, keepdim)
    if ord == 1:
        return ops.sum(sizes, dim, keepdim)
    total = ops.sum(ops.square(x) if ord == 2 else ops.pow(sizes, ord), dim, keepdim)
    filled = ops.where(total == 0, ops.ones_like(total), total)
    root = ops.sqrt(filled) if ord == 2 else ops.pow(filled, 1 / ord)
    return ops.where(total == 0, ops.zeros_like(total), root)


def norm(input: Any, p: Any = "fro", dim: Any = None, keepdim: bool = False, dtype: Any = None) -> Any:
    """torch.norm: the norm of all values along `dim`, those of a matrix too; "fro" is 2."""
    return vector_norm(input, 2 if p is None or p == "fro" else p, dim, keepdim, dtype)


def linalg_norm(input: Any, ord: Any = None, dim: Any = None, keepdim: bool = False, dtype: Any = None) -> Any:
    """torch.linalg.norm: of vectors for one dimension, of matrices for two dimensions and a given `ord`."""
    if isinstance(dim, (tuple, list)) and len(dim) == 1:
        dim = dim[0]
    two = isinstance(dim, (tuple, list)) or (dim is None and input.ndim == 2)
    if ord is None or ord == "fro" or not two:
        return vector_norm(input, 2 if ord is None or ord == "fro" else ord, dim, keepdim, dtype)
    if ord not in (1, -1, float("inf"), float("-inf")):
        raise ValueError(f"the matrix norm ord={ord!r} has no counterpart here; write it with mindspore.ops.svd")
    rows, columns = (0, 1) if dim is None else dim
    rows, columns = rows % input.ndim, columns % input.ndim
    summed, kept = (rows, columns) if ord in (1, -1) else (columns, rows)
    sums = vector_norm(input, 1, summed, True, dtype)
    found = ops.amax(sums, kept, True) if ord > 0 else ops.amin(sums, kept, True)
    return found if keepdim else ops.squeeze(found, (rows, columns))


def dot(input: Any, tensor: Any) -> Any:
    """The sum of the products of two vectors, as torch.dot."""
    return ops.sum(input * tensor)


def multi_dot(tensors: Any) -> Any:
    """The product of several matrices, from the left to the right, as torch.linalg.multi_dot."""
    product = tensors[0]
    for index in range(1, len(tensors)):
        product = ops.matmul(product, tensors[index])
    return product


def matrix_power(input: Any, n: int) -> Any:
    """A matrix multiplied by itself, for a negative `n` its inverse by itself, as torch.linalg.matrix_power."""
    factor = ops.inverse(input) if n < 0 else input
    product = ops.eye(input.shape[-1], input.shape[-1], input.dtype) + ops.zeros_like(input)
    for _ in range(abs(n)):
        product = ops.matmul(product, factor)
    return product


def solve(input: Any, other: Any) -> Any:
    """The X of `input X = other`, as torch.linalg.solve, by the inverse of `input`."""
    return ops.matmul(ops.inverse(input), other)


def svdvals(input: Any) -> Any:
    """The singular values of a matrix, the largest first, as torch.linalg.svdvals."""
    return ops.svd(input, False, True)[0]


def cdist(x1: Any, x2: Any, p: float = 2.0) -> Any:
    """The distances between the rows of two matrices, as torch.cdist; the gradient of a distance of 0 is 0."""
    return vector_norm(ops.expand_dims(x1, -2) - ops.expand_dims(x2, -3), p, -1)


def einsum(equation: str, operands: Any) -> Any:
    """torch.einsum, by transposes and matrix products: the operands one after the other, from the left.

    equation: letters and `...`; a letter that is twice in one operand means its diagonal. operands: a tensor, or
    several in a tuple.
    """
    if isinstance(operands, Tensor):
        operands = (operands,)
    elif len(operands) == 1 and isinstance(operands[0], (tuple, list)):
        operands = operands[0]
    found = None
    steps, axes, order = _einsum_plan(equation, [operand.shape for operand in operands])
    for index in range(len(operands)):
        operand = operands[index]
        diagonals, summed, before, ours, theirs, shape = steps[index]
        for first, second in diagonals:
            operand = ops.diagonal(operand, 0, first, second)
        if index == 0:
            found = operand
        else:
            found = ops.bmm(_as_matrices(found, before, ours), _as_matrices(operand, summed, theirs)).reshape(shape)
    if len(axes) > 0:
        found = ops.sum(found, axes)
    return ops.permute(found, order) if len(order) > 1 else found


def _as_matrices(x: Any, summed: Any, arranged: Any) -> Any:
    """An operand of einsum as a batch of matrices: summed, permuted, broadcast where its sizes are 1, reshaped."""
    order, spread, matrices = arranged
    if len(summed) > 0:
        x = ops.sum(x, summed)
    if len(order) > 1:
        x = ops.permute(x, order)
    if x.shape != spread:
        x = ops.broadcast_to(x, spread)
    return x.reshape(matrices)


@ops.constexpr
def _einsum_plan(equation: str, shapes: Any) -> Any:
    """What einsum does to operands of these shapes: a step for each, the axes to sum at the end, and the last order.

    A step: the pairs of axes that become diagonals; the axes to sum, of this operand and of the product before it; how
    both become matrices (the order of axes, the sizes, the matrices' shape); and the shape of their product.
    """
    left, arrow, right = equation.replace(" ", "").partition("->")
    terms = left.split(",")
    spare = [letter for letter in "ABCDEFGHIJKLMNOPQRSTUVWXYZ" if letter not in equation]
    shown = [len(shape) - len(term.replace("...", "")) for term, shape in zip(terms, shapes, strict=True)]
    letters = "".join(spare[: max(shown)])  # those that `...` stands for
    if not arrow:  # the letters that occur once, in alphabetical order
        plain = left.replace(",", "").replace(".", "")
        right = "..." * ("..." in left) + "".join(sorted(letter for letter in plain if plain.count(letter) == 1))
    right = right.replace("...", letters)
    terms = [
        term.replace("...", letters[len(letters) - count :]) if "..." in term else term
        for term, count in zip(terms, shown, strict=True)
    ]
    steps: list[Any] = []
    done, sizes = "", {}
    for index, (term, shape) in enumerate(zip(terms, shapes, strict=True)):
        diagonals, known = [], dict(zip(term, shape, strict=True))
        for letter in dict.fromkeys(term):
            while term.count(letter) > 1:
                first = term.index(letter)
                second = term.index(letter, first + 1)
                diagonals.append((first, second))  # which becomes the last axis
                term = term[:first] + term[first + 1 : second] + term[second + 1 :] + letter
        if index == 0:
            steps.append((tuple(diagonals), (), (), (), (), ()))
            done, sizes = term, known
            continue
        later = right + "".join(terms[index + 1 :])
        summed = tuple(place for place, letter in enumerate(term) if letter not in later + done)
        before = tuple(place for place, letter in enumerate(done) if letter not in later + term)
        term, done = ("".join(x for x in one if x in later + other) for one, other in ((term, done), (done, term)))
        sizes = {letter: max(known.get(letter, 1), sizes.get(letter, 1)) for letter in done + term}
        batch = [letter for letter in done if letter in term and letter in later]
        inner = [letter for letter in done if letter in term and letter not in later]
        rows = [letter for letter in done if letter not in term]
        columns = [letter for letter in term if letter not in done]
        sides = []
        for text, parts in ((done, (batch, rows, inner)), (term, (batch, inner, columns))):
            order = [letter for part in parts for letter in part]
            matrices = [1, 1, 1]
            for place, part in enumerate(parts):
                for letter in part:
                    matrices[place] *= sizes[letter]
            sides.append((tuple(map(text.index, order)), tuple(sizes[letter] for letter in order), tuple(matrices)))
        done = "".join(batch + rows + columns)
        steps.append((tuple(diagonals), summed, before, *sides, tuple(sizes[letter] for letter in done)))
    axes = tuple(place for place, letter in enumerate(done) if letter not in right)
    done = "".join(letter for letter in done if letter in right)
    return tuple(steps), axes, tuple(done.index(letter) for letter in right)


def logdet(input: Tensor) -> Tensor:
    """The logarithm of the determinant of each matrix, as torch.logdet: NaN where that is below 0."""
    sign, size = ops.slogdet(input)
    return ops.where(sign < 0, float("nan"), size)


# Layers whose weight is computed from other parameters each time they run


def weight_norm(cell: nn.Cell, name: str = "weight", dim: int | None = 0) -> nn.Cell:
    """Replace a layer's weight by a direction and a length, `weight_v` and `weight_g`, and return the layer.

    cell: a Dense, an Embedding, a convolution (Conv3d of one group) or a transposed one of one or two dimensions. dim:
    the dimension, counted as in torch, whose slices have a length each; None for one length of all. Both parameters
    have torch's shapes.
    The weight is weight_g · weight_v / ‖weight_v‖ (Salimans and Kingma, 2016).
    Raises TypeError for another layer or name.
    """
    weight, path = _own_weight(cell, name, WeightNorm)
    whole = dim is None or dim == -1
    axes = tuple(axis for axis in range(weight.ndim) if whole or axis != (dim or 0) % weight.ndim)
    cell.axes, cell.each = axes, not whole
    cell.weight_g = Parameter(_length(weight, axes, not whole), name=f"{path}weight_g")
    cell.weight_v = Parameter(weight, name=f"{path}weight_v")
    return cell


def spectral_norm(
    cell: nn.Cell,
    name: str = "weight",
    n_power_iterations: int = 1,
    eps: float = 1e-12,
    dim: int | None = None,
    u_first: bool = False,
) -> nn.Cell:
    """Replace a layer's weight by `weight_orig` over its largest singular value, and return the layer.

    That value is found by power iteration, one step for each run in training, with the vectors `weight_u` and
    `weight_v`. cell, name: as in weight_norm. dim: the dimension that becomes the rows, by default 1 for a transposed
    convolution, else 0. u_first: a step updates `weight_u` before `weight_v`, as in torch.nn.utils.parametrizations,
    and not after it, as torch.nn.utils.spectral_norm does. The formula is that of Miyato and others, 2018. Raises
    TypeError for another layer or name.
    """
    rows = int(isinstance(cell, (nn.Conv1dTranspose, nn.Conv2dTranspose))) if dim is None else dim
    weight, path = _own_weight(cell, name, SpectralNorm)
    cell.order = (rows, *(axis for axis in range(weight.ndim) if axis != rows))
    cell.iterations, cell.small, cell.u_first = n_power_iterations, eps, u_first
    matrix = ops.transpose(weight, cell.order).reshape((weight.shape[rows], -1))
    u, v = (normalize(ops.standard_normal((size,)), 2.0, 0, eps) for size in matrix.shape)
    u, v = _moved(matrix, u, v, 15 if u_first else 0, eps, u_first)
    cell.weight_orig = Parameter(weight, name=f"{path}weight_orig")
    cell.weight_u = Parameter(u, name=f"{path}weight_u", requires_grad=False)
    cell.weight_v = Parameter(v, name=f"{path}weight_v", requires_grad=False)
    cell.weight_u.of_buffer = cell.weight_v.of_buffer = True
    return cell


def remove_norm(cell: nn.Cell, name: str = "weight") -> nn.Cell:
    """Make the weight that a layer of weight_norm or spectral_norm computes now its own again, and return the layer.

    Raises ValueError for a layer that computes none.
    """
    if name != "weight" or not isinstance(cell, ComputedWeight):
        raise ValueError(f"{type(cell).__name__} computes no {name}")
    value, parts = cell.kernel(), [each for each in vars(cell)["_params"] if each.startswith("weight_")]
    path = getattr(cell, parts[0]).name.removesuffix(parts[0])
    for part in parts:
        delattr(cell, part)
    own = _name_of_weight(cell)
    object.__delattr__(cell, own)
    cell.__class__ = type(cell).of
    value = value if cell.weight_shape is None else value.reshape(cell.weight_shape)
    setattr(cell, own, Parameter(value, name=f"{path}{own}"))
    return cell


class ComputedWeight:
    """The class of a layer whose weight is computed: a weight that is assigned to it is lost, as in torch."""

    of: type
    weight_shape: tuple[int, ...] | None
    kernel: Any

    def __setattr__(self, name: str, value: Any) -> None:
        if name != _name_of_weight(self):
            super().__setattr__(name, value)


class WeightNorm(ComputedWeight):
    """The class of a layer after weight_norm: its weight is `weight_v` scaled to the length `weight_g`."""

    weight_g: Parameter
    weight_v: Parameter
    axes: tuple[int, ...]
    each: bool

    def kernel(self) -> Tensor:
        """The weight, in torch's shape."""
        return self.weight_v * (self.weight_g / _length(self.weight_v, self.axes, self.each))


class SpectralNorm(ComputedWeight):
    """The class of a layer after spectral_norm."""

    weight_orig: Parameter
    weight_u: Parameter
    weight_v: Parameter
    order: tuple[int, ...]
    iterations: int
    small: float
    u_first: bool
    training: bool

    def kernel(self) -> Tensor:
        """The weight, in torch's shape; in training the vectors are updated first."""
        rows = ops.transpose(self.weight_orig, self.order)
        rows = rows.reshape((rows.shape[0], -1))
        u, v = self.weight_u, self.weight_v
        if self.training:
            u, v = _moved(ops.stop_gradient(rows), u, v, self.iterations, self.small, self.u_first)
            ops.assign(self.weight_u, u)
            ops.assign(self.weight_v, v)
        u, v = ops.stop_gradient(u), ops.stop_gradient(v)
        return self.weight_orig / ops.sum(u * ops.matmul(rows, v))


class Lost:
    """The `weight` of a layer that computes its weight: what is written into it is lost, as in torch."""

    def __init__(self, weight: Tensor) -> None:
        self.shape, self.dtype = weight.shape, weight.dtype

    def set_data(self, data: Tensor) -> None:
        """Do nothing."""


def _name_of_weight(cell: Any) -> str:
    return "embedding_table" if isinstance(cell, nn.Embedding) else "weight"


def _own_weight(cell: nn.Cell, name: str, computes: type) -> tuple[Tensor, str]:
    """Make a layer compute its weight; returns the one that it had, in torch's shape, and what its name began with."""
    own = type(cell)
    runs = [own] if getattr(own, "with_norm", False) else [RUNS[each] for each in own.__mro__ if each in RUNS][:1]
    other = getattr(cell, "activation_flag", False) or (isinstance(cell, nn.Conv3d) and cell.group > 1)
    if name != "weight" or not runs or other:
        raise TypeError(f"{computes.__name__} of {name} of {type(cell).__name__} is not known")
    if isinstance(cell, (nn.Conv1dTranspose, nn.Conv2dTranspose)) and cell.pad_mode != "pad":
        raise TypeError(f"{computes.__name__} of {type(cell).__name__} with pad_mode={cell.pad_mode!r} is not known")
    place = _name_of_weight(cell)
    weight = getattr(cell, place)
    cell.weight_shape = weight.shape if isinstance(cell, (nn.Conv1d, nn.Conv1dTranspose)) else None
    value, path = Tensor(weight.asnumpy()), weight.name.removesuffix(place)
    delattr(cell, place)
    bases = (computes, *runs) if own in (*RUNS, *runs) else (computes, own, *runs)
    cell.__class__ = type(f"{computes.__name__}{own.__name__}", bases, {"of": own})
    found = value if cell.weight_shape is None else value.squeeze(2)
    object.__setattr__(cell, place, Lost(value))
    return found, path


def _moved(rows: Tensor, u: Tensor, v: Tensor, steps: int, eps: float, u_first: bool) -> tuple[Tensor, Tensor]:
    """Both vectors of a matrix after this many steps of power iteration."""
    for _ in range(steps):
        if u_first:
            u = normalize(ops.matmul(rows, v), 2.0, 0, eps)
        v = normalize(ops.matmul(u, rows), 2.0, 0, eps)
        if not u_first:
            u = normalize(ops.matmul(rows, v), 2.0, 0, eps)
    return u, v


def _length(x: Tensor, axes: tuple[int, ...], keep: bool) -> Tensor:
    """The root of the sum of squares over some axes."""
    return ops.sqrt((x * x).sum(axes, keepdims=keep))


class _Dense(nn.Dense):
    def construct(self, x: Tensor) -> Tensor:
        return ops.dense(x, self.kernel(), self.bias if self.has_bias else None)


class _Embedding(nn.Embedding):
    def construct(self, ids: Tensor) -> Tensor:
        return ops.gather(self.kernel(), ids, 0)


class _Conv1d(nn.Conv1d):
    def construct(self, x: Tensor) -> Tensor:
        y = self.conv2d(ops.expand_dims(x, 2), ops.expand_dims(self.kernel(), 2))
        return ops.squeeze(self.bias_add(y, self.bias) if self.has_bias else y, 2)


class _Conv2d(nn.Conv2d):
    def construct(self, x: Tensor) -> Tensor:
        y = self.conv2d(x, self.kernel())
        return self.bias_add(y, self.bias) if self.has_bias else y


class _Conv3d(nn.Conv3d):
    def construct(self, x: Tensor) -> Tensor:
        y = self.conv3d(x, self.kernel())
        return self.bias_add(y, self.bias) if self.has_bias else y


class _Conv1dTranspose(nn.Conv1dTranspose):
    def construct(self, x: Tensor) -> Tensor:
        sides = self.padding[2] + self.padding[3]
        wide = (x.shape[2] - 1) * self.stride[1] + self.dilation[1] * (self.kernel_size[1] - 1) + 1 - sides
        size = (x.shape[0], self.out_channels, 1, wide)
        y = self.conv2d_transpose(ops.expand_dims(x, 2), ops.expand_dims(self.kernel(), 2), size)
        return ops.squeeze(self.bias_add(y, self.bias) if self.has_bias else y, 2)


class _Conv2dTranspose(nn.Conv2dTranspose):
    def construct(self, x: Tensor) -> Tensor:
        high = (x.shape[2] - 1) * self.stride[0] + self.dilation[0] * (self.kernel_size[0] - 1) + 1
        wide = (x.shape[3] - 1) * self.stride[1] + self.dilation[1] * (self.kernel_size[1] - 1) + 1
        high, wide = high - self.padding_top - self.padding_bottom, wide - self.padding_left - self.padding_right
        y = self.conv2d_transpose(x, self.kernel(), (x.shape[0], self.out_channels, high, wide))
        return self.bias_add(y, self.bias) if self.has_bias else y


LAYERS = (_Dense, _Embedding, _Conv1d, _Conv2d, _Conv3d, _Conv1dTranspose, _Conv2dTranspose)
RUNS = {runs.__bases__[0]: runs for runs in LAYERS}
