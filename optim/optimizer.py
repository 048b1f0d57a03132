"""The base class, torch's SGD and RMSprop, timm's Lars, and a momentum that a schedule moves.

MindSpore 2.10's experimental optimizers walk the gradients in a comprehension, which compiles for 12 to 20 s over the
161 parameters of a ResNet50, in PyNative too; these map over them, which takes 1 to 2 s. Arguments, parameter groups
and state are those of the classes they derive from. Adam, AdamW and Lamb: see adam.py.

MindSpore's nn.LARS wraps another optimizer and does not clip as timm does.
"""

from __future__ import annotations

from math import log
from typing import Any

from mindspore import Parameter, Tensor, jit, ops
from mindspore import dtype as mstype
from mindspore.experimental import optim

_negative = ops.Neg()


def log_of(beta: float) -> float:
    """The logarithm of a decay rate; of 0 a number whose exponential is 0."""
    return log(beta) if beta else -1e3


def _check(options: dict[str, Any]) -> None:
    """Raise ValueError for what torch's optimizers refuse: negative numbers, betas outside of [0, 1)."""
    for name in ("lr", "eps", "weight_decay"):
        if options.get(name, 0.0) < 0.0:
            raise ValueError(f"invalid {name}: {options[name]}")
    if not all(0.0 <= beta < 1.0 for beta in options.get("betas", ())):
        raise ValueError(f"invalid betas: {options['betas']}")


class CyclingMomentum:
    """A momentum, or a beta1, that a schedule can move, as OneCycleLR and CyclicLR do.

    The options of a group are constants of what is compiled. After `let_momentum_cycle` steps read `momenta`, one
    parameter a group, instead; the option keeps the number, as in torch.
    """

    cycles = False
    momenta: list[Any]
    param_groups: list[dict[str, Any]]

    def let_momentum_cycle(self) -> None:
        """Have steps read the momentum from parameters; before the first step, for it compiles."""
        if not self.cycles:
            self.momenta = [
                Parameter(Tensor(self._momentum_forms(group), mstype.float32), f"momentum_group_{i}", False)
                for i, group in enumerate(self.param_groups)
            ]
            self._momenta_written: list[Any] = [None] * len(self.momenta)
            self.cycles = True

    def set_momentum(self, group_id: int, value: float) -> None:
        """Give a group another momentum; steps see it after `write_momenta`."""
        group = self.param_groups[group_id]
        if "betas" in group:
            group["betas"] = (value, *group["betas"][1:])
        else:
            group["momentum"] = value

    def write_momenta(self) -> None:
        """Write the momenta of the groups to the parameters, where they change; for `copy_` see Schedule.write."""
        for i, group in enumerate(self.param_groups):
            forms = self._momentum_forms(group)
            if forms != self._momenta_written[i]:
                self.momenta[i].copy_(Tensor(forms, mstype.float32))
                self._momenta_written[i] = forms

    def momentum(self, group_id: int) -> float:
        """The momentum, or beta1, that the next step of a group uses."""
        if self.cycles:
            return float(self.momenta[group_id].asnumpy().reshape(-1)[0])
        group = self.param_groups[group_id]
        return float(group["betas"][0] if "betas" in group else group["momentum"])

    def _momentum_forms(self, group: dict[str, Any]) -> Any:
        """What a step needs of a momentum: one number, or several of which it is the first."""
        return float(group["momentum"])


class Optimizer(optim.Optimizer):
    """A base class: zeros for every trained parameter under each name in `slots`, and state_step, how
    many steps have been taken (int32, one for all)."""

    slots: tuple[str, ...] = ()

    def __init__(self, params: Any, defaults: dict[str, Any]) -> None:
        _check(defaults)
        super().__init__(params, defaults)
        for name in self.slots:
            setattr(self, name, self.parameters.clone(prefix=name, init="zeros"))
        self.state_step = Parameter(Tensor(0, mstype.int32), "state_step")
        self.one = Tensor(1, mstype.int32)

    def per_group(self, name: str) -> list[Any]:
        """One option of every group."""
        return [group[name] for group in self.param_groups]

    def span(self, group_id: int) -> tuple[int, int]:
        """The indices at which the parameters of a group begin and end among all parameters."""
        return self.group_start_id[group_id], self.group_start_id[group_id + 1]

    def given(self, group_id: int, gradients: Any) -> tuple[Any, Any]:
        """The weights of a group, and the gradients to use: negated to maximize, with the decay added."""
        group = self.param_groups[group_id]
        start, end = self.span(group_id)
        weights = self.parameters[start:end]
        grads = gradients[start:end]
        if group["maximize"]:
            grads = self.hyper_map(_negative, grads)  # a map of 161 compiles in 4 s, a comprehension in 14
        if "decoupled_weight_decay" not in group or not group["decoupled_weight_decay"]:
            grads = self._decay_weight(group["weight_decay"], weights, grads)
        return weights, grads

    def advance(self, group_id: int, gradients: Any) -> bool:
        """Step one group; compiled in PyNative too, where one operator at a time takes fifteen times as long."""
        raise NotImplementedError

    def construct(self, gradients: Any) -> bool:
        """Take one step; `gradients` is a tuple in the order of the parameters."""
        ops.assign_add(self.state_step, self.one)
        for group_id in range(len(self.param_groups)):
            self.advance(group_id, gradients)
        return True


