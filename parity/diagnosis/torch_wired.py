"""A container under examination: what reaches the modules in it, and leaves it, when each of them gives torch's output.

Only the container's own forward computes anything here, so that a hypothesis on it costs next to nothing, and whatever
is wrong inside does not show.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from torch import nn

from ..replay.module_calls import Call, Stored, label, rebuilt, relative, tensor_name
from .torch_alone import FAILURES, CannotRun, Tensors, copied, tensors
from .torch_specimen import Specimen


@dataclass
class Wired(Specimen):
    """The container as a specimen; its subjects are named `PATH input` for what reaches a module, with the module's
    dotted name inside the container (and #N for a further call), and `output`."""

    how = "with torch's own outputs from every module in it"

    def computed(self, trials: Any, dtype: torch.dtype, gradients: bool = True) -> Tensors:
        """What reaches the modules inside and leaves the container with these trials one upon another. Raises
        CannotRun."""
        given = self.given
        assert given is not None
        module = copied(self.module, dtype)
        found: Tensors = {}
        call, calls = given.call, inner_calls(given.recording.calls.values(), given.call)
        numbers = {path: min(c.number for c in calls if c.path == path) for path in {c.path for c in calls}}

        def fresh(stored: Stored) -> torch.Tensor:
            tensor = torch.from_numpy(given.array(stored).copy())
            return tensor.to(dtype) if stored.is_float else tensor

        def forced(path: str) -> Callable[..., Any]:
            def forward(*args: Any, **kwargs: Any) -> Any:
                number, numbers[path] = numbers[path], numbers[path] + 1
                recorded = given.recording.calls.get(label(path, number))
                if recorded is None:
                    raise CannotRun(f"{path} is called once too often")
                found.update(_named(within(path, call.path, number), "input", (args, kwargs)))
                return rebuilt(recorded.output, fresh)

            return forward

        for path in numbers:
            module.get_submodule(relative(path, call.path) or "").__dict__["forward"] = forced(path)
        for trial in trials:
            trial.apply(module)
        try:
            with torch.no_grad(), self.around(module):
                output = module(*rebuilt(call.args, fresh), **rebuilt(call.kwargs, fresh))
        except FAILURES as error:
            raise CannotRun(" ".join(str(error).split())[:300]) from error
        return found | {name.strip(): array for name, array in _named("", "output", output).items()}


def inner_calls(calls: Any, outer: Call) -> list[Call]:
    """The calls of modules that a call makes itself."""
    return [
        call
        for call in calls
        if call.caller == outer.label and call.path.startswith(f"{outer.path}." if outer.path else "")
    ]


def within(path: str, outer: str, number: int) -> str:
    """`conv1#2`: a module's name inside a container, and which of its calls."""
    inner = relative(path, outer) or ""
    return f"{inner}#{number}" if number else inner


def _named(who: str, what: str, values: Any) -> Tensors:
    return {f"{who} {tensor_name(what, i)}": _array(t) for i, t in enumerate(tensors(values)) if t.is_floating_point()}


def _array(tensor: torch.Tensor) -> np.ndarray:
    array: np.ndarray = tensor.detach().contiguous().clone().numpy()
    return array


def children(module: nn.Module) -> bool:
    """Whether a module has modules in it."""
    return next(module.children(), None) is not None
