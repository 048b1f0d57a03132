"""Faults in the learning rate's schedule and in the moving average of the weights."""

from __future__ import annotations

from math import exp
from typing import Any
from unittest.mock import patch

from mindspore_injectors import Places, injector
from msmigrate.optim.lr_scheduler import Schedule
from msmigrate.training.step import mindspore_step
from msmigrate.training.step.mindspore_step import TrainStep

# The schedule


@injector
def schedule(places: Places, how: str) -> Any:
    """A learning rate that moves otherwise: never, late, twice a step, without stairs, or from zero."""
    if how == "never":
        return patch.object(TrainStep, "_advance", lambda self: None)
    if how == "twice":

        def twice(self: Any) -> None:
            self.schedule.step()
            if self.recipe.schedule.per == "step":
                self.schedule.step()

        return patch.object(TrainStep, "_advance", twice)
    if how == "skipped_too":  # FixedLossScaleManager: an overflow leaves the learning rate where it is
        real = TrainStep._advance

        def unless_overflow(self: Any) -> None:
            if self.scaler is not None and float(self.scaler.growth_tracker.asnumpy()) == 0.0 and self.steps == 1:
                return
            real(self)

        return patch.object(TrainStep, "_advance", unless_overflow)
    real_write = Schedule.write

    def write(self: Any) -> None:
        kept = list(self.rates)
        if how == "continuous":
            self.rates[:] = [base * self.gamma ** (self.epoch / self.step_size) for base in self.base_rates]
        elif how == "from_zero":
            self.rates[:] = [base * min(self.epoch / self.total_iters, 1.0) for base in self.base_rates]
        real_write(self)
        self.rates[:] = kept

    return patch.object(Schedule, "write", write)


# The moving average


@injector
def average(places: Places) -> Any:
    """mindcv's moving average, with its own ramp of the decay."""
    return patch.object(mindspore_step, "decay", lambda rule, update: rule.decay * (1.0 - exp(-update / 2000.0)))
