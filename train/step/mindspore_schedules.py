"""Learning-rate schedules that follow torch's step for step.

MindSpore's own schedules chain their rates in float32. That is harmless for StepLR and LinearLR, but the cosine loses
its last digits where 1 + cos vanishes (0.25 % off near the end of 1000 steps, worse the longer the run), and its
SequentialLR cannot hold a MultiStepLR. Here the recursions of torch run in Python's float64 on the host, and only the
result is written to the optimizer, as float32.

Call `step()` once after each optimizer step or epoch, outside `jit`: it writes the optimizer's learning-rate
parameters, which a compiled step reads, where they change. The rates in force are `rates`, one per parameter group. To
resume a run, make the schedule anew and `fast_forward()` to the epoch it was in.
"""

from __future__ import annotations

from bisect import bisect_right
from collections import Counter
from math import cos, pi
from typing import Any

from mindspore import Tensor
from mindspore import dtype as mstype

from ...mappings.resolve import resolve


class Schedule:
    """One rule for the next rate, applied to every parameter group of a `mindspore.experimental.optim` optimizer."""

    def __init__(self, optimizer: Any) -> None:
        self.optimizer = optimizer
        for group in optimizer.param_groups:
            group.setdefault("initial_lr", float(group["lr"].asnumpy()))
        self.base_rates: list[float] = [group["initial_lr"] for group in optimizer.param_groups]
        self.rates = list(self.base_rates)
        self.epoch = -1
        self._written: list[float | None] = [None] * len(self.rates)
        self.step()

    def first(self, base: float) -> float:
        """The rate at epoch 0."""
        return base

    def following(self, rate: float, base: float) -> float:
        """The rate at `self.epoch`, which is at least 1, from the one before it."""
        raise NotImplementedError

    def step(self) -> None:
        """Advance one epoch and write the new rates to the optimizer."""
        self.advance()
        self.write()

    def advance(self) -> None:
        """Compute the rates of the next epoch."""
        self.epoch += 1
        if self.epoch == 0:
            self.rates[:] = [self.first(rate) for rate in self.rates]
        else:
            self.rates[:] = [self.following(rate, base) for rate, base in zip(self.rates, self.base_rates, strict=True)]

    def restart(self) -> None:
        """Begin at epoch 0 from the initial rates, as torch's SequentialLR has a schedule do at its milestone."""
        self.epoch = 0
        self.rates[:] = [self.first(base) for base in self.base_rates]

    def fast_forward(self, epoch: int) -> None:
        """Advance to a later epoch, by the same steps that led there before and so to the same digits."""
        while self.epoch < epoch:
            self.advance()
        self.write()

    def write(self) -> None:
        """Give the optimizer the rates in force.

        By `copy_`: a graph that has been compiled never sees what `set_data` puts in place, and `ops.assign` was
        measured ten times slower.
        """
        for i, (parameter, rate) in enumerate(zip(self.optimizer.lrs, self.rates, strict=True)):
            if rate != self._written[i]:
                parameter.copy_(Tensor(rate, mstype.float32))
                self._written[i] = rate

    def get_last_lr(self) -> list[float]:
        """The rates in force, one per parameter group."""
        return list(self.rates)


class StepLR(Schedule):
    """Multiply by `gamma` every `step_size` epochs."""

    def __init__(self, optimizer: Any, step_size: int, gamma: float = 0.1) -> None:
        self.step_size, self.gamma = step_size, gamma
        super().__init__(optimizer)

    def following(self, rate: float, base: float) -> float:
        """See Schedule."""
        return rate if self.epoch % self.step_size else rate * self.gamma


class MultiStepLR(Schedule):
    """Multiply by `gamma` at every milestone, as often as it is named."""

    def __init__(self, optimizer: Any, milestones: list[int], gamma: float = 0.1) -> None:
        self.milestones, self.gamma = Counter(milestones), gamma
        super().__init__(optimizer)

    def first(self, base: float) -> float:
        """See Schedule; a milestone of 0 counts."""
        return base * self.gamma ** self.milestones[0]

    def following(self, rate: float, base: float) -> float:
        """See Schedule."""
        return rate * self.gamma ** self.milestones[self.epoch]


