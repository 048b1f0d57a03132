"""MindSpore's draws replaced by given ones, in PyNative and in compiled code.

In PyNative mode the primitives are replaced, not the Cells and functions that call them: so nn.Dropout, ops.dropout
inside an attention, ops.gumbel_softmax, nn.probability and a model zoo's DropPath all keep their own code, rate and
scaling. Those of `mindspore.mint` are replaced too, which otherwise have no kernel on a CPU.

Compiled code calls no primitive from Python, so that none can be replaced there: mindspore_graph_draws holds its
numbers. Their shapes and order come from a PyNative run of the same steps.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from typing import Any
from unittest.mock import patch

import mindspore
import numpy as np
from mindspore import Tensor, nn, ops
from mindspore.ops import auto_generate, deprecated, functional_overload
from mindspore.ops.operations import inner_ops, math_ops, nn_ops, other_ops, random_ops

from .mindspore_graph_draws import Bank, Mask, Numbers, numbered
from .randomness import ROOT, Draw, Draws, Place, place

# the primitive that a Cell may hold and call, and its replacement
PRIMITIVES: dict[type, Callable[[Bank, Any], nn.Cell]] = {
    ops.Dropout: lambda bank, primitive: Mask(bank, primitive, channels=False),
    nn_ops.Dropout2D: lambda bank, primitive: Mask(bank, primitive, channels=True),
    nn_ops.Dropout3D: lambda bank, primitive: Mask(bank, primitive, channels=True),
    random_ops.StandardNormal: lambda bank, _: Numbers(bank, normals=True),
    random_ops.UniformReal: lambda bank, _: Numbers(bank, normals=False),
}


class NotFixed(Exception):
    """A compiled step drew other numbers than the same step in PyNative mode."""


class CompiledDraws:
    """The draws of a net that is going to be compiled.

    passes: what the same steps drew in PyNative mode; parts: micro-batches of a step. outside: what cannot be fixed.
    """

    def __init__(self, net: nn.Cell, passes: Sequence[Draws], parts: int) -> None:
        passes = [draws for draws in passes if draws.step]
        self.parts = parts
        unfixed = [each for draws in passes for each in draws.outside.items()]
        outside = {f"{function} in {who.name}" for function, places in unfixed for who in places}
        outside |= {f"Python's {library}" for draws in passes for library in draws.states}
        pieces = [piece for draws in passes for piece in _pieces(draws.taken, parts)]
        first = pieces[0] if pieces else []
        uneven = {draw.name for piece in pieces if piece != first for draw in (*piece, *first)}
        self.outside = sorted(outside) + sorted(f"{name}, which draws otherwise in every pass" for name in uneven)
        self.missed: dict[str, None] = {}  # draws, with their module, that a pass did not take
        self.bank = Bank(numbered([] if self.outside else first))
        self.masks: list[tuple[nn.Cell, str, nn.Cell]] = []
        for _, cell in net.cells_and_names() if len(self.bank.stacks) else ():
            for attribute, primitive in cell._primitives.items():
                if type(primitive) in PRIMITIVES:
                    self.masks.append((cell, attribute, PRIMITIVES[type(primitive)](self.bank, primitive)))

    @contextmanager
    def installed(self) -> Iterator[None]:
        """Within this block the primitives that Cells hold, and MindSpore's functions that draw, take what `taking`
        fills in."""
        kept = [(cell, attribute, getattr(cell, attribute)) for cell, attribute, _ in self.masks]
        with ExitStack() as stack:
            if len(self.bank.stacks):
                stack.enter_context(self.bank.installed())
            for cell, attribute, primitive in kept:
                stack.callback(cell.__dict__.__setitem__, attribute, primitive)
            for cell, attribute, mask in self.masks:
                cell.__dict__[attribute] = mask  # past Cell.__setattr__: the net gets no new child, no new parameter
            yield

    @contextmanager
    def taking(self, train_step: Any) -> Iterator[None]:
        """Within this block `train_step` takes its next step, each micro-batch with draws of its own.

        Raises NotFixed where a pass took other draws than those prepared for it.
        """
        step = train_step.steps + 1
        if self.parts == 1:
            self._fill(step, 0)
            yield
            self._note_missed()
            self._raise_if_missed()
            return
        real: Callable[..., Any] = train_step._accumulate
        part = iter(range(self.parts))

        def accumulate(*given: Any) -> Any:
            self._fill(step, next(part))
            found = real(*given)
            self._note_missed()
            return found

        train_step._accumulate = accumulate
        try:
            yield
            self._raise_if_missed()
        finally:
            train_step._accumulate = real

    def _fill(self, step: int, part: int) -> None:
        for stack in self.bank.stacks:
            stack.fill(step, part)

    def _note_missed(self) -> None:
        missing = [stack for stack in self.bank.stacks if stack.missed()]
        draws = dict.fromkeys(one.draw for stack in missing for one in stack.drawn)
        self.missed |= dict.fromkeys(f"{draw.kind} {list(draw.shape)} in {draw.name}" for draw in draws)

    def _raise_if_missed(self) -> None:
        if self.missed:
            raise NotFixed(
                f"{', '.join(list(self.missed)[:5])}: compiled, other draws are taken than in PyNative mode; draw by "
                "functions of mindspore.ops or mindspore.mint, or by a primitive that is an attribute of a Cell"
            )


def _pieces(taken: list[Draw], parts: int) -> list[list[Draw]]:
    """What each micro-batch draws: the same in each, or all at once."""
    each, rest = divmod(len(taken), parts)
    return [taken[i * each : (i + 1) * each] for i in range(parts)] if not rest else [taken, []]


# Cells of model zoos that draw through a Dropout inside them, which torch's counterpart lacks
BRANCHES = ("DropPath", "StochasticDepth", "DropConnect")
# primitives that draw, but do not compute their numbers from uniform or normal ones as torch does
OTHERS = (
    auto_generate.DropoutExt,
    auto_generate.DropoutGenMaskExt,
    deprecated.DropoutGenMask,
    nn_ops.FractionalAvgPool,
    nn_ops.FractionalMaxPool,
    other_ops.SampleDistortedBoundingBoxV2,
    random_ops.Gamma,
    random_ops.LogUniformCandidateSampler,
    random_ops.NonDeterministicInts,
    random_ops.ParameterizedTruncatedNormal,
    random_ops.RandomChoiceWithMask,
    random_ops.RandomGamma,
    random_ops.TruncatedNormal,
    random_ops.UniformCandidateSampler,
)


@contextmanager
def fixed(net: nn.Cell, draws: Draws, names: Mapping[str, str] | None = None) -> Iterator[Draws]:
    """Within this block `net` draws its numbers from `draws`; `draws.outside` names what could not be fixed.

    names: MindSpore path -> torch path of the Cells that torch has, too, where not all have the same name: the draws of
    any other Cell count as those of the innermost such Cell around it.
    """
    cells = _Cells(net, draws, names or {})
    with ExitStack() as stack:
        stack.enter_context(draws.libraries())
        for kind, answer in ANSWERS.items():
            stack.enter_context(patch.object(kind, "__call__", _calling(answer, cells)))
        for kind in OTHERS:
            stack.enter_context(patch.object(kind, "__call__", _telling(kind, cells)))
        # Tensor.bernoulli_, which reaches no primitive on a CPU
        stack.enter_context(patch.object(functional_overload, "bernoulli_", _calling(_bernoulli_, cells, None)))
        yield draws


class _Cells:
    """Finds the Cell that is drawing, by the Python stack, and the numbers for it."""

    def __init__(self, net: nn.Cell, draws: Draws, names: Mapping[str, str]) -> None:
        self.draws = draws
        self.names = {id(cell): path for cell, path in canonical_paths(net, names)}

    def place(self) -> Place:
        """Who is drawing."""
        return place(self.names)

    def uniform(self, shape: tuple[int, ...]) -> np.ndarray:
        """Uniform numbers for the next call."""
        return self.draws.uniform(self.place(), shape)

    def normal(self, shape: tuple[int, ...]) -> np.ndarray:
        """Standard normal numbers for the next call."""
        return self.draws.normal(self.place(), shape)

    def integers(self, shape: tuple[int, ...], low: Any, high: Any) -> np.ndarray:
        """Whole numbers from [low, high) for the next call."""
        return self.draws.integers(self.place(), shape, _number(low), _number(high))

    def trials(self, shape: tuple[int, ...], p: Any) -> np.ndarray:
        """Whether each trial succeeds, with probability p: a number, a tensor of one or one of `shape`."""
        chances = p.asnumpy() if isinstance(p, Tensor) else np.asarray(p)
        if chances.size == 1:  # 0.1 as float32 is not 0.1
            return self.draws.keep(self.place(), shape, 1.0 - round(float(chances.reshape(-1)[0]), 7))
        return self.draws.trials(self.place(), np.broadcast_to(chances, shape))

    def choices(self, weights: np.ndarray, count: int, replacement: bool, dtype: Any) -> Tensor:
        """Indices into the last dimension of `weights`, by their weights."""
        return Tensor(self.draws.choices(self.place(), weights, count, replacement), dtype)

    def dropped(self, x: Any, shape: tuple[int, ...], rate: float) -> tuple[Any, Any]:
        """x with the dropped elements set to zero and the rest divided by 1 - rate; and the mask of kept ones, bool."""
        kept = self.draws.keep(self.place(), shape, rate)
        scale = 1.0 / (1.0 - rate) if rate < 1.0 else 0.0
        return x * ops.cast(Tensor((kept * scale).astype(np.float32)), x.dtype), Tensor(kept)


def canonical_paths(net: nn.Cell, names: Mapping[str, str]) -> Iterator[tuple[nn.Cell, str]]:
    """Every Cell of `net` with the name under which it draws.

    With names (MindSpore path -> torch path) it is torch's name of the innermost Cell around it that has one; without
    any, its own path, except that a branch's own Dropout draws as the branch.
    """
    classes = {path: type(cell).__name__ for path, cell in net.cells_and_names()}
    for path, cell in net.cells_and_names():
        parent = path.rpartition(".")[0]
        while names and path and path not in names:
            path = path.rpartition(".")[0]
        if not names and parent and classes[parent] in BRANCHES:
            path = parent
        yield cell, names.get(path, path) or ROOT


def _calling(answer: Callable[..., Any], cells: _Cells, *first: Any) -> Callable[..., Any]:
    def call(*args: Any, **kwargs: Any) -> Any:
        return answer(cells, *first, *args, **kwargs)

    return call


def _telling(kind: Any, cells: _Cells) -> Callable[..., Any]:
    real = kind.__call__

    def call(primitive: Any, *args: Any, **kwargs: Any) -> Any:
        cells.draws.not_fixed(f"mindspore.ops.{kind.__name__}", cells.place())
        return real(primitive, *args, **kwargs)

    return call


def _sizes(shape: Any) -> tuple[int, ...]:
    shape = shape.asnumpy().tolist() if isinstance(shape, Tensor) else shape
    return (int(shape),) if isinstance(shape, int) else tuple(int(n) for n in shape)


def _number(value: Any) -> int:
    return int(value.asnumpy().reshape(-1)[0]) if isinstance(value, Tensor) else int(value)


def _dropout(cells: _Cells, primitive: Any, x: Any) -> Any:
    if primitive.keep_prob >= 1.0:
        return x, ops.ones_like(x)
    return cells.dropped(x, tuple(x.shape), 1.0 - float(primitive.keep_prob))


def _channels(cells: _Cells, primitive: Any, x: Any) -> Any:
    shape = (*x.shape[:2], *[1] * (x.ndim - 2))
    out, kept = cells.dropped(x, shape, 1.0 - float(primitive.keep_prob))
    return out, ops.broadcast_to(kept, x.shape)


def _mint_dropout(cells: _Cells, _: Any, x: Any, p: float, training: bool, *rest: Any) -> Any:
    return cells.dropped(x, tuple(x.shape), p)[0] if training and p > 0 else x


def _mint_channels(cells: _Cells, _: Any, x: Any, p: float, training: bool, *rest: Any) -> Any:
    return cells.dropped(x, (*x.shape[:2], *[1] * (x.ndim - 2)), p)[0] if training and p > 0 else x


def _bernoulli(cells: _Cells, _: Any, x: Any, p: Any = 0.5) -> Any:
    return ops.cast(Tensor(cells.trials(tuple(x.shape), p)), x.dtype)


def _bernoulli_of(cells: _Cells, _: Any, p: Any, *seed: Any) -> Any:
    return ops.cast(Tensor(cells.draws.trials(cells.place(), p.asnumpy())), p.dtype)


def _bernoulli_(cells: _Cells, _: Any, into: Any, p: Any, *seed: Any) -> Any:
    return into.copy_(_bernoulli(cells, _, into, p))


def _rand(cells: _Cells, _: Any, shape: Any, *seed: Any) -> Any:
    """(shape), or mint's (shape, seed, offset, dtype, device)."""
    return Tensor(cells.uniform(_sizes(shape)), _dtype(seed))


