"""Fix what a torch model draws: dropout in every form, stochastic depth, and whatever else takes uniform numbers.

Caught are the functions that draw, not the classes that call them: so nn.Dropout, F.dropout inside an attention,
torchvision's StochasticDepth and timm's DropPath all keep their own code, rate and scaling.
"""

from __future__ import annotations

import math
import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from functools import partial
from typing import Any

import torch
import torch.nn.functional as F
from torch import nn
from torch.overrides import TorchFunctionMode

from .fixed_randomness import ROOT, Draws

# functional dropouts of whole channels, and the number of dimensions at which their input has no batch dimension
CHANNELS: Mapping[Any, int | None] = {F.dropout1d: 2, F.dropout2d: None, F.dropout3d: 4}


@contextmanager
def fixed(model: nn.Module, draws: Draws) -> Iterator[Draws]:
    """Within this block the random layers of `model` take `draws`; what else drew shows in `draws.outside`."""
    before = torch.get_rng_state()
    mode = _Fixed(model, draws)
    with ExitStack() as stack:
        for function, answer in ANSWERS.items():
            name = str(getattr(function, "__name__", ""))
            if getattr(F, name, None) is function:
                # what calls it from within torch.nn.functional, as attention does, passes no mode
                setattr(F, name, partial(answer, mode, function))
                stack.callback(setattr, F, name, function)
        stack.enter_context(mode)
        yield draws
    if not torch.equal(before, torch.get_rng_state()):
        draws.outside.add("a torch function that draws other than uniform numbers")


class _Fixed(TorchFunctionMode):
    """Answers the calls that draw random numbers from `draws`, and passes on every other one."""

    def __init__(self, model: nn.Module, draws: Draws) -> None:
        super().__init__()
        self.draws = draws
        self.names = {id(module): name or ROOT for name, module in model.named_modules()}

    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        given = kwargs or {}
        answer = ANSWERS.get(func)
        return func(*args, **given) if answer is None else answer(self, func, *args, **given)

    def name(self) -> str:
        """The innermost module at work, by its dotted name."""
        frame = sys._getframe(1)
        while frame is not None:
            name = self.names.get(id(frame.f_locals.get("self")))
            if name is not None:
                return name
            frame = frame.f_back  # type: ignore[assignment]
        return ROOT

    def scaled_mask(self, like: torch.Tensor, shape: tuple[int, ...], rate: float) -> torch.Tensor:
        """1 / (1 - rate) where an element is kept, 0 elsewhere, in the dtype of `like`."""
        kept = self.draws.keep(self.name(), shape, rate)
        mask = torch.from_numpy(kept).to(like.device, like.dtype)
        return mask / (1.0 - rate) if rate < 1.0 else mask

    def uniform(self, shape: tuple[int, ...], rate: float | None = None) -> torch.Tensor:
        """Uniform numbers for the next call, float32."""
        return torch.from_numpy(self.draws.uniform(self.name(), shape, rate))


def _dropout(fixed: _Fixed, _: Any, input: Any, p: float = 0.5, training: bool = True, inplace: bool = False) -> Any:
    if not training or p == 0.0:
        return input
    mask = fixed.scaled_mask(input, tuple(input.shape), p)
    return input.mul_(mask) if inplace else input * mask


def _channels(
    fixed: _Fixed, func: Any, input: Any, p: float = 0.5, training: bool = True, inplace: bool = False
) -> Any:
    if not training or p == 0.0:
        return input
    shape, unbatched = tuple(input.shape), input.dim() == CHANNELS[func]
    drawn = (1, shape[0]) if unbatched else shape[:2]
    mask = fixed.scaled_mask(input, drawn, p).reshape(shape[0:1] if unbatched else drawn)
    mask = mask.reshape(*mask.shape, *[1] * (input.dim() - mask.dim()))
    return input.mul_(mask) if inplace else input * mask


