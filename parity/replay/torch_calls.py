"""Record what torch's modules were given and gave in one training step, with the gradients that came back to them."""

from __future__ import annotations

import weakref
from collections.abc import Callable, Container
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import nn

from ..torch_side import dropped_state
from .calls import Call, Module, Writer, label
from .values import Stored, Unsupported, Value


def record(
    folder: Path,
    model: nn.Module,
    loss: Callable[[nn.Module], torch.Tensor],
    about: dict[str, Any],
    crossing: Container[str] | None = None,
    *,
    backward: bool = True,
) -> None:
    """Run one float32 training step's forward and backward pass, and write FOLDER/replay.json and its tensors.

    model: at the starting weights, and left there, but for its running statistics and gradients: give a copy. loss:
    runs the model and returns the scalar to differentiate. Tensors go to disk as they appear, each once.
    crossing: the state names that have a counterpart in MindSpore, None where the mapping table says it. backward:
    without it no gradient is recorded, and none is computed when the modules run alone.
    """
    model.train()
    recorder = _Recorder(Writer(folder))
    handles = [handle for name, module in model.named_modules() for handle in recorder.watch(name, module)]
    try:
        scalar = loss(model)
        if backward:
            scalar.backward()
    finally:
        for handle in handles:
            handle.remove()
    recorder.writer.close(_tree(model, crossing), recorder.calls(), about)


@dataclass
class _Open:
    """A call that has begun."""

    path: str
    number: int
    caller: str | None
    args: tuple[Value, ...]
    kwargs: dict[str, Value]
    output: Value = None
    gradients: list[Stored | None] = field(default_factory=list)


class _Recorder:
    def __init__(self, writer: Writer) -> None:
        self.writer = writer
        self._begun: list[_Open] = []
        self._stack: list[_Open] = []
        self._numbers: dict[str, int] = {}
        self._known: dict[int, tuple[weakref.ref[Any], int, Stored]] = {}

    def watch(self, path: str, module: nn.Module) -> list[Any]:
        """Hook one module."""

        def before(_: nn.Module, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
            number = self._numbers.get(path, 0)
            self._numbers[path] = number + 1
            caller = label(self._stack[-1].path, self._stack[-1].number) if self._stack else None
            kept = tuple(self._keep(each) for each in args)  # at once: an in-place module overwrites its input
            opened = _Open(path, number, caller, kept, {key: self._keep(each) for key, each in kwargs.items()})
            self._begun.append(opened)
            self._stack.append(opened)

        def after(_: nn.Module, __: tuple[Any, ...], output: Any) -> None:
            call = self._stack.pop()
            tensors: list[torch.Tensor] = []
            call.output = self._keep(output, tensors)
            call.gradients = [None] * len(tensors)
            for i, tensor in enumerate(tensors):
                if tensor.requires_grad:
                    tensor.register_hook(self._gradient_of(call, i))

        return [
            module.register_forward_pre_hook(before, with_kwargs=True),
            module.register_forward_hook(after),
        ]

    def calls(self) -> list[Call]:
        """Everything recorded, in the order in which the calls began."""
        return [Call(**{**vars(call), "gradients": tuple(call.gradients)}) for call in self._begun]

    def _gradient_of(self, call: _Open, position: int) -> Callable[[torch.Tensor], None]:
        def hook(gradient: torch.Tensor) -> None:
            call.gradients[position] = self._store(gradient)

        return hook

    def _keep(self, value: Any, seen: list[torch.Tensor] | None = None) -> Value:
        """Store the tensors of a nest; `seen` collects those that were stored, in order."""
        if isinstance(value, torch.Tensor):
            try:
                stored = self._store(value)
            except (TypeError, ValueError, RuntimeError):  # a dtype or a device that NumPy cannot have
                return Unsupported(f"{value.dtype} tensor")
            if seen is not None:
                seen.append(value)
            return stored
        if isinstance(value, (list, tuple)):
            nested = [self._keep(each, seen) for each in value]
            return nested if isinstance(value, list) else tuple(nested)
        if isinstance(value, dict) and all(type(key) is str for key in value):
            return {key: self._keep(each, seen) for key, each in value.items()}
        if value is None or type(value) in (bool, int, float, str):
            return value
        return Unsupported(type(value).__name__)

    def _store(self, tensor: torch.Tensor) -> Stored:
        """The stored tensor; one that is seen again unchanged is not read again."""
        found, version = self._known.get(id(tensor)), tensor._version
        if found is not None and found[1] == version and found[0]() is tensor:
            return found[2]
        needs_grad = tensor.requires_grad and tensor.is_floating_point()
        array: np.ndarray = tensor.detach().cpu().contiguous().numpy()
        stored = self.writer.store(array, needs_grad)
        self._known[id(tensor)] = (weakref.ref(tensor), version, stored)
        return stored


def _tree(model: nn.Module, crossing: Container[str] | None) -> list[Module]:
    names = {id(module): name for name, module in model.named_modules()}  # a shared module has its first name
    modules = []
    for name, module in model.named_modules():
        dropped = dropped_state(module)
        children = dict.fromkeys(names[id(child)] for child in module.children())
        parameters = tuple(key for key, parameter in module.named_parameters() if parameter.requires_grad)
        buffers = [key for key, b in module.named_buffers() if b.is_floating_point() and key not in dropped]
        if crossing is not None:
            buffers = [key for key in buffers if (f"{name}.{key}" if name else key) in crossing]
        modules.append(Module(name, type(module).__name__, tuple(children), parameters, tuple(buffers)))
    return modules