def _rand_like(cells: _Cells, _: Any, x: Any, *seed: Any) -> Any:
    return Tensor(cells.uniform(tuple(x.shape)), _dtype(seed, x.dtype))


def _randn(cells: _Cells, _: Any, shape: Any, *seed: Any) -> Any:
    return Tensor(cells.normal(_sizes(shape)), _dtype(seed))


def _randn_like(cells: _Cells, _: Any, x: Any, *seed: Any) -> Any:
    return Tensor(cells.normal(tuple(x.shape)), _dtype(seed, x.dtype))


def _dtype(seed: tuple[Any, ...], usual: Any = mindspore.float32) -> Any:
    """The dtype of what mint's functions are called with: (seed, offset, dtype, device)."""
    return seed[2] if len(seed) > 2 and seed[2] is not None else usual


def _uniform_int(cells: _Cells, _: Any, shape: Any, low: Any, high: Any) -> Any:
    return Tensor(cells.integers(_sizes(shape), low, high), mindspore.int32)


def _randint(cells: _Cells, _: Any, low: Any, high: Any, shape: Any, *seed: Any, dtype: Any = None, **_on: Any) -> Any:
    return Tensor(cells.integers(_sizes(shape), low, high), dtype or _dtype(seed, mindspore.int64))


def _randint_like(cells: _Cells, _: Any, x: Any, low: Any, high: Any, *seed: Any, dtype: Any = None, **_on: Any) -> Any:
    return Tensor(cells.integers(tuple(x.shape), low, high), dtype or _dtype(seed, x.dtype))


