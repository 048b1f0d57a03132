"""Fix what a MindSpore net draws, in PyNative mode: the primitives that draw answer with parity's own numbers.

Caught are the primitives, not the Cells that call them: so nn.Dropout, ops.dropout inside an attention and a model
zoo's DropPath all keep their own code, rate and scaling. Compiled code calls no primitive from Python; see
mindspore_graph_randomness for it.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any

import mindspore
import numpy as np
from mindspore import Tensor, nn, ops
from mindspore.ops import auto_generate
from mindspore.ops.operations import nn_ops, random_ops

from .fixed_randomness import ROOT, Draws

# Cells of model zoos that draw through a Dropout of their own, which torch's counterpart has not
BRANCHES = ("DropPath", "StochasticDepth", "DropConnect")
# primitives that draw other than uniform numbers: nothing to share between frameworks, but to be told
OTHERS = (
    "StandardNormal",
    "StandardLaplace",
    "TruncatedNormal",
    "Gamma",
    "Poisson",
    "RandomPoisson",
    "UniformInt",
    "Multinomial",
    "RandomCategorical",
    "RandomChoiceWithMask",
    "RandomShuffle",
)


@contextmanager
def fixed(net: nn.Cell, draws: Draws, names: Mapping[str, str] | None = None) -> Iterator[Draws]:
    """Within this block the random layers of `net` take `draws`; what else drew shows in `draws.outside`.

    names: MindSpore path -> torch path of a layer, where the two differ.
    """
    cells = _Cells(net, draws, names or {})
    put: list[tuple[type, Any]] = []
    try:
        for kind, answer in ANSWERS.items():
            put.append((kind, vars(kind).get("__call__")))
            kind.__call__ = _calling(answer, cells)
        for name in OTHERS:
            kind = getattr(random_ops, name)
            put.append((kind, vars(kind).get("__call__")))
            kind.__call__ = _telling(name, kind.__call__, draws)
        yield draws
    finally:
        for kind, own in put:
            if own is None:
                del kind.__call__  # it was inherited
            else:
                kind.__call__ = own  # type: ignore[method-assign]


class _Cells:
    """Who is drawing, by the Python stack; and the numbers for it."""

    def __init__(self, net: nn.Cell, draws: Draws, names: Mapping[str, str]) -> None:
        self.draws = draws
        self.names = {id(cell): path for cell, path in canonical_paths(net, names)}

    def name(self) -> str:
        """The innermost Cell at work, by its canonical name."""
        frame = sys._getframe(1)
        while frame is not None:
            name = self.names.get(id(frame.f_locals.get("self")))
            if name is not None:
                return name
            frame = frame.f_back  # type: ignore[assignment]
        return ROOT

    def dropped(self, x: Any, shape: tuple[int, ...], rate: float) -> tuple[Any, Any]:
        """x with what is not kept set to zero and the rest divided by 1 - rate; and what was kept, bool."""
        kept = self.draws.keep(self.name(), shape, rate)
        scale = 1.0 / (1.0 - rate) if rate < 1.0 else 0.0
        return x * ops.cast(Tensor((kept * scale).astype(np.float32)), x.dtype), Tensor(kept)


def canonical_paths(net: nn.Cell, names: Mapping[str, str]) -> Iterator[tuple[nn.Cell, str]]:
    """Every Cell of `net` with the name under which it draws: torch's, where `names` (MindSpore path -> torch path)
    or the same path tells it; a branch's own Dropout draws as the branch."""
    classes = {path: type(cell).__name__ for path, cell in net.cells_and_names()}
    for path, cell in net.cells_and_names():
        parent = path.rpartition(".")[0]
        drawing = parent if "." in path and classes[parent] in BRANCHES and path not in names else path
        yield cell, names.get(drawing, drawing) or ROOT


def _calling(answer: Callable[..., Any], cells: _Cells) -> Callable[..., Any]:
    def call(primitive: Any, *args: Any) -> Any:
        return answer(cells, primitive, *args)

    return call


def _telling(name: str, real: Callable[..., Any], draws: Draws) -> Callable[..., Any]:
    def call(primitive: Any, *args: Any) -> Any:
        draws.outside.add(f"mindspore.ops.{name}")
        return real(primitive, *args)

    return call


def _dropout(cells: _Cells, primitive: Any, x: Any) -> Any:
    if primitive.keep_prob >= 1.0:  # as torch's, which draws nothing then, and so counts no call
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


def _bernoulli(cells: _Cells, _: Any, x: Any, p: Any) -> Any:
    chances = p.asnumpy().astype(np.float64)
    shape = tuple(x.shape)
    if chances.size == 1:
        kept = cells.draws.keep(cells.name(), shape, round(1.0 - float(chances.reshape(-1)[0]), 7))
    else:
        kept = cells.draws.uniform(cells.name(), shape) >= 1.0 - chances
    return ops.cast(Tensor(kept), x.dtype)


def _uniform(cells: _Cells, _: Any, shape: Any) -> Any:
    sizes = shape.asnumpy().tolist() if isinstance(shape, mindspore.Tensor) else shape
    return Tensor(cells.draws.uniform(cells.name(), tuple(int(n) for n in sizes)))


ANSWERS: dict[Any, Callable[..., Any]] = {
    ops.Dropout: _dropout,
    nn_ops.Dropout2D: _channels,
    nn_ops.Dropout3D: _channels,
    ops.Bernoulli: _bernoulli,
    random_ops.UniformReal: _uniform,
    auto_generate.FuncDropoutExt: _mint_dropout,
    auto_generate.Dropout2dExt: _mint_channels,
}