_sgd_update = ops.MultitypeFuncGraph("msmigrate_sgd_update")
_rmsprop_update = ops.MultitypeFuncGraph("msmigrate_rmsprop_update")


@_sgd_update.register("Function", "Tensor", "Tensor", "Tensor", "Tensor", "Tensor", "Tensor")
def _sgd_update_one(kernel: Any, momentum: Any, rate: Any, grad: Any, weight: Any, accum: Any, stat: Any) -> bool:
    """One weight's step, by MindSpore's kernel."""
    kernel(weight, grad, rate, accum, momentum, stat)
    return True


class SGD(CyclingMomentum, optim.SGD):
    """torch.optim.SGD. State: accum (the momentum buffer), stat (1 before the first step, then 0)."""

    def construct(self, gradients: Any) -> bool:
        """Take one step; `gradients` is a tuple in the order of the parameters."""
        for group_id, group in enumerate(self.param_groups):
            momentum = self.momenta[group_id] if self.cycles else group["momentum"]
            rate = ops.cast(group["lr"], mstype.float32) if isinstance(group["lr"], float) else self.lrs[group_id]
            options = group["maximize"], group["dampening"], group["weight_decay"], group["nesterov"]
            self.implementation(momentum, rate, group_id, gradients, *options)
        return True

    @jit
    def implementation(
        self,
        momentum: Any,
        lr: Any,
        group_id: int,
        gradients: Any,
        maximize: bool,
        dampening: float,
        weight_decay: float,
        nesterov: bool,
    ) -> bool:
        """Step one group; called by the base class."""
        start = self.group_start_id[group_id]
        end = self.group_start_id[group_id + 1]
        grads = gradients[start:end]
        if maximize:
            grads = self.hyper_map(_negative, grads)
        kernel = ops.SGD(dampening, weight_decay, nesterov)
        rule = ops.partial(_sgd_update, kernel, ops.cast(momentum, mstype.float32), lr)
        self.hyper_map(rule, grads, self.parameters[start:end], self.accum[start:end], self.stat[start:end])
        return True


def _rmsprop_direction(centered: Any, alphas: Any, eps: Any, square: Any, mean: Any, grad: Any) -> Any:
    """Move the running means, and return the gradient over the root of the variance; `alphas` is (alpha, 1 - alpha)."""
    next_square = square * alphas[0] + grad * grad * alphas[1]
    ops.assign(square, next_square)
    variance = next_square
    if centered:
        next_mean = mean * alphas[0] + grad * alphas[1]
        ops.assign(mean, next_mean)
        variance = next_square - next_mean * next_mean
    return grad / (ops.sqrt(variance) + eps)


@_rmsprop_update.register(
    "Bool", "Tuple", "Number", "Number", "Tensor", "Tensor", "Tensor", "Tensor", "Tensor", "Tensor"
)
def _rmsprop_update_one(
    centered: Any,
    alphas: Any,
    eps: Any,
    momentum: Any,
    rate: Any,
    weight: Any,
    square: Any,
    mean: Any,
    moment: Any,
    grad: Any,
) -> bool:
    """One weight's step."""
    step = _rmsprop_direction(centered, alphas, eps, square, mean, grad)
    if momentum > 0:
        step = moment * momentum + step
        ops.assign(moment, step)
    ops.assign(weight, weight - step * rate)
    return True


@_rmsprop_update.register(
    "Bool", "Tuple", "Number", "Tensor", "Tensor", "Tensor", "Tensor", "Tensor", "Tensor", "Tensor"
)
def _rmsprop_update_cycling(
    centered: Any,
    alphas: Any,
    eps: Any,
    momentum: Any,
    rate: Any,
    weight: Any,
    square: Any,
    mean: Any,
    moment: Any,
    grad: Any,
) -> bool:
    """One weight's step with a momentum that a schedule moves, which is never 0."""
    step = moment * momentum + _rmsprop_direction(centered, alphas, eps, square, mean, grad)
    ops.assign(moment, step)
    ops.assign(weight, weight - step * rate)
    return True