def _random_(cells: _Cells, _: Any, into: Any, low: Any, high: Any, *seed: Any) -> Any:
    if high is None:  # as large as the dtype can count
        kind = np.dtype(mindspore.dtype_to_nptype(into.dtype))
        high = round(2 / np.finfo(kind).eps) + 1 if kind.kind == "f" else np.iinfo(kind).max + 1
    return into.copy_(Tensor(cells.integers(tuple(into.shape), low, high), into.dtype))


def _normal(cells: _Cells, _: Any, mean: Any, std: Any, *rest: Any) -> Any:
    """(mean, std, seed, offset), of which one is a tensor, or (mean, std, shape, seed, offset)."""
    tensors = [x for x in (mean, std) if isinstance(x, Tensor)]
    shape = np.broadcast_shapes(*(tuple(x.shape) for x in tensors)) if tensors else _sizes(rest[0])
    return ops.stop_gradient(mean + std * Tensor(cells.normal(shape)))


def _normal_(cells: _Cells, _: Any, into: Any, mean: Any, std: Any, *seed: Any) -> Any:
    return into.copy_(ops.cast(mean + std * Tensor(cells.normal(tuple(into.shape))), into.dtype))


def _log_normal(cells: _Cells, primitive: Any, x: Any) -> Any:
    return ops.exp(primitive.mean + primitive.std * Tensor(cells.normal(tuple(x.shape)))).astype(x.dtype)


