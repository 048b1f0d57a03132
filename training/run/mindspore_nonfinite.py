"""Find the first tensor that is NaN or infinite.

Nothing is updated but running statistics. It is for a step that left the weights alone: the weights are then still
those that the bad gradients came from. On the CPU, MindSpore's ReLU makes a NaN 0, so that a bad image may well end in
a finite loss; looking at every tensor in the order of execution finds it all the same.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

import numpy as np
from mindspore import Tensor, nn

from ...printable import few
from ..models.mindspore_models import canonical_parameters
from ..step.mindspore_step import Images, TrainStep, inputs_of, rows_of

REMEDIES = {
    "images": "look at these images and at data.transforms: a Normalize with a std of 0 does this",
    "labels": "look at the labels of these images",
    "weight": "an earlier update overflowed: lower the learning rate, lengthen the warm-up, or set clip",
    "output": "lower the learning rate, lengthen the warm-up, or set clip; in float16, dtype bfloat16 or amp level O1",
    "loss": "lower the learning rate or set clip; a loss of probabilities wants logits",
    "gradient": "set clip or lower the learning rate; in float16, a smaller loss scale or dynamic_loss_scale",
}


@dataclass(frozen=True)
class Look:
    """What one tensor holds.

    name: dotted. kind: a key of REMEDIES. bad: so many of its `size` numbers are nan or infinite. low, high: of the
    finite ones. rows: where the first dimension counts images, which of them are bad.
    """

    name: str
    kind: str
    bad: int
    size: int
    low: float
    high: float
    rows: tuple[int, ...] = ()

    @property
    def largest(self) -> float:
        """The largest absolute value among the finite ones."""
        return max(abs(self.low), abs(self.high))

    @property
    def words(self) -> str:
        """As a noun in a sentence."""
        return {
            "images": "the images",
            "labels": "the labels",
            "weight": f"the weight {self.name}",
            "output": self.name if self.name.startswith("the ") else f"the output of {self.name}",
            "loss": "the loss",
            "gradient": f"the gradient of {self.name}",
        }[self.kind]


@dataclass(frozen=True)
class FirstBad:
    """The first bad tensor in the order of execution, the good one before it, and the weight of the largest value."""

    bad: Look
    before: Look | None
    weight: Look | None = None

    def text(self, indices: np.ndarray | None = None) -> str:
        """Two sentences and a remedy; indices: of the batch's images in their source."""
        found = self.bad
        said = f"{found.words} {'hold' if found.kind in ('images', 'labels') else 'holds'} {_count(found)}"
        if found.rows and indices is not None and found.kind in ("images", "labels"):
            numbers = [str(int(indices[row])) for row in found.rows if row < len(indices)]
            said += f" (image {few(numbers, 5)} of the source)"
        if self.before is not None:
            said += f"; before it, {self.before.words} was finite, {self.before.low:.4g} to {self.before.high:.4g}"
        if self.weight is not None and found.kind not in ("images", "labels", "weight"):
            said += f"; the largest weight is {self.weight.name}, {self.weight.low:.4g} to {self.weight.high:.4g}"
        return f"{said}; {REMEDIES[found.kind]}"


def _count(look: Look) -> str:
    if look.bad == look.size:
        return f"nothing finite in its {look.size:,} values" if look.size > 1 else "no finite number"
    return f"{look.bad:,} of {look.size:,} values that are not finite, the others {look.low:.4g} to {look.high:.4g}"


def look(name: str, kind: str, array: np.ndarray) -> Look:
    """Count and measure one tensor; integers are always finite."""
    values = np.asarray(array)
    finite = np.isfinite(values) if values.dtype.kind == "f" else np.ones(values.shape, dtype=bool)
    good = values[finite]
    low, high = (float(good.min()), float(good.max())) if good.size else (float("nan"), float("nan"))
    bad = values.size - good.size
    rows: tuple[int, ...] = ()
    if bad and values.ndim:
        rows = tuple(int(row) for row in np.flatnonzero(~finite.reshape(len(values), -1).all(axis=1)))
    return Look(name, kind, bad, values.size, low, high, rows)


class Search:
    """Takes tensors in the order of execution and keeps the first bad one; later ones are then not looked at."""

    def __init__(self) -> None:
        self.found: FirstBad | None = None
        self._last: Look | None = None
        self._weight: Look | None = None

    def see(self, name: str, kind: str, array: np.ndarray) -> None:
        """Look at the next tensor."""
        if self.found is not None:
            return
        seen = look(name, kind, array)
        if seen.bad:
            same = self._last is not None and (kind != "weight" or self._last.kind == kind)
            self.found = FirstBad(seen, self._last if same else None, self._weight)
            return
        if seen.size:
            self._last = seen
            if kind == "weight" and (self._weight is None or seen.largest > self._weight.largest):
                self._weight = seen


Gradients = list[tuple[str, np.ndarray]]


def first_bad(step: TrainStep, images: Images, labels: Tensor) -> FirstBad | None:
    """The first bad tensor of a step on this batch, or None where this process has none.

    In order: images, labels, weights, the outputs of the layers as they run (and their inputs, for what the layer
    around them did), the loss, then backwards the gradient of each layer's output and of its parameters.
    """
    search = Search()
    for each in inputs_of(images):
        search.see("images", "images", each.asnumpy())
    search.see("labels", "labels", labels.asnumpy())
    for each in canonical_parameters(step.net):
        if each.parameter.requires_grad:  # running statistics take no part in a training step's forward pass
            search.see(each.name, "weight", each.parameter.asnumpy())
    parts = step.recipe.accumulate
    size = labels.shape[0] // parts
    for part in (slice(i * size, (i + 1) * size) for i in range(parts)):
        if search.found is None:
            _replay(step, rows_of(images, part), labels[part], search)
    return search.found


def _replay(step: TrainStep, images: Images, labels: Tensor, search: Search) -> None:
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
