"""Adam, AdamW, NAdam, RAdam as torch computes them, and Lamb as timm does.

MindSpore 2.10's experimental ones form 1 - beta and 1 - beta^t in float32, where 1 - 0.999 has lost five digits:
exp_avg_sq is 1.3e-5 (relative) off torch's, a hundred times torch's own rounding. Its Adam moreover adds eps
before the bias correction, which makes eps 31 times larger in the first step; NAdam and RAdam have neither `maximize`
nor `decoupled_weight_decay`. Here constants are formed in Python's float64, no difference of nearly equal numbers is
taken in float32, and one map steps all weights of a group. Its nn.Lamb has no kernel on the CPU.
"""

from __future__ import annotations

from math import log
from typing import Any

from mindspore import Parameter, ParameterTuple, Tensor, jit, ops
from mindspore import dtype as mstype

from .optimizer import CyclingMomentum, Optimizer, log_of, norm, trust_ratio

SERIES = tuple(1.0 / k for k in range(10, 1, -1))  # of (e^y - 1) / y by Horner; 4e-10 at y = -0.5


def correction(step: Any, log_beta: float) -> Any:
    """1 - beta^step in float32 without cancellation; `step` is an int32 scalar.

    ops.expm1 and ops.tanh would be the natural way, but on MindSpore's CPU they are 1e-5 off for small arguments.
    """
    exponent = ops.cast(step, mstype.float32) * log_beta
    near = ops.ones_like(exponent)
    for part in SERIES:
        near = 1.0 + exponent * part * near
    return ops.where(exponent > -0.5, -exponent * near, 1.0 - ops.exp(exponent))


class Moments(CyclingMomentum, Optimizer):
    """An optimizer with running means of the gradients and of their squares, whose decay rates are its option `betas`.

    weighings: (b1, 1 - b1, b2, 1 - b2) of every group. log_betas: the logarithms of both.
    """

    slots: tuple[str, ...] = ("exp_avg", "exp_avg_sq")

    def __init__(self, params: Any, defaults: dict[str, Any]) -> None:
        super().__init__(params, defaults)
        pairs = self.per_group("betas")
        self.weighings = [(first, 1 - first, second, 1 - second) for first, second in pairs]
        self.log_betas = [(log_of(first), log_of(second)) for first, second in pairs]

    def of_mean(self, group_id: int) -> Any:
        """beta1, 1 - beta1 and the logarithm of beta1, of a group: constants, or what a schedule has written."""
        if self.cycles:
            now = self.momenta[group_id]
            return now[0], now[1], now[2]
        return self.weighings[group_id][0], self.weighings[group_id][1], self.log_betas[group_id][0]

    def _momentum_forms(self, group: dict[str, Any]) -> Any:
        first = group["betas"][0]
        return [first, 1 - first, log_of(first)]


def moved(weighings: Any, grad: Any, mean: Any, square: Any) -> tuple[Any, Any]:
    """Move both running means of a weight, and return them."""
    next_mean = mean * weighings[0] + grad * weighings[1]
    next_square = square * weighings[2] + grad * grad * weighings[3]
    ops.assign(mean, next_mean)
    ops.assign(square, next_square)
    return next_mean, next_square


def _adam(
    weighings: Any,
    shrink: Any,
    eps: Any,
    root: Any,
    size: Any,
    amsgrad: Any,
    weight: Any,
    grad: Any,
    mean: Any,
    square: Any,
    peak: Any,
) -> bool:
    """One weight's step; `root` corrects the root of the square."""
    next_mean, held = moved(weighings, grad, mean, square)
    if amsgrad:
        held = ops.maximum(peak, held)
        ops.assign(peak, held)
    ops.assign(weight, weight * shrink - next_mean / (ops.sqrt(held) / root + eps) * size)
    return True


