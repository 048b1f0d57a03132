"""Float64, float32, another memory layout, TF32 and half; rounding as MindSpore's kernels.

Every module alone may stay within its noise while a net of fifty of them does not: an error that has one sign
everywhere does not average out on its way. So one of the runs that measure the noise rounds as MindSpore's kernels do:
how much of a later distance they explain is measured, not guessed.

Units that compute in a shorter format (NVIDIA's and Huawei's alike) round the operands, multiply exactly and add up in
float32. Here the operands are rounded where they reach the kernels, below autograd, so functional calls and the
backward pass are covered as well. Everything but products (norms, activations, a bias and its gradient) stays float32.
"""

from __future__ import annotations

import copy
import math
import sys
from collections.abc import Callable, Generator, Iterable, Iterator, Sequence
from contextlib import contextmanager, nullcontext, suppress
from functools import cache
from types import FrameType
from typing import Any, NamedTuple
from weakref import WeakKeyDictionary

import numpy as np
import torch
from torch import nn
from torch.nn.attention import SDPBackend, sdpa_kernel
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves, tree_map_only

from ...migrate.torch_models import in_mode
from ..noise import Kernel, kernels
from ..run_folder import TORCH32, TORCH32_AGAIN, TORCH32_OTHER, TORCH64
from .torch_device import CPU, of_reference


@contextmanager
def rounding_as_mindspore() -> Iterator[None]:
    """Within this block the float32 results of the kernels in the table are as far off as MindSpore's."""
    with _Rounding():
        yield


@cache
def _by_operator(ending: str = "") -> dict[Any, Kernel]:
    """The operator -> its row; one that this torch does not have is left out.

    ending: "_" for the operators that write into their argument.
    """
    found = {}
    for kernel in kernels():
        _, name, overload = kernel.torch.split(".")
        operator = getattr(getattr(torch.ops.aten, f"{name}{ending}", None), overload, None)
        if operator is not None:
            found[operator] = kernel
    return found


def tanh_of_fractions(x: torch.Tensor) -> torch.Tensor:
    """tanh as MindSpore's CPU kernel has it: the continued fraction of Lambert to its seventh term, and 1 beyond 5."""
    square = x * x
    above = ((square + 378.0) * square + 17325.0) * square + 135135.0
    below = ((28.0 * square + 3150.0) * square + 62370.0) * square + 135135.0
    return torch.where(x.abs() > 5.0, torch.sign(x), above * x / below)


def mish_gradient_of_fractions(upstream: torch.Tensor, x: torch.Tensor) -> torch.Tensor:
    """The gradient of Mish with that hyperbolic tangent, float32: off by up to 9e-4 where x is between 3 and 7."""
    wide = x.double()
    squashed = tanh_of_fractions(nn.functional.softplus(wide))
    made = squashed + wide * (1.0 - squashed * squashed) * torch.sigmoid(wide)
    return (upstream.double() * made).float()


LN2 = math.log(2.0)


def exp_of_five_terms(x: torch.Tensor) -> torch.Tensor:
    """The exponential as MindSpore's CPU kernel has it, float64: 2**k times five terms of a series, with six digits of
    ln 2, so that it is off by up to 5e-6.

    Equal x have equal errors: where all rows of a batch are nearly alike, as in a net that has not trained, their
    errors add up while their values nearly cancel.
    """
    x = x.double()
    k = torch.round(x / LN2)
    rest = x - k * float(np.float32(0.693147))
    series = sum((rest**n / math.factorial(n) for n in range(1, 6)), torch.ones_like(rest))
    return torch.ldexp(series, k)


def elu_of_five_terms(x: torch.Tensor, alpha: float = 1.0, scale: float = 1.0, of_input: float = 1.0) -> torch.Tensor:
    """ELU as MindSpore's CPU kernel has it, float32: that exponential less 1 keeps few digits near zero, and is off by
    up to 2e-6 near -0.35."""
    below = alpha * (exp_of_five_terms(x * of_input).float() - 1)
    return torch.where(x > 0, x, below) * scale


def elu_gradient_of_five_terms(
    upstream: torch.Tensor, alpha: float, scale: float, of_input: float, of_result: bool, x: torch.Tensor
) -> torch.Tensor:
    """ELU's gradient as that kernel has it: the result below zero, and alpha, times the gradient that comes back."""
    made = x if of_result else elu_of_five_terms(x, alpha, scale, of_input)
    return upstream * torch.where(x > 0, torch.full_like(x, scale), (made + alpha * scale) * of_input)


