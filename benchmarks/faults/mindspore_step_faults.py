"""Faults in the loss, the gradients, the optimizer, the schedule and what else makes a training step."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from math import exp
from typing import Any
from unittest.mock import patch

import mindspore
from mindspore import Tensor, nn, ops
from mindspore_injectors import Places, injector
from msmigrate.mappings import table
from msmigrate.train.recipe import Amp
from msmigrate.train.step import mindspore_adam, mindspore_ema, mindspore_optimizers, mindspore_step
from msmigrate.train.step.mindspore_schedules import Schedule
from msmigrate.train.step.mindspore_step import TrainStep

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
    p = ops.sigmoid(40.0 * logits)
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
    "binary_clamped": _binary_clamped,
    "divergence_mean": lambda logits, targets: ops.kl_div(
        ops.log_softmax(logits, 1), 0.9 * targets + 0.01, reduction="mean"
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


# The optimizer


@injector
def optimizer_argument(places: Places, row: str, **changed: Any) -> Any:
    """The optimizer is made with other arguments."""
    real = table.translate

    def translate(name: str, args: Any, *rest: Any, **options: Any) -> Any:
        given = {**args, **changed} if name == row and not options.get("partial") else args
        return real(name, given, *rest, **options)

    return patch.object(table, "translate", translate)


@injector
def undecayed(places: Places, kinds: list[str]) -> Any:
    """Weight decay that skips parameters by what MindSpore calls them."""
    real = mindspore_step.parameter_groups

    def groups(owners: dict[str, str], optimizer: Any) -> Any:
        return real(owners, optimizer.model_copy(update={"no_weight_decay": kinds}))

    return patch.object(mindspore_step, "parameter_groups", groups)


@injector
def undecayed_by_name(places: Places) -> Any:
    """Weight decay that skips whatever has 'gamma' or 'beta' in its MindSpore name, other layers included."""
    real = mindspore_step.parameter_groups

    def groups(owners: dict[str, str], optimizer: Any) -> Any:
        from msmigrate.train.step.groups import ParameterGroup, is_norm

        spared = tuple(n for n, owner in owners.items() if is_norm(owner) or "gamma" in n or "beta" in n)
        places.extend(spared)
        rest = tuple(n for n in owners if n not in spared)
        assert real
        return [ParameterGroup(spared, {"weight_decay": 0.0}), ParameterGroup(rest, {})]

    return patch.object(mindspore_step, "parameter_groups", groups)


@injector
def divided_again(places: Places) -> Any:
    """An optimizer with loss_scale=S divides gradients that are unscaled already."""
    real = TrainStep._clip_then_optimize

    def apply(self: Any, grads: Any) -> None:
        real(self, tuple(grad / self.scaler.scale for grad in grads))

    return patch.object(TrainStep, "_clip_then_optimize", apply)


@injector
def statistics_decayed(places: Places) -> Any:
    """get_parameters() for trainable_params(): the decay reaches the running statistics."""
    real = TrainStep._clip_then_optimize

    def apply(self: Any, grads: Any) -> None:
        real(self, grads)
        for name, parameter in self.net.parameters_and_names():
            if "moving_" in name:
                parameter.set_data(parameter * (1.0 - 0.01 * 1e-3))

    return patch.object(TrainStep, "_clip_then_optimize", apply)


@injector
def formula(places: Places, how: str) -> Any:
    """The update rule of one of MindSpore's own optimizers, in the place of torch's."""
    if how == "rmsprop_lr_in_velocity" or how.startswith("rmsprop"):
        return _rmsprop(how)
    real = mindspore_adam.AdamW.construct

    def construct(self: Any, gradients: Any) -> bool:
        self.assignadd(self.state_step, self.increase_tensor)
        step = int(self.state_step.asnumpy())
        for g, group in enumerate(self.param_groups):
            first, second = group["betas"]
            decay, rate, eps = float(group["weight_decay"]), float(self.lrs[g]), float(group["eps"])
            roots = (1 - second**step) ** 0.5
            for i in range(self.group_start_id[g], self.group_start_id[g + 1]):
                weight, mean, square = self.parameters[i], self.exp_avg[i], self.exp_avg_sq[i]
                grad = gradients[i]
                if (how == "eps_hat" and isinstance(self, mindspore_adam.Adam)) or how == "coupled":
                    grad = grad + decay * weight
                next_mean = mean * first + grad * (1 - first)
                next_square = square * second + grad * grad * (1 - second)
                ops.assign(mean, next_mean)
                ops.assign(square, next_square)
                if how == "eps_hat":
                    change = rate * roots / (1 - first**step) * next_mean / (ops.sqrt(next_square) + eps)
                elif how == "coupled":
                    change = rate / (1 - first**step) * next_mean / (ops.sqrt(next_square) / roots + eps)
                else:  # nn.AdamWeightDecay: no bias correction
                    change = rate * (next_mean / (ops.sqrt(next_square) + eps) + decay * weight)
                ops.assign(weight, weight - change)
        return True

    assert real
    return patch.object(mindspore_adam.AdamW, "construct", construct)


def _rmsprop(how: str) -> Any:
    real = mindspore_optimizers.RMSprop.__init__
    if how == "rmsprop_ones":

        def init(self: Any, *args: Any, **kwargs: Any) -> None:
            real(self, *args, **kwargs)
            for square in self.mean_square:
                square.set_data(ops.ones_like(square))

        return patch.object(mindspore_optimizers.RMSprop, "__init__", init)

    def implementation(
        self: Any,
        group_id: int,
        lr: Any,
        gradients: Any,
        maximize: bool,
        weight_decay: float,
        centered: bool,
        alpha: float,
        eps: float,
        momentum: float,
    ) -> bool:
        for i in range(self.group_start_id[group_id], self.group_start_id[group_id + 1]):
            weight, square, moment, grad = self.parameters[i], self.mean_square[i], self.moment[i], gradients[i]
            next_square = square * alpha + grad * grad * (1 - alpha)
            ops.assign(square, next_square)
            inside = how == "rmsprop_eps_inside"
            step = grad / (ops.sqrt(next_square + eps) if inside else ops.sqrt(next_square) + eps)
            if how == "rmsprop_lr_in_velocity":
                ops.assign(moment, moment * momentum + lr * step)
                ops.assign(weight, weight - moment)
            else:
                ops.assign(moment, moment * momentum + step)
                ops.assign(weight, weight - moment * lr)
        return True

    return patch.object(mindspore_optimizers.RMSprop, "implementation", implementation)


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


# Half precision and the moving average


@injector
def precision(places: Places, level: str) -> Any:
    """Another level of mixed precision than the recipe's."""
    real = mindspore_step.Precision
    return patch.object(mindspore_step, "Precision", lambda amp, net: real(Amp(level=level) if amp else None, net))


