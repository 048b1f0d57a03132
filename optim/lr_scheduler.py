"""Torch's learning-rate schedules, step for step.

MindSpore's own schedules chain their rates in float32. That is harmless for StepLR and LinearLR, but the cosine loses
its last digits where 1 + cos vanishes (0.25 % off near the end of 1000 steps, worse the longer the run), and its
SequentialLR cannot hold a MultiStepLR. Here the recursions of torch run in Python's float64 on the host, and only the
result is written to the optimizer, as float32.

Call `step()` once after each optimizer step or epoch, outside `jit`: it writes the optimizer's learning-rate
parameters, which a compiled step reads, where they change. The rates in force are `rates`, one per parameter group. To
resume a run, make the schedule anew and `fast_forward()` to the epoch it was in. OneCycleLR and CyclicLR also move the
momentum, or beta1, of msmigrate's optimizers.

MindSpore 2.10 has no OneCycleLR, and its own of the other names compute in float32.
"""

from __future__ import annotations

from bisect import bisect_right
from collections import Counter
from collections.abc import Callable, Sequence
from math import cos, floor, inf, pi
from typing import Any

from mindspore import Tensor
from mindspore import dtype as mstype

from ..errors import BadRecipe
from ..mappings.rows import resolve


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
        if getattr(self.optimizer, "cycles", False):
            self.optimizer.write_momenta()

    def group_options(self, group: int) -> dict[str, Any]:
        """What torch's schedule of this name keeps in a parameter group, the rate in force included."""
        return {"initial_lr": self.base_rates[group], "lr": self.rates[group]}

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
        """See Schedule; the new factor is relative to the one before, as torch chains them."""
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
    """Go down to 0 over `total_iters` epochs, as a power of the share of them that is left."""

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
        _next_epoch(self, self.members)
        turn = bisect_right(self.milestones, self.epoch)
        if turn and self.milestones[turn - 1] == self.epoch:
            self.members[turn].restart()
        else:
            self.members[turn].advance()


def _next_epoch(schedule: Schedule, members: list[Schedule]) -> None:
    """Count an epoch; at the first one, members, which took a step when made, start again on the schedule's rates."""
    schedule.epoch += 1
    if schedule.epoch == 0:
        schedule.rates[:] = schedule.base_rates
        for member in members:
            member.rates, member.epoch = schedule.rates, -1


Rule = Callable[[int], float]


def _each(value: Any, groups: int, name: str) -> list[Any]:
    """One value for every parameter group; raises ValueError where another number of them is given."""
    if not isinstance(value, (list, tuple)):
        return [value] * groups
    if len(value) != groups:
        raise ValueError(f"{name}: expected {groups} values, one for every parameter group, got {len(value)}")
    return list(value)


class MomentumCycle:
    """The momenta between which a schedule moves, one pair for every group; without, it leaves the momentum alone.

    Raises ValueError for an optimizer whose momentum is a constant, and BadRecipe for a momentum that is not between 0
    and 1.
    """

    def __init__(self, optimizer: Any, wanted: bool, lowest: float | list[float], highest: float | list[float]) -> None:
        self.optimizer, self.wanted = optimizer, wanted
        groups = len(optimizer.param_groups)
        self.lowest, self.highest = _each(lowest, groups, "base_momentum"), _each(highest, groups, "max_momentum")
        if not wanted:
            return
        if not hasattr(optimizer, "let_momentum_cycle"):
            raise ValueError(
                f"{type(optimizer).__name__} has no momentum, or a constant one in MindSpore: give cycle_momentum=False"
            )
        optimizer.let_momentum_cycle()

    def set(self, group: int, value: float) -> None:
        """Give a group this momentum."""
        if not 0.0 < value < 1.0:
            raise BadRecipe(f"the schedule cycles the momentum to {value:g}, which is not between 0 and 1")
        self.optimizer.set_momentum(group, value)

    def options(self, group: int) -> dict[str, Any]:
        """What torch keeps of it in a parameter group, the momentum in force included."""
        if not self.wanted:
            return {}
        now = self.optimizer.param_groups[group]
        held = {key: now[key] for key in ("betas", "momentum") if key in now}
        return {**held, "base_momentum": self.lowest[group], "max_momentum": self.highest[group]}