FORMULAS: dict[str, Callable[..., torch.Tensor]] = {
    "tanh of fractions": tanh_of_fractions,
    "gradient of mish by tanh of fractions": mish_gradient_of_fractions,
    "elu of five terms": elu_of_five_terms,
    "gradient of elu of five terms": elu_gradient_of_five_terms,
}


def log_of_a_table(x: torch.Tensor) -> torch.Tensor:
    """How far the logarithm that is inside MindSpore's LogSoftmax is off on the CPU; x: positive.

    It is E ln 2 + log(1 + z) - log r for one of 32 numbers r that are near the inverse of x's mantissa. What is kept of
    r is -127 ln 2 - log r, a number near -88, and so float32 holds it to 4e-6 only.
    """
    mantissa, exponent = torch.frexp(x.double())
    inverse = torch.round(32.0 / (1.0 + (torch.floor(64.0 * mantissa - 32.0) + 0.5) / 32.0)) / 32.0
    upper = mantissa >= 0.75
    kept = -127.0 * LN2 - torch.log(torch.where(upper, 2.0 * inverse, inverse))
    units = torch.where(upper, exponent, exponent - 1) + 127
    return kept.float().double() - kept + units * (float(np.float32(LN2)) - LN2)


class _Rounding(TorchDispatchMode):
    def __init__(self) -> None:
        super().__init__()
        self.draws = torch.Generator().manual_seed(0)  # a separate one, so that the model's draws stay the same

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        kernel = _by_operator("_").get(func)  # of nn.SiLU(inplace=True), and inside of a GRU
        if kernel is not None and args[0].dtype == torch.float32:
            exact = FORMULAS[kernel.formula](*args) if kernel.formula else func(*args, **(kwargs or {}))
            return args[0].copy_(self._rounded(exact, kernel))
        if func is aten.convolution_backward.default:
            return self._of_a_convolution(func, *args)
        result = func(*args, **(kwargs or {}))
        if func is aten._log_softmax.default:
            return self._log_softmax(result, *args)
        if func is aten._log_softmax_backward_data.default:
            return self._of_log_softmax(result, *args)
        if func is aten.native_batch_norm.default:
            return self._norm(result, *args)
        if func is aten.native_batch_norm_backward.default:
            return self._of_a_norm(result, *args)
        if func is aten._prelu_kernel_backward.default:
            return self._of_slopes(result, *args)
        kernel = _by_operator().get(func)
        if kernel is None:
            return result
        if kernel.added:
            return self._summed(result, *args)
        if kernel.formula and result.dtype == torch.float32:
            result = FORMULAS[kernel.formula](*args)
        if isinstance(result, tuple):  # log_sigmoid_forward returns a buffer with its result
            return (self._rounded(result[0], kernel), *result[1:])
        return self._rounded(result, kernel)

    def _rounded(self, exact: torch.Tensor, kernel: Kernel) -> torch.Tensor:
        """The result with an error of the measured size: a constant part, and one drawn for each number."""
        if exact.dtype != torch.float32:
            return exact
        spread = math.sqrt(max(kernel.distance**2 - kernel.bias**2, 0.0))
        drawn = torch.randn(exact.shape, generator=self.draws, dtype=torch.float32).to(exact.device)
        return exact + exact * (drawn * spread + kernel.bias) + drawn * kernel.near_zero

    def _log_softmax(self, exact: torch.Tensor, x: torch.Tensor, dim: int, *rest: Any) -> torch.Tensor:
        """Every row with the error of the logarithm of its sum: by the table, in a cross-entropy by the sum alone."""
        if exact.dtype != torch.float32:
            return exact
        shifted = x - x.amax(dim, keepdim=True)
        total = shifted.double().exp().sum(dim, keepdim=True)
        summed = (exp_of_five_terms(shifted).sum(dim, keepdim=True) / total).log()
        return (exact.double() - (summed if _in_cross_entropy() else log_of_a_table(total))).float()

    def _of_log_softmax(
        self, exact: torch.Tensor, upstream: torch.Tensor, output: torch.Tensor, dim: int, *rest: Any
    ) -> torch.Tensor:
        """The gradient of a cross-entropy's log_softmax, whose shares are exponentials of five terms."""
        if exact.dtype != torch.float32:
            return exact
        largest = output.amax(dim, keepdim=True)
        shares = exp_of_five_terms(output - largest) * largest.double().exp()
        return (upstream.double() - shares * upstream.double().sum(dim, keepdim=True)).float()

    def _summed(
        self, exact: torch.Tensor, terms: torch.Tensor, dims: Sequence[int] | None = None, *rest: Any
    ) -> torch.Tensor:
        """A sum over all dimensions but the last, as a bias's gradient is, row by row."""
        before = range(terms.ndim - 1)
        if exact.dtype != torch.float32 or not before or sorted(d % terms.ndim for d in dims or ()) != [*before]:
            return exact
        return one_by_one(terms.reshape(-1, terms.shape[-1])).reshape(exact.shape)

    def _of_a_convolution(
        self,
        func: Callable[..., Any],
        upstream: torch.Tensor,
        x: torch.Tensor,
        weight: torch.Tensor,
        bias_sizes: Sequence[int] | None,
        stride: Sequence[int],
        *rest: Any,
    ) -> tuple[torch.Tensor | None, ...]:
        """The gradients of a convolution; the bias's is added up image by image."""
        with torch.backends.mkldnn.flags(enabled=False) if _writes_beyond(weight, stride) else nullcontext():
            of_input, of_weight, of_bias = func(upstream, x, weight, bias_sizes, stride, *rest)
        if of_bias is not None and of_bias.dtype == torch.float32:
            of_bias = by_image(upstream)
        return of_input, of_weight, of_bias

    def _of_slopes(
        self, exact: tuple[torch.Tensor, torch.Tensor], upstream: torch.Tensor, x: torch.Tensor, slopes: torch.Tensor
    ) -> tuple[torch.Tensor, torch.Tensor]:
        """The gradients of PReLU; the slopes', which torch adds up next, are added one after the other for each slope.
        Their sum stands in the place of the first, with zeros behind it, so that it is what torch's sum gives."""
        of_input, terms = exact
        if terms.dtype != torch.float32 or not terms.numel():
            return exact
        own = [axis for axis, size in enumerate(slopes.shape) if size > 1]
        order = [axis for axis in range(terms.ndim) if axis not in own] + own
        added = one_by_one(terms.detach().permute(order).reshape(-1, slopes.numel())).reshape(slopes.shape)
        first = torch.zeros_like(terms)
        first[tuple(slice(None) if axis in own else slice(1) for axis in range(terms.ndim))] = added
        return of_input, first

    def _norm(
        self,
        exact: tuple[torch.Tensor, torch.Tensor, torch.Tensor],
        x: torch.Tensor,
        weight: torch.Tensor | None,
        bias: torch.Tensor | None,
        running_mean: torch.Tensor | None,
        running_var: torch.Tensor | None,
        train: bool,
        momentum: float,
        *rest: Any,
    ) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
        """BatchNorm in training with a mean and a variance that are added in float32: where values are far from zero
        and near to each other, the whole channel is shifted by their rounding, and of many images it is scaled."""
        count = x.numel() // x.shape[1] if x.ndim > 1 else 0
        if not train or x.dtype != torch.float32 or not count:
            return exact
        ends = (1, -1, *[1] * (x.ndim - 2))
        mean = in_fours(x) / count
        off = x - mean.reshape(ends)
        variance, eps = in_fours(off * off) / count, rest[0]
        deviation = (variance + eps).double().sqrt().float()  # torch's root of float32 is not always the nearest
        if running_mean is not None:
            running_mean += momentum * (mean - exact[1])
        if running_var is not None:
            change = variance - (exact[2].double() ** -2 - eps).float()
            running_var += momentum * change * (count / max(count - 1, 1))
        scale = (deviation.reciprocal() if weight is None else weight.detach() / deviation).reshape(ends)
        made = off * scale if bias is None else off * scale + bias.detach().reshape(ends)
        return made, mean, deviation.reciprocal()

    def _of_a_norm(
        self,
        exact: tuple[torch.Tensor, ...],
        upstream: torch.Tensor,
        x: torch.Tensor,
        weight: torch.Tensor | None,
        running_mean: torch.Tensor | None,
        running_var: torch.Tensor | None,
        mean: torch.Tensor | None,
        inverse_std: torch.Tensor | None,
        train: bool,
        *rest: Any,
    ) -> tuple[torch.Tensor, ...]:
        """The gradients of BatchNorm; the weight's and bias's are added up image by image."""
        of_input, _, of_bias = exact
        if weight is None or of_bias is None or of_bias.dtype != torch.float32 or x.ndim < 2:
            return exact
        if not train and running_mean is not None and running_var is not None:
            eps = rest[0]
            mean, inverse_std = running_mean, (running_var + eps).rsqrt()
        if mean is None or inverse_std is None:
            return exact
        ends = (1, -1, *[1] * (x.ndim - 2))
        off = x - mean.reshape(ends)
        return of_input, by_image(off.mul_(upstream)) * inverse_std, by_image(upstream)


