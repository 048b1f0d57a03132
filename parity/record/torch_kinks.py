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
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np
import torch
import torch.nn.functional as F
from torch import nn
from torch.overrides import TorchFunctionMode

from ..trace import SIDES_STAGE, Part, Trace
from .kinks import KINKS, POOLED, function_name, is_function

# Share of the tensor's root mean square below which a choice is rounding's. Rounding was measured at 1e-6 to 1e-5 of
# it in ResNets of all depths; what differs by more than this is left alone, and shows in the forward stage.
TOLERANCE = 1e-3
HALF_TOLERANCE = 0.05  # where MindSpore's side was computed in half precision, whose rounding is 8192 times larger
TINY = 1e-30

# the functions that are layers of KINKS; those that work in place and give nothing back cannot be moved
FUNCTIONS = {
    F.relu: "ReLU",
    torch.relu: "ReLU",
    torch.Tensor.relu: "ReLU",
    F.relu6: "ReLU6",
    F.leaky_relu: "LeakyReLU",
    F.hardswish: "Hardswish",
    F.hardsigmoid: "Hardsigmoid",
}


@dataclass
class KinkSides:
    """The choices that another framework made in one step, by (module name, call): a ReLU's sides as packed bits, one
    for each element and kink, a max-pool's input (N, C, H, W), from which its choice follows.

    matched and differing count the elements that were moved over, and those that disagree by more than rounding.
    """

    choices: dict[tuple[str, int], np.ndarray]
    tolerance: float = TOLERANCE
    matched: int = 0
    differing: int = 0
    _calls: dict[str, int] = field(default_factory=dict)

    @classmethod
    def of(cls, trace: Trace, part: Part, half: bool = False) -> KinkSides:
        """The choices recorded as one part of a trace: of a step, or of a call of a module that ran alone; `half`: in
        half precision."""
        entries = trace.select(SIDES_STAGE, part)
        choices = {(e.name, e.call): trace.array(e.key).reshape(e.shape) for e in entries}
        return cls(choices, HALF_TOLERANCE if half else TOLERANCE)

    def relu_input(
        self, name: str, values: torch.Tensor, kinks: tuple[float, ...] = KINKS["ReLU"]
    ) -> torch.Tensor | None:
        """The input `values` of a ReLU, or of another layer with `kinks`, with its undecided elements on the other
        run's side, or None if nothing moves."""
        packed = self._next(name)
        if packed is None or packed.size != (len(kinks) * values.numel() + 7) // 8:
            return None
        x = values.detach()
        bits = torch.from_numpy(np.unpackbits(packed, count=len(kinks) * x.numel()))
        above = bits.view(len(kinks), *x.shape).bool().to(x.device)
        moved = None
        for theirs, kink in zip(above, kinks, strict=True):
            undecided = self._undecided(theirs != (x > kink), (x - kink).abs(), x)
            if undecided is not None:
                target = torch.where(theirs, *(near.to(x.device) for near in _next_to(kink, x.dtype)))
                # x - x is exactly zero and carries the gradient; target - x would round back to -x
                moved = torch.where(undecided, target + (values - x), values if moved is None else moved)
        return moved

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
        _, theirs = F.max_pool2d(torch.from_numpy(source).to(x), *arguments, return_indices=True)
        chosen = x.flatten(2).gather(2, theirs.flatten(2)).view_as(output)
        undecided = self._undecided(theirs != ours, output.detach() - chosen, x)
        if undecided is None:
            return None
        taken = torch.where(undecided, theirs, ours)
        return values.flatten(2).gather(2, taken.flatten(2)).view_as(output)

    @cached_property
    def names(self) -> set[str]:
        """The names that choices were recorded under."""
        return {name for name, _ in self.choices}

    def function(self, path: str, kind: str) -> str | None:
        """The name under which the calls of a function were recorded that is called in the module at `path`: the other
        framework may not have that module, and then it is one above."""
        while (name := function_name(path, kind)) not in self.names:
            if not path:
                return None
            path = path.rpartition(".")[0]
        return name

    def _next(self, name: str) -> np.ndarray | None:
        call = self._calls.get(name, 0)
        self._calls[name] = call + 1
        return self.choices.get((name, call))

    def _undecided(self, flipped: torch.Tensor, gap: torch.Tensor, scale: torch.Tensor) -> torch.Tensor | None:
        """The flipped elements whose gap rounding explains, or None when there are none; counts both kinds."""
        if not bool(flipped.any()):
            return None
        undecided = flipped & (gap <= self.tolerance * _wide(scale).square().mean().sqrt())
        moved = int(undecided.sum())
        self.matched += moved
        self.differing += int(flipped.sum()) - moved
        return undecided if moved else None


