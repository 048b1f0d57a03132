"""Functions of complex tensors that MindSpore lacks, or whose gradients it has not or has otherwise than torch."""

from __future__ import annotations

from typing import Any

import mindspore
from mindspore import Tensor, ops

COMPLEX = (mindspore.complex64, mindspore.complex128)


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


def _opposite(norm: Any) -> str:
    """The norm of the inverse transform that divides by as much as this one."""
    if norm == "ortho":
        return "ortho"
    return "backward" if norm == "forward" else "forward"
