"""One torch module run alone on what it was given in the recorded step: outputs, gradients and buffers by name."""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass

import numpy as np
import torch
from torch import nn

from ...errors import MsmigrateError
from ..replay.module_calls import Call, Recording, Stored, rebuilt, tensor_name

Tensors = dict[str, np.ndarray]  # "output", "input.grad", "weight.grad", "running_mean", …
Around = Callable[[nn.Module], AbstractContextManager[object]]
# what a computation that does not fit raises in torch
FAILURES = (RuntimeError, ValueError, TypeError, IndexError, AttributeError, KeyError, AssertionError)


class CannotRun(MsmigrateError):
    """A hypothesis under which the module does not run at all."""


@dataclass
class Given:
    """One recorded call with its tensors, read once."""

    recording: Recording
    call: Call

    def __post_init__(self) -> None:
        self._arrays: dict[str, np.ndarray] = {}

    def array(self, stored: Stored) -> np.ndarray:
        """One tensor of the call."""
        if stored.file not in self._arrays:
            self._arrays[stored.file] = self.recording.array(stored)
        return self._arrays[stored.file]


def alone(
    module: nn.Module,
    given: Given,
    dtype: torch.dtype,
    gradients: bool = True,
    around: Around = lambda module: nullcontext(),
) -> Tensors:
    """Run a module, which is changed by it (its buffers move), in the mode it is in, on a recorded call.

    Returns outputs, input gradients, parameter gradients (zeros where none arrives) and the changes of float buffers
    (float64). around: a context for the run. Raises CannotRun.
    """
    module.to(dtype)
    before = {name: b.detach().clone() for name, b in module.named_buffers() if b.is_floating_point()}
    leaves: dict[str, torch.Tensor] = {}

    def tensor(stored: Stored) -> torch.Tensor:
        if stored.file not in leaves:
            leaf = torch.from_numpy(given.array(stored).copy())
            leaves[stored.file] = leaf.to(dtype).requires_grad_(stored.needs_grad) if stored.is_float else leaf
        # an in-place module may not write into a leaf: it gets a copy that the gradient passes through
        return leaves[stored.file].clone()

    try:
        with around(module), torch.set_grad_enabled(gradients):
            args, kwargs = rebuilt(given.call.args, tensor), rebuilt(given.call.kwargs, tensor)
            outputs = list(tensors(module(*args, **kwargs)))
            found = {tensor_name("output", i): _array(o) for i, o in enumerate(outputs) if o.is_floating_point()}
            if gradients:
                wanted = {
                    f"{tensor_name('input', i)}.grad": leaves[stored.file]
                    for i, stored in enumerate(given.call.inputs)
                    if stored.file in leaves and leaves[stored.file].requires_grad
                }
                wanted |= {f"{name}.grad": p for name, p in module.named_parameters() if p.requires_grad}
                found |= _gradients(wanted, outputs, given)
    except FAILURES as error:
        raise CannotRun(" ".join(str(error).split())[:300]) from error
    for name, buffer in module.named_buffers():
        if name in before and buffer.shape == before[name].shape:
            found[name] = np.subtract(_array(buffer), _array(before[name]), dtype=np.float64)
    return found


def _gradients(wanted: Mapping[str, torch.Tensor], outputs: list[torch.Tensor], given: Given) -> Tensors:
    total: torch.Tensor | None = None
    for output, stored in zip(outputs, given.call.gradients, strict=False):
        if stored is None or not output.requires_grad:
            continue
        upstream = torch.from_numpy(given.array(stored)).to(output.dtype)
        if upstream.shape == output.shape:
            part = (output * upstream).sum()
            total = part if total is None else total + part
    if total is None or not wanted:
        return {}
    grads = torch.autograd.grad(total, list(wanted.values()), allow_unused=True)
    return {
        name: _array(torch.zeros_like(leaf) if grad is None else grad)
        for (name, leaf), grad in zip(wanted.items(), grads, strict=True)
    }


def copied(module: nn.Module, dtype: torch.dtype = torch.float64) -> nn.Module:
    """A copy to try a hypothesis on."""
    return copy.deepcopy(module).to(dtype)


def tensors(values: object) -> Iterator[torch.Tensor]:
    """The tensors in a nest of tuples, lists and mappings, in their order."""
    if isinstance(values, torch.Tensor):
        yield values
    elif isinstance(values, Mapping):
        for item in values.values():
            yield from tensors(item)
    elif isinstance(values, (list, tuple)):
        for item in values:
            yield from tensors(item)


def _array(tensor: torch.Tensor) -> np.ndarray:
    array: np.ndarray = tensor.detach().contiguous().numpy()
    return array