def _next_to(kink: float, dtype: torch.dtype) -> tuple[torch.Tensor, torch.Tensor]:
    """The nearest numbers above and below a kink; next to zero they are those that no arithmetic flushes."""
    if kink == 0:
        tiny = torch.tensor(max(TINY, torch.finfo(dtype).smallest_normal), dtype=dtype)
        return tiny, -tiny
    place, far = torch.tensor(kink, dtype=dtype), torch.tensor(torch.inf, dtype=dtype)
    return torch.nextafter(place, far), torch.nextafter(place, -far)


def _wide(values: torch.Tensor) -> torch.Tensor:
    """The values where their squares cannot overflow."""
    return values.float() if values.dtype == torch.float16 else values


@contextmanager
def taking(sides: KinkSides, model: nn.Module) -> Iterator[None]:
    """Within this block the model's ReLUs and max-pools choose as `sides` say where rounding decides."""

    def before_relu(name: str, kinks: tuple[float, ...]) -> object:
        def hook(_: nn.Module, inputs: tuple[torch.Tensor, ...]) -> tuple[torch.Tensor, ...] | None:
            moved = sides.relu_input(name, inputs[0], kinks)
            return None if moved is None else (moved, *inputs[1:])

        return hook

    def after_pool(name: str) -> object:
        def hook(pool: nn.Module, inputs: tuple[torch.Tensor, ...], output: torch.Tensor) -> torch.Tensor | None:
            return sides.pool_output(name, pool, inputs[0], output)

        return hook

    functions = _Functions(sides)
    with ExitStack() as undo:
        for name, module in model.named_modules():
            kind = type(module).__name__
            if kind in KINKS and name in sides.names:
                undo.callback(module.register_forward_pre_hook(before_relu(name, KINKS[kind])).remove)
            elif kind in POOLED:
                undo.callback(module.register_forward_hook(after_pool(name)).remove)
            if any(map(is_function, sides.names)):
                own = kind in KINKS and name in sides.names
                undo.callback(module.register_forward_pre_hook(functions.entering(None if own else name)).remove)
                undo.callback(module.register_forward_hook(functions.leaving, always_call=True).remove)
        if any(map(is_function, sides.names)):
            undo.enter_context(functions)
        yield


class _Functions(TorchFunctionMode):
    """Moves what goes into ReLUs that are function calls."""

    def __init__(self, sides: KinkSides) -> None:
        super().__init__()
        self.sides = sides
        self.inside: list[str | None] = [""]  # the innermost module; None: a layer that its own hook takes care of

    def entering(self, path: str | None) -> Any:
        """The hook for a module that begins."""

        def hook(*_: Any) -> None:
            self.inside.append(path)

        return hook

    def leaving(self, *_: Any) -> None:
        """The hook for a module that has ended."""
        self.inside.pop()

    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        kind, path = FUNCTIONS.get(func), self.inside[-1]
        name = self.sides.function(path, kind) if kind is not None and path is not None and args else None
        if name is not None and kind is not None:
            moved = self.sides.relu_input(name, args[0], KINKS[kind])
            args = args if moved is None else (moved, *args[1:])
        return func(*args, **(kwargs or {}))
