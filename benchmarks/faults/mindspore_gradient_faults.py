"""Faults in the loss, in half precision, and in the gradients before the optimizer takes them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any
from unittest.mock import patch

import mindspore
from mindspore import Tensor, nn, ops
from mindspore_injectors import Places, injector
from msmigrate.training.step import mindspore_step
from msmigrate.training.step.mindspore_step import TrainStep

# The loss and its gradient


class _Loss(nn.Cell):
    """A loss as a function of the logits, the labels (classes or rows) and the number of classes."""

    def __init__(self, function: Callable[[Tensor, Tensor], Tensor]) -> None:
        super().__init__()
        self.function = function

    def construct(self, logits: Tensor, labels: Tensor) -> Tensor:
        return self.function(logits, labels)


def _smoothed_by_others(logits: Tensor, labels: Tensor) -> Tensor:
    """The model zoo's cross entropy: 1 - s for the class, s / (K - 1) for the others."""
    classes = logits.shape[1]
    rows = ops.one_hot(labels, classes, Tensor(0.9), Tensor(0.1 / (classes - 1)))
    return -(rows * ops.log_softmax(logits, 1)).sum(1).mean()


def _binary_clamped(logits: Tensor, targets: Tensor) -> Tensor:
    """nn.BCELoss, which clamps the logarithm at log(1e-12)."""
    p = ops.sigmoid(-20.0 * ops.abs(logits))
    return nn.BCELoss(reduction="mean")(p, targets)


LOSSES: dict[str, Callable[[Tensor, Tensor], Tensor]] = {
    "smoothed_by_others": _smoothed_by_others,
    "unsmoothed": lambda logits, labels: nn.CrossEntropyLoss()(logits, labels),
    "vector": lambda logits, labels: ops.cross_entropy(logits, labels, reduction="none", label_smoothing=0.1),
    "sum": lambda logits, labels: ops.cross_entropy(logits, labels, reduction="sum", label_smoothing=0.1),
    "softmax_vector": lambda logits, labels: nn.SoftmaxCrossEntropyWithLogits(sparse=False, reduction="none")(
        logits, ops.one_hot(labels, 10, Tensor(0.91), Tensor(0.01))
    ),
    "smooth_l1_vector": lambda logits, targets: nn.SmoothL1Loss(beta=1.0)(logits, targets),
    "half": lambda logits, labels: nn.CrossEntropyLoss(label_smoothing=0.1)(
        logits.astype(mindspore.float16).astype(mindspore.float32), labels
    ),
    "binary_clamped": _binary_clamped,
    "divergence_mean": lambda logits, targets: ops.kl_div(
        logits - ops.logsumexp(logits, 1, True), 0.9 * targets + 0.01, reduction="mean"
    ),
}


@injector
def loss(places: Places, how: str) -> Any:
    """Another loss."""
    return patch.object(mindspore_step, "build_loss", lambda recipe: _Loss(LOSSES[how]))


@injector
def has_aux_forgotten(places: Places) -> Any:
    """value_and_grad over everything the forward function returns."""
    real = mindspore.value_and_grad

    def value_and_grad(function: Any, position: Any = 0, weights: Any = None, has_aux: bool = False) -> Any:
        return real(function, position, weights, has_aux=False)

    return patch.object(mindspore, "value_and_grad", value_and_grad)


@injector
def not_unscaled(places: Places) -> Any:
    """The loss scale is never taken out of the gradients."""
    return patch.object(TrainStep, "_unscaled", lambda self, grads: grads)


@injector
def gradient_scaled(places: Places, factor: float, which: float = 0.5) -> Any:
    """One tensor's gradient off by a factor: nobody listed this one."""
    real = TrainStep._gradients

    def gradients(self: Any, images: Tensor, labels: Tensor) -> Any:
        found = real(self, images, labels)
        name = self.names[round(which * (len(self.names) - 1))]
        places.append(name)
        grads = tuple(g * factor if n == name else g for n, g in zip(self.names, found[2], strict=True))
        return found[0], found[1], grads, found[3]

    return patch.object(TrainStep, "_gradients", gradients)


# Accumulation and clipping


@injector
def accumulated(places: Places, how: str) -> Any:
    """Micro-batches summed, the last one kept alone, one large batch, or batches of unequal size averaged."""
    if how == "sum":
        real_forward = TrainStep._forward

        def forward(self: Any, images: Tensor, labels: Tensor) -> Any:
            scaled, value, logits = real_forward(self, images, labels)
            return scaled * self._parts, value, logits

        return patch.object(TrainStep, "_forward", forward)
    if how == "last":
        real_add = mindspore_step.add_to

        def add_to(sums: Any, grads: Any) -> None:
            mindspore_step.clear(sums)
            real_add(sums, grads)

        return patch.object(mindspore_step, "add_to", add_to)
    if how == "whole":
        real_call = TrainStep.__call__

        def call(self: Any, images: Tensor, labels: Tensor) -> Any:
            self._parts = 1
            return real_call(self, images, labels)

        return patch.object(TrainStep, "__call__", call)
    real = TrainStep._gradients

    def gradients(self: Any, images: Tensor, labels: Tensor) -> Any:
        first = real(self, images[:-1], labels[:-1])
        rest = real(self, images[-1:], labels[-1:])
        grads = tuple((a + b) / 2 for a, b in zip(first[2], rest[2], strict=True))
        return (first[0] + rest[0]) / 2, ops.cat((first[1], rest[1])), grads, ops.cat((first[3], rest[3])) / 2

    return patch.object(TrainStep, "_gradients", gradients)


@injector
def clipped(places: Places, how: str) -> Any:
    """Clipped tensor by tensor, without the 1e-6, while scaled, or before the division by the micro-batches."""
    if how in ("each", "no_eps"):

        def apply(self: Any, grads: Any) -> None:
            if how == "each":
                grads = tuple(ops.clip_by_norm([g], max_norm=self._max_norm, norm_type=2.0)[0] for g in grads)
            else:
                grads = ops.clip_by_global_norm(list(grads), self._max_norm)
            self.optimizer(tuple(grads))

        return patch.object(TrainStep, "_clip_then_optimize", apply)
    if how == "scaled":

        def finish(self: Any, grads: Any, value: Any) -> Any:
            shown = self._unscaled(grads)
            early = ops.clip_by_norm(grads, max_norm=self._max_norm, norm_type=2.0)
            with patch.object(self, "_max_norm", None):
                return shown, self._update(self._unscaled(early), value)

        return patch.object(TrainStep, "_finish", finish)
    real = TrainStep._clip_then_optimize

    def divided(self: Any, grads: Any) -> None:
        self.optimizer(
            tuple(
                g / self._parts
                for g in ops.clip_by_norm(tuple(g * self._parts for g in grads), max_norm=self._max_norm, norm_type=2.0)
            )
        )

    assert real
    return patch.object(TrainStep, "_clip_then_optimize", divided)


# Half precision
