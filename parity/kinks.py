"""Take the other framework's side where rounding decides which way a ReLU or a max-pool falls.

A ReLU's gradient jumps at zero, and an input of 1e-8 may round to either side of it; a max-pool sends its gradient to
the largest element of a window, and two may be equal up to rounding. Either choice is right, but one such flip moves
every gradient before it by far more than rounding moves anything else: it puts torch's own float32 gradients of a
ResNet50 half a percent from its float64 ones (benchmarks/kinks.py). So the reference steps
are computed with the choices MindSpore made, at those elements only where the reference itself is undecided to within
TOLERANCE. The reference's values move by less than rounding does, and its gradients become comparable at rounding's
own size.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field

import numpy as np
import torch
import torch.nn.functional as F
from torch import nn

from .record import KINKED, POOLED
from .trace import SIDES_STAGE, Trace

# Share of the tensor's root mean square below which a choice is rounding's. Rounding was measured at 1e-6 to 1e-5 of
# it in ResNets of all depths; what differs by more than this is left alone, and shows in the forward stage.
TOLERANCE = 1e-3
TINY = 1e-30


@dataclass
class KinkSides:
    """The choices that another framework made in one step, by (module name, call): a ReLU's sides as packed bits, a
    max-pool's input (N, C, H, W), from which its choice follows.

    matched and differing count the elements that were moved over, and those that disagree by more than rounding.
    """

    choices: dict[tuple[str, int], np.ndarray]
    matched: int = 0
    differing: int = 0
    _calls: dict[str, int] = field(default_factory=dict)

    @classmethod
    def of(cls, trace: Trace, step: int) -> KinkSides:
        """The choices made in one step of a recorded trace."""
        entries = trace.select(SIDES_STAGE, f"step{step}")
        return cls({(e.name, e.call): trace.array(e.key).reshape(e.shape) for e in entries})

    def relu_input(self, name: str, values: torch.Tensor) -> torch.Tensor | None:
        """The ReLU input `values` with its undecided elements on the other run's side, or None if nothing moves."""
        packed = self._next(name)
        if packed is None or packed.size != (values.numel() + 7) // 8:
            return None
        x = values.detach()
        theirs = torch.from_numpy(np.unpackbits(packed, count=x.numel())).view(x.shape).bool()
        undecided = self._undecided(theirs != (x > 0), x.abs(), x)
        if undecided is None:
            return None
        target = torch.where(theirs, TINY, -TINY).to(x.dtype)
        # x - x is exactly zero and carries the gradient; target - x would round back to -x
        return torch.where(undecided, target + (values - x), values)

    def pool_output(
        self, name: str, pool: nn.Module, values: torch.Tensor, output: torch.Tensor
    ) -> torch.Tensor | None:
        """The max-pool's output taken from the elements that the other run found largest, or None if none differs."""
        source = self._next(name)
        if source is None or source.shape != tuple(values.shape):
            return None
        arguments = (pool.kernel_size, pool.stride, pool.padding, pool.dilation, pool.ceil_mode)
        x = values.detach()
        _, ours = F.max_pool2d(x, *arguments, return_indices=True)
        _, theirs = F.max_pool2d(torch.from_numpy(source).to(x.dtype), *arguments, return_indices=True)
        chosen = x.flatten(2).gather(2, theirs.flatten(2)).view_as(output)
        undecided = self._undecided(theirs != ours, output.detach() - chosen, x)
        if undecided is None:
            return None
        taken = torch.where(undecided, theirs, ours)
        return values.flatten(2).gather(2, taken.flatten(2)).view_as(output)

    def _next(self, name: str) -> np.ndarray | None:
        call = self._calls.get(name, 0)
        self._calls[name] = call + 1
        return self.choices.get((name, call))

    def _undecided(self, flipped: torch.Tensor, gap: torch.Tensor, scale: torch.Tensor) -> torch.Tensor | None:
        """The flipped elements whose gap rounding explains, or None when there are none; counts both kinds."""
        if not bool(flipped.any()):
            return None
        undecided = flipped & (gap <= TOLERANCE * scale.square().mean().sqrt())
        moved = int(undecided.sum())
        self.matched += moved
        self.differing += int(flipped.sum()) - moved
        return undecided if moved else None


@contextmanager
def taking(sides: KinkSides, model: nn.Module) -> Iterator[None]:
    """Within this block the model's ReLUs and max-pools choose as `sides` say where rounding decides."""

    def before_relu(name: str) -> object:
        def hook(_: nn.Module, inputs: tuple[torch.Tensor, ...]) -> tuple[torch.Tensor, ...] | None:
            moved = sides.relu_input(name, inputs[0])
            return None if moved is None else (moved, *inputs[1:])

        return hook

    def after_pool(name: str) -> object:
        def hook(pool: nn.Module, inputs: tuple[torch.Tensor, ...], output: torch.Tensor) -> torch.Tensor | None:
            return sides.pool_output(name, pool, inputs[0], output)

        return hook

    handles = []
    for name, module in model.named_modules():
        if type(module).__name__ in KINKED:
            handles.append(module.register_forward_pre_hook(before_relu(name)))
        elif type(module).__name__ in POOLED:
            handles.append(module.register_forward_hook(after_pool(name)))
    try:
        yield
    finally:
        for handle in handles:
            handle.remove()