def one_by_one(terms: torch.Tensor) -> torch.Tensor:
    """The float32 sum over the last axis but one, added row by row as MindSpore's CPU kernels do: equal to the bit.

    terms: (…, rows, columns). Where rows are alike, such as padding in a window, or an average's gradient at its
    pixels, every addition rounds the same way: the sum of n of them is off by n times that, not by sqrt(n) times.
    """
    rows = np.ascontiguousarray(
        terms.detach().float().cpu().numpy()
    )  # in an autocast step a norm is given a shorter format
    if rows.shape[-1] == 1 and rows.shape[-2]:  # NumPy's sum of a single column adds in pairs
        total = np.add.accumulate(rows, -2)[..., -1, :]
    else:
        total = np.add.reduce(rows, -2)
    return torch.from_numpy(total).to(terms.device)


def by_image(terms: torch.Tensor) -> torch.Tensor:
    """The float32 sums of channels, (N, C, …) -> (C,), as MindSpore's CPU kernels add: the pixels of each image one by
    one, then the images."""
    pixels = terms.detach().movedim(1, -1).reshape(terms.shape[0], -1, terms.shape[1])
    return one_by_one(one_by_one(pixels))


def in_fours(terms: torch.Tensor) -> torch.Tensor:
    """The same for what BatchNorm's mean is made of: of each image every fourth pixel, one by one, and those that are
    left over with the first of the four; then the four of all images, one by one. Equal to the bit."""
    pixels = terms.detach().movedim(1, -1).reshape(terms.shape[0], -1, terms.shape[1])
    images, count, channels = pixels.shape
    rows = count // 4
    lanes = one_by_one(pixels[:, : 4 * rows].reshape(images, rows, 4 * channels)).reshape(images, 4, channels)
    first = one_by_one(torch.cat((lanes[:, :1], pixels[:, 4 * rows :]), 1))
    return one_by_one(torch.cat((first[:, None], lanes[:, 1:]), 1).reshape(4 * images, channels))