class LinearLR(Schedule):
    """Change the factor on the rate linearly from `start_factor` to `end_factor` over `total_iters` epochs."""

    def __init__(
        self, optimizer: Any, start_factor: float = 1.0 / 3, end_factor: float = 1.0, total_iters: int = 5
    ) -> None:
        self.start_factor, self.end_factor, self.total_iters = start_factor, end_factor, total_iters
        super().__init__(optimizer)

    def first(self, base: float) -> float:
        """See Schedule."""
        return base * self.start_factor

    def following(self, rate: float, base: float) -> float:
        """See Schedule; the factor on the factor before, as torch chains it."""
        if self.epoch > self.total_iters:
            return rate
        slope = self.end_factor - self.start_factor
        return rate * (1 + slope / (self.total_iters * self.start_factor + (self.epoch - 1) * slope))


class ConstantLR(Schedule):
    """Multiply by `factor` until `total_iters` epochs have passed."""

    def __init__(self, optimizer: Any, factor: float = 1.0 / 3, total_iters: int = 5) -> None:
        self.factor, self.total_iters = factor, total_iters
        super().__init__(optimizer)

    def first(self, base: float) -> float:
        """See Schedule."""
        return base * self.factor

    def following(self, rate: float, base: float) -> float:
        """See Schedule."""
        return rate * (1.0 / self.factor) if self.epoch == self.total_iters else rate


class ExponentialLR(Schedule):
    """Multiply by `gamma` every epoch."""

    def __init__(self, optimizer: Any, gamma: float) -> None:
        self.gamma = gamma
        super().__init__(optimizer)

    def following(self, rate: float, base: float) -> float:
        """See Schedule."""
        return rate * self.gamma


class PolynomialLR(Schedule):
    """Come down to 0 over `total_iters` epochs, as a power of what is left of them."""

    def __init__(self, optimizer: Any, total_iters: int = 5, power: float = 1.0) -> None:
        self.total_iters, self.power = total_iters, power
        super().__init__(optimizer)

    def following(self, rate: float, base: float) -> float:
        """See Schedule."""
        if self.epoch > self.total_iters:
            return rate
        left, before = (1.0 - epoch / self.total_iters for epoch in (self.epoch, self.epoch - 1))
        return rate * (left / before) ** self.power


class CosineAnnealingLR(Schedule):
    """Half a cosine from the initial rate down to `eta_min` over `T_max` epochs, and up again after."""

    def __init__(self, optimizer: Any, T_max: int, eta_min: float = 0.0) -> None:  # noqa: N803, torch's name
        self.t_max, self.eta_min = T_max, eta_min
        super().__init__(optimizer)

    def following(self, rate: float, base: float) -> float:
        """See Schedule; torch's recursion, with its own branch for the epoch after the minimum."""
        if (self.epoch - 1 - self.t_max) % (2 * self.t_max) == 0:
            return rate + (base - self.eta_min) * (1 - cos(pi / self.t_max)) / 2
        now, before = (1 + cos(pi * epoch / self.t_max) for epoch in (self.epoch, self.epoch - 1))
        return now / before * (rate - self.eta_min) + self.eta_min


class SequentialLR(Schedule):
    """One schedule after another; each begins at its milestone from the initial rates.

    `schedulers`: pairs (qualified name of a class in this module, its arguments without the optimizer).
    """

    def __init__(self, optimizer: Any, schedulers: list[tuple[str, dict[str, Any]]], milestones: list[int]) -> None:
        self.milestones = milestones
        self.members: list[Schedule] = [resolve(target)(optimizer, **kwargs) for target, kwargs in schedulers]
        super().__init__(optimizer)

    def advance(self) -> None:
        """Compute the rates of the next epoch by the schedule whose turn it is."""
        self.epoch += 1
        if self.epoch == 0:
            # Each member took a first step when it was made; only the one that runs first may keep it.
            self.rates[:] = self.base_rates
            for member in self.members:
                member.rates, member.epoch = self.rates, -1
        turn = bisect_right(self.milestones, self.epoch)
        if turn and self.milestones[turn - 1] == self.epoch:
            self.members[turn].restart()
        else:
            self.members[turn].advance()
