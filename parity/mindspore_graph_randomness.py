"""Fix what a compiled MindSpore net draws: it takes arrays from parameters, which each pass writes.

Compiled code calls no primitive from Python, so there is nothing to answer in its place (mindspore_randomness does that
in PyNative mode). Shapes, and which layer draws when, come from a PyNative run of the same steps.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from typing import Any

from mindspore import nn

from .fixed_randomness import Draws
from .mindspore_graph_draws import Bank, Drawn, Mask, Stack
from .mindspore_randomness import canonical_paths

# the attribute by which a class calls the primitive that draws
PRIMITIVES = {nn.Dropout: "dropout", nn.Dropout2d: "dropout2d", nn.Dropout3d: "dropout3d"}


class NotFixed(Exception):
    """A compiled step drew otherwise than the same step in PyNative mode."""


class CompiledMasks:
    """The draws of a net that is going to be compiled.

    passes: what the same steps drew in PyNative mode; parts: micro-batches of a step. outside: what cannot be fixed.
    """

    def __init__(self, net: nn.Cell, names: Mapping[str, str], passes: Sequence[Draws], parts: int) -> None:
        taken = {name: calls for draws in passes for name, calls in draws.taken.items()}
        self.parts = parts
        self.outside = sorted(set().union(*(draws.outside for draws in passes)))
        uneven = {name for name, calls in taken.items() if len(calls) % parts or not _alike(name, calls, passes, parts)}
        self.outside += [f"{name}, which draws otherwise in every pass" for name in taken if name in uneven]
        self.missed: dict[str, None] = {}  # the layers whose draws a pass did not take
        self.masks: list[tuple[nn.Cell, str, Mask]] = []
        reached = set(uneven)
        for cell, name in canonical_paths(net, names):
            attribute = next((own for kind, own in PRIMITIVES.items() if isinstance(cell, kind)), None)
            calls = taken.get(name, [])[: len(taken.get(name, [])) // parts]
            if attribute is None or not calls or calls[0][1] is None or name in uneven:
                continue
            reached.add(name)
            if any(call != calls[0] for call in calls):
                self.outside.append(f"{name}, which runs on other shapes in its {len(calls)} calls")
                continue
            drawn = [Drawn(name, i, shape, float(rate or 0.0)) for i, (shape, rate) in enumerate(calls)]
            self.masks.append((cell, attribute, Mask(Stack(name, drawn))))
        self.functions = Bank(_in_order(passes[-1], taken, reached, parts)) if passes else Bank([])
        self.stacks: list[Stack] = [mask.stack for _, _, mask in self.masks] + list(self.functions.stacks)

    @contextmanager
    def installed(self) -> Iterator[None]:
        """Within this block the net's dropouts, and MindSpore's functions that draw, take what `taking` fills in."""
        kept = [(cell, attribute, getattr(cell, attribute)) for cell, attribute, _ in self.masks]
        with ExitStack() as stack:
            if len(self.functions.stacks):
                stack.enter_context(self.functions.installed())
            for cell, attribute, primitive in kept:
                stack.callback(cell.__dict__.__setitem__, attribute, primitive)
            for cell, attribute, mask in self.masks:
                cell.__dict__[attribute] = mask  # past Cell.__setattr__: the net gets no new child, no new parameter
            yield

    @contextmanager
    def taking(self, train_step: Any) -> Iterator[None]:
        """Within this block `train_step` takes its next step, each micro-batch with draws of its own.

        Raises NotFixed where a pass took others than were there for it.
        """
        step = train_step.steps + 1
        if self.parts == 1:
            self._fill(step, 0)
            yield
            self._look()
            self._tell()
            return
        real: Callable[..., Any] = train_step._accumulate
        part = iter(range(self.parts))

        def accumulate(*given: Any) -> Any:
            self._fill(step, next(part))
            found = real(*given)
            self._look()
            return found

        train_step._accumulate = accumulate
        try:
            yield
            self._tell()
        finally:
            train_step._accumulate = real

    def _fill(self, step: int, part: int) -> None:
        for stack in self.stacks:
            stack.fill(step, part)

    def _look(self) -> None:
        self.missed |= dict.fromkeys(one.name for stack in self.stacks if stack.missed() for one in stack.drawn)

    def _tell(self) -> None:
        if self.missed:
            raise NotFixed(f"{', '.join(list(self.missed)[:5])}: compiled, other draws are taken than in PyNative mode")


def _alike(name: str, calls: list[Any], passes: Sequence[Draws], parts: int) -> bool:
    """Whether every pass, and every micro-batch, draws the same of a layer."""
    each = len(calls) // parts
    return all(draws.taken.get(name) == calls for draws in passes) and all(
        call == calls[i % each] for i, call in enumerate(calls)
    )


def _in_order(draws: Draws, taken: Mapping[str, list[Any]], without: set[str], parts: int) -> list[Drawn]:
    """What the layers draw in one micro-batch, in order, but for those `without`."""
    numbers: dict[str, int] = {}
    found = []
    for name in draws.order:
        call = numbers[name] = numbers.get(name, -1) + 1
        if name not in without and call < len(taken[name]) // parts:
            found.append(Drawn(name, call, *taken[name][call]))
    return found