def _uniform(cells: _Cells, _: Any, x: Any, low: Any, high: Any, *seed: Any) -> Any:
    return ops.cast(low + (high - low) * Tensor(cells.uniform(tuple(x.shape))), x.dtype)


def _uniform_of(cells: _Cells, primitive: Any, x: Any) -> Any:
    return _uniform(cells, primitive, x, getattr(primitive, "from"), primitive.to)


def _uniform_(cells: _Cells, primitive: Any, into: Any, low: Any, high: Any, *seed: Any) -> Any:
    return into.copy_(_uniform(cells, primitive, into, low, high))


def _exponential_(cells: _Cells, _: Any, into: Any, lambd: Any, *seed: Any) -> Any:
    drawn = cells.draws.exponential(cells.place(), tuple(into.shape))
    return into.copy_(Tensor((drawn / lambd).astype(np.float32)).astype(into.dtype))


def _laplace(cells: _Cells, _: Any, shape: Any) -> Any:
    drawn = 2.0 * cells.uniform(_sizes(shape)).astype(np.float64) - 1.0
    return Tensor((-np.sign(drawn) * np.log1p(-np.abs(drawn))).astype(np.float32))


def _cauchy(cells: _Cells, primitive: Any) -> Any:
    drawn = cells.uniform(_sizes(primitive.size)).astype(np.float64)
    return Tensor((primitive.median + primitive.sigma * np.tan(np.pi * (drawn - 0.5))).astype(np.float32))


