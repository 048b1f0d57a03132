"""Fix what a torch model draws: below autograd every way to draw a random number is one of a few operators.

The operators are replaced, not the functions and classes that call them: so nn.Dropout, dropout inside an attention or
between the layers of an LSTM, F.gumbel_softmax, torch.distributions, torchvision's StochasticDepth and timm's DropPath
all keep their own code, rate and scaling. PyTorch marks the operators that draw: one that is marked, moves its
generator and is not replaced here is reported as one that could not be fixed.
"""

from __future__ import annotations

import inspect
import sys
from collections.abc import Callable, Container, Iterator
from contextlib import contextmanager
from types import FrameType
from typing import Any, NamedTuple

import numpy as np
import torch
from torch import nn
from torch.nn.attention import SDPBackend, sdpa_kernel
from torch.overrides import BaseTorchFunctionMode
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves

from .randomness import ROOT, Draws, Place, place
from .torch_device import generator_of

# the public names of operators that cannot be fixed, where these are not the operators' own
PUBLIC = {
    "_standard_gamma": "torch.distributions.Gamma, or one that is made of it,",
    "_sample_dirichlet": "torch.distributions.Dirichlet or Beta",
}


@contextmanager
def fixed(model: nn.Module, draws: Draws, shared: Container[str] | None = None) -> Iterator[Draws]:
    """Within this block all draws take their numbers from `draws`; `draws.outside` names what could not be fixed.

    shared: the modules that the other framework's model has, too, by dotted name, where it lacks some: the draws of any
    other module count as those of the innermost shared module around it.
    """
    # while functions are watched, nn.TransformerEncoderLayer and nn.MultiheadAttention run the modules inside them
    answers = _Fixed(model, draws, shared)
    with draws.libraries(), _Unfused(answers), answers:
        yield draws


ATTENTION = torch.nn.functional.scaled_dot_product_attention
MULTI_HEAD = torch.nn.functional.multi_head_attention_forward  # it calls ATTENTION where functions are not watched
PARAMETERS = {
    ATTENTION: ("query", "key", "value", "attn_mask", "dropout_p"),  # torch's own, without a signature
    MULTI_HEAD: tuple(inspect.signature(MULTI_HEAD).parameters),
}
RECURRENT = (torch.lstm, torch.gru, torch.rnn_tanh, torch.rnn_relu)


class _Unfused(BaseTorchFunctionMode):
    """Takes apart what draws inside of one of a GPU's kernels, where nothing can be answered: attention with dropout
    becomes the products that it is made of, and a recurrence with dropout leaves cuDNN. The CPU does both by itself.

    Between the layers of a recurrence over packed sequences a mask has the packed values alone. It takes the numbers
    that these have in a mask of the padded ones, which is what MindSpore's layers draw."""

    def __init__(self, answers: _Fixed) -> None:
        super().__init__()
        self.answers = answers

    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        given = kwargs or {}
        named = {**dict(zip(PARAMETERS.get(func, ()), args, strict=False)), **given}
        if func in PARAMETERS and named.get("dropout_p") and named.get("training", True):
            with sdpa_kernel(SDPBackend.MATH):
                return func(*args, **given)
        if func in RECURRENT and any(type(each) is float and each > 0.0 for each in args):
            with torch.backends.cudnn.flags(enabled=False), self.answers.between_layers(args):
                return func(*args, **given)
        return func(*args, **given)


