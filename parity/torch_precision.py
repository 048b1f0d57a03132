"""Torch's arithmetic as a target does it that computes convolutions and matrix products in a shorter format.

Such units (NVIDIA's and Huawei's alike) round the operands, multiply exactly and add up in float32. Here the operands
are rounded where they reach the kernels, below autograd, so functional calls and the backward pass are met as well.
What is not a product (norms, activations, a bias and its gradient) stays float32.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from typing import Any

import torch
from torch.nn.attention import SDPBackend, sdpa_kernel
from torch.utils._python_dispatch import TorchDispatchMode

from .torch_kernels import rounding_as_mindspore

Precision = tuple[str, torch.dtype, int]  # trace name, dtype, variant
aten = torch.ops.aten
FLOAT32_BITS = 23  # of its mantissa, besides the leading one
# Bits of the mantissa where only that is shorter than float32's. tf32: NVIDIA's Ampere architecture whitepaper; hf32:
# CANN documentation, ATC option --allow_hf32 ("mantissa precision (11 bits)"), to nearest even (SetHF32TransMode).
MANTISSA = {"tf32": 10, "hf32": 11}
DTYPES = {"fp16": torch.float16, "bf16": torch.bfloat16}
# the operands of a product, by the kernel that computes it
OPERANDS: dict[Any, tuple[int, ...]] = {
    aten.convolution.default: (0, 1),
    aten.mm.default: (0, 1),
    aten.addmm.default: (1, 2),
    aten.bmm.default: (0, 1),
    aten.baddbmm.default: (1, 2),
    aten.mv.default: (0, 1),
    aten.addmv.default: (1, 2),
    aten.dot.default: (0, 1),
    aten._trilinear.default: (0, 1, 2),
    # a whole recurrence in one kernel: what goes in is rounded, the states between its steps are not
    aten.mkldnn_rnn_layer.default: (0, 1, 2, 5),
    aten.mkldnn_rnn_layer_backward.default: (0, 1, 2, 5),
}


def shortened(values: torch.Tensor, name: str) -> torch.Tensor:
    """float32 `values` (any shape) rounded to the format, to nearest even; what is not finite stays as it is.

    name: fp32 (nothing changes), hf32, tf32, fp16 (above 65504 infinite) or bf16. Another dtype is left alone.
    """
    if values.dtype != torch.float32 or name == "fp32":
        return values
    if name in DTYPES:
        return values.to(DTYPES[name]).to(torch.float32)
    dropped = FLOAT32_BITS - MANTISSA[name]
    bits = values.detach().view(torch.int32)
    half = (1 << (dropped - 1)) - 1
    rounded = (bits + half + ((bits >> dropped) & 1)) & ~((1 << dropped) - 1)
    return torch.where(values.isfinite(), rounded.view(torch.float32), values)


@contextmanager
def computing_in(name: str) -> Iterator[None]:
    """Within this block the operands of convolutions and matrix products are rounded to the format."""
    if name == "fp32":
        yield
        return
    with sdpa_kernel(SDPBackend.MATH), _Shortening(name):  # attention as the products that it is made of
        yield


def shortening(precisions: Iterable[Precision], name: str) -> Iterator[Precision]:
    """Hand out the precisions to record in; while torch's other float32 run is at work, its operands are rounded.

    That run is one of two that measure the noise, so the noise becomes the format's, whose rounding is far larger than
    float32's; the other one still says what torch computes when nothing is shortened. It also rounds where MindSpore's
    CPU kernels are measured to (torch_kernels.py).
    """
    for precision in precisions:
        _, dtype, variant = precision
        if dtype == torch.float32 and variant:
            with computing_in(name), rounding_as_mindspore():
                yield precision
        else:
            yield precision


class _Shortening(TorchDispatchMode):
    def __init__(self, name: str) -> None:
        super().__init__()
        self.name = name

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        given = kwargs or {}
        if func is aten.convolution_backward.default:
            return self._convolution_backward(func, *args, **given)
        operands = OPERANDS.get(func)
        if operands is not None:
            args = tuple(shortened(arg, self.name) if i in operands else arg for i, arg in enumerate(args))
        return func(*args, **given)

    def _convolution_backward(self, func: Callable[..., Any], gradient: Any, x: Any, weight: Any, *rest: Any) -> Any:
        """The two products from rounded operands; the bias's gradient is a sum, and no product."""
        *others, wanted = rest
        short = [shortened(tensor, self.name) for tensor in (gradient, x, weight)]
        by_x, by_weight, _ = func(*short, *others, [wanted[0], wanted[1], False])
        by_bias = func(gradient, x, weight, *others, [False, False, True])[2] if wanted[2] else None
        return by_x, by_weight, by_bias
