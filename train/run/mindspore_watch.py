"""Take a watched step: the same step as any other, with a look at gradients, weights and activations."""

from __future__ import annotations

import numpy as np
from mindspore import Tensor, nn

from ..models.mindspore_names import canonical_parameters
from ..recipe import Watch
from ..step.mindspore_step import Outcome, TrainStep
from . import watch as rules

RELUS = (nn.ReLU, nn.ReLU6)


class Watchpoints:
    """Looks at every `every`-th step of a TrainStep; the others cost nothing."""

    def __init__(self, step: TrainStep, watch: Watch) -> None:
        self.step, self.watch = step, watch
        self._relus = {name: cell for name, cell in step.net.cells_and_names() if isinstance(cell, RELUS)}

    def due(self, step: int) -> bool:
        """Whether the step of this number, from 1, is watched."""
        return step % self.watch.every == 0

    def take(self, images: Tensor, labels: Tensor) -> tuple[Outcome, list[str]]:
        """Take one step and return what the loop gets of it, and what was found."""
        found = rules.relus(self.watch, self._zeros(images, labels)) if self.watch.dead_relu is not None else []
        compare = self.watch.unchanged or self.watch.large_change is not None
        rate = max(self.step.learning_rates().values())
        before = self._weights() if compare else {}
        result = self.step(images, labels)
        found += rules.gradients(self.watch, {name: grad.asnumpy() for name, grad in result.grads.items()})
        skipped = result.finite is not None and not bool(result.finite.asnumpy())
        if compare and not skipped:  # a skipped step leaves every weight as it was, as it should
            found += rules.weights(self.watch, before, self._weights(), rate)
        return Outcome(result.loss, result.logits, result.finite), found

    def _weights(self) -> dict[str, np.ndarray]:
        return {name: weight.asnumpy().copy() for name, weight in zip(self.step.names, self.step.weights, strict=True)}

    def _zeros(self, images: Tensor, labels: Tensor) -> dict[str, float]:
        """Of each call of a ReLU the share of its outputs in one more forward pass that are zero.

        Hooks on Cells never fire in a compiled step, so this pass is not compiled, and what it does to the running
        statistics is undone. With accumulation one micro-batch has to do.
        """
        zeros: dict[str, float] = {}

        def hook_for(name: str) -> object:
            def hook(cell: nn.Cell, inputs: object, output: Tensor) -> None:
                values = output.asnumpy()
                call = 1 + sum(seen.partition(" ")[0] == name for seen in zeros)
                shown = name if call == 1 else f"{name} (call {call})"
                zeros[shown] = 1.0 - np.count_nonzero(values) / max(values.size, 1)

            return hook

        buffers = [c.parameter for c in canonical_parameters(self.step.net) if not c.parameter.requires_grad]
        held = [buffer.asnumpy().copy() for buffer in buffers]
        handles = [cell.register_forward_hook(hook_for(name)) for name, cell in self._relus.items()]
        size = images.shape[0] // self.step.recipe.accumulate
        try:
            with self.step.precision:
                self.step._forward(images[:size], labels[:size])[0].asnumpy()
        finally:
            for handle in handles:
                handle.remove()
            for buffer, values in zip(buffers, held, strict=True):
                buffer.copy_(Tensor(values))  # a compiled graph never sees what set_data puts in place
        return zeros
