"""Functions on values, one by one, summed up or in order, which MindSpore lacks or computes otherwise than torch.

Those of complex numbers, which stand last, are here also where only MindSpore's gradients are lacking or others. Below
these definitions `max`, `sum` and the like are torch's, no longer Python's.
"""

from __future__ import annotations

from typing import Any

import mindspore
import numpy as np
from mindspore import Tensor, ops
from mindspore import dtype as mstype

from .convolution import pad

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


def complex_mean(input: Any, dim: Any = None, keepdim: bool = False) -> Any:
    """The mean of complex numbers, as torch.mean; ops.mean has no kernel for those."""
    return complex(ops.mean(ops.real(input), dim, keepdim), ops.mean(ops.imag(input), dim, keepdim))


def complex_var(input: Any, dim: Any = None, keepdim: bool = False) -> Any:
    """The variance of complex numbers, that of both parts together, as torch.var."""
    return var(ops.real(input), dim, keepdim=keepdim) + var(ops.imag(input), dim, keepdim=keepdim)


def complex_std(input: Any, dim: Any = None, keepdim: bool = False) -> Any:
    """The standard deviation of complex numbers, as torch.std."""
    return ops.sqrt(complex_var(input, dim, keepdim))


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


def irfftn(input: Any, s: Any = None, dim: Any = None, norm: Any = None) -> Any:
    """torch.fft.irfftn; with s, but without dim, the gradient of ops.irfftn ends the process on the CPU."""
    last = tuple(range(input.ndim - len(s), input.ndim)) if s is not None and dim is None else dim
    return ops.irfftn(input, s, last, norm)


def fftshift(input: Any, dim: Any = None) -> Any:
    """torch.fft.fftshift; without dim the gradient of ops.fftshift is wrong on the CPU, often the second time."""
    return ops.fftshift(input, tuple(range(input.ndim)) if dim is None else dim)


def ifftshift(input: Any, dim: Any = None) -> Any:
    """torch.fft.ifftshift; without dim the gradient of ops.ifftshift is wrong on the CPU, often the second time."""
    return ops.ifftshift(input, tuple(range(input.ndim)) if dim is None else dim)


