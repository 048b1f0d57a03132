"""timm's Lamb and Lars in MindSpore: every weight's step is scaled by the norms of the weight and of its update.

MindSpore 2.10's nn.Lamb has no kernel on the CPU, and its nn.LARS wraps another optimizer and clips nothing as timm
does.
"""

from __future__ import annotations

from typing import Any

from mindspore import Parameter, Tensor, jit, ops
from mindspore import dtype as mstype

from .adam import Moments, correction, moved
from .optimizer import Optimizer


def _norm(x: Any) -> Any:
    """The L2 norm of all values."""
    return ops.sqrt(ops.reduce_sum(x * x))


def _ratio(weight: Any, update: Any, ratio: Any) -> Any:
    """The ratio, or 1 where either norm is 0."""
    return ops.where(ops.logical_and(weight > 0, update > 0), ratio, ops.ones_like(ratio))


def _lamb(
    clip: Any,
    weighings: Any,
    mean_left: Any,
    root: Any,
    eps: Any,
    decay: Any,
    adapt: Any,
    trust_clip: Any,
    rate: Any,
    weight: Any,
    grad: Any,
    mean: Any,
    square: Any,
) -> bool:
    next_mean, next_square = moved(weighings, grad / clip, mean, square)
    update = next_mean / mean_left / (ops.sqrt(next_square) / root + eps) + weight * decay
    if adapt:
        size, length = _norm(weight), _norm(update)
        ratio = _ratio(size, length, size / length)
        if trust_clip:
            ratio = ops.minimum(ratio, ops.ones_like(ratio))
        update = update * ratio
    ops.assign(weight, weight - update * rate)
    return True


class Lamb(Moments):
    """timm.optim.Lamb. State: exp_avg, exp_avg_sq, state_step (which timm keeps in its parameter groups)."""

    def __init__(
        self,
        params: Any,
        lr: float = 1e-3,
        bias_correction: bool = True,
        betas: tuple[float, float] = (0.9, 0.999),
        eps: float = 1e-6,
        weight_decay: float = 0.01,
        grad_averaging: bool = True,
        max_grad_norm: float | None = 1.0,
        trust_clip: bool = False,
        always_adapt: bool = False,
    ) -> None:
        options = {"lr": lr, "bias_correction": bias_correction, "betas": betas, "eps": eps}
        options |= {"weight_decay": weight_decay, "grad_averaging": grad_averaging}
        super().__init__(params, {**options, "trust_clip": trust_clip, "always_adapt": always_adapt})
        self.max_grad_norm = max_grad_norm
        self.weighings = [
            (first, share if averaging else 1.0, *of_square)
            for (first, share, *of_square), averaging in zip(
                self.weighings, self.per_group("grad_averaging"), strict=True
            )
        ]

    @jit
    def clipping(self, gradients: Any) -> Any:
        """What every gradient is divided by: 1, or the norm of all as a multiple of the largest allowed."""
        total = ops.zeros((), mstype.float32)
        for grad in gradients:
            total = total + ops.reduce_sum(grad * grad)
        if self.max_grad_norm is None:
            return ops.ones_like(total)
        return ops.maximum(ops.sqrt(total) / self.max_grad_norm, ops.ones_like(total))

    @jit
    def scaled(self, group_id: int, gradients: Any, clip: Any) -> bool:
        """Step one group."""
        start, end = self.span(group_id)
        group = self.param_groups[group_id]
        first, second = self.log_betas[group_id]
        mean_left, root = ops.ones_like(clip), ops.ones_like(clip)
        if group["bias_correction"]:
            mean_left = correction(self.state_step, first)
            root = ops.sqrt(correction(self.state_step, second))
        decay = group["weight_decay"]
        adapt = decay != 0 or group["always_adapt"]
        weighings, eps, rate = self.weighings[group_id], group["eps"], self.lrs[group_id]
        rule = ops.partial(_lamb, clip, weighings, mean_left, root, eps, decay, adapt, group["trust_clip"], rate)
        weights, grads = self.parameters[start:end], gradients[start:end]
        self.hyper_map(rule, weights, grads, self.exp_avg[start:end], self.exp_avg_sq[start:end])
        return True

    def construct(self, gradients: Any) -> bool:
        """Take one step; `gradients` is a tuple in the order of the parameters."""
        ops.assign_add(self.state_step, self.one)
        clip = self.clipping(gradients)
        for group_id in range(len(self.param_groups)):
            self.scaled(group_id, gradients, clip)
        return True


def _lars(
    started: Any,
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
        size, length = _norm(weight), _norm(grad)
        ratio = _ratio(size, length, size * trust / (length + size * decay + eps))
        if trust_clip:
            ratio = ops.minimum(ratio / rate, ops.ones_like(ratio))
        update = (grad + weight * decay) * ratio
    if momentum != 0:
        held = ops.where(started > 0, buffer * momentum + update * left, update)
        ops.assign(buffer, held)
        update = update + held * momentum if nesterov else held
    ops.assign(weight, weight - update * rate)
    return True


class Lars(Optimizer):
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
        momentum, left, decay = group["momentum"], 1.0 - group["dampening"], group["weight_decay"]
        adapt = decay != 0 or group["always_adapt"]
        trust, eps, rate = group["trust_coeff"], group["eps"], self.lrs[group_id]
        rule = ops.partial(
            _lars,
            self.started,
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