def _multinomial(cells: _Cells, primitive: Any, x: Any, count: Any) -> Any:
    return cells.choices(x.asnumpy(), _number(count), True, primitive.dtype)


def _multinomial_with(cells: _Cells, primitive: Any, x: Any, *seed: Any) -> Any:
    return cells.choices(x.asnumpy(), primitive.numsamples, primitive.replacement, mindspore.int64)


def _mint_multinomial(cells: _Cells, _: Any, x: Any, count: Any, replacement: Any, *seed: Any) -> Any:
    return cells.choices(x.asnumpy(), _number(count), bool(replacement), mindspore.int64)


def _categorical(cells: _Cells, primitive: Any, logits: Any, count: Any, *seed: Any) -> Any:
    logits = logits.asnumpy().astype(np.float64)
    weights = np.exp(logits - logits.max(-1, keepdims=True))
    return cells.choices(weights, _number(count), True, primitive.dtype)


def _poisson(cells: _Cells, primitive: Any, shape: Any, rate: Any) -> Any:
    rates = np.broadcast_to(rate.asnumpy(), (*_sizes(shape), *rate.shape))
    return Tensor(cells.draws.poisson(cells.place(), rates), primitive.dtype)


def _poisson_of(cells: _Cells, _: Any, shape: Any, mean: Any) -> Any:
    rates = np.broadcast_to(mean.asnumpy(), np.broadcast_shapes(_sizes(shape), mean.shape))
    return Tensor(cells.draws.poisson(cells.place(), rates), mindspore.int32)


def _order(cells: _Cells, primitive: Any, n: Any, *seed: Any, dtype: Any = None) -> Any:
    """(n), or mint's (n, seed, offset, dtype)."""
    found = cells.draws.permutation(cells.place(), _number(n))
    return Tensor(found, dtype or _dtype(seed, mindspore.int64))


def _padded_order(cells: _Cells, primitive: Any, n: Any) -> Any:
    found = np.full(primitive.max_length, primitive.pad)
    found[: _number(n)] = cells.draws.permutation(cells.place(), _number(n))
    return Tensor(found, primitive.dtype)


def _shuffle(cells: _Cells, _: Any, x: Any) -> Any:
    return ops.gather(x, Tensor(cells.draws.permutation(cells.place(), x.shape[0]).astype(np.int32)), 0)


ANSWERS: dict[Any, Callable[..., Any]] = {
    ops.Dropout: _dropout,
    nn_ops.Dropout2D: _channels,
    nn_ops.Dropout3D: _channels,
    auto_generate.FuncDropoutExt: _mint_dropout,
    auto_generate.Dropout2dExt: _mint_channels,
    ops.Bernoulli: _bernoulli,
    auto_generate.BernoulliExt: _bernoulli_of,
    auto_generate.InplaceBernoulliScalar: _bernoulli_,
    auto_generate.InplaceBernoulliTensor: _bernoulli_,
    random_ops.UniformReal: _rand,
    auto_generate.RandExt: _rand,
    auto_generate.RandLikeExt: _rand_like,
    random_ops.StandardNormal: _randn,
    auto_generate.Randn: _randn,
    auto_generate.RandnLike: _randn_like,
    random_ops.UniformInt: _uniform_int,
    auto_generate.RandInt: _randint,
    auto_generate.RandIntLike: _randint_like,
    auto_generate.InplaceRandom: _random_,
    auto_generate.NormalFloatFloat: _normal,
    auto_generate.NormalFloatTensor: _normal,
    auto_generate.NormalTensorFloat: _normal,
    auto_generate.NormalTensorTensor: _normal,
    auto_generate.InplaceNormal: _normal_,
    random_ops.LogNormalReverse: _log_normal,
    random_ops.Uniform: _uniform_of,
    auto_generate.UniformExt: _uniform,
    auto_generate.InplaceUniform: _uniform_,
    auto_generate.InplaceExponential: _exponential_,
    random_ops.StandardLaplace: _laplace,
    math_ops.Cauchy: _cauchy,
    random_ops.Multinomial: _multinomial,
    random_ops.MultinomialWithReplacement: _multinomial_with,
    auto_generate.MultinomialExt: _mint_multinomial,
    random_ops.RandomCategorical: _categorical,
    random_ops.RandomPoisson: _poisson,
    random_ops.Poisson: _poisson_of,
    auto_generate.RandpermV2: _order,
    auto_generate.RandpermExt: _order,
    inner_ops.Randperm: _padded_order,
    random_ops.RandomShuffle: _shuffle,
}