def _bernoulli_(fixed: _Fixed, _: Any, input: Any, p: Any = 0.5, *, generator: Any = None) -> Any:
    return input.copy_(_trials(fixed, tuple(input.shape), p))


def _bernoulli(fixed: _Fixed, _: Any, input: Any, p: Any = None, *, generator: Any = None) -> Any:
    return _trials(fixed, tuple(input.shape), input if p is None else p).to(input.dtype)


def _trials(fixed: _Fixed, shape: tuple[int, ...], p: Any) -> torch.Tensor:
    """Whether each trial succeeds, with probability p, a number or a tensor."""
    if isinstance(p, torch.Tensor):
        return fixed.uniform(shape).to(p.dtype) >= 1.0 - p
    return torch.from_numpy(fixed.draws.keep(fixed.name(), shape, 1.0 - p))


def _rand(fixed: _Fixed, func: Any, *size: Any, out: Any = None, **options: Any) -> Any:
    shape = size[0] if len(size) == 1 and not isinstance(size[0], int) else options.pop("size", size)
    with torch.random.fork_rng(devices=[]):  # for the dtype, device and layout it would have; the values are replaced
        drawn = func(*shape, **options) if out is None else func(*shape, out=out, **options)
    return _filled(fixed, drawn)


def _rand_like(fixed: _Fixed, func: Any, input: Any, **options: Any) -> Any:
    with torch.random.fork_rng(devices=[]):
        drawn = func(input, **options)
    return _filled(fixed, drawn)


def _filled(fixed: _Fixed, drawn: torch.Tensor) -> torch.Tensor:
    with torch.no_grad():
        drawn.copy_(fixed.uniform(tuple(drawn.shape)))
    return drawn


def _uniform_(fixed: _Fixed, _: Any, input: Any, *limits: float, generator: Any = None, **named: float) -> Any:
    low, high = (*limits, *(0.0, 1.0)[len(limits) :])
    low, high = named.get("from", low), named.get("to", high)
    return input.copy_(fixed.uniform(tuple(input.shape)).to(input.dtype) * (high - low) + low)


def _attention(
    fixed: _Fixed,
    func: Any,
    query: Any,
    key: Any,
    value: Any,
    attn_mask: Any = None,
    dropout_p: float = 0.0,
    is_causal: bool = False,
    scale: float | None = None,
    enable_gqa: bool = False,
) -> Any:
    """torch.nn.functional.scaled_dot_product_attention with dropout, as its documentation spells it out."""
    if dropout_p == 0.0:
        return func(query, key, value, attn_mask, 0.0, is_causal, scale=scale, enable_gqa=enable_gqa)
    if enable_gqa:
        groups = query.size(-3) // key.size(-3)
        key, value = key.repeat_interleave(groups, -3), value.repeat_interleave(groups, -3)
    scores = query @ key.transpose(-2, -1) * (1.0 / math.sqrt(query.size(-1)) if scale is None else scale)
    if is_causal:
        attn_mask = torch.ones(scores.shape[-2:], dtype=torch.bool, device=query.device).tril()
    if attn_mask is not None and attn_mask.dtype == torch.bool:
        scores = scores.masked_fill(attn_mask.logical_not(), float("-inf"))
    elif attn_mask is not None:
        scores = scores + attn_mask
    weights = torch.softmax(scores, dim=-1)
    return weights * fixed.scaled_mask(weights, tuple(weights.shape), dropout_p) @ value


ANSWERS: dict[Any, Callable[..., Any]] = {
    F.dropout: _dropout,
    **dict.fromkeys(CHANNELS, _channels),
    torch.Tensor.bernoulli_: _bernoulli_,
    torch.Tensor.bernoulli: _bernoulli,
    torch.bernoulli: _bernoulli,
    torch.rand: _rand,
    torch.rand_like: _rand_like,
    torch.Tensor.uniform_: _uniform_,
    F.scaled_dot_product_attention: _attention,
}