class _Fixed(TorchDispatchMode):
    """Answers the operators that draw from `draws`, and passes on every other one."""

    def __init__(self, model: nn.Module, draws: Draws, shared: Container[str] | None) -> None:
        super().__init__()
        self.draws = draws
        self.names = {id(m): name or ROOT for name, m in model.named_modules() if shared is None or name in shared}
        self.lengths: dict[int, tuple[torch.Tensor, int]] = {}  # of a packed sequence's counts -> these, padded length
        self.packed: _Packed | None = None  # what is packed in the recurrence that runs

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        given = kwargs or {}
        answer = ANSWERS.get(func.overloadpacket)
        if answer is not None:
            return answer(self, func, *args, **given)
        if torch.is_inference_mode_enabled():  # in this mode composite operators arrive here
            with self:
                made = func.decompose(*args, **given)
            if made is not NotImplemented:
                return made
        if torch.Tag.nondeterministic_seeded not in func.tags:
            found = func(*args, **given)
            if func.overloadpacket is aten._pack_padded_sequence:  # (input, lengths, batch_first)
                self.lengths[id(found[1])] = found[1], args[0].shape[int(args[2])]
            return found
        generator = given.get("generator") or generator_of(_device(args, given))
        before = generator.get_state()
        found = func(*args, **given)
        if not torch.equal(before, generator.get_state()):
            name = func.overloadpacket.__name__
            self.draws.not_fixed(PUBLIC.get(name, f"torch.{name}"), self.place())
        return found

    def place(self) -> Place:
        """Who is drawing."""
        return place(self.names)

    def uniform(self, shape: tuple[int, ...]) -> torch.Tensor:
        """Uniform numbers for the next call, float32."""
        return torch.from_numpy(self.draws.uniform(self.place(), shape))

    def normal(self, shape: tuple[int, ...]) -> torch.Tensor:
        """Standard normal numbers for the next call, float32."""
        return torch.from_numpy(self.draws.normal(self.place(), shape))

    def trials(self, shape: tuple[int, ...], p: Any) -> torch.Tensor:
        """Whether each trial succeeds, with probability p, a number or a tensor."""
        if isinstance(p, torch.Tensor):
            return torch.from_numpy(self.draws.trials(self.place(), _values(p.expand(shape))))
        if self.packed is not None:
            whole = self.draws.keep(self.place(), (*self.packed.shape, *shape[1:]), 1.0 - p)
            return torch.from_numpy(whole[self.packed.times, self.packed.rows])
        return torch.from_numpy(self.draws.keep(self.place(), shape, 1.0 - p))

    @contextmanager
    def between_layers(self, args: Any) -> Iterator[None]:
        """Within this block a recurrence runs that is called with these arguments."""
        before, self.packed = self.packed, self._packed(args)
        try:
            yield
        finally:
            self.packed = before

    def _packed(self, args: Any) -> _Packed | None:
        """What is packed among the arguments of a recurrence: (values, counts, state, weights, …), else (values, state,
        weights, …)."""
        if not isinstance(args[3], (list, tuple)):
            return None
        counts = args[1].tolist()
        _, length = self.lengths.get(id(args[1]), (None, len(counts)))
        order = np.arange(counts[0]) if (found := _order_of_packed()) is None else np.asarray(found)
        rows = np.concatenate([order[:count] for count in counts])
        return _Packed((length, counts[0]), np.repeat(np.arange(len(counts)), counts), rows)


class _Packed(NamedTuple):
    """Where packed values stand among padded ones of `shape`, the time first: at which time, and in which row."""

    shape: tuple[int, int]
    times: np.ndarray
    rows: np.ndarray


def _order_of_packed() -> list[int] | None:
    """The row of each sequence before it was sorted by length, as the recurrent layer that runs was given it."""
    frame: FrameType | None = sys._getframe(1)
    while frame is not None:
        if isinstance(frame.f_locals.get("self"), nn.RNNBase) and "sorted_indices" in frame.f_locals:
            order = frame.f_locals["sorted_indices"]
            return None if order is None else list(order.tolist())
        frame = frame.f_back
    return None


def _device(args: Any, options: dict[str, Any]) -> torch.device:
    """Where an operator with these arguments computes."""
    tensors = [each for each in tree_leaves((args, options)) if isinstance(each, torch.Tensor)]
    named = options.get("device")
    return torch.device(named) if named is not None else tensors[0].device if tensors else torch.device("cpu")


def _filled(into: torch.Tensor, values: torch.Tensor | np.ndarray) -> torch.Tensor:
    return into.copy_(values if isinstance(values, torch.Tensor) else torch.from_numpy(np.ascontiguousarray(values)))


