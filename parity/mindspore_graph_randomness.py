"""Fix what a compiled MindSpore net draws: it takes arrays from parameters, which each pass writes.

Compiled code calls no primitive from Python, so there is nothing to answer in its place (mindspore_randomness does that
in PyNative mode). Shapes, and what is drawn when, come from a PyNative run of the same steps.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from typing import Any

from mindspore import nn, ops
from mindspore.ops.operations import nn_ops, random_ops

from .fixed_randomness import Draw, Draws
from .mindspore_graph_draws import Bank, Mask, Numbers, numbered

# what a Cell may hold and call, and what is put in its place
PRIMITIVES: dict[type, Callable[[Bank, Any], nn.Cell]] = {
    ops.Dropout: lambda bank, primitive: Mask(bank, primitive, channels=False),
    nn_ops.Dropout2D: lambda bank, primitive: Mask(bank, primitive, channels=True),
    nn_ops.Dropout3D: lambda bank, primitive: Mask(bank, primitive, channels=True),
    random_ops.StandardNormal: lambda bank, _: Numbers(bank, normals=True),
    random_ops.UniformReal: lambda bank, _: Numbers(bank, normals=False),
}


class NotFixed(Exception):
    """A compiled step drew otherwise than the same step in PyNative mode."""


class CompiledDraws:
    """The draws of a net that is going to be compiled.

    passes: what the same steps drew in PyNative mode; parts: micro-batches of a step. outside: what cannot be fixed.
    """

    def __init__(self, net: nn.Cell, passes: Sequence[Draws], parts: int) -> None:
        passes = [draws for draws in passes if draws.step]
        self.parts = parts
        outside = {f"{function} in {who.name}" for draws in passes for function, who in draws.outside.items()}
        outside |= {f"Python's {library}" for draws in passes for library in draws.states}
        pieces = [piece for draws in passes for piece in _pieces(draws.taken, parts)]
        first = pieces[0] if pieces else []
        uneven = {draw.name for piece in pieces if piece != first for draw in (*piece, *first)}
        self.outside = sorted(outside) + sorted(f"{name}, which draws otherwise in every pass" for name in uneven)
        self.missed: dict[str, None] = {}  # who draws what a pass did not take
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
        for stack in self.bank.stacks:
            stack.fill(step, part)

    def _look(self) -> None:
        missing = [stack for stack in self.bank.stacks if stack.missed()]
        draws = dict.fromkeys(one.draw for stack in missing for one in stack.drawn)
        self.missed |= dict.fromkeys(f"{draw.kind} {list(draw.shape)} in {draw.name}" for draw in draws)

    def _tell(self) -> None:
        if self.missed:
            raise NotFixed(
                f"{', '.join(list(self.missed)[:5])}: compiled, other draws are taken than in PyNative mode; draw by "
                "functions of mindspore.ops or mindspore.mint, or by a primitive that is an attribute of a Cell"
            )


def _pieces(taken: list[Draw], parts: int) -> list[list[Draw]]:
    """What each micro-batch draws: the same in each, or all at once."""
    each, rest = divmod(len(taken), parts)
    return [taken[i * each : (i + 1) * each] for i in range(parts)] if not rest else [taken, []]