def _writes_beyond(weight: torch.Tensor, stride: Sequence[int]) -> bool:
    """Whether torch 2.14.1 may damage its memory by the weight's gradient where channels are last: oneDNN's kernel for
    filters of one pixel, with a stride, writes beyond its allocation if the channels are few."""
    return weight.ndim == 4 and weight.shape[1] < FEW_CHANNELS and weight[0, 0].numel() == 1 and max(stride) > 1


FEW_CHANNELS = 16  # seen with 1 to 6 where 8 are computed at once; there are processors that compute 16


CROSS_ENTROPY = nn.functional.cross_entropy.__code__


def _in_cross_entropy() -> bool:
    """Whether a cross-entropy is being computed: MindSpore's does not call LogSoftmax, and uses other kernels."""
    frame: FrameType | None = sys._getframe(1)
    while frame is not None and frame.f_code is not CROSS_ENTROPY:
        frame = frame.f_back
    return frame is not None


class Precision(NamedTuple):
    """One of torch's runs: the trace's name, its dtype, TorchSide's variant and where it runs."""

    name: str
    dtype: torch.dtype
    variant: int = 0
    device: torch.device = CPU


CHANNELS_LAST, JIGGLED = 1, 2  # variants of TorchSide
_CHANNELS_LAST = {4: torch.channels_last, 5: torch.channels_last_3d}  # by the number of axes; torch has no other
_OTHER: WeakKeyDictionary[nn.Module, int] = WeakKeyDictionary()