class EpochSchedule(Schedule):
    """A schedule that computes the rate of any epoch without those before.

    momentum: the momenta that it cycles.
    """

    momentum: MomentumCycle | None = None

    def momentum_at(self, group: int) -> float:
        """The momentum of a parameter group at `self.epoch`, of a schedule that cycles it."""
        raise NotImplementedError

    def group_options(self, group: int) -> dict[str, Any]:
        """See Schedule."""
        return {**super().group_options(group), **(self.momentum.options(group) if self.momentum else {})}

    def at(self, group: int) -> float:
        """The rate of a parameter group at `self.epoch`."""
        raise NotImplementedError

    def advance(self) -> None:
        """See Schedule."""
        self.epoch += 1
        self.rates[:] = [self.at(group) for group in range(len(self.rates))]
        if self.momentum is not None and self.momentum.wanted:
            for group in range(len(self.rates)):
                self.momentum.set(group, self.momentum_at(group))

    def restart(self) -> None:
        """See Schedule."""
        self.epoch = -1
        EpochSchedule.advance(self)


class LambdaLR(EpochSchedule):
    """The initial rate times `lr_lambda(epoch)`; lr_lambda: a function, or one for every parameter group."""

    def __init__(self, optimizer: Any, lr_lambda: Rule | Sequence[Rule]) -> None:
        self.rules: list[Rule] = _each(lr_lambda, len(optimizer.param_groups), "lr_lambda")
        super().__init__(optimizer)

    def at(self, group: int) -> float:
        """See EpochSchedule."""
        return self.base_rates[group] * self.rules[group](self.epoch)


class MultiplicativeLR(Schedule):
    """The rate before times `lr_lambda(epoch)`, from epoch 1 on; lr_lambda: a function, or one for every group."""

    def __init__(self, optimizer: Any, lr_lambda: Rule | Sequence[Rule]) -> None:
        self.rules: list[Rule] = _each(lr_lambda, len(optimizer.param_groups), "lr_lambda")
        super().__init__(optimizer)

    def advance(self) -> None:
        """See Schedule."""
        self.epoch += 1
        if self.epoch:
            self._multiply()

    def restart(self) -> None:
        """See Schedule; torch goes on from the rate in force."""
        self.epoch = 0
        self._multiply()

    def _multiply(self) -> None:
        self.rates[:] = [rate * rule(self.epoch) for rate, rule in zip(self.rates, self.rules, strict=True)]


class CosineAnnealingWarmRestarts(EpochSchedule):
    """Half a cosine from the initial rate to `eta_min` over `T_0` epochs, then anew over `T_mult` times as many."""

    def __init__(self, optimizer: Any, T_0: int, T_mult: int = 1, eta_min: float = 0.0) -> None:  # noqa: N803, torch's
        self.t_0, self.t_mult, self.eta_min = T_0, T_mult, eta_min
        super().__init__(optimizer)

    def at(self, group: int) -> float:
        """See EpochSchedule."""
        current, length = self.epoch, self.t_0
        while current >= length:
            current, length = current - length, length * self.t_mult
        return self.eta_min + (self.base_rates[group] - self.eta_min) * (1 + cos(pi * current / length)) / 2


