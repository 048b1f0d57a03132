"""Parts of a MindSpore step on given values: its own code, with the net and the optimizer taken out."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

import mindspore
import numpy as np
from mindspore import Tensor, ops

from ..train.step.mindspore_step import TrainStep


@contextmanager
def _replaced(step: TrainStep, **values: Any) -> Iterator[None]:
    """Within this block the step has other attributes; only in PyNative mode does it look."""
    kept = {name: getattr(step, name) for name in values}
    for name, value in values.items():
        setattr(step, name, value)
    try:
        yield
    finally:
        for name, value in kept.items():
            setattr(step, name, value)


def given_to_optimizer(step: TrainStep, grads: Mapping[str, Tensor]) -> dict[str, Tensor]:
    """What the optimizer is called with when the step applies these unscaled gradients; empty where it is not."""
    calls: list[Any] = []
    with _replaced(step, optimizer=calls.append):
        step.apply(dict(grads))
    return dict(zip(step.names, calls[0], strict=False)) if calls else {}  # behind its own stand those it leaves alone


def accumulated(step: TrainStep, parts: Sequence[Mapping[str, np.ndarray]]) -> dict[str, Tensor]:
    """The unscaled gradients of a step whose micro-batches have these, (name -> gradient) each.

    The loss of a micro-batch is the sum over all weights of weight times given gradient, which the step divides,
    scales and differentiates as it does any other.
    """
    given = iter(parts)

    def loss(logits: Tensor, labels: Tensor) -> Tensor:
        grads = next(given)
        total = ops.zeros((), mindspore.float32)
        weights = {n: weight for n, weight in zip(step.names, step.weights, strict=True) if n in grads}
        for name, weight in weights.items():
            total = total + (ops.cast(weight, mindspore.float32) * Tensor(grads[name].reshape(weight.shape))).sum()
        return total

    count = len(parts)
    images = Tensor(np.zeros((count, 1), np.float32))
    labels = Tensor(np.zeros((count,), np.int32))
    with _replaced(step, net=lambda x: ops.cast(x, mindspore.float32) * 1.0, loss_function=loss):
        return dict(step(images, labels).grads)
