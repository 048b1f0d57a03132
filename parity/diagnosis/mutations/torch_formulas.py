"""A layer with another formula: activation, pool, resize, attention."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

import torch
import torch.nn.functional as F
from torch import nn

from .torch_layers import Forward, Mutate, Mutation, Values, arguments_of, as_given, computing, instead

ACTIVATIONS: dict[str, Callable[[torch.Tensor], torch.Tensor]] = {
    "Identity": lambda x: x * 1.0,
    "ReLU": F.relu,
    "ReLU6": F.relu6,
    "GELU": F.gelu,
    "GELU(approximate='tanh')": lambda x: F.gelu(x, approximate="tanh"),
    "FastGelu, x·sigmoid(1.702 x)": lambda x: x * torch.sigmoid(1.702 * x),
    "SiLU": F.silu,
    "Hardswish": F.hardswish,
    "Sigmoid": torch.sigmoid,
    "Hardsigmoid": F.hardsigmoid,
    "Hardsigmoid of slope 0.2, clip(0.2 x + 0.5, 0, 1)": lambda x: (0.2 * x + 0.5).clamp(0.0, 1.0),
    "Tanh": torch.tanh,
    "Hardtanh": F.hardtanh,
    "Softplus": F.softplus,
    "Softsign": F.softsign,
    "Mish": F.mish,
    "ELU": F.elu,
    "SELU": F.selu,
    "LeakyReLU of slope 0.01": lambda x: F.leaky_relu(x, 0.01),
    "LeakyReLU of slope 0.2": lambda x: F.leaky_relu(x, 0.2),
    "LeakyReLU of slope 0.1": lambda x: F.leaky_relu(x, 0.1),
    "ReLU of the square": lambda x: F.relu(x).square(),
    "LogSigmoid": F.logsigmoid,
    "Softmax over the last axis": lambda x: F.softmax(x, -1),
    "LogSoftmax over the last axis": lambda x: F.log_softmax(x, -1),
}


def activation(module: nn.Module, values: Values) -> Iterator[Mutation]:
    """Another activation function; `to` names those to try, all by default."""
    for name in values.get("to", ACTIVATIONS):
        function = ACTIVATIONS[name]
        if name.split()[0] == type(module).__name__:
            continue  # itself, or itself with an argument that another hypothesis sets
        yield Mutation(name, partial(instead, forward=function), tuple(arguments_of(module)), whole=True)


def tie_gradients(module: nn.Module, values: Values) -> Iterator[Mutation]:
    """The same values with another gradient exactly at the lower and at the upper bound, where torch takes one side:
    those of `shares`, and the mean of the slopes on both sides."""
    low, high = _bounds(module)
    slope = float(getattr(module, "negative_slope", 0.0))
    for below, above in (*values.get("shares", ()), ((1.0 + slope) / 2, (1.0 + slope) / 2), (0.0, 0.0), (1.0, 1.0)):

        def forward(
            m: nn.Module, original: Forward, x: torch.Tensor, below: float = below, above: float = above
        ) -> torch.Tensor:
            y = original(x)
            y = torch.where(x == low, y.detach() + below * (x - x.detach()), y)
            return torch.where(x == high, y.detach() + above * (x - x.detach()), y)

        at = f"{below:g} exactly at {low:g}" + (f" and {above:g} exactly at {high:g}" if high != low else "")
        yield Mutation(f"a gradient of {at}", computing(forward))


def _bounds(module: nn.Module) -> tuple[float, float]:
    if isinstance(module, nn.Hardtanh):  # ReLU6 is one
        return float(module.min_val), float(module.max_val)
    return {"Hardswish": (-3.0, 3.0), "Hardsigmoid": (-3.0, 3.0)}.get(type(module).__name__, (0.0, 0.0))


def formula(module: nn.Module, values: Values) -> Iterator[Mutation]:
    """One of the formulas below, by name, that stand for a layer's whole forward."""
    for name in values["to"]:
        forward = partial(lambda made, m, original, x: made(m, x), FORMULAS[name])
        yield Mutation(name, computing(forward), tuple(values.get("arguments", ())))


