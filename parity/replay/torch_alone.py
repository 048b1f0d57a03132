"""One module of a torch model, run alone on what the recorded step gave it."""

from __future__ import annotations

import copy
from contextlib import nullcontext

import numpy as np
import torch
from torch import nn

from ..kinks import KinkSides, taking
from ..torch_layouts import in_layout, model_in_layout
from .calls import Call, Recording, tensor_name
from .values import Stored, rebuilt


class Alone:
    """A copy of the model in one precision and layout, any module of which can be run alone."""

    def __init__(
        self, recording: Recording, model: nn.Module, dtype: torch.dtype, *, channels_last: bool = False
    ) -> None:
        self.recording = recording
        self.dtype = dtype
        self.channels_last = channels_last
        self.model = model_in_layout(copy.deepcopy(model).to(dtype), channels_last=channels_last).train()
        self.modules = dict(self.model.named_modules())
        self._start = {name: buffer.clone() for name, buffer in self.model.named_buffers()}

    def run(self, call: Call, sides: KinkSides | None = None) -> list[tuple[str, str, np.ndarray]]:
        """(stage, tensor name, array) of everything that one call gives: outputs, gradients, changes of buffers.

        A gradient that does not reach a parameter or an input is zero, as MindSpore has it.
        """
        module = self.modules[call.path]
        self.restore()
        given = {stored.file: self.tensor(stored) for stored in call.inputs}
        passed = {file: leaf.clone() for file, leaf in given.items()}  # a module may overwrite its inputs
        with taking(sides, module) if sides is not None else nullcontext():
            output = module(
                *rebuilt(call.args, lambda stored: passed[stored.file]),
                **rebuilt(call.kwargs, lambda stored: passed[stored.file]),
            )
        outputs = tensors(output)
        found = [("forward", tensor_name("output", i), as_array(each)) for i, each in enumerate(outputs)]
        found += self._gradients(call, module, given, outputs)
        for name in self.recording.modules[call.path].buffers:
            start = self._start[f"{call.path}.{name}" if call.path else name]
            now = module.get_buffer(name)
            found.append(("update", name, (now.double() - start.double()).numpy()))
        return found

    def _gradients(
        self, call: Call, module: nn.Module, given: dict[str, torch.Tensor], outputs: list[torch.Tensor]
    ) -> list[tuple[str, str, np.ndarray]]:
        pairs = [(out, g) for out, g in zip(outputs, call.gradients, strict=False) if g is not None]
        if not pairs:
            return []
        by = {f"{name}.grad": parameter for name, parameter in module.named_parameters() if parameter.requires_grad}
        for i, stored in enumerate(call.inputs):
            if stored.needs_grad:
                by[f"{tensor_name('input', i)}.grad"] = given[stored.file]
        if not by:
            return []
        upstream = [self.tensor(g).detach().view_as(out) for out, g in pairs]
        grads = torch.autograd.grad([out for out, _ in pairs], list(by.values()), upstream, allow_unused=True)
        return [
            ("gradients", name, as_array(torch.zeros_like(tensor) if grad is None else grad))
            for (name, tensor), grad in zip(by.items(), grads, strict=True)
        ]

    def tensor(self, stored: Stored) -> torch.Tensor:
        """A recorded tensor in this precision and layout."""
        tensor = torch.from_numpy(self.recording.array(stored))
        if stored.is_float:
            tensor = tensor.to(self.dtype)
        return in_layout(tensor, channels_last=self.channels_last).requires_grad_(stored.needs_grad)

    def restore(self) -> None:
        """Put the buffers back to where they started."""
        with torch.no_grad():
            for name, buffer in self.model.named_buffers():
                buffer.copy_(self._start[name])


def tensors(value: object) -> list[torch.Tensor]:
    """Every tensor in a nest of tuples, lists and dicts, in order."""
    if isinstance(value, torch.Tensor):
        return [value]
    nested = value.values() if isinstance(value, dict) else value if isinstance(value, (list, tuple)) else ()
    return [tensor for each in nested for tensor in tensors(each)]


def as_array(tensor: torch.Tensor) -> np.ndarray:
    """The tensor for a trace: whole numbers as int64, whatever the framework counts in."""
    array: np.ndarray = tensor.detach().contiguous().numpy()
    return array.astype(np.int64) if array.dtype.kind in "iub" else array
