"""Checks of a step: vanishing, exploding, unchanged, dead ReLU, and the first tensor that is NaN or infinite.

Each finding is one line that names the worst tensors with their numbers, however many there are.

The search for a tensor that is not finite updates nothing but running statistics. It is for a step that left the
weights alone: the weights are then still those that the bad gradients came from. On the CPU, MindSpore's ReLU turns a
NaN into 0, so that a bad image may well end in a finite loss; checking every tensor in the order of execution still
finds it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass

import numpy as np
from mindspore import Tensor, nn

from ...printable import few
from ..models.mindspore_models import canonical_parameters
from ..recipe.schema import Watch
from ..step.mindspore_step import Images, Outcome, TrainStep, inputs_of, rows_of

RELUS = (nn.ReLU, nn.ReLU6)


class Watchpoints:
    """Checks every `every`-th step of a TrainStep; the others cost nothing."""

    def __init__(self, step: TrainStep, watch: Watch) -> None:
        self.step, self.watch = step, watch
        self._relus = {name: cell for name, cell in step.net.cells_and_names() if isinstance(cell, RELUS)}

    def due(self, step: int) -> bool:
        """Whether the step of this number, from 1, is watched."""
        return step % self.watch.every == 0

    def take(self, images: Images, labels: Tensor) -> tuple[Outcome, list[str]]:
        """Take one step; returns its outcome for the loop, and the findings."""
        found = relus(self.watch, self._zeros(images, labels)) if self.watch.dead_relu is not None else []
        compare = self.watch.unchanged or self.watch.large_change is not None
        rate = max(self.step.learning_rates().values())
        before = self._weights() if compare else {}
        result = self.step(images, labels)
        found += gradients(self.watch, {name: grad.asnumpy() for name, grad in result.grads.items()})
        skipped = result.finite is not None and not bool(result.finite.asnumpy())
        if compare and not skipped:  # a skipped step changes no weight, which is right
            found += weights(self.watch, before, self._weights(), rate)
        return Outcome(result.loss, result.finite), found

    def _weights(self) -> dict[str, np.ndarray]:
        return {name: weight.asnumpy().copy() for name, weight in zip(self.step.names, self.step.weights, strict=True)}

    def _zeros(self, images: Images, labels: Tensor) -> dict[str, float]:
        """For each call of a ReLU, the share of zeros in its output in one more forward pass.

        Hooks on Cells never fire in a compiled step, so this pass is not compiled, and its changes of the running
        statistics are undone. With accumulation, one micro-batch suffices.
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
        before = [buffer.asnumpy().copy() for buffer in buffers]
        handles = [cell.register_forward_hook(hook_for(name)) for name, cell in self._relus.items()]
        part = slice(labels.shape[0] // self.step.recipe.accumulate)
        try:
            with self.step.precision:
                self.step._forward(rows_of(images, part), labels[part])[0].asnumpy()
        finally:
            for handle in handles:
                handle.remove()
            for buffer, values in zip(buffers, before, strict=True):
                buffer.copy_(Tensor(values))  # a compiled graph never sees a value that set_data puts in place
        return zeros


Arrays = Mapping[str, np.ndarray]

NAMED = 3  # tensors that a warning names
# A change is measured relative to a weight's norm, which is zero for a weight of zeros: a weight whose root mean square
# is smaller than this is taken to have this one.
SMALLEST = 1e-3


def gradients(watch: Watch, grads: Arrays) -> list[str]:
    """Overflow, vanishing and exploding gradients; grads: by state_dict name, unscaled and before clipping."""
    bad = {name: int(grad.size - np.isfinite(grad).sum()) for name, grad in grads.items()}
    bad = {name: count for name, count in bad.items() if count}
    said = _say("not finite: gradient of", bad, lambda name: f"{bad[name]:,} of {grads[name].size:,} values")
    largest = {name: float(np.abs(grad).max()) for name, grad in grads.items() if name not in bad and grad.size}
    if watch.vanishing is not None:
        small = {name: -value for name, value in largest.items() if value < watch.vanishing}
        what = f"vanishing (below {watch.vanishing:g}): gradient of"
        said += _say(what, small, lambda name: f"at most {largest[name]:.3g}")
    if watch.exploding is not None:
        large = {name: value for name, value in largest.items() if value > watch.exploding}
        what = f"exploding (above {watch.exploding:g}): gradient of"
        said += _say(what, large, lambda name: f"up to {largest[name]:.3g}")
    return said


def weights(watch: Watch, before: Arrays, after: Arrays, rate: float) -> list[str]:
    """Weights that an update at learning rate `rate` did not change, or changed by a large share.

    Biases, and scales and shifts of norms, are only checked for the former: they start at zero, and while they are
    small a healthy update is several times their norm.
    """
    said: list[str] = []
    if watch.unchanged:
        same = {name: 0.0 for name in after if np.array_equal(before[name], after[name], equal_nan=True)}
        said += _say(f"unchanged by an update at learning rate {rate:.3g}:", same)
    if watch.large_change is not None:
        shares = {name: _share(before[name], after[name]) for name in after if after[name].ndim > 1}
        large = {name: share for name, share in shares.items() if not share <= watch.large_change}
        what = f"large change (more than {watch.large_change:.3g} of its norm):"
        said += _say(what, large, lambda name: f"{large[name]:.3g}")
    return said


def relus(watch: Watch, zeros: Mapping[str, float]) -> list[str]:
    """Dead ReLUs; zeros: name -> the share of its outputs that are zero."""
    assert watch.dead_relu is not None
    dead = {name: share for name, share in zeros.items() if share >= watch.dead_relu}
    return _say(f"dead ReLU (zero for at least {watch.dead_relu:.3g}):", dead, lambda name: f"{dead[name]:.4g}")


def _share(before: np.ndarray, after: np.ndarray) -> float:
    old = before.astype(np.float64)
    norm = max(float(np.linalg.norm(old)), SMALLEST * old.size**0.5)
    return float(np.linalg.norm(after - old)) / norm


def _say(what: str, found: Mapping[str, float], number: Callable[[str], str] | None = None) -> list[str]:
    """One line for all the tensors found, the largest number first; number: name -> text for that tensor."""
    if not found:
        return []
    names = sorted(found, key=lambda name: -found[name])
    shown = [name if number is None else f"{name} ({number(name)})" for name in names]
    return [f"{what} {few(shown, NAMED)}"]


REMEDIES = {
    "images": "look at these images and at data.transforms: a Normalize with a std of 0 does this",
    "labels": "look at the labels of these images",
    "weight": "an earlier update overflowed: lower the learning rate, lengthen the warm-up, or set clip",
    "output": "lower the learning rate, lengthen the warm-up, or set clip; in float16, dtype bfloat16 or amp level O1",
    "loss": "lower the learning rate or set clip; give a loss of probabilities logits",
    "gradient": "set clip or lower the learning rate; in float16, a smaller loss scale or dynamic_loss_scale",
}


@dataclass(frozen=True)
class Look:
    """The range of one tensor's numbers.

    name: dotted. kind: a key of REMEDIES. bad: how many of its `size` numbers are nan or infinite. low, high: of the
    finite ones. rows: the bad images, where the first dimension counts images.
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
        """The tensor as a noun in a sentence."""
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
    """The first bad tensor in the order of execution, the good one before it, and the weight with the largest value."""

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
    """Takes tensors in the order of execution and keeps the first bad one; later ones are not examined."""

    def __init__(self) -> None:
        self.found: FirstBad | None = None
        self._last: Look | None = None
        self._weight: Look | None = None

    def see(self, name: str, kind: str, array: np.ndarray) -> None:
        """Examine the next tensor."""
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

    In order: images, labels, weights, the outputs of the layers as they run (and their inputs, for computations of the
    layer around them), the loss, then backwards the gradient of each layer's output and of its parameters.
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
    """Pass every layer's inputs and outputs to `search`, and collect the gradients of the outputs."""

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