def _made(func: Any, given: Any, options: dict[str, Any], dtype: torch.dtype | None = None) -> torch.Tensor:
    """An empty tensor such as an operator would make: of a size, or like another tensor."""
    out = options.pop("out", None)
    if out is not None:
        return out.resize_(tuple(given))
    options.pop("generator", None)
    if isinstance(given, torch.Tensor):
        return torch.empty_like(given, **options)
    if options.get("dtype") is None:
        options["dtype"] = dtype or torch.get_default_dtype()
    return torch.empty(tuple(given), **options)


def _rand(fixed: _Fixed, func: Any, size: Any, **options: Any) -> torch.Tensor:
    made = _made(func, size, options)
    return _filled(made, fixed.uniform(tuple(made.shape)))


def _randn(fixed: _Fixed, func: Any, size: Any, **options: Any) -> torch.Tensor:
    made = _made(func, size, options)
    return _filled(made, fixed.normal(tuple(made.shape)))


def _randint(fixed: _Fixed, func: Any, *args: Any, **options: Any) -> torch.Tensor:
    """([low,] high, size) or (like, [low,] high)."""
    like = isinstance(args[0], torch.Tensor)
    *limits, given = (*args[1:], args[0]) if like else args
    low, high = (0, *limits) if len(limits) == 1 else limits
    made = _made(func, given, options, torch.int64)
    return _filled(made, fixed.draws.integers(fixed.place(), tuple(made.shape), int(low), int(high)))


def _randperm(fixed: _Fixed, func: Any, n: int, **options: Any) -> torch.Tensor:
    made = _made(func, (n,), options, torch.int64)
    return _filled(made, fixed.draws.permutation(fixed.place(), n))


def _normal(fixed: _Fixed, func: Any, mean: Any, std: Any = 1.0, size: Any = None, **options: Any) -> torch.Tensor:
    tensors = [x for x in (mean, std) if isinstance(x, torch.Tensor)]
    if tensors:
        size = torch.broadcast_shapes(*(x.shape for x in tensors))
        options.setdefault("dtype", torch.result_type(*tensors) if len(tensors) > 1 else tensors[0].dtype)
    made = _made(func, size, options)
    drawn = fixed.normal(tuple(made.shape)).to(made)
    return _filled(made, mean + std * drawn)


def _normal_(fixed: _Fixed, _: Any, into: Any, mean: float = 0.0, std: float = 1.0, generator: Any = None) -> Any:
    return _filled(into, mean + std * fixed.normal(tuple(into.shape)).to(into.dtype))


def _log_normal_(fixed: _Fixed, _: Any, into: Any, mean: float = 1.0, std: float = 2.0, generator: Any = None) -> Any:
    return _normal_(fixed, _, into, mean, std).exp_()


def _uniform_(fixed: _Fixed, _: Any, into: Any, low: float = 0.0, high: float = 1.0, generator: Any = None) -> Any:
    return _filled(into, fixed.uniform(tuple(into.shape)).to(into.dtype) * (high - low) + low)


def _random_(fixed: _Fixed, func: Any, into: Any, *limits: Any, generator: Any = None) -> Any:
    low, high = (0, *limits) if len(limits) == 1 else limits or (0, None)
    if high is None:  # as large as the dtype can count
        floats = into.is_floating_point()
        high = round(2 / torch.finfo(into.dtype).eps) + 1 if floats else torch.iinfo(into.dtype).max + 1
    return _filled(into, fixed.draws.integers(fixed.place(), tuple(into.shape), low, high))


def _bernoulli(fixed: _Fixed, _: Any, input: Any, p: Any = None, generator: Any = None, out: Any = None) -> Any:
    trials = fixed.trials(tuple(input.shape), input if p is None else p).to(input)
    return trials if out is None else _filled(out.resize_(trials.shape), trials)


