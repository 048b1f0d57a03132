"""Run a step's forward and backward pass again, operator by operator, to find the first tensor that is not finite.

Nothing is updated but running statistics. It is for a step that left the weights alone: the weights are then still
those that the bad gradients came from. On the CPU, MindSpore's ReLU makes a NaN 0, so that a bad image may well end in
a finite loss; looking at every tensor in the order of execution finds it all the same.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import numpy as np
from mindspore import Tensor, nn

from ..models.mindspore_names import canonical_parameters
from ..step.mindspore_step import TrainStep
from .first_bad import FirstBad, Search

Gradients = list[tuple[str, np.ndarray]]


def first_bad(step: TrainStep, images: Tensor, labels: Tensor) -> FirstBad | None:
    """The first bad tensor of a step on this batch, or None where this process has none.

    In order: images, labels, weights, the outputs of the layers as they run (and their inputs, for what the layer
    around them did), the loss, then backwards the gradient of each layer's output and of its parameters.
    """
    search = Search()
    search.see("images", "images", images.asnumpy())
    search.see("labels", "labels", labels.asnumpy())
    for held in canonical_parameters(step.net):
        if held.parameter.requires_grad:  # running statistics take no part in a training step's forward pass
            search.see(held.name, "weight", held.parameter.asnumpy())
    parts = step.recipe.accumulate
    size = images.shape[0] // parts
    for part in range(parts):
        if search.found is None:
            _replay(step, images[part * size : (part + 1) * size], labels[part * size : (part + 1) * size], search)
    return search.found


def _replay(step: TrainStep, images: Tensor, labels: Tensor, search: Search) -> None:
    outputs: Gradients = []
    with step.precision, _watched(step.net, search, outputs):
        loss, logits, grads, _ = step._gradients(images, labels)
        loss_value = loss.asnumpy()
        owned = dict(zip(step.names, (grad.asnumpy() for grad in grads), strict=True))
    search.see("the logits", "output", logits.asnumpy())
    search.see("loss", "loss", loss_value)
    for name, grad in outputs:
        search.see(f"the output of {name}", "gradient", grad)
        for parameter in [each for each in owned if each.rpartition(".")[0] == name]:
            search.see(parameter, "gradient", owned.pop(parameter))
    for parameter, grad in owned.items():
        search.see(parameter, "gradient", grad)


@contextmanager
def _watched(net: nn.Cell, search: Search, gradients: Gradients) -> Iterator[None]:
    """Show `search` what goes into and comes out of every layer, and collect the gradients by what comes out."""

    def hook_for(name: str) -> object:
        def hook(cell: nn.Cell, inputs: tuple[Tensor, ...], output: object) -> None:
            for given in inputs:
                if isinstance(given, Tensor):
                    search.see(f"the input of {name}", "output", given.asnumpy())
            if isinstance(output, Tensor):
                search.see(name, "output", output.asnumpy())
                output.register_hook(lambda grad: gradients.append((name, grad.asnumpy())))

        return hook

    leaves = [(name, cell) for name, cell in net.cells_and_names() if not cell.cells()]
    handles = [cell.register_forward_hook(hook_for(name)) for name, cell in leaves]
    try:
        yield
    finally:
        for handle in handles:
            handle.remove()
