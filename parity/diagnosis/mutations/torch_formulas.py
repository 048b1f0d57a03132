"""A layer with another formula: activation, pool, resize, attention, the parts of a projection in another order."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import torch
import torch.nn.functional as F
from torch import nn

from ...align.alignment import Cut, map_lines
from ...align.model_structure import parent
from .torch_layers import (
    Forward,
    ModuleHypothesis,
    Mutate,
    Mutation,
    Values,
    arguments_of,
    as_given,
    computing,
    instead,
)

# functions that are easily taken for each other
LOOKALIKES: dict[str, dict[str, Callable[..., Any]]] = {
    "mean": {"amax": lambda x, *a, **k: torch.amax(x, *a, **k), "sum": lambda *a, **k: torch.sum(*a, **k)},
    "sum": {"mean": lambda *a, **k: torch.mean(*a, **k)},
    "amax": {"mean": lambda *a, **k: torch.mean(*a, **k)},
    "adaptive_avg_pool2d": {"adaptive_max_pool2d": F.adaptive_max_pool2d},
    "adaptive_max_pool2d": {"adaptive_avg_pool2d": F.adaptive_avg_pool2d},
    "max_pool2d": {"avg_pool2d": lambda x, *a, dilation=1, return_indices=False, **k: F.avg_pool2d(x, *a, **k)},
    "avg_pool2d": {"max_pool2d": lambda x, *a, count_include_pad=True, **k: F.max_pool2d(x, *a, **k)},
    "softmax": {"log_softmax": F.log_softmax, "sigmoid": lambda x, *a, **k: torch.sigmoid(x)},
    "log_softmax": {"softmax": F.softmax},
    "rsqrt": {"sqrt": torch.sqrt},
    "var": {"std": torch.std},
    "std": {"var": torch.var},
}

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
            continue  # the same function, or the same with an argument that another hypothesis sets
        yield Mutation(name, partial(instead, forward=function), tuple(arguments_of(module)), whole=True)


def tie_gradients(module: nn.Module, values: Values) -> Iterator[Mutation]:
    """The same values with another gradient exactly at the lower and at the upper bound, where torch takes that of one
    side: the gradients in `shares`, and the mean of the slopes on both sides."""
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


Heads = Callable[[torch.Tensor, int], torch.Tensor]
Mask = Callable[[torch.Tensor], torch.Tensor]


@dataclass(frozen=True)
class Attending:
    """How attention is computed: the factor of the scores, from the size of a head and of all dimensions; the axis of
    the softmax in (batch, heads, queries, keys); how heads are cut from (batch, length, width) and joined; a change of
    the mask (…, queries, keys) that is added to the scores."""

    scale: Callable[[int, int], float] = lambda size, width: size**-0.5
    axis: int = -1
    cut: Heads = lambda x, heads: x.unflatten(-1, (heads, -1)).transpose(-3, -2)
    join: Callable[[torch.Tensor], torch.Tensor] = lambda x: x.transpose(-3, -2).flatten(-2)
    mask: Mask = lambda mask: mask


def _reshaped(x: torch.Tensor, heads: int) -> torch.Tensor:
    """The heads cut by a reshape alone."""
    *batch, length, width = x.shape
    return x.reshape(*batch, heads, length, width // heads)


def _rejoined(x: torch.Tensor) -> torch.Tensor:
    """The heads joined by a reshape alone."""
    *batch, heads, length, size = x.shape
    return x.reshape(*batch, length, heads * size)


def _causal(mask: torch.Tensor, diagonal: int = 1) -> torch.Tensor:
    return mask + torch.full_like(mask, -torch.inf).triu(diagonal)


# those of "its mask" are tried where there is one
ATTENTION: dict[str, Attending] = {
    "scores that are not divided by sqrt(d)": Attending(scale=lambda size, width: 1.0),
    "scores divided by sqrt of all dimensions instead of one head's": Attending(scale=lambda size, width: width**-0.5),
    "scores divided by d instead of sqrt(d)": Attending(scale=lambda size, width: 1.0 / size),
    "scores multiplied by sqrt(d) instead of divided": Attending(scale=lambda size, width: size**0.5),
    "a softmax over the queries instead of the keys": Attending(axis=-2),
    "a softmax over the heads instead of the keys": Attending(axis=-3),
    "heads cut by a reshape alone, which mixes them with the length": Attending(cut=_reshaped),
    "heads joined by a reshape alone, which mixes them with the length": Attending(join=_rejoined),
    "heads cut and joined by reshapes alone": Attending(cut=_reshaped, join=_rejoined),
    "a causal mask": Attending(mask=_causal),
    "a causal mask that shows the next position too": Attending(mask=lambda mask: _causal(mask, 2)),
    "its mask left out": Attending(mask=torch.zeros_like),
    "its mask inverted": Attending(mask=lambda mask: torch.zeros_like(mask).masked_fill(mask == 0, -torch.inf)),
    "its mask moved by one, which shows the next position too": Attending(mask=lambda mask: mask.roll(1, -1).tril(1)),
    "its mask added as ones and zeros": Attending(mask=lambda mask: (mask == 0).to(mask.dtype)),
}


def attention(module: nn.Module, values: Values) -> Iterator[Mutation]:
    """Attention that is computed otherwise."""
    for what, how in ATTENTION.items():
        fix = f"compute attention without {what}: {RIGHT}"
        yield Mutation(what, computing(partial(_attend, how, "its mask" in what)), fix=fix)


RIGHT = (
    "softmax(q·kᵀ / sqrt(d) + mask, axis=-1)·v, with q, k and v of (batch, length, width) reshaped to (batch, length, "
)
RIGHT += "heads, d) and then transposed to (batch, heads, length, d)"


def _attend(
    how: Attending,
    masked: bool,
    m: Any,
    _: Forward,
    query: torch.Tensor,
    key: torch.Tensor,
    value: torch.Tensor,
    key_padding_mask: torch.Tensor | None = None,
    need_weights: bool = True,
    attn_mask: torch.Tensor | None = None,
    average_attn_weights: bool = True,
    is_causal: bool = False,
) -> tuple[torch.Tensor, torch.Tensor | None]:
    """torch's MultiheadAttention written out. Raises ValueError for options that are not written out here, and for a
    hypothesis about a mask where there is none."""
    if (m.dropout and m.training) or m.in_proj_weight is None or m.bias_k is not None or m.add_zero_attn:
        raise ValueError("an attention of options that are not written out")
    if masked and attn_mask is None and key_padding_mask is None:
        raise ValueError("there is no mask")
    turned = not m.batch_first and query.dim() == 3
    given = [x.transpose(0, 1) if turned else x for x in (query, key, value)]
    biases = (None, None, None) if m.in_proj_bias is None else m.in_proj_bias.chunk(3)
    parts = zip(given, m.in_proj_weight.chunk(3), biases, strict=True)
    q, k, v = (how.cut(F.linear(x, weight, bias), m.num_heads) for x, weight, bias in parts)
    mask = q.new_zeros(q.shape[-2], k.shape[-2])
    if attn_mask is not None:
        mask = mask + _added(attn_mask, q)
        mask = mask.unflatten(0, (-1, m.num_heads)) if mask.dim() == 3 and q.dim() == 4 else mask
    if key_padding_mask is not None:
        mask = mask + _added(key_padding_mask, q)[..., None, None, :]
    scores = q @ k.transpose(-1, -2) * how.scale(q.shape[-1], m.embed_dim)
    weights = F.softmax(scores + how.mask(mask), how.axis)
    output = m.out_proj(how.join(weights @ v))
    shown = weights.mean(-3) if average_attn_weights else weights
    return output.transpose(0, 1) if turned else output, shown if need_weights else None


def _added(mask: torch.Tensor, like: torch.Tensor) -> torch.Tensor:
    """A mask as numbers to add: torch's True hides."""
    return like.new_zeros(mask.shape).masked_fill(mask, -torch.inf) if mask.dtype == torch.bool else mask.to(like.dtype)


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


