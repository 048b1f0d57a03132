"""Norms and products of matrices that MindSpore's CPU lacks or computes otherwise, under torch's argument names."""

from __future__ import annotations

from typing import Any

import mindspore
from mindspore import Tensor, ops


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
