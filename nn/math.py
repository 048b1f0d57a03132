"""Functions on values, one by one, summed up or in order, and on matrices: norms, products, what torch.linalg has.

Each is one that MindSpore lacks or computes otherwise than torch. Those of complex numbers are here also where only
MindSpore's gradients are lacking or others.
"""

from __future__ import annotations

from typing import Any

import mindspore
from mindspore import Tensor, ops
from mindspore import dtype as mstype

COMPLEX = (mindspore.complex64, mindspore.complex128)


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


def sum(input: Any, dim: Any = None, keepdim: bool = False, dtype: Any = None) -> Any:
    """The sum; of whole numbers and truth values in int64, as torch.sum."""
    return ops.sum(_to_sum(input, dtype), dim, keepdim)


def cumsum(input: Any, dim: int, dtype: Any = None) -> Any:
    """The running sum; of whole numbers and truth values in int64, as torch.cumsum."""
    return ops.cumsum(_to_sum(input, dtype), dim)


def _to_sum(input: Any, dtype: Any) -> Any:
    """The values in the dtype in which torch sums them."""
    if dtype is None and input.dtype in (mindspore.bool_, mindspore.uint8, mindspore.int32):
        dtype = mindspore.int64
    return input if dtype is None else input.astype(dtype)


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
    return std_mean(input, dim, unbiased, correction, keepdim)[0]


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
    places = argmin(input, dim, True)
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


# Complex numbers


def complex(real: Any, imag: Any) -> Any:
    """`real + i · imag`, as torch.complex: two tensors that broadcast together, both float32 or both float64."""
    shape = (real + imag).shape
    return ops.Complex()(ops.broadcast_to(real, shape), ops.broadcast_to(imag, shape))


def view_as_complex(input: Any) -> Any:
    """The complex tensor of the two parts along the last axis, as torch.view_as_complex, but a new tensor."""
    return ops.Complex()(input[..., 0], input[..., 1])


def is_complex(input: Any) -> bool:
    """Whether it is a tensor of complex numbers, as torch.is_complex; of a number it is not."""
    return isinstance(input, Tensor) and input.dtype in COMPLEX


def real(input: Any) -> Any:
    """The real parts, as torch.real: a real tensor as it is, for the gradient of ops.real is complex there."""
    return ops.real(input) if is_complex(input) else input


def abs(input: Any) -> Any:
    """Absolute values, of complex tensors too: ops.abs gives those as complex numbers, without a gradient."""
    return ops.ComplexAbs()(input) if is_complex(input) else ops.abs(input)


def mul(input: Any, other: Any) -> Any:
    """`input * other`, of complex tensors too: ops.mul has no gradient of those, and none with a real one."""
    if not is_complex(input) and not is_complex(other):
        return input * other
    if not is_complex(other):
        return ops.Complex()(ops.real(input) * other, ops.imag(input) * other)
    if not is_complex(input):
        return ops.Complex()(ops.real(other) * input, ops.imag(other) * input)
    a, b, c, d = ops.real(input), ops.imag(input), ops.real(other), ops.imag(other)
    return ops.Complex()(a * c - b * d, a * d + b * c)


def div(input: Any, other: Any) -> Any:
    """`input / other`, of complex tensors too: the gradient of ops.div is another where the divisor is complex."""
    if not is_complex(other):
        if not is_complex(input):
            return input / other
        return ops.Complex()(ops.real(input) / other, ops.imag(input) / other)
    c, d = ops.real(other), ops.imag(other)
    square = c * c + d * d
    return mul(input, ops.Complex()(c / square, -d / square))


def hfft(input: Any, n: Any = None, dim: int = -1, norm: Any = None) -> Any:
    """torch.fft.hfft, as irfft of the conjugate; ops.hfft gives other values where a gradient is taken.

    input: real or complex. n: the length of the result's axis `dim`. norm: backward, ortho or forward.
    """
    return ops.irfft(ops.conj(input), n, dim, _opposite(norm))


def ihfft(input: Any, n: Any = None, dim: int = -1, norm: Any = None) -> Any:
    """torch.fft.ihfft, as the conjugate of rfft; the gradient of ops.ihfft is another.

    input: real. n: the length to which the axis `dim` is cut, or filled with zeros. norm: backward, ortho or forward.
    """
    return ops.conj(ops.rfft(input, n, dim, _opposite(norm)))


def fftshift(input: Any, dim: Any = None) -> Any:
    """torch.fft.fftshift; without dim the gradient of ops.fftshift is wrong on the CPU, often the second time."""
    return ops.fftshift(input, tuple(range(input.ndim)) if dim is None else dim)


def ifftshift(input: Any, dim: Any = None) -> Any:
    """torch.fft.ifftshift; without dim the gradient of ops.ifftshift is wrong on the CPU, often the second time."""
    return ops.ifftshift(input, tuple(range(input.ndim)) if dim is None else dim)


def _opposite(norm: Any) -> str:
    """The norm of the inverse transform that divides by as much as this one."""
    if norm == "ortho":
        return "ortho"
    return "backward" if norm == "forward" else "forward"


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