class RMSprop(CyclingMomentum, optim.RMSprop):
    """torch.optim.RMSprop. State: mean_square, mean_grad, moment (the momentum buffer).

    1 - alpha is formed in float64; in float32, as MindSpore's own does, it loses digits as alpha nears 1.
    """

    def __init__(
        self,
        params: Any,
        lr: float = 1e-2,
        alpha: float = 0.99,
        eps: float = 1e-8,
        weight_decay: float = 0.0,
        momentum: float = 0.0,
        centered: bool = False,
        maximize: bool = False,
    ) -> None:
        super().__init__(params, lr, alpha, eps, weight_decay, momentum, centered, maximize)
        self.alphas = [(group["alpha"], 1 - group["alpha"]) for group in self.param_groups]

    def construct(self, gradients: Any) -> bool:
        """Take one step; `gradients` is a tuple in the order of the parameters."""
        for group_id, group in enumerate(self.param_groups):
            momentum = self.momenta[group_id] if self.cycles else group["momentum"]
            rate = ops.cast(group["lr"], mstype.float32) if isinstance(group["lr"], float) else self.lrs[group_id]
            options = group["maximize"], group["weight_decay"], group["centered"], group["alpha"], group["eps"]
            self.implementation(group_id, rate, gradients, *options, momentum)
        return True

    @jit
    def implementation(
        self,
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
        """Step one group; called by the base class."""
        start = self.group_start_id[group_id]
        end = self.group_start_id[group_id + 1]
        weights = self.parameters[start:end]
        grads = gradients[start:end]
        if maximize:
            grads = self.hyper_map(_negative, grads)
        grads = self._decay_weight(weight_decay, weights, grads)
        rule = ops.partial(_rmsprop_update, centered, self.alphas[group_id], eps, momentum, lr)
        state = (self.mean_square[start:end], self.mean_grad[start:end], self.moment[start:end])
        self.hyper_map(rule, weights, *state, grads)
        return True


def norm(x: Any) -> Any:
    """The L2 norm of all values."""
    return ops.sqrt(ops.reduce_sum(x * x))


def trust_ratio(weight: Any, update: Any, ratio: Any) -> Any:
    """The ratio, or 1 where either norm is 0."""
    return ops.where(ops.logical_and(weight > 0, update > 0), ratio, ops.ones_like(ratio))


def _lars(
    started: Any,
    moves: Any,
    momentum: Any,
    left: Any,
    decay: Any,
    nesterov: Any,
    trust: Any,
    eps: Any,
    adapt: Any,
    trust_clip: Any,
    rate: Any,
    weight: Any,
    grad: Any,
    buffer: Any,
) -> bool:
    update = grad
    if adapt:
        size, length = norm(weight), norm(grad)
        ratio = trust_ratio(size, length, size * trust / (length + size * decay + eps))
        if trust_clip:
            ratio = ops.minimum(ratio / rate, ops.ones_like(ratio))
        update = (grad + weight * decay) * ratio
    if moves:
        velocity = ops.where(started > 0, buffer * momentum + update * left, update)
        ops.assign(buffer, velocity)
        update = update + velocity * momentum if nesterov else velocity
    ops.assign(weight, weight - update * rate)
    return True


class Lars(CyclingMomentum, Optimizer):
    """timm.optim.Lars. State: momentum_buffer, started (0 before the first step, which takes the gradient undamped)."""

    slots = ("momentum_buffer",)

    def __init__(
        self,
        params: Any,
        lr: float = 1.0,
        momentum: float = 0.0,
        dampening: float = 0.0,
        weight_decay: float = 0.0,
        nesterov: bool = False,
        trust_coeff: float = 0.001,
        eps: float = 1e-8,
        trust_clip: bool = False,
        always_adapt: bool = False,
    ) -> None:
        options = {"lr": lr, "momentum": momentum, "dampening": dampening, "weight_decay": weight_decay}
        options |= {"nesterov": nesterov, "trust_coeff": trust_coeff, "eps": eps, "trust_clip": trust_clip}
        super().__init__(params, {**options, "always_adapt": always_adapt})
        self.started = Parameter(Tensor(0.0, mstype.float32), "started")

    @jit
    def advance(self, group_id: int, gradients: Any) -> bool:
        """See Optimizer."""
        start, end = self.span(group_id)
        group = self.param_groups[group_id]
        momentum = self.momenta[group_id] if self.cycles else group["momentum"]
        moves = self.cycles or group["momentum"] != 0
        left, decay = 1.0 - group["dampening"], group["weight_decay"]
        adapt = decay != 0 or group["always_adapt"]
        trust, eps, rate = group["trust_coeff"], group["eps"], self.lrs[group_id]
        rule = ops.partial(
            _lars,
            self.started,
            moves,
            momentum,
            left,
            decay,
            group["nesterov"],
            trust,
            eps,
            adapt,
            group["trust_clip"],
            rate,
        )
        weights, grads = self.parameters[start:end], gradients[start:end]
        self.hyper_map(rule, weights, grads, self.momentum_buffer[start:end])
        return True

    def construct(self, gradients: Any) -> bool:
        """Take one step; `gradients` is a tuple in the order of the parameters."""
        for group_id in range(len(self.param_groups)):
            self.advance(group_id, gradients)
        ops.assign(self.started, ops.ones_like(self.started))
        return True