class OneCycleLR(EpochSchedule):
    """Up from `max_lr / div_factor` to `max_lr` and down again over `total_steps` (or epochs · steps_per_epoch).

    The momentum moves the other way, between `max_momentum` and `base_momentum`, unless `cycle_momentum` is False.
    Raises ValueError when no length is given, and BadRecipe when it is moved beyond it, where torch raises too.
    """

    def __init__(
        self,
        optimizer: Any,
        max_lr: float | list[float],
        total_steps: int | None = None,
        epochs: int | None = None,
        steps_per_epoch: int | None = None,
        pct_start: float = 0.3,
        anneal_strategy: str = "cos",
        cycle_momentum: bool = True,
        base_momentum: float | list[float] = 0.85,
        max_momentum: float | list[float] = 0.95,
        div_factor: float = 25.0,
        final_div_factor: float = 1e4,
        three_phase: bool = False,
    ) -> None:
        if total_steps is None:
            if epochs is None or steps_per_epoch is None:
                raise ValueError("OneCycleLR needs total_steps, or epochs and steps_per_epoch")
            total_steps = epochs * steps_per_epoch
        if anneal_strategy not in ("cos", "linear"):
            raise ValueError(f"OneCycleLR's anneal_strategy is 'cos' or 'linear', not {anneal_strategy!r}")
        self.total_steps, self.linear = total_steps, anneal_strategy == "linear"
        self.highest = _each(max_lr, len(optimizer.param_groups), "max_lr")
        self.final_div_factor = final_div_factor
        rise = float(pct_start * total_steps) - 1
        # (last step of the phase, what it begins with, what it ends with), of initial, highest and lowest rate
        self.phases = [(rise, 0, 1), (total_steps - 1, 1, 2)]
        if three_phase:
            self.phases[1:] = [(float(2 * pct_start * total_steps) - 2, 1, 0), (total_steps - 1, 0, 2)]
        for group, highest in zip(optimizer.param_groups, self.highest, strict=True):
            group["initial_lr"] = highest / div_factor
        self.momentum = MomentumCycle(optimizer, cycle_momentum, base_momentum, max_momentum)
        super().__init__(optimizer)

    def at(self, group: int) -> float:
        """See EpochSchedule."""
        if self.epoch > self.total_steps:
            raise BadRecipe(f"OneCycleLR is made for {self.total_steps} steps, and is moved on to step {self.epoch}")
        initial = self.base_rates[group]
        return self._between((initial, self.highest[group], initial / self.final_div_factor))

    def momentum_at(self, group: int) -> float:
        """See EpochSchedule; low where the rate is high."""
        assert self.momentum is not None
        low, high = self.momentum.lowest[group], self.momentum.highest[group]
        return self._between((high, low, high))

    def group_options(self, group: int) -> dict[str, Any]:
        """See Schedule."""
        lowest = self.base_rates[group] / self.final_div_factor
        return {**super().group_options(group), "max_lr": self.highest[group], "min_lr": lowest}

    def _between(self, levels: tuple[float, float, float]) -> float:
        """Where `self.epoch` is between the levels of its phase: the initial one, that of the peak and the last."""
        now = next((i for i, (last, _, _) in enumerate(self.phases) if self.epoch <= last), len(self.phases) - 1)
        last, start, end = self.phases[now]
        begin = self.phases[now - 1][0] if now else 0.0
        share = (self.epoch - begin) / (last - begin)
        if self.linear:
            return float((levels[end] - levels[start]) * share + levels[start])
        return float(levels[end] + (levels[start] - levels[end]) / 2.0 * (cos(pi * share) + 1))