def try_layouts(model: nn.Module, *inputs: torch.Tensor) -> None:
    """Find out whether the model runs in channels_last, where `x.view(…)` may fail that works on contiguous tensors.

    inputs: a batch, any dtype; the model is left as it is.
    """
    trial = model_in_layout(in_mode(copy.deepcopy(model), training=True), channels_last=True)
    given = [in_layout(x, channels_last=True) for x in inputs]
    with torch.no_grad():
        with suppress(Exception):  # two examples show it as well, unless the model only takes the batch's number
            trial(*(x[:2] for x in given))
            _OTHER[model] = CHANNELS_LAST
            return
        try:
            trial(*given)
            _OTHER[model] = CHANNELS_LAST
        except RuntimeError:  # its own code, if it is at fault, fails in the ordinary layout too, and says so
            _OTHER[model] = JIGGLED


def precisions(model: nn.Module, device: torch.device = CPU) -> tuple[Precision, ...]:
    """The runs of this model: the second float32 one in channels_last, or with values half a unit off where the model
    does not run in that layout; on a device the first one twice, since no two runs there need be the same."""
    other, reference = _OTHER.get(model, CHANNELS_LAST), of_reference(model, device)
    again = () if device == CPU else (Precision(TORCH32_AGAIN, torch.float32, 0, device),)
    return (
        Precision(TORCH32, torch.float32, 0, device),
        *again,
        Precision(TORCH64, torch.float64, 0, reference),
        Precision(TORCH32_OTHER, torch.float32, other, reference),
    )


def in_layout(tensor: torch.Tensor, *, channels_last: bool) -> torch.Tensor:
    """The tensor with its channels last in memory or contiguous: images (N, C, H, W) and clips (N, C, T, H, W).

    Others have no such layout, and stay as they are.
    """
    if tensor.dim() not in _CHANNELS_LAST:
        return tensor
    return tensor.contiguous(memory_format=_CHANNELS_LAST[tensor.dim()] if channels_last else torch.contiguous_format)


def model_in_layout(model: nn.Module, *, channels_last: bool) -> nn.Module:
    """The model itself, its weights and buffers put into that layout: Module.to takes no model with both ranks."""
    with torch.no_grad():
        for tensor in [*model.parameters(), *model.buffers()]:
            tensor.data = in_layout(tensor.data, channels_last=channels_last)
    return model


aten = torch.ops.aten
FLOAT32_BITS = 23  # of its mantissa, without the leading one
# Bits of the mantissa, where only the mantissa is shorter than float32's. tf32: NVIDIA's Ampere whitepaper; hf32:
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


def shortening(precisions: Iterable[Precision], name: str) -> Generator[Precision, None, None]:
    """Hand out the precisions to record in; while torch's other float32 run is at work, its operands are rounded.

    That run is one of two that measure the noise, so the noise becomes the format's, whose rounding is far larger than
    float32's; the other one still says what torch computes when nothing is shortened. It also rounds where MindSpore's
    CPU kernels are measured to (torch_precision.py).
    """
    for precision in precisions:
        if precision.dtype == torch.float32 and precision.variant:
            with computing_in(name), rounding_as_mindspore():
                yield precision
        elif precision.dtype == torch.float64:
            with StaysExact():
                yield precision
        else:
            yield precision


class StaysExact(TorchDispatchMode):
    """Where a model itself casts to float32 (a softmax, the mean square of a norm), or makes values of float32 (the
    state that a recurrent layer begins with), what is computed with them stays float64: a reference that is only as
    exact as float32 in one place cannot measure later rounding, nor show that a gradient is zero."""

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        given = kwargs or {}
        backward = torch._C._current_graph_task_id() != -1  # gradients have to be cast to what they belong to
        if func is aten._to_copy.default and given.get("dtype") == torch.float32 and not backward:
            given = {**given, "dtype": torch.float64}
        try:
            return func(*args, **given)
        except RuntimeError:  # a product or an assignment of values kept in float64 and values created in float32
            formats = {x.dtype for x in tree_leaves((args, given)) if isinstance(x, torch.Tensor)}
            if not {torch.float32, torch.float64} <= formats:
                raise
            written = args[0].dtype if func._schema.is_mutable else torch.float64
            args, given = tree_map_only(torch.Tensor, lambda x: _in_format(x, written), (args, given))
            return func(*args, **given)


def _in_format(x: torch.Tensor, dtype: torch.dtype) -> torch.Tensor:
    return x.to(dtype) if x.is_floating_point() else x


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
