"""Why a layer's output differs inside the whole net where running it alone does not show it: in evaluation mode above
all, and for modules that did not run alone.

The net runs in float64, with what is explained already. A layer whose output is not MindSpore's is noted with the input
it has there, and the net goes on with MindSpore's output in its place; so every layer is judged on MindSpore's own
track, and one fault does not hide the next.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from torch import nn

from ...errors import WorkerFailed
from ..noise import UsualNoise
from ..record.randomness import Draws
from ..record.torch_randomness import fixed
from ..record.torch_runner import TorchSide
from ..trace import Key
from ..verdict import Verdict, judge
from .context import Context
from .torch_alone import FAILURES, CannotRun, Tensors, copied, tensors
from .torch_module_verbs import Trial
from .torch_replayed import Named
from .torch_specimen import Specimen, Subject, noise_of

MODES = ("eval", "train")


@dataclass
class Placed(Specimen):
    """A layer on the input that it has inside the net, in the net's mode; its only subject is its output."""

    how = "on the input that it has inside the net"
    inputs: tuple[Any, ...] = ()

    def computed(self, trials: Sequence[Trial], dtype: torch.dtype, gradients: bool = True) -> Tensors:
        """Its output with these trials one upon another. Raises CannotRun."""
        module = copied(self.module, dtype)
        for trial in trials:
            trial.apply(module)
        try:
            with torch.no_grad(), self.around(module):
                output = module(*(_as(x, dtype) for x in self.inputs))
        except FAILURES as error:
            raise CannotRun(" ".join(str(error).split())[:300]) from error
        return {"output": next(tensors(output)).contiguous().numpy()}


class Track:
    """One forward pass of the net, in evaluation or training mode, along MindSpore's outputs."""

    def __init__(self, context: Context, mode: str, known: Mapping[str, Sequence[Trial]]) -> None:
        self.context = context
        self.mode = mode
        self.found: list[Placed] = []
        self._calls: dict[str, int] = {}
        self._lost = False  # an output of which a sample is all there is cannot be put in place of torch's
        self._usual = UsualNoise(context.traces.alone, context.traces.alone[1])
        side = TorchSide(context.recipe, context.model, torch.float64, 0, context.paired)
        self._shared = side.shared
        modules = dict(side.model.named_modules())
        for path, trials in known.items():
            for trial in trials:
                trial.apply(modules[path])
        names = {entry.name for entry in context.mindspore.select("forward", mode)}
        handles = [h for name in names & set(modules) for h in self._watch(name, modules[name])]
        try:
            run = side.evaluate if mode == "eval" else side.forward
            run(context.inputs.images[0], lambda leaf: None)
        except (*FAILURES, WorkerFailed):
            self._lost = True  # with the stride of MindSpore's layer, say, sizes do not fit: the track ends there
        finally:
            for handle in handles:
                handle.remove()

    def _watch(self, name: str, module: nn.Module) -> list[Any]:
        given: list[tuple[Any, ...]] = []

        def before(_: nn.Module, inputs: tuple[Any, ...]) -> None:
            given.append(tuple(x.detach().clone() if isinstance(x, torch.Tensor) else x for x in inputs))

        def after(_: nn.Module, __: tuple[Any, ...], output: Any) -> Any:
            call = self._calls.get(name, 0)
            self._calls[name] = call + 1
            inputs = given.pop()
            if self._lost or not isinstance(output, torch.Tensor):
                return None
            return self._judged(name, ("forward", self.mode, name, call), inputs, output)

        return [module.register_forward_pre_hook(before), module.register_forward_hook(after)]

    def _judged(self, name: str, key: Key, inputs: tuple[Any, ...], output: torch.Tensor) -> torch.Tensor | None:
        theirs, ours = self.context.mindspore.entries.get(key), self.context.traces.alone[0].entries.get(key)
        if theirs is None or ours is None or not theirs.dtype.startswith("float") or theirs.nonfinite:
            return None
        elements = self.context.mindspore.array(key)
        runs = [trace.array(key) for trace in self.context.traces.alone[1:] if key in trace.entries]
        noise = noise_of(self.context.traces.alone[0].array(key), runs, self._usual.floor(ours))
        subject = Subject("forward", elements, theirs.shape, theirs.sampled, noise)
        exact = subject.taken_from(output.detach().contiguous().numpy())
        alike = tuple(output.shape) == theirs.shape
        if alike and judge(exact, [exact], elements, relative_floor=noise).verdict is not Verdict.FAIL:
            return None
        self.found.append(self._placed(name, inputs, subject))
        if theirs.sampled or not alike:
            self._lost = True
            return None
        return torch.from_numpy(elements.astype(np.float64).reshape(theirs.shape))

    def _placed(self, name: str, inputs: tuple[Any, ...], subject: Subject) -> Placed:
        training = self.mode == "train"
        net = self.context.model.train(training)  # the net says which of its layers train
        module = copied(dict(net.named_modules())[name], torch.float32)
        draws = 1 if training else 0
        return Placed(
            name,
            module,
            None,
            {"output": subject},
            lambda copy: fixed(Named(name, copy), Draws(draws), self._shared),
            inputs,
        )


def _as(value: Any, dtype: torch.dtype) -> Any:
    if not isinstance(value, torch.Tensor):
        return value
    return value.to(dtype, copy=True) if value.is_floating_point() else value.clone()