# name -> a function of a layer and its input, in place of the layer's forward
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


def states_exchanged(layer: nn.LSTM, x: torch.Tensor) -> tuple[torch.Tensor, tuple[torch.Tensor, torch.Tensor]]:
    """An LSTM whose steps each take the hidden state for the cell state and the reverse, as in a loop over a cell that
    gets them in the other order. Raises ValueError for several layers or directions, and for other first states."""
    if layer.num_layers > 1 or layer.bidirectional or layer.proj_size or x.dim() != 3:
        raise ValueError("an LSTM that is more than one loop")
    axis, found = int(layer.batch_first), []
    state = tuple(x.new_zeros(x.shape[1 - axis], layer.hidden_size) for _ in range(2))
    for step in x.unbind(axis):
        state = torch.lstm_cell(step, state[::-1], *layer._flat_weights)
        found.append(state[0])
    return torch.stack(found, axis), (state[0][None], state[1][None])


def resize(module: nn.Module, values: Values) -> Iterator[Mutation]:
    """Another rule for where a resized image's pixels come from."""
    for rule in values["to"]:
        forward = partial(lambda rule, m, _, x: resized(x, m.size, m.scale_factor, rule), rule)
        yield Mutation(rule, computing(forward), ("mode", "align_corners"))


def padded_by_zeros(f: Any, x: torch.Tensor, *args: Any, padding: Any = 0, **kwargs: Any) -> Any:
    """A max-pool of an image that was padded before."""
    if len(args) > 2:
        (kernel, stride, padding), args = args[:3], args[3:]
        args = (kernel, stride, 0, *args)
    high, wide = padding if isinstance(padding, (tuple, list)) else (padding, padding)
    return f(F.pad(x, (wide, wide, high, high)), *args, **kwargs)