@injector
def average(places: Places) -> Any:
    """mindcv's moving average, with its own ramp of the decay."""
    return patch.object(mindspore_ema, "decay", lambda rule, update: rule.decay * (1.0 - exp(-update / 2000.0)))


# What is believed to be a fault and is none


@injector
def optimizer_class(places: Places, row: str, target: str) -> Any:
    """The optimizer is another class, with the arguments of the row's own."""
    real = table.translate

    def translate(name: str, *rest: Any, **options: Any) -> Any:
        call = real(name, *rest, **options)
        return replace(call, target=target) if name == row else call

    return patch.object(table, "translate", translate)


@injector
def library_sgd(places: Places, how: str) -> Any:
    """nn.SGD or nn.Momentum takes the step, and hands its momentum to the optimizer that the report asks."""

    def apply(self: Any, grads: Any) -> None:
        own = self.optimizer
        if not hasattr(self, "library"):
            args = self.recipe.optimizer.args
            given = {"momentum": args["momentum"], "weight_decay": args.get("weight_decay", 0.0)}
            group = [{"params": list(own.parameters)}]
            rate = float(own.lrs[0])
            if how == "momentum":
                self.library = nn.Momentum(group, rate, **given)
            else:
                self.library = nn.SGD(group, rate, dampening=args.get("dampening", 0.0), **given)
        rate_now = self.library.learning_rate
        rate_now = rate_now[0] if isinstance(rate_now, (list, tuple)) else rate_now
        rate_now.set_data(Tensor(float(own.lrs[0]), mindspore.float32))
        self.library(grads)
        theirs = self.library.moments if how == "momentum" else self.library.accum
        for mine, value in zip(own.accum, theirs, strict=True):
            mine.set_data(value.value())

    return patch.object(TrainStep, "_clip_then_optimize", apply)