def stft(
    input: Any,
    n_fft: int,
    hop_length: Any = None,
    win_length: Any = None,
    window: Any = None,
    center: bool = True,
    pad_mode: str = "reflect",
    normalized: bool = False,
    onesided: Any = None,
    return_complex: Any = None,
) -> Any:
    """The spectrum of every window of a real signal, (time,) or (batch, time), as torch.stft.

    The result is (batch, frequencies, windows), complex, or its two parts along a last axis where return_complex is
    False. Raises ValueError where torch.stft raises, and TypeError for a complex signal or window.
    """
    if is_complex(input) or is_complex(window):
        raise TypeError("stft of complex numbers: transform the real and the imaginary part, and add the spectra")
    if return_complex is None:
        raise ValueError("stft of a real signal: give return_complex, as torch.stft wants it")
    hop, weights = _hop_and_window(n_fft, hop_length, win_length, window, input.dtype)
    x = input.unsqueeze(0) if input.ndim == 1 else input
    if center:
        if pad_mode == "reflect" and n_fft // 2 >= x.shape[-1]:
            raise ValueError(f"stft: {n_fft // 2} values reflected at a side of a signal of {x.shape[-1]}")
        x = pad(x.unsqueeze(1), (n_fft // 2, n_fft // 2), pad_mode).squeeze(1)
    length = x.shape[-1]
    if n_fft > length:
        raise ValueError(f"stft: windows of {n_fft} values in a signal of {length}")
    starts = ops.arange(0, 1 + (length - n_fft) // hop).reshape((-1, 1)) * hop
    frames = ops.gather(x, starts + ops.arange(0, n_fft).reshape((1, -1)), 1)
    frames = frames if weights is None else frames * weights
    norm = "ortho" if normalized else "backward"
    spectrum = ops.rfft(frames, n_fft, -1, norm) if onesided is None or onesided else ops.fft(frames, n_fft, -1, norm)
    spectrum = ops.swapaxes(spectrum, 1, 2)
    spectrum = spectrum.squeeze(0) if input.ndim == 1 else spectrum
    return spectrum if return_complex else ops.view_as_real(spectrum)


def istft(
    input: Any,
    n_fft: int,
    hop_length: Any = None,
    win_length: Any = None,
    window: Any = None,
    center: bool = True,
    normalized: bool = False,
    onesided: Any = None,
    length: Any = None,
) -> Any:
    """The real signal of which (frequencies, windows) or (batch, frequencies, windows) are the spectra, as torch.istft.

    Raises ValueError where sizes do not fit. Where the squares of a window add up to zero at a place of the signal,
    for which torch.istft raises, the signal is not finite.
    """
    x = input.unsqueeze(0) if input.ndim == 2 else input
    bins, count = x.shape[1], x.shape[2]
    half = bins != n_fft if onesided is None else onesided
    if bins != (n_fft // 2 + 1 if half else n_fft):
        raise ValueError(f"istft: {bins} frequencies do not fit windows of {n_fft} values")
    dtype = mindspore.float64 if x.dtype == mindspore.complex128 else mindspore.float32
    hop, weights = _hop_and_window(n_fft, hop_length, win_length, window, dtype)
    weights = ops.ones((n_fft,), dtype) if weights is None else weights
    x = ops.swapaxes(x[:, : n_fft // 2 + 1], 1, 2)
    frames = ops.irfft(x, n_fft, -1, "ortho" if normalized else "backward") * weights
    whole = n_fft + hop * (count - 1)
    squares = ops.broadcast_to(ops.square(weights), (1, count, n_fft))
    first = n_fft // 2 if center else 0
    last = whole - first if length is None else first + length
    found = _added_up(frames, hop, whole)[:, first:last] / _added_up(squares, hop, whole)[:, first:last]
    if last > whole:
        found = pad(found, (0, last - whole))
    return found.squeeze(0) if input.ndim == 2 else found


def _hop_and_window(n_fft: int, hop_length: Any, win_length: Any, window: Any, dtype: Any) -> Any:
    """The step from window to window, and the weights of a window's values, with zeros at both sides; None: all 1."""
    hop = n_fft // 4 if hop_length is None else hop_length
    size = n_fft if win_length is None else win_length
    if hop <= 0 or size <= 0 or size > n_fft:
        raise ValueError(f"a window of {size} values every {hop}, in transforms of {n_fft}")
    if window is None:
        window = None if size == n_fft else ops.ones((size,), dtype)
    elif window.ndim != 1 or window.shape[0] != size:
        raise ValueError(f"a window of shape {window.shape}, and win_length is {size}")
    if size < n_fft:
        before = (n_fft - size) // 2
        window = pad(window, (before, n_fft - size - before))
    return hop, window


def _added_up(frames: Any, hop: int, whole: int) -> Any:
    """Windows (batch, windows, values) as the signal (batch, whole) in which each begins `hop` after the one before."""
    batch, count, size = frames.shape
    parts = -(-size // hop)
    rows = pad(frames, (0, parts * hop - size)).reshape((batch, count, parts, hop))
    total = pad(rows[:, :, 0], (0, 0, 0, parts - 1))
    for part in range(1, parts):
        total = total + pad(rows[:, :, part], (0, 0, part, parts - 1 - part))
    total = total.reshape((batch, -1))
    return pad(total, (0, whole - total.shape[1]))


def hann_window(window_length: int, periodic: bool = True, dtype: Any = None) -> Any:
    """The raised cosine of torch.hann_window, float32 where no dtype is given."""
    return _cosines(window_length, periodic, (0.5, -0.5), dtype)


def hamming_window(
    window_length: int, periodic: bool = True, alpha: float = 0.54, beta: float = 0.46, dtype: Any = None
) -> Any:
    """`alpha - beta · cos` over one round, as torch.hamming_window, float32 where no dtype is given."""
    return _cosines(window_length, periodic, (alpha, -beta), dtype)


def blackman_window(window_length: int, periodic: bool = True, dtype: Any = None) -> Any:
    """The sum of two cosines of torch.blackman_window, float32 where no dtype is given."""
    return _cosines(window_length, periodic, (0.42, -0.5, 0.08), dtype)


@ops.constexpr
def _cosines(count: int, periodic: bool, factors: Any, dtype: Any) -> Any:
    """`count` values of a sum of cosines, of no, one and two rounds, computed in float64."""
    if count < 2:
        values = np.ones(count)
    else:
        angles = np.arange(count) * (2 * np.pi / (count if periodic else count - 1))
        values = np.zeros(count)
        for rounds, factor in enumerate(factors):
            values += factor * np.cos(rounds * angles)
    return Tensor(values, mindspore.float32 if dtype is None else dtype)


def bartlett_window(window_length: int, periodic: bool = True, dtype: Any = None) -> Any:
    """The triangle of torch.bartlett_window, float32 where no dtype is given."""
    return _bump(window_length, periodic, None, dtype)


def kaiser_window(window_length: int, periodic: bool = True, beta: float = 12.0, dtype: Any = None) -> Any:
    """The window of torch.kaiser_window, float32 where no dtype is given."""
    return _bump(window_length, periodic, beta, dtype)


@ops.constexpr
def _bump(count: int, periodic: bool, beta: Any, dtype: Any) -> Any:
    """`count` values of Kaiser's window; beta: None for the triangle of Bartlett's."""
    values = np.ones(count)
    if count > 1:
        places = 2 * np.arange(count) / (count if periodic else count - 1) - 1  # from -1 to 1
        values = values - np.abs(places) if beta is None else np.i0(beta * np.sqrt(1 - places**2)) / np.i0(float(beta))
    return Tensor(values, mindspore.float32 if dtype is None else dtype)


def _opposite(norm: Any) -> str:
    """The norm of the inverse transform that divides by as much as this one."""
    if norm == "ortho":
        return "ortho"
    return "backward" if norm == "forward" else "forward"


def erfinv(input: Any) -> Any:
    """The value of which `input` is the error function; infinite at -1 and 1, NaN beyond them, where MindSpore's own is
    up to 1 off on a CPU.

    The two polynomials are those of M. Giles, "Approximating the erfinv function" (GPU Computing Gems, 2011).
    """
    near = [2.81022636e-08, 3.43273939e-07, -3.5233877e-06, -4.39150654e-06, 0.00021858087, -0.00125372503]
    near += [-0.00417768164, 0.246640727, 1.50140941]
    far = [-0.000200214257, 0.000100950558, 0.00134934322, -0.00367342844, 0.00573950773, -0.0076224613]
    far += [0.00943887047, 1.00167406, 2.83297682]
    x = input if input.dtype == mstype.float64 else input.astype(mstype.float32)
    w = -ops.log((1 - x) * (1 + x))
    begins = ops.full_like(w, 5.0)
    at_end = w >= begins
    inner = _polynomial(near, ops.where(at_end, begins, w) - 2.5)
    y = ops.where(at_end, _polynomial(far, ops.sqrt(ops.where(at_end, w, begins)) - 3), inner) * x
    if input.dtype == mstype.float64:  # the polynomials are of float32
        for _ in range(2):
            y = y - (ops.erf(y) - x) * (np.pi**0.5 / 2) * ops.exp(y * y)
    ends = ops.stop_gradient(ops.sign(x)) * ops.full_like(x, np.inf)
    return ops.where(ops.abs(x) == 1, ends, y).astype(input.dtype)


def _polynomial(coefficients: Any, w: Any) -> Any:
    value = ops.full_like(w, coefficients[0])
    for one in coefficients[1:]:
        value = value * w + one
    return value