class AdamW(Moments):
    """torch.optim.AdamW: the decay acts on the weights, weight ← weight·(1 - lr·decay).

    Takes torch's arguments, parameter groups included. State: exp_avg, exp_avg_sq, max_exp_avg_sq (one parameter for
    each trained one, in their order) and state_step (int32, one for all).
    """

    slots = ("exp_avg", "exp_avg_sq", "max_exp_avg_sq")
    decoupled = True

    def __init__(
        self,
        params: Any,
        lr: float = 1e-3,
        betas: tuple[float, float] = (0.9, 0.999),
        eps: float = 1e-8,
        weight_decay: float = 1e-2,
        amsgrad: bool = False,
        *,
        maximize: bool = False,
    ) -> None:
        options = {"lr": lr, "betas": betas, "eps": eps, "weight_decay": weight_decay, "maximize": maximize}
        super().__init__(params, options | {"amsgrad": amsgrad, "decoupled_weight_decay": self.decoupled})

    @jit
    def advance(self, group_id: int, gradients: Any) -> bool:
        """See Optimizer."""
        weights, grads = self.given(group_id, gradients)
        start, end = self.span(group_id)
        group = self.param_groups[group_id]
        beta, left, log_beta = self.of_mean(group_id)
        rate = self.lrs[group_id]
        shrink = 1.0 - rate * group["weight_decay"] * float(group["decoupled_weight_decay"])
        size = rate / correction(self.state_step, log_beta)
        root = ops.sqrt(correction(self.state_step, self.log_betas[group_id][1]))
        weighings = (beta, left, self.weighings[group_id][2], self.weighings[group_id][3])
        rule = ops.partial(_adam, weighings, shrink, group["eps"], root, size, group["amsgrad"])
        state = (self.exp_avg[start:end], self.exp_avg_sq[start:end], self.max_exp_avg_sq[start:end])
        self.hyper_map(rule, weights, grads, *state)
        return True


class Adam(AdamW):
    """torch.optim.Adam: the decay is added to the gradient. Arguments and state as in AdamW, decay 0 by default."""

    decoupled = False

    def __init__(
        self,
        params: Any,
        lr: float = 1e-3,
        betas: tuple[float, float] = (0.9, 0.999),
        eps: float = 1e-8,
        weight_decay: float = 0.0,
        amsgrad: bool = False,
        *,
        maximize: bool = False,
    ) -> None:
        super().__init__(params, lr, betas, eps, weight_decay, amsgrad, maximize=maximize)


def _nadam(
    weighings: Any,
    shrink: Any,
    eps: Any,
    root: Any,
    share: Any,
    following: Any,
    rate: Any,
    weight: Any,
    grad: Any,
    mean: Any,
    square: Any,
    product: Any,
) -> bool:
    next_mean, next_square = moved(weighings, grad, mean, square)
    now = product * share
    size = ops.sqrt(next_square) / root + eps
    ops.assign(product, now)
    by_grad = rate * (1.0 - share) / (1.0 - now)
    by_mean = rate * following / (1.0 - now * following)
    ops.assign(weight, weight * shrink - grad / size * by_grad - next_mean / size * by_mean)
    return True


class NAdam(Moments):
    """torch.optim.NAdam. State: exp_avg, exp_avg_sq, mu_product (a scalar for every parameter)."""

    def __init__(
        self,
        params: Any,
        lr: float = 2e-3,
        betas: tuple[float, float] = (0.9, 0.999),
        eps: float = 1e-8,
        weight_decay: float = 0.0,
        momentum_decay: float = 4e-3,
        decoupled_weight_decay: bool = False,
        maximize: bool = False,
    ) -> None:
        options = {"lr": lr, "betas": betas, "eps": eps, "weight_decay": weight_decay, "maximize": maximize}
        options |= {"momentum_decay": momentum_decay, "decoupled_weight_decay": decoupled_weight_decay}
        super().__init__(params, options)
        self.mu_product = ParameterTuple(
            Parameter(Tensor(1.0, mstype.float32), f"mu_product.{each.name}") for each in self.parameters
        )
        self.fading = [decay * log(0.96) for decay in self.per_group("momentum_decay")]

    @jit
    def advance(self, group_id: int, gradients: Any) -> bool:
        """See Optimizer."""
        weights, grads = self.given(group_id, gradients)
        start, end = self.span(group_id)
        group = self.param_groups[group_id]
        rate = self.lrs[group_id]
        beta, left, _ = self.of_mean(group_id)
        shrink = 1.0 - rate * group["weight_decay"] * float(group["decoupled_weight_decay"])
        root = ops.sqrt(correction(self.state_step, self.log_betas[group_id][1]))
        step = ops.cast(self.state_step, mstype.float32)
        share = beta * (1.0 - 0.5 * ops.exp(step * self.fading[group_id]))
        following = beta * (1.0 - 0.5 * ops.exp((step + 1.0) * self.fading[group_id]))
        weighings = (beta, left, self.weighings[group_id][2], self.weighings[group_id][3])
        rule = ops.partial(_nadam, weighings, shrink, group["eps"], root, share, following, rate)
        state = (self.exp_avg[start:end], self.exp_avg_sq[start:end], self.mu_product[start:end])
        self.hyper_map(rule, weights, grads, *state)
        return True


