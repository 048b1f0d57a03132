"""Losses as functions, where MindSpore's own lacks an argument, a gradient or a kernel; with torch's argument names."""

from __future__ import annotations

from mindspore import Tensor, ops


def kl_div(input: Tensor, target: Tensor, reduction: str = "mean", log_target: bool = False) -> Tensor:
    """The Kullback-Leibler divergence of `target` from logarithms; ops.kl_div gives the target no gradient."""
    if log_target:
        loss = ops.exp(target) * (target - input)
    else:
        positive = target > 0  # 0 times its logarithm is 0
        logarithm = ops.log(ops.where(positive, target, ops.ones_like(target)))
        loss = ops.where(positive, target * (logarithm - input), -target * input)
    if reduction == "none":
        return loss
    if reduction == "sum":
        return loss.sum()
    if reduction == "batchmean":
        return loss.sum() / input.shape[0]
    return loss.mean()


def binary_cross_entropy(
    input: Tensor, target: Tensor, weight: Tensor | None = None, reduction: str = "mean"
) -> Tensor:
    """The cross entropy of probabilities, its logarithms no lower than -100; the weight may be broadcast."""
    yes = ops.maximum(ops.log(input), ops.full_like(input, -100.0))
    no = ops.maximum(ops.log(1 - input), ops.full_like(input, -100.0))
    loss = -(target * yes + (1 - target) * no)
    if weight is not None:
        loss = loss * weight
    if reduction == "none":
        return loss
    return loss.sum() if reduction == "sum" else loss.mean()


def triplet_margin_loss(
    anchor: Tensor,
    positive: Tensor,
    negative: Tensor,
    margin: float = 1.0,
    p: float = 2,
    eps: float = 1e-6,
    swap: bool = False,
    reduction: str = "mean",
) -> Tensor:
    """How much nearer the positive should be to the anchor than the negative; ops.triplet_margin_loss adds no eps."""
    distances = []
    for one, other in ((anchor, positive), (anchor, negative), (positive, negative)):
        difference = ops.abs(one - other + eps)
        if p == 2:
            distances.append(ops.sqrt((difference * difference).sum(-1)))
        else:
            distances.append(ops.pow(ops.pow(difference, p).sum(-1), 1.0 / p))
    far = ops.minimum(distances[1], distances[2]) if swap else distances[1]
    loss = ops.relu(distances[0] - far + margin)
    if reduction == "none":
        return loss
    return loss.sum() if reduction == "sum" else loss.mean()


def soft_margin_loss(input: Tensor, target: Tensor, reduction: str = "mean") -> Tensor:
    """log(1 + exp(-target * input)) for targets of -1 and 1; ops.soft_margin_loss has no kernel on the CPU."""
    margin = target * input
    loss = ops.relu(-margin) + ops.log1p(ops.exp(-ops.abs(margin)))
    if reduction == "none":
        return loss
    return loss.sum() if reduction == "sum" else loss.mean()


def multi_margin_loss(
    input: Tensor,
    target: Tensor,
    p: int = 1,
    margin: float = 1.0,
    weight: Tensor | None = None,
    reduction: str = "mean",
) -> Tensor:
    """By how much other classes come within the margin of the label's; input (N, C), target (N,) of integers."""
    label = ops.expand_dims(target, 1)
    loss = ops.relu(margin - ops.gather_elements(input, 1, label) + input)
    if p == 2:
        loss = loss * loss
    if weight is not None:
        loss = loss * ops.expand_dims(ops.gather(weight, target, 0), 1)
    others = ops.expand_dims(ops.arange(input.shape[1]), 0) != label
    loss = ops.where(others, loss, ops.zeros_like(loss)).sum(1) / input.shape[1]
    if reduction == "none":
        return loss
    return loss.sum() if reduction == "sum" else loss.mean()


def poisson_nll_loss(
    input: Tensor,
    target: Tensor,
    log_input: bool = True,
    full: bool = False,
    eps: float = 1e-8,
    reduction: str = "mean",
) -> Tensor:
    """The negative logarithm of a Poisson distribution's probability of `target`; full: with Stirling's term."""
    loss = ops.exp(input) - target * input if log_input else input - target * ops.log(input + eps)
    if full:
        safe = ops.maximum(target, ops.ones_like(target))
        stirling = target * ops.log(safe) - target + 0.5 * ops.log(2 * 3.141592653589793 * safe)
        loss = loss + ops.where(target > 1, stirling, ops.zeros_like(target))
    if reduction == "none":
        return loss
    return loss.sum() if reduction == "sum" else loss.mean()


def gaussian_nll_loss(
    input: Tensor, target: Tensor, var: Tensor, full: bool = False, eps: float = 1e-6, reduction: str = "mean"
) -> Tensor:
    """The negative logarithm of a normal density; `var` counts as eps at least and keeps its gradient."""
    variance = var + ops.stop_gradient(ops.maximum(var, ops.full_like(var, eps)) - var)
    difference = input - target
    loss = 0.5 * (ops.log(variance) + difference * difference / variance)
    if full:
        loss = loss + 0.9189385332046727  # half the logarithm of 2 pi
    if reduction == "none":
        return loss
    return loss.sum() if reduction == "sum" else loss.mean()


def ctc_loss(
    log_probs: Tensor,
    targets: Tensor,
    input_lengths: Tensor,
    target_lengths: Tensor,
    blank: int = 0,
    reduction: str = "mean",
    zero_infinity: bool = False,
) -> Tensor:
    """Connectionist temporal classification over (T, N, C); ops.ctc_loss gives its forward variables as well."""
    return ops.ctc_loss(log_probs, targets, input_lengths, target_lengths, blank, reduction, zero_infinity)[0]


def sigmoid_focal_loss(
    inputs: Tensor, targets: Tensor, alpha: float = 0.25, gamma: float = 2, reduction: str = "none"
) -> Tensor:
    """torchvision's focal loss of logits; alpha below 0: no weight for the positive class."""
    p = ops.sigmoid(inputs)
    ce = ops.relu(inputs) - inputs * targets + ops.log1p(ops.exp(-ops.abs(inputs)))
    p_t = p * targets + (1 - p) * (1 - targets)
    loss = ce * ops.pow(1 - p_t, gamma)
    if alpha >= 0:
        loss = (alpha * targets + (1 - alpha) * (1 - targets)) * loss
    if reduction == "none":
        return loss
    return loss.sum() if reduction == "sum" else loss.mean()
