"""Faults of what a full run adds to the step: half precision, loss scaling, moving averages, schedules by epoch."""

from __future__ import annotations

from typing import Any
from unittest.mock import patch

from mindspore import Tensor
from msmigrate.optim import SGD
from msmigrate.optim.optimizer import CyclingMomentum
from msmigrate.training.recipe.schema import decay
from msmigrate.training.step import mindspore_amp, mindspore_step
from msmigrate.training.step.mindspore_amp import LossScale
from msmigrate.training.step.mindspore_step import TrainStep


def half_left_out() -> Any:
    """The step computes in float32."""
    real = mindspore_amp.Precision
    return patch.object(mindspore_step, "Precision", lambda amp, net: real(None, net))


def overflow_not_skipped() -> Any:
    """Gradients that overflowed are used."""
    real = TrainStep._update

    def update(self: Any, grads: Any, loss: Any = None) -> Any:
        with patch.object(self, "_all_finite", lambda grads: Tensor(True)):
            return real(self, grads, loss)

    return patch.object(TrainStep, "_update", update)


def clipped_before_unscaling() -> Any:
    """Scaled gradients are clipped, and the rest is unscaled."""

    def finish(self: Any, grads: Any, loss: Any) -> Any:
        shown = self._unscaled(grads)
        clipped = mindspore_step.ops.clip_by_norm(grads, max_norm=self._max_norm, norm_type=2.0)
        with patch.object(self, "_max_norm", None):
            return shown, self._update(self._unscaled(clipped), loss)

    return patch.object(TrainStep, "_finish", finish)


def scale_grows_late() -> Any:
    """The scale grows after three good steps instead of two."""
    real = LossScale.of

    def of(recipe: Any) -> Any:
        scaler = real(recipe)
        if scaler is not None:
            scaler.interval += 1
        return scaler

    return patch.object(LossScale, "of", of)


def decay_slight(factor: float = 1.001) -> Any:
    """The average takes a thousandth more of each weight."""
    return patch.object(mindspore_step, "decay", lambda rule, update: 1.0 - factor * (1.0 - decay(rule, update)))


def schedule_by_step_too() -> Any:
    """A schedule by epochs moves after every step as well."""

    def advance(self: Any) -> None:
        self.schedule.step()

    return patch.object(TrainStep, "_advance", advance)


def momentum_not_cycled() -> Any:
    """The momentum stays where the schedule begins."""
    real = CyclingMomentum.write_momenta

    def write(self: Any) -> None:
        if not any(self._momenta_written):
            real(self)

    return patch.object(CyclingMomentum, "write_momenta", write)


def cycled_momentum_not_read() -> Any:
    """The schedule moves the momentum, and the step takes the one that was given to the optimizer."""

    def construct(self: Any, gradients: Any) -> bool:
        for i, group in enumerate(self.param_groups):
            options = group["maximize"], group["dampening"], group["weight_decay"], group["nesterov"]
            self.implementation(self.defaults["momentum"], self.lrs[i], i, gradients, *options)
        return True

    return patch.object(SGD, "construct", construct)


def sums_not_cleared() -> Any:
    """Accumulated gradients that the next step adds to."""
    return patch.object(TrainStep, "_clear_sums", lambda self: True)