def _radam(
    weighings: Any,
    shrink: Any,
    eps: Any,
    root: Any,
    rectified: Any,
    factor: Any,
    rate: Any,
    weight: Any,
    grad: Any,
    mean: Any,
    square: Any,
) -> bool:
    next_mean, next_square = moved(weighings, grad, mean, square)
    adapted = ops.where(rectified, root * factor / (ops.sqrt(next_square) + eps), ops.ones_like(next_square))
    ops.assign(weight, weight * shrink - next_mean * rate * adapted)
    return True


BERNOULLI = (1 / 12, -1 / 720, 1 / 30240, -1 / 1209600, 1 / 47900160)  # of 1/(e^y - 1) - 1/y + 1/2, by y, y^3, y^5 …


class RAdam(Moments):
    """torch.optim.RAdam. State: exp_avg, exp_avg_sq.

    rho, which decides on rectification, is in the first steps a difference of two numbers near 2000: there a series is
    used.
    """

    def __init__(
        self,
        params: Any,
        lr: float = 1e-3,
        betas: tuple[float, float] = (0.9, 0.999),
        eps: float = 1e-8,
        weight_decay: float = 0.0,
        decoupled_weight_decay: bool = False,
        maximize: bool = False,
    ) -> None:
        options = {"lr": lr, "betas": betas, "eps": eps, "weight_decay": weight_decay, "maximize": maximize}
        super().__init__(params, options | {"decoupled_weight_decay": decoupled_weight_decay})
        self.longest = [
            2 / (1 - second) - 1 for _, second in self.per_group("betas")
        ]  # rho after infinitely many steps
        self.offsets = [longest + 2 / logs[1] for longest, logs in zip(self.longest, self.log_betas, strict=True)]

    @jit
    def advance(self, group_id: int, gradients: Any) -> bool:
        """See Optimizer."""
        weights, grads = self.given(group_id, gradients)
        start, end = self.span(group_id)
        group = self.param_groups[group_id]
        beta, beta_left, log_beta = self.of_mean(group_id)
        second = self.log_betas[group_id][1]
        longest = self.longest[group_id]
        step = ops.cast(self.state_step, mstype.float32)
        left = correction(self.state_step, second)
        y = step * (-second)
        series = ops.zeros_like(y)
        for part in BERNOULLI[::-1]:
            series = series * y * y + part
        near = self.offsets[group_id] + step - 2.0 * step * y * series
        rho = ops.where(y < 1.0, near, longest - 2.0 * step * (1.0 - left) / left)
        rectified = rho > 5.0
        safe = ops.where(rectified, rho, ops.ones_like(rho) * 6.0)
        over = (longest - 4.0) * (longest - 2.0)
        factor = ops.sqrt(ops.abs((safe - 4.0) * (safe - 2.0) * longest / (over * safe)))
        rate = self.lrs[group_id]
        shrink = 1.0 - rate * group["weight_decay"] * float(group["decoupled_weight_decay"])
        size = rate / correction(self.state_step, log_beta)
        root = ops.sqrt(left)
        weighings = (beta, beta_left, self.weighings[group_id][2], self.weighings[group_id][3])
        rule = ops.partial(_radam, weighings, shrink, group["eps"], root, rectified, factor, size)
        self.hyper_map(rule, weights, grads, self.exp_avg[start:end], self.exp_avg_sq[start:end])
        return True


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
        size, length = norm(weight), norm(update)
        ratio = trust_ratio(size, length, size / length)
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

    def _momentum_forms(self, group: dict[str, Any]) -> Any:
        first = group["betas"][0]
        return [first, 1 - first if group["grad_averaging"] else 1.0, log_of(first)]

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
        beta, left, log_beta = self.of_mean(group_id)
        mean_left, root = ops.ones_like(clip), ops.ones_like(clip)
        if group["bias_correction"]:
            mean_left = correction(self.state_step, log_beta)
            root = ops.sqrt(correction(self.state_step, self.log_betas[group_id][1]))
        decay = group["weight_decay"]
        adapt = decay != 0 or group["always_adapt"]
        weighings = (beta, left, self.weighings[group_id][2], self.weighings[group_id][3])
        eps, rate = group["eps"], self.lrs[group_id]
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
