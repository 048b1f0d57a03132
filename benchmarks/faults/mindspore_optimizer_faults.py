"""Faults in the optimizer: its arguments, what it decays, and its formula."""

from __future__ import annotations

from dataclasses import replace
from typing import Any
from unittest.mock import patch

import mindspore
from mindspore import Tensor, nn, ops
from mindspore_injectors import Places, injector
from msmigrate.mappings import table
from msmigrate.optim import adam
from msmigrate.optim import optimizer as mindspore_optimizers
from msmigrate.training.step import mindspore_step, parameter_groups
from msmigrate.training.step.mindspore_step import TrainStep

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
    real = parameter_groups.parameter_groups

    def groups(owners: dict[str, str], optimizer: Any) -> Any:
        return real(owners, optimizer.model_copy(update={"no_weight_decay": kinds}))

    return patch.object(mindspore_step, "parameter_groups", groups)


@injector
def undecayed_by_name(places: Places) -> Any:
    """Weight decay that skips whatever has 'gamma' or 'beta' in its MindSpore name, other layers included."""
    real = parameter_groups.parameter_groups

    def groups(owners: dict[str, str], optimizer: Any) -> Any:
        from msmigrate.training.step.parameter_groups import ParameterGroup, is_norm

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

    def advance(self: Any, group_id: int, gradients: Any) -> bool:
        step = int(self.state_step.asnumpy())
        group = self.param_groups[group_id]
        first, second = group["betas"]
        decay, rate, eps = float(group["weight_decay"]), float(self.lrs[group_id]), float(group["eps"])
        roots = (1 - second**step) ** 0.5
        for i in range(*self.span(group_id)):
            weight, mean, square, grad = self.parameters[i], self.exp_avg[i], self.exp_avg_sq[i], gradients[i]
            if (how == "eps_hat" and isinstance(self, adam.Adam)) or how == "coupled":
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

    return patch.object(adam.AdamW, "advance", advance)


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
        rate_now.copy_(Tensor(float(own.lrs[0]), mindspore.float32))  # set_data: compiled code would not see it
        self.library(grads)
        theirs = self.library.moments if how == "momentum" else self.library.accum
        for mine, value in zip(own.accum, theirs, strict=True):
            mine.set_data(value.value())

    return patch.object(TrainStep, "_clip_then_optimize", apply)