class CyclicLR(EpochSchedule):
    """Up and down between `base_lr` and `max_lr`; the momentum goes the other way, unless `cycle_momentum` is False.

    scale_fn: of the cycle's number (scale_mode 'cycle') or of the epoch ('iterations'), instead of `mode`.
    """

    def __init__(
        self,
        optimizer: Any,
        base_lr: float | list[float],
        max_lr: float | list[float],
        step_size_up: int = 2000,
        step_size_down: int | None = None,
        mode: str = "triangular",
        gamma: float = 1.0,
        scale_fn: Callable[[float], float] | None = None,
        scale_mode: str = "cycle",
        cycle_momentum: bool = True,
        base_momentum: float | list[float] = 0.8,
        max_momentum: float | list[float] = 0.9,
    ) -> None:
        groups = len(optimizer.param_groups)
        self.lowest, self.highest = _each(base_lr, groups, "base_lr"), _each(max_lr, groups, "max_lr")
        rules: dict[str, Callable[[float], float]] = {
            "triangular": lambda cycle: 1.0,
            "triangular2": lambda cycle: 1 / (2.0 ** (cycle - 1)),
            "exp_range": lambda epoch: gamma**epoch,
        }
        if scale_fn is None and mode not in rules:
            raise ValueError(f"CyclicLR's mode is one of {', '.join(rules)}, not {mode!r}")
        self.scale = scale_fn or rules[mode]
        self.by_epoch = mode == "exp_range" if scale_fn is None else scale_mode == "iterations"
        up = float(step_size_up)
        self.length = up + (float(step_size_down) if step_size_down is not None else up)
        self.rise = up / self.length
        for group, lowest in zip(optimizer.param_groups, self.lowest, strict=True):
            group["initial_lr"] = lowest
        self.momentum = MomentumCycle(optimizer, cycle_momentum, base_momentum, max_momentum)
        super().__init__(optimizer)

    def at(self, group: int) -> float:
        """See EpochSchedule."""
        return float(self.lowest[group] + self._height(self.highest[group] - self.lowest[group]))

    def momentum_at(self, group: int) -> float:
        """See EpochSchedule; low where the rate is high."""
        assert self.momentum is not None
        low, high = self.momentum.lowest[group], self.momentum.highest[group]
        return float(high - self._height(high - low))

    def _height(self, whole: float) -> float:
        """How much of the whole way up `self.epoch` has gone."""
        cycle = floor(1 + self.epoch / self.length)
        place = 1.0 + self.epoch / self.length - cycle
        share = place / self.rise if place <= self.rise else (place - 1) / (self.rise - 1)
        return whole * share * self.scale(self.epoch if self.by_epoch else cycle)


class ChainedScheduler(Schedule):
    """Several schedules at once: each changes the rate that the one before it left.

    `schedulers`: pairs (qualified name of a class, its arguments without the optimizer).
    """

    def __init__(self, optimizer: Any, schedulers: list[tuple[str, dict[str, Any]]]) -> None:
        self.members: list[Schedule] = [resolve(target)(optimizer, **kwargs) for target, kwargs in schedulers]
        super().__init__(optimizer)

    def advance(self) -> None:
        """See Schedule."""
        _next_epoch(self, self.members)
        for member in self.members:
            member.advance()


class ReduceLROnPlateau(Schedule):
    """Multiply by `factor` when the metric has not improved for more than `patience` calls of `step`."""

    def __init__(
        self,
        optimizer: Any,
        mode: str = "min",
        factor: float = 0.1,
        patience: int = 10,
        threshold: float = 1e-4,
        threshold_mode: str = "rel",
        cooldown: int = 0,
        min_lr: float | list[float] = 0.0,
        eps: float = 1e-8,
    ) -> None:
        if mode not in ("min", "max") or threshold_mode not in ("rel", "abs"):
            raise ValueError(f"ReduceLROnPlateau: mode {mode!r} or threshold_mode {threshold_mode!r} is not known")
        self.sign = 1 if mode == "min" else -1
        self.factor, self.patience, self.threshold, self.cooldown = factor, patience, threshold, cooldown
        self.relative, self.eps = threshold_mode == "rel", eps
        self.lowest = _each(min_lr, len(optimizer.param_groups), "min_lr")
        self.best, self.bad, self.resting = self.sign * inf, 0, 0
        super().__init__(optimizer)

    def advance(self) -> None:
        """Count an epoch; the rates change in `step` only."""
        self.epoch += 1

    def step(self, metrics: float | None = None) -> None:
        """Take note of a metric, a number or a tensor of one, and write the rates; None: before the first metric."""
        if metrics is not None:
            self._note(float(metrics))
        self.advance()
        self.write()

    def _note(self, measured: float) -> None:
        margin = self.threshold * self.sign
        bound = self.best * (1.0 - margin) if self.relative else self.best - margin
        better = measured < bound if self.sign > 0 else measured > bound
        self.best, self.bad = (measured, 0) if better else (self.best, self.bad + 1)
        if self.resting > 0:
            self.resting, self.bad = self.resting - 1, 0
        if self.bad > self.patience:
            smaller = [max(rate * self.factor, low) for rate, low in zip(self.rates, self.lowest, strict=True)]
            self.rates[:] = [new if old - new > self.eps else old for old, new in zip(self.rates, smaller, strict=True)]
            self.resting, self.bad = self.cooldown, 0
