"""Fix what a compiled MindSpore net draws: its dropouts read their masks from parameters, which each pass writes.

Compiled code calls no primitive from Python, so there is nothing to answer in its place (mindspore_randomness does that
in PyNative mode). The shapes come from a PyNative run of the same steps.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

import numpy as np
from mindspore import Parameter, Tensor, nn, ops
from mindspore import dtype as mstype

from .fixed_randomness import Draws
from .mindspore_randomness import canonical_paths

# the attribute by which a class calls the primitive that draws
PRIMITIVES = {nn.Dropout: "dropout", nn.Dropout2d: "dropout2d", nn.Dropout3d: "dropout3d"}


class Mask(nn.Cell):
    """In the place of a dropout primitive: multiplies with what `fill` wrote last."""

    def __init__(self, name: str, shape: tuple[int, ...], rate: float) -> None:
        super().__init__(auto_prefix=False)
        self.layer, self.shape, self.rate = name, shape, rate
        self.mask = Parameter(Tensor(np.ones(shape, np.float32)), name=f"mask of {name}", requires_grad=False)

    def construct(self, x: Any) -> Any:
        """What the primitive gives: the output, and what was kept."""
        return x * ops.cast(self.mask, x.dtype), ops.cast(self.mask, mstype.bool_)

    def fill(self, step: int, call: int) -> None:
        """Take the draws of one pass."""
        kept = Draws(step, call).keep(self.layer, self.shape, self.rate)
        scale = 1.0 / (1.0 - self.rate) if self.rate < 1.0 else 0.0
        self.mask.copy_(Tensor((kept * scale).astype(np.float32)))


class CompiledMasks:
    """The masks of a net that is going to be compiled.

    passes: what the same steps drew in PyNative mode; parts: micro-batches of a step. outside: what cannot be fixed.
    """

    def __init__(self, net: nn.Cell, names: Mapping[str, str], passes: Sequence[Draws], parts: int) -> None:
        taken = {name: calls for draws in passes for name, calls in draws.taken.items()}
        self.parts = parts
        self.outside = sorted(set().union(*(draws.outside for draws in passes)))
        self.masks: list[tuple[nn.Cell, str, Mask]] = []
        reached = set()
        for cell, name in canonical_paths(net, names):
            attribute = next((own for kind, own in PRIMITIVES.items() if isinstance(cell, kind)), None)
            calls = taken.get(name, [])
            if attribute is None or not calls or calls[0][1] is None:
                continue
            reached.add(name)
            (shape, rate), every = calls[0], len(calls)
            if every != parts or any(call != calls[0] for call in calls):
                self.outside.append(f"{name}, which runs {every} times in a step")
                continue
            self.masks.append((cell, attribute, Mask(name, shape, float(rate or 0.0))))
        self.outside += [f"{name}, which draws through a function" for name in taken if name not in reached]

    @contextmanager
    def installed(self) -> Iterator[None]:
        """Within this block the net's dropouts multiply with their masks."""
        kept = [(cell, attribute, getattr(cell, attribute)) for cell, attribute, _ in self.masks]
        try:
            for cell, attribute, mask in self.masks:
                cell.__dict__[attribute] = mask  # past Cell.__setattr__: the net gets no new child, no new parameter
            yield
        finally:
            for cell, attribute, primitive in kept:
                cell.__dict__[attribute] = primitive

    @contextmanager
    def taking(self, train_step: Any) -> Iterator[None]:
        """Within this block `train_step` takes its next step, each micro-batch with masks of its own."""
        step = train_step.steps + 1
        if self.parts == 1:
            self._fill(step, 0)
            yield
            return
        real: Callable[..., Any] = train_step._accumulate
        part = iter(range(self.parts))

        def accumulate(*given: Any) -> Any:
            self._fill(step, next(part))
            return real(*given)

        train_step._accumulate = accumulate
        try:
            yield
        finally:
            train_step._accumulate = real

    def _fill(self, step: int, call: int) -> None:
        for _, _, mask in self.masks:
            mask.fill(step, call)
