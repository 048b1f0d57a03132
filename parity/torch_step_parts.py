"""Parts of a torch step on given values: its own code, with the model and the optimizer taken out."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

import numpy as np
import torch

from ..train.step.torch_step import TrainStep


@contextmanager
def _replaced(owner: Any, name: str, value: Any) -> Iterator[None]:
    """Within this block an object has an attribute of its own in the place of what its class has."""
    own = vars(owner).get(name)
    setattr(owner, name, value)
    try:
        yield
    finally:
        if own is None:
            delattr(owner, name)
        else:
            setattr(owner, name, own)


def given_to_optimizer(step: TrainStep, grads: Mapping[str, torch.Tensor]) -> dict[str, torch.Tensor]:
    """The gradients that the optimizer finds at its own parameters when the step applies these unscaled ones; empty if
    not called."""
    found: dict[str, torch.Tensor] = {}
    held = {id(p) for group in step.optimizer.param_groups for p in group["params"]}

    def update() -> None:
        own = {name: p for name, p in step.parameters.items() if id(p) in held}
        found.update({name: p.grad.clone() for name, p in own.items() if p.grad is not None})

    with _replaced(step.optimizer, "step", update):
        step.apply(dict(grads))
    return found


def accumulated(step: TrainStep, parts: Sequence[Mapping[str, np.ndarray]]) -> dict[str, torch.Tensor]:
    """The unscaled gradients of a step whose micro-batches have these, (name -> gradient) each.

    The loss of a micro-batch is the sum over all weights of weight times given gradient, which the step divides,
    scales and differentiates as it does any other.
    """
    waiting = iter(parts)
    dtype = next(iter(step.parameters.values())).dtype

    def loss(logits: torch.Tensor, labels: torch.Tensor) -> torch.Tensor:
        grads = next(waiting)
        given = {name: p for name, p in step.parameters.items() if name in grads}
        products = [(p * torch.from_numpy(grads[name]).to(dtype)).sum() for name, p in given.items()]
        return torch.stack(products).sum()

    images, labels = torch.zeros(len(parts), 1, dtype=dtype), torch.zeros(len(parts), dtype=torch.int64)
    with _replaced(step.model, "forward", lambda x: x), _replaced(step, "loss_function", loss):
        result = step.gradients(images, labels)
    step.apply(result.grads)
    return result.grads