def _bernoulli_(fixed: _Fixed, _: Any, into: Any, p: Any = 0.5, generator: Any = None) -> Any:
    return _filled(into, fixed.trials(tuple(into.shape), p))


def _native_dropout(fixed: _Fixed, _: Any, input: Any, p: float, train: bool | None = None) -> Any:
    """What F.dropout is on a GPU: the output, and the mask for the backward pass."""
    if train is False:
        return input.clone(), torch.ones_like(input, dtype=torch.bool)
    kept = fixed.trials(tuple(input.shape), 1.0 - p).to(input.device)
    return input * kept.to(input.dtype) * (1.0 / (1.0 - p) if p < 1.0 else 0.0), kept.bool()


def _exponential_(fixed: _Fixed, _: Any, into: Any, lambd: float = 1.0, generator: Any = None) -> Any:
    drawn = torch.from_numpy(fixed.draws.base(fixed.place(), tuple(into.shape)))
    return _filled(into, -drawn.to(into.dtype).log() / lambd)  # rounded as in the tensor's own precision


def _geometric_(fixed: _Fixed, _: Any, into: Any, p: float, generator: Any = None) -> Any:
    return _filled(into, np.ceil(fixed.draws.exponential(fixed.place(), tuple(into.shape)) / -np.log1p(-p)))


def _cauchy_(fixed: _Fixed, _: Any, into: Any, median: float = 0.0, sigma: float = 1.0, generator: Any = None) -> Any:
    drawn = fixed.uniform(tuple(into.shape)).double()
    return _filled(into, median + sigma * torch.tan(torch.pi * (drawn - 0.5)))


def _values(weights: torch.Tensor) -> np.ndarray:
    """Weights, which may have a gradient, in float64."""
    found: np.ndarray = weights.detach().double().cpu().numpy()
    return found


def _multinomial(
    fixed: _Fixed, _: Any, input: Any, count: int, replacement: bool = False, generator: Any = None, out: Any = None
) -> Any:
    chosen = torch.from_numpy(fixed.draws.choices(fixed.place(), _values(input), count, replacement))
    chosen = chosen.to(input.device)
    return chosen if out is None else _filled(out.resize_(chosen.shape), chosen)


def _poisson(fixed: _Fixed, _: Any, input: Any, generator: Any = None) -> torch.Tensor:
    return torch.from_numpy(fixed.draws.poisson(fixed.place(), _values(input))).to(input)


def _rrelu(
    fixed: _Fixed,
    func: Any,
    input: Any,
    noise: Any,
    lower: float = 1 / 8,
    upper: float = 1 / 3,
    training: bool = False,
    generator: Any = None,
) -> Any:
    """The slope of each element below zero goes into `noise`, which the backward pass reads."""
    if not training:
        return func(input, noise, lower, upper, False)
    slopes = fixed.uniform(tuple(input.shape)).to(input) * (upper - lower) + lower
    noise.copy_(torch.where(input <= 0, slopes, 1.0))
    return input.mul_(noise) if func.overloadpacket is aten.rrelu_with_noise_ else input * noise


aten = torch.ops.aten
ANSWERS: dict[Any, Callable[..., Any]] = {
    aten.rand: _rand,
    aten.rand_like: _rand,
    aten.randn: _randn,
    aten.randn_like: _randn,
    aten.randint: _randint,
    aten.randint_like: _randint,
    aten.randperm: _randperm,
    aten.normal: _normal,
    aten.normal_functional: _normal,
    aten.normal_: _normal_,
    aten.log_normal_: _log_normal_,
    aten.uniform_: _uniform_,
    aten.random_: _random_,
    aten.bernoulli: _bernoulli,
    aten.bernoulli_: _bernoulli_,
    aten.exponential_: _exponential_,
    aten.geometric_: _geometric_,
    aten.cauchy_: _cauchy_,
    aten.multinomial: _multinomial,
    aten.native_dropout: _native_dropout,
    aten.poisson: _poisson,
    aten.rrelu_with_noise: _rrelu,
    aten.rrelu_with_noise_: _rrelu,
}
