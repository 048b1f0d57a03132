"""Vanishing, exploding, unchanged, dead ReLU: a look at a step.

Each finding is one line that names the worst tensors with their numbers, however many there are.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

import numpy as np
from mindspore import Tensor, nn

from ...printable import few
from ..models.mindspore_models import canonical_parameters
from ..recipe.schema import Watch
from ..step.mindspore_step import Images, Outcome, TrainStep, rows_of

RELUS = (nn.ReLU, nn.ReLU6)


class Watchpoints:
    """Looks at every `every`-th step of a TrainStep; the others cost nothing."""

    def __init__(self, step: TrainStep, watch: Watch) -> None:
        self.step, self.watch = step, watch
        self._relus = {name: cell for name, cell in step.net.cells_and_names() if isinstance(cell, RELUS)}

    def due(self, step: int) -> bool:
        """Whether the step of this number, from 1, is watched."""
        return step % self.watch.every == 0

    def take(self, images: Images, labels: Tensor) -> tuple[Outcome, list[str]]:
        """Take one step and return what the loop gets of it, and what was found."""
        found = relus(self.watch, self._zeros(images, labels)) if self.watch.dead_relu is not None else []
        compare = self.watch.unchanged or self.watch.large_change is not None
        rate = max(self.step.learning_rates().values())
        before = self._weights() if compare else {}
        result = self.step(images, labels)
        found += gradients(self.watch, {name: grad.asnumpy() for name, grad in result.grads.items()})
        skipped = result.finite is not None and not bool(result.finite.asnumpy())
        if compare and not skipped:  # a skipped step leaves every weight as it was, as it should
            found += weights(self.watch, before, self._weights(), rate)
        return Outcome(result.loss, result.finite), found

    def _weights(self) -> dict[str, np.ndarray]:
        return {name: weight.asnumpy().copy() for name, weight in zip(self.step.names, self.step.weights, strict=True)}

    def _zeros(self, images: Images, labels: Tensor) -> dict[str, float]:
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
                buffer.copy_(Tensor(values))  # a compiled graph never sees what set_data puts in place
        return zeros


Arrays = Mapping[str, np.ndarray]

NAMED = 3  # tensors that a warning names
# A change is measured against a weight's norm, and a weight that is still zero has none: what is smaller than this on
# (quadratic) average is taken to be this large.
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
    """Weights that an update at learning rate `rate` left as they were, or changed by a large share.

    Biases, and scales and shifts of norms, are looked at for the former only: they start at zero, and while they are
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
    """One line for all the tensors found, that of the largest number first; number: what is said of one by name."""
    if not found:
        return []
    names = sorted(found, key=lambda name: -found[name])
    shown = [name if number is None else f"{name} ({number(name)})" for name in names]
    return [f"{what} {few(shown, NAMED)}"]
