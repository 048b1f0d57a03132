"""MindSpore's side of a recorded step."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager, nullcontext

import mindspore
import numpy as np
from mindspore import Tensor, nn

from ..mappings import table
from ..train.mindspore_names import canonical_parameters
from ..train.mindspore_step import TrainStep
from ..train.recipe import Recipe
from .record import POOLED, Arrays, LeafOutput, Seen, StepArrays


class MindSporeSide:
    """A MindSpore net at the starting weights, with the step that the recipe describes and training runs."""

    def __init__(self, recipe: Recipe, net: nn.Cell) -> None:
        self.recipe = recipe
        self.net = net
        self._held = canonical_parameters(net)
        self._start = {c.name: c.parameter.asnumpy().copy() for c in self._held}
        self.restart()

    def restart(self) -> None:
        """Back to the starting weights with a new optimizer and schedule."""
        for held in self._held:
            held.parameter.set_data(Tensor(self._start[held.name]))
        self.train_step = TrainStep(self.recipe, self.net, image_gradient=True)

    def parameters(self) -> Arrays:
        """Trainable parameters as they are now."""
        return {c.name: c.parameter.asnumpy() for c in self._held if c.parameter.requires_grad}

    def buffers(self) -> Arrays:
        """What torch holds as buffers and MindSpore as parameters without gradient."""
        return {c.name: c.parameter.asnumpy() for c in self._held if not c.parameter.requires_grad}

    def evaluate(self, images: np.ndarray, seen: Seen) -> None:
        """A forward pass in evaluation mode."""
        self.net.set_train(False)
        with leaf_outputs(self.net, seen):
            self.net(Tensor(images)).asnumpy()

    def step(self, images: np.ndarray, labels: np.ndarray, seen: Seen | None) -> StepArrays:
        """One training step; `seen` is told of every leaf module's output."""
        self.net.set_train(True)
        x, y = Tensor(images), self._labels(labels)
        with leaf_outputs(self.net, seen) if seen else nullcontext():
            result = self.train_step(x, y)
        assert result.image_grad is not None
        order = [name for name in self.parameters() if name in result.grads]
        grads = {name: result.grads[name].asnumpy() for name in order}
        return StepArrays(result.loss.asnumpy(), result.logits.asnumpy(), grads, result.image_grad.asnumpy())

    def optimizer_state(self) -> Mapping[str, Arrays]:
        """State key -> name -> tensor, under torch's names."""
        state = self.train_step.optimizer_state()
        return {key: {name: t.asnumpy() for name, t in tensors.items()} for key, tensors in state.items()}

    def hyperparameters(self) -> Arrays:
        """Name -> [learning rate, weight decay] of its next update."""
        rates, decays = self.train_step.learning_rates(), self.train_step.weight_decays()
        return {name: np.array([rates[name], decays[name]]) for name in rates}

    def apply(self, grads: Arrays) -> None:
        """Clip and apply these unscaled gradients."""
        self.train_step.apply({name: Tensor(grad) for name, grad in grads.items()})

    def loss(self, logits: np.ndarray, labels: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """The loss of given logits, and its gradient by them."""
        value, gradient = mindspore.value_and_grad(self.train_step.loss_function, 0)(
            Tensor(logits), self._labels(labels)
        )
        return value.asnumpy(), gradient.asnumpy()

    @staticmethod
    def _labels(labels: np.ndarray) -> Tensor:
        return Tensor(labels.astype(np.float32 if labels.dtype.kind == "f" else np.int32))


@contextmanager
def leaf_outputs(net: nn.Cell, seen: Seen) -> Iterator[None]:
    """Tell `seen` of every childless Cell's output, under torch's class names (PyNative only: in Graph mode hooks on
    Cells silently never fire)."""
    classes = {row.mindspore.rsplit(".", 1)[-1]: row.short for row in table.rows("layer") if row.mindspore}
    calls: dict[str, int] = {}

    def hook_for(name: str) -> object:
        def hook(cell: nn.Cell, inputs: tuple[Tensor, ...], output: object) -> None:
            if isinstance(output, Tensor):
                call = calls.get(name, 0)
                calls[name] = call + 1
                kind = classes.get(type(cell).__name__)
                source = inputs[0].asnumpy() if kind in POOLED else None
                seen(LeafOutput(name, call, kind, output.asnumpy(), source))

        return hook

    handles = [cell.register_forward_hook(hook_for(name)) for name, cell in net.cells_and_names() if not cell.cells()]
    try:
        yield
    finally:
        for handle in handles:
            handle.remove()