def unscaled_attention(module: nn.Module, values: Values) -> Iterator[Mutation]:
    """Attention whose scores are not divided by sqrt(d), or by sqrt of all dimensions instead of a head's."""
    width, heads = module.embed_dim, module.num_heads
    for what, factor in (
        ("scores that are not divided by sqrt(d)", math.sqrt(width / heads)),
        ("scores divided by sqrt of all dimensions instead of one head's", 1 / math.sqrt(heads)),
        ("scores divided by d instead of sqrt(d)", 1 / math.sqrt(width / heads)),
    ):

        def change(own: dict[str, torch.Tensor], factor: float = factor) -> dict[str, torch.Tensor]:
            scale = [torch.full((width,), f, dtype=own["in_proj_weight"].dtype) for f in (factor, 1.0, 1.0)]
            rows = torch.cat(scale)
            found = {"in_proj_weight": own["in_proj_weight"] * rows[:, None]}
            return found | ({"in_proj_bias": own["in_proj_bias"] * rows} if "in_proj_bias" in own else {})

        if getattr(module, "in_proj_weight", None) is not None and factor != 1.0:
            yield Mutation(what, partial(as_given, change=change))


def _output_padding_zeros(m: nn.Module, x: torch.Tensor) -> torch.Tensor:
    inner = F.conv_transpose2d(x, m.weight, m.bias, m.stride, m.padding, 0, m.groups, m.dilation)
    high, wide = m.output_padding
    return F.pad(inner, (0, wide, 0, high))


