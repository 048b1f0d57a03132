"""What a step does around its gradients, each part on its own and on given values: accumulation and unscaling,
clipping, the loss scale.

In the step itself a fault here shows as wrong weights, behind everything else that is wrong there. (The optimizer, the
loss and the moving average on given values are in record.py.)
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

import numpy as np

from ..train.recipe import Recipe
from . import probes
from .changes import change
from .record import Arrays, Side
from .trace import TraceWriter

# norms of the given gradients, in units of the one that they are clipped to: some are left alone, some are not
NORMS = (0.25, 0.999, 1.001, 3.0, 100.0)
WHOLE = 3.0  # the norm at which every gradient is compared, besides all gradients' norms
# what is wrong with the given gradients of each step: the scale shrinks, and starts to count anew
OVERFLOWS = (0.0, 0.0, np.inf, 0.0, 0.0, np.nan, 0.0, -np.inf, np.inf, 0.0)


class StepSide(Side, Protocol):
    """A side whose step can be taken apart."""

    recipe: Recipe

    def clipped(self, grads: Arrays) -> Arrays:
        """What the optimizer would be given of these unscaled gradients; empty where the step is skipped."""

    def accumulated(self, parts: Sequence[Arrays]) -> Arrays:
        """The unscaled gradients of a step whose micro-batches' losses have these gradients; empty where a step of the
        user's own does not say."""


def record_parts(side: StepSide, writer: TraceWriter) -> None:
    """Record those parts that the recipe has and the writer wants, from the starting weights; the weights move."""
    recipe = side.recipe
    if not any(side.alike(name) for name in side.parameters()):
        return  # there is no gradient that could be given to both
    if writer.wants("gradients") and (recipe.accumulate > 1 or side.loss_scaling()):
        side.restart()
        _accumulation(side, writer, recipe.accumulate)
    if not writer.wants("update"):
        return
    if recipe.clip is not None:
        side.restart()
        _clipping(side, writer, recipe.clip.max_norm)
    if side.loss_scaling():
        side.restart()
        _overflows(side, writer)


def _given(side: Side, step: int) -> dict[str, np.ndarray]:
    given = {name: array.shape for name, array in side.parameters().items() if side.alike(name)}
    return {name: probes.gradient(name, shape, step) for name, shape in given.items()}


def _accumulation(side: StepSide, writer: TraceWriter, parts: int) -> None:
    """Every step takes micro-batches of its own: what a sum keeps of the step before shows in the last one."""
    found: Arrays = {}
    for step in range(probes.STEPS):
        found = side.accumulated([_given(side, step * parts + part) for part in range(parts)])
    for name in reversed(list(found)):
        writer.add("gradients", "given micro-batches", name, found[name])
    writer.flush("gradients", "given micro-batches")


def _clipping(side: StepSide, writer: TraceWriter, max_norm: float) -> None:
    for step, factor in enumerate(NORMS):
        grads = _given(side, step)
        norm = np.sqrt(sum(float(np.square(grad, dtype=np.float64).sum()) for grad in grads.values()))
        share = np.float32(factor * max_norm / norm)
        clipped = side.clipped({name: grad * share for name, grad in grads.items()})
        norms = [
            np.linalg.norm(array.astype(np.float64)) for array in (clipped[name] for name in grads if name in clipped)
        ]
        writer.add("update", "given norms", f"gradients' norms at {factor:g}", np.array(norms))
        for name, array in clipped.items() if factor == WHOLE else ():
            writer.add("update", "given norms", name, array)
    writer.flush("update", "given norms")


def _overflows(side: StepSide, writer: TraceWriter) -> None:
    """Steps of given gradients, some of which are not finite: the scale after each, and the weights after all."""
    start = {name: array.copy() for name, array in side.parameters().items()}
    for step, wrong in enumerate(OVERFLOWS, 1):
        grads = _given(side, step)
        if wrong:
            last = grads[list(grads)[-1]].reshape(-1)
            last[-1] = wrong
        side.apply(grads)
        for name, value in side.loss_scaling().items():
            writer.add("update", "given overflows scale", f"step{step} {name}", value)
    for name, array in side.parameters().items():
        if side.alike(name):
            writer.add("update", "given overflows", name, change(array, start[name]))
    writer.flush("update", "given overflows")