def interleaved(x: torch.Tensor, counts: tuple[Any, ...]) -> torch.Tensor:
    """Each element `counts` times in a row, along the last dimensions."""
    flat = counts[0] if len(counts) == 1 and not isinstance(counts[0], int) else counts
    for dim, count in enumerate(flat[-x.dim() :]):
        x = x.repeat_interleave(int(count), dim)
    return x


MUTATIONS: dict[str, Mutate] = {
    "activation": activation,
    "tie_gradients": tie_gradients,
    "formula": formula,
    "attention": attention,
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


MOST_ORDERS = 4  # parts of which every order is tried


def in_another_order(path: str, cuts: Sequence[Cut]) -> Iterator[ModuleHypothesis]:
    """The net uses the parts of a cut tensor in another order than that in which they fill the whole; cuts: the cut
    tensors of the module at this path, biases like weights."""
    groups: dict[tuple[str, ...], list[Cut]] = {}
    for cut in cuts:
        if len(cut.sizes) <= MOST_ORDERS and len({*cut.sizes}) == 1:
            groups.setdefault(tuple(map(parent, cut.torch)), []).append(cut)
    for owners, own in groups.items():
        whole, inside = own[0], [owner[len(path) :].lstrip(".") for owner in owners]
        of, parts = (whole.torch, whole.mindspore) if len(owners) == 1 else (whole.mindspore, whole.torch)
        first = tuple(range(len(parts)))
        for order in (each for each in itertools.permutations(first) if each != first):
            # the parts whose weights torch's parts compute with, or the order of the parts in the whole
            turned = tuple(parts[i] for i in (order if len(owners) == 1 else map(order.index, first)))
            other = replace(whole, mindspore=turned) if len(owners) == 1 else replace(whole, torch=turned)
            fix = f"have {_short(parts)} as the parts of {of[0]}, in this order; if they are others, write a map: "
            change = partial(_with_parts, inside, own, order)
            what = f"{of[0]} made of {_short(turned)}, in this order"
            yield Mutation(what, change, fix=fix + "; ".join(map_lines(other))).hypothesis()


def _short(names: Sequence[str]) -> str:
    """The names without the path that they have in common."""
    around = zip(*(name.split(".")[:-1] for name in names), strict=False)
    count = len([*itertools.takewhile(lambda parts: len({*parts}) == 1, around)])
    return ", ".join(".".join(name.split(".")[count:]) for name in names)


def _with_parts(inside: Sequence[str], cuts: Sequence[Cut], order: Sequence[int], module: nn.Module) -> None:
    leaves = {cut.torch[0].rpartition(".")[2]: cut for cut in cuts}
    owners = [module.get_submodule(path) for path in inside]

    def rows(own: dict[str, torch.Tensor]) -> dict[str, torch.Tensor]:
        parts = {name: own[name].split(cut.sizes, cut.axis) for name, cut in leaves.items()}
        return {name: torch.cat([own[i] for i in order], leaves[name].axis) for name, own in parts.items()}

    if len(owners) == 1:
        as_given(owners[0], rows)
    for owner, i in zip(owners, order, strict=True) if len(owners) > 1 else ():
        as_given(owner, partial(_weights_of, owners[i], [*leaves]))


def _weights_of(module: nn.Module, names: Sequence[str], own: dict[str, torch.Tensor]) -> dict[str, torch.Tensor]:
    return {**own, **{name: module.get_parameter(name) for name in names}}