def _transpose_same(m: nn.Module, x: torch.Tensor) -> torch.Tensor:
    """pad_mode='same': the full transposed convolution cut to stride times the input, the odd cell at the end."""
    full = F.conv_transpose2d(x, m.weight, m.bias, m.stride, 0, 0, m.groups, m.dilation)
    for dim, (n, s) in enumerate(zip(x.shape[2:], m.stride, strict=True), 2):
        spare = full.shape[dim] - n * s
        full = full.narrow(dim, spare // 2, n * s) if spare >= 0 else F.pad(full, _end(full.dim() - 1 - dim, -spare))
    return full


def _end(from_last: int, width: int) -> list[int]:
    return [0, 0] * from_last + [0, width]


def _depth_to_space(m: nn.Module, x: torch.Tensor) -> torch.Tensor:
    n, c, h, w = x.shape
    r = m.upscale_factor
    return x.view(n, r, r, c // (r * r), h, w).permute(0, 3, 4, 1, 5, 2).reshape(n, c // (r * r), h * r, w * r)


def _padding_swapped(m: nn.Module, x: torch.Tensor) -> torch.Tensor:
    left, right, top, bottom = m.padding
    mode = {"ReflectionPad2d": "reflect", "ReplicationPad2d": "replicate"}.get(type(m).__name__, "constant")
    value = getattr(m, "value", 0.0) if mode == "constant" else None
    return F.pad(x, (top, bottom, left, right), mode, value)


# of a layer and its input, in place of the layer's forward
FORMULAS: dict[str, Callable[[Any, torch.Tensor], torch.Tensor]] = {
    "an average over the whole image": lambda m, x: x.mean((-2, -1), keepdim=True),
    "alpha that is not divided by size": lambda m, x: F.local_response_norm(x, m.size, m.alpha * m.size, m.beta, m.k),
    "zeros where output_padding computes values": _output_padding_zeros,
    "pad_mode='same'": _transpose_same,
    "DepthToSpace's order of channels, (r, r, C)": _depth_to_space,
    "a flatten of NHWC instead of NCHW": lambda m, x: x.movedim(1, -1).flatten(m.start_dim, m.end_dim),
    "the paddings of height and width swapped": _padding_swapped,
    "torch's implicit dimension": lambda m, x: F.softmax(x, 0 if x.dim() in (0, 1, 3) else 1),
    "a maximum instead of an average": lambda m, x: F.adaptive_max_pool2d(x, m.output_size),
    "a max-pool instead of an average pool": lambda m, x: F.max_pool2d(
        x, m.kernel_size, m.stride, m.padding, ceil_mode=m.ceil_mode
    ),
    "an average pool instead of a max-pool": lambda m, x: F.avg_pool2d(
        x, m.kernel_size, m.stride, m.padding, m.ceil_mode
    ),
}


def resize(module: nn.Module, values: Values) -> Iterator[Mutation]:
    """Another rule for where a resized image's pixels come from."""
    for rule in values["to"]:
        forward = partial(lambda rule, m, _, x: resized(x, m.size, m.scale_factor, rule), rule)
        yield Mutation(rule, computing(forward), ("mode", "align_corners"))


MUTATIONS: dict[str, Mutate] = {
    "activation": activation,
    "tie_gradients": tie_gradients,
    "formula": formula,
    "unscaled_attention": unscaled_attention,
    "resize": resize,
}


def resized(x: torch.Tensor, size: Any, scale: Any, rule: str) -> torch.Tensor:
    """`x` resized to `size` (or by `scale`) by one of RULES."""
    weights = RULES[rule]
    for i, dim in enumerate((2, 3)):
        n = x.shape[dim]
        out = _at(size, i) if size is not None else int(n * _at(scale, i))
        matrix = weights(n, int(out)).to(x.dtype)
        x = (matrix @ x) if dim == 2 else (x @ matrix.t())
    return x


def _at(value: Any, i: int) -> Any:
    return value[i] if isinstance(value, (tuple, list)) else value


def _taps(n: int, out: int, source: Callable[[int], float], kernel: Callable[[float], float], reach: int) -> Any:
    """The matrix (out, n) of an interpolation, taps beyond the border taking the border's pixel."""
    matrix = torch.zeros(out, n, dtype=torch.float64)
    for i in range(out):
        at = source(i)
        first = math.floor(at) - reach + 1
        for j in range(first, first + 2 * reach):
            matrix[i, min(max(j, 0), n - 1)] += kernel(at - j)
    return matrix


def _half_pixel(n: int, out: int) -> Callable[[int], float]:
    return lambda i: (i + 0.5) * n / out - 0.5


def _corners(n: int, out: int) -> Callable[[int], float]:
    return lambda i: i * (n - 1) / (out - 1) if out > 1 else 0.0


def _asymmetric(n: int, out: int) -> Callable[[int], float]:
    return lambda i: i * n / out


def _line(t: float) -> float:
    return max(0.0, 1.0 - abs(t))


def _cubic(a: float) -> Callable[[float], float]:
    """Keys' kernel: -0.75 in torch, -0.5 in PIL and TensorFlow."""

    def kernel(t: float) -> float:
        t = abs(t)
        if t <= 1:
            return (a + 2) * t**3 - (a + 3) * t**2 + 1
        return a * t**3 - 5 * a * t**2 + 8 * a * t - 4 * a if t < 2 else 0.0

    return kernel


def _dropped_taps(n: int, out: int) -> Any:
    """Keys' kernel with a = -0.5; taps outside the image are left out, and the others weighted to a sum of one."""
    source, kernel = _half_pixel(n, out), _cubic(-0.5)
    matrix = torch.zeros(out, n, dtype=torch.float64)
    for i in range(out):
        for j in range(n):
            matrix[i, j] = kernel(source(i) - j)
    return matrix / matrix.sum(1, keepdim=True)


def _nearest(source: Callable[[int], float], n: int, out: int, up: bool = False) -> Any:
    matrix = torch.zeros(out, n, dtype=torch.float64)
    for i in range(out):
        at = source(i) + (0.5 if up else 0.0)
        matrix[i, min(max(math.floor(at), 0), n - 1)] = 1.0
    return matrix


RULES: dict[str, Callable[[int, int], Any]] = {
    "bilinear, align_corners=True": lambda n, out: _taps(n, out, _corners(n, out), _line, 1),
    "bilinear, align_corners=False": lambda n, out: _taps(n, out, _half_pixel(n, out), _line, 1),
    "bilinear, half_pixel_centers=False": lambda n, out: _taps(n, out, _asymmetric(n, out), _line, 1),
    "bicubic with a = -0.5, taps outside the image left out": _dropped_taps,
    "bicubic with a = -0.5": lambda n, out: _taps(n, out, _half_pixel(n, out), _cubic(-0.5), 2),
    "bicubic, align_corners=True": lambda n, out: _taps(n, out, _corners(n, out), _cubic(-0.75), 2),
    "bicubic, align_corners=False": lambda n, out: _taps(n, out, _half_pixel(n, out), _cubic(-0.75), 2),
    "nearest": lambda n, out: _nearest(_asymmetric(n, out), n, out),
    "nearest-exact": lambda n, out: _nearest(_half_pixel(n, out), n, out, up=True),
    "nearest, align_corners=True": lambda n, out: _nearest(_corners(n, out), n, out, up=True),
}
