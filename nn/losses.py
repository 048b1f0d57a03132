"""Losses and distances that MindSpore lacks, or computes otherwise than torch and timm on the CPU."""

from __future__ import annotations

from collections.abc import Callable

from mindspore import Parameter, Tensor, nn, ops
from mindspore import dtype as mstype


class CrossEntropyLossOfInt64(nn.CrossEntropyLoss):
    """Cross-entropy that also takes classes as int64, as torch's does, for classes of your own to derive from."""

    def construct(self, logits: Tensor, labels: Tensor) -> Tensor:
        """logits: (batch, classes, …); labels: a class for each, or shares of classes."""
        return super().construct(logits, class_labels(labels))


def class_labels(target: Tensor) -> Tensor:
    """Classes of int64 as int32, for MindSpore's cross-entropy takes no others; shares of classes as they are."""
    return target.astype(mstype.int32) if target.dtype == mstype.int64 else target


class Loss(nn.LossBase):
    """A loss without a computation of its own, for classes of your own to derive from: it keeps `reduction`."""

    def __init__(self, reduction: str = "mean") -> None:
        super().__init__()
        self.reduction = reduction


class WeightedLoss(Loss):
    """The same with a weight for each class, which does not train."""

    def __init__(self, weight: Tensor | None = None, reduction: str = "mean") -> None:
        super().__init__(reduction)
        self.weight = None if weight is None else Parameter(weight, name="weight", requires_grad=False)


class KLDivLoss(nn.LossBase):
    """The Kullback-Leibler divergence of a target from an input of logarithms, with log_target and 'batchmean'.

    MindSpore's own has no log_target, and gives the target no gradient.
    """

    def __init__(self, reduction: str = "mean", log_target: bool = False) -> None:
        super().__init__()
        self.reduction, self.log_target = reduction, log_target

    def construct(self, input: Tensor, target: Tensor) -> Tensor:
        """input: log-probabilities; target: probabilities, or their logarithms with log_target."""
        return kl_div(input, target, self.reduction, self.log_target)


class TripletMarginLoss(nn.LossBase):
    """How much nearer the positive should be to the anchor than the negative; distances of order p, with torch's eps.

    MindSpore's own adds no eps to the differences.
    """

    def __init__(
        self, margin: float = 1.0, p: float = 2.0, eps: float = 1e-6, swap: bool = False, reduction: str = "mean"
    ) -> None:
        super().__init__()
        self.margin, self.p, self.eps, self.swap, self.reduction = margin, p, eps, swap, reduction

    def construct(self, anchor: Tensor, positive: Tensor, negative: Tensor) -> Tensor:
        """anchor, positive, negative: (..., features)."""
        return triplet_margin_loss(anchor, positive, negative, self.margin, self.p, self.eps, self.swap, self.reduction)


class TripletMarginWithDistanceLoss(nn.LossBase):
    """How much nearer the positive should be to the anchor than the negative, by a distance function of your own.

    Without one the distance is Euclidean, with torch's eps of 1e-6 in the differences, which MindSpore's own lacks.
    """

    def __init__(
        self,
        distance_function: Callable[[Tensor, Tensor], Tensor] | None = None,
        margin: float = 1.0,
        swap: bool = False,
        reduction: str = "mean",
    ) -> None:
        super().__init__()
        self.distance_function, self.margin, self.swap, self.reduction = distance_function, margin, swap, reduction

    def _distance(self, one: Tensor, other: Tensor) -> Tensor:
        if self.distance_function is not None:
            return self.distance_function(one, other)
        return pairwise_distance(one, other)

    def construct(self, anchor: Tensor, positive: Tensor, negative: Tensor) -> Tensor:
        """anchor, positive, negative: (..., features)."""
        near, far = self._distance(anchor, positive), self._distance(anchor, negative)
        if self.swap:
            far = ops.minimum(far, self._distance(positive, negative))
        loss = ops.relu(near - far + self.margin)
        return _reduced(loss, self.reduction)


class BCELoss(nn.LossBase):
    """The cross entropy of probabilities, its logarithms no lower than -100; a weight may be broadcast.

    MindSpore's own reads past the end of a weight that is smaller than the input.
    """

    def __init__(self, weight: Tensor | None = None, reduction: str = "mean") -> None:
        super().__init__()
        self.weight, self.reduction = weight, reduction

    def construct(self, input: Tensor, target: Tensor) -> Tensor:
        """input: probabilities; target: the same shape, from 0 to 1."""
        return binary_cross_entropy(input, target, self.weight, self.reduction)


class SoftMarginLoss(nn.LossBase):
    """log(1 + exp(-target * input)) for targets of -1 and 1; MindSpore's own has no kernel on the CPU."""

    def __init__(self, reduction: str = "mean") -> None:
        super().__init__()
        self.reduction = reduction

    def construct(self, input: Tensor, target: Tensor) -> Tensor:
        """input, target: of one shape."""
        return soft_margin_loss(input, target, self.reduction)


class MultiMarginLoss(nn.LossBase):
    """By how much other classes come within the margin of the label's; MindSpore's own takes only int64 labels."""

    def __init__(self, p: int = 1, margin: float = 1.0, weight: Tensor | None = None, reduction: str = "mean") -> None:
        super().__init__()
        self.p, self.margin, self.weight, self.reduction = p, margin, weight, reduction

    def construct(self, input: Tensor, target: Tensor) -> Tensor:
        """input: (N, C); target: (N,) of integers."""
        return multi_margin_loss(input, target, self.p, self.margin, self.weight, self.reduction)


class MultiLabelMarginLoss(nn.LossBase):
    """By how much other classes come within 1 of each of the labels; MindSpore's own has no kernel on the CPU."""

    def __init__(self, reduction: str = "mean") -> None:
        super().__init__()
        self.reduction = reduction

    def construct(self, input: Tensor, target: Tensor) -> Tensor:
        """input: (N, C); target: (N, C) of integers, the labels of each row first, then -1."""
        valid = ops.cumsum((target < 0).astype(input.dtype), 1) == 0  # what follows the first -1 does not count
        classes = ops.arange(input.shape[1]).reshape((1, 1, -1))
        hits = (ops.expand_dims(target, 2) == classes).astype(input.dtype) * ops.expand_dims(
            valid.astype(input.dtype), 2
        )
        others = hits.sum(1) == 0
        chosen = ops.gather_elements(input, 1, ops.maximum(target, ops.zeros_like(target)))
        loss = ops.relu(1 - ops.expand_dims(chosen, 2) + ops.expand_dims(input, 1))
        counted = ops.logical_and(ops.expand_dims(valid, 2), ops.expand_dims(others, 1))
        loss = (loss * counted.astype(input.dtype)).sum((1, 2)) / input.shape[1]
        return _reduced(loss, self.reduction)


def kl_div(input: Tensor, target: Tensor, reduction: str = "mean", log_target: bool = False) -> Tensor:
    """The Kullback-Leibler divergence of `target` from logarithms; ops.kl_div gives the target no gradient."""
    if log_target:
        loss = ops.exp(target) * (target - input)
    else:
        positive = target > 0  # 0 times its logarithm is 0
        logarithm = ops.log(ops.where(positive, target, ops.ones_like(target)))
        loss = ops.where(positive, target * (logarithm - input), -target * input)
    return loss.sum() / input.shape[0] if reduction == "batchmean" else _reduced(loss, reduction)


def binary_cross_entropy(
    input: Tensor, target: Tensor, weight: Tensor | None = None, reduction: str = "mean"
) -> Tensor:
    """The cross entropy of probabilities, its logarithms no lower than -100; the weight may be broadcast."""
    fixed = ops.stop_gradient(input)
    one = ops.ones_like(fixed)
    yes = ops.where(fixed > 0, ops.log(ops.where(fixed > 0, fixed, one)), -100 * one)
    no = ops.where(fixed < 1, ops.log(ops.where(fixed < 1, 1 - fixed, one)), -100 * one)
    value = -(target * ops.maximum(yes, -100 * one) + (1 - target) * ops.maximum(no, -100 * one))
    # the logarithm's own gradient is infinite at 0 and 1; torch divides by 1e-12 there
    slope = ops.stop_gradient((fixed - target) / ops.maximum(fixed * (1 - fixed), 1e-12 * one))
    loss = value + slope * (input - fixed)
    if weight is not None:
        loss = loss * weight
    return _reduced(loss, reduction)


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
    near, far = pairwise_distance(anchor, positive, p, eps), pairwise_distance(anchor, negative, p, eps)
    if swap:
        far = ops.minimum(far, pairwise_distance(positive, negative, p, eps))
    loss = ops.relu(near - far + margin)
    return _reduced(loss, reduction)


def soft_margin_loss(input: Tensor, target: Tensor, reduction: str = "mean") -> Tensor:
    """log(1 + exp(-target * input)) for targets of -1 and 1; ops.soft_margin_loss has no kernel on the CPU."""
    margin = target * input
    loss = ops.relu(-margin) + ops.log1p(ops.exp(-ops.abs(margin)))
    return _reduced(loss, reduction)


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
    return _reduced(loss, reduction)


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
    return _reduced(loss, reduction)


def gaussian_nll_loss(
    input: Tensor, target: Tensor, var: Tensor, full: bool = False, eps: float = 1e-6, reduction: str = "mean"
) -> Tensor:
    """The negative logarithm of a normal density; `var` is at least eps, and keeps its gradient where it is less."""
    variance = var + ops.stop_gradient(ops.maximum(var, ops.full_like(var, eps)) - var)
    difference = input - target
    loss = 0.5 * (ops.log(variance) + difference * difference / variance)
    if full:
        loss = loss + 0.9189385332046727  # half the logarithm of 2 pi
    return _reduced(loss, reduction)


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
    return _reduced(loss, reduction)


class LabelSmoothingCrossEntropy(nn.Cell):
    """The mean cross entropy with labels of 1 - smoothing, and the rest spread evenly over all classes."""

    def __init__(self, smoothing: float = 0.1) -> None:
        super().__init__()
        self.smoothing = smoothing

    def construct(self, x: Tensor, target: Tensor) -> Tensor:
        """x: (N, classes). target: (N,) of int32."""
        return _smoothed(x, target, self.smoothing)


class SoftTargetCrossEntropy(nn.Cell):
    """The mean cross entropy with targets that are shares of classes."""

    def __init__(self) -> None:
        super().__init__()

    def construct(self, x: Tensor, target: Tensor) -> Tensor:
        """x and target: (N, classes)."""
        return ops.mean(ops.sum(-target * _logs(x), -1))


class BinaryCrossEntropy(nn.Cell):
    """Binary cross entropy of logits with classes as labels, or with a target for every class."""

    def __init__(
        self,
        smoothing: float = 0.1,
        target_threshold: float | None = None,
        weight: Tensor | None = None,
        reduction: str = "mean",
        sum_classes: bool = False,
        pos_weight: Tensor | None = None,
        smooth_dense: bool = False,
    ) -> None:
        super().__init__()
        self.smoothing, self.target_threshold, self.smooth_dense = smoothing, target_threshold, smooth_dense
        self.reduction = "none" if sum_classes else reduction
        self.sum_classes = sum_classes
        self.weight, self.pos_weight = weight, pos_weight

    def construct(self, x: Tensor, target: Tensor) -> Tensor:
        """x: (N, classes). target: (N,) of int32, or as x."""
        wanted = target
        if target.ndim != x.ndim:
            off = self.smoothing / x.shape[-1]
            hot = _one_hot(target, x)
            wanted = hot * (1.0 - self.smoothing + off) + (1 - hot) * off
        elif self.smooth_dense:
            wanted = target * (1.0 - self.smoothing) + 0.5 * self.smoothing
        if self.target_threshold is not None:
            wanted = (wanted > self.target_threshold).astype(x.dtype)
        # log(1 + exp(-|x|)), which neither a large nor a small x takes out of range
        rest = ops.log1p(ops.exp(-ops.abs(x))) + ops.relu(-x)
        factor = 1.0 if self.pos_weight is None else (self.pos_weight - 1) * wanted + 1
        loss = (1 - wanted) * x + factor * rest
        loss = loss if self.weight is None else loss * self.weight
        if self.sum_classes:
            return ops.mean(ops.sum(loss, -1))
        return _reduced(loss, self.reduction)


class AsymmetricLossMultiLabel(nn.Cell):
    """The asymmetric loss for several labels, each of which is present or absent."""

    def __init__(
        self,
        gamma_neg: float = 4,
        gamma_pos: float = 1,
        clip: float | None = 0.05,
        eps: float = 1e-8,
        disable_torch_grad_focal_loss: bool = False,
        smoothing: float = 0.0,
        reduction: str = "batchmean",
        weight: Tensor | None = None,
        pos_weight: Tensor | None = None,
    ) -> None:
        super().__init__()
        self.gamma_neg, self.gamma_pos, self.clip, self.eps = gamma_neg, gamma_pos, clip, eps
        self.fixed_focus, self.smoothing, self.reduction = disable_torch_grad_focal_loss, smoothing, reduction
        self.weight, self.pos_weight = weight, pos_weight

    def construct(self, x: Tensor, y: Tensor) -> Tensor:
        """x and y: (N, classes)."""
        wanted = y * (1.0 - self.smoothing) + 0.5 * self.smoothing
        there = ops.sigmoid(x)
        absent = 1 - there
        if self.clip is not None and self.clip > 0:
            absent = ops.minimum(absent + self.clip, ops.ones_like(absent))
        low = self.eps * ops.ones_like(x)
        found = wanted * ops.log(ops.maximum(there, low))
        found = found if self.pos_weight is None else found * self.pos_weight
        loss = found + (1 - wanted) * ops.log(ops.maximum(absent, low))
        if self.gamma_neg > 0 or self.gamma_pos > 0:
            right = there * wanted + absent * (1 - wanted)
            focus = ops.pow(1 - right, self.gamma_pos * wanted + self.gamma_neg * (1 - wanted))
            loss = loss * (ops.stop_gradient(focus) if self.fixed_focus else focus)
        loss = -loss if self.weight is None else -loss * self.weight
        return ops.sum(loss) / x.shape[0] if self.reduction == "batchmean" else _reduced(loss, self.reduction)


class AsymmetricLossSingleLabel(nn.Cell):
    """The asymmetric loss for one label among several classes."""

    def __init__(self, gamma_pos: float = 1, gamma_neg: float = 4, eps: float = 0.1, reduction: str = "mean") -> None:
        super().__init__()
        self.gamma_pos, self.gamma_neg, self.eps, self.reduction = gamma_pos, gamma_neg, eps, reduction

    def construct(self, inputs: Tensor, target: Tensor) -> Tensor:
        """inputs: (N, classes). target: (N,) of int32."""
        logs = _logs(inputs)
        hot = _one_hot(target, inputs)
        cold = 1 - hot
        shares = ops.expm1(logs) + 1
        wrong = 1 - shares * hot - (1 - shares) * cold
        logs = logs * ops.pow(wrong, self.gamma_pos * hot + self.gamma_neg * cold)
        wanted = hot * (1 - self.eps) + self.eps / inputs.shape[-1] if self.eps > 0 else hot
        loss = -ops.sum(wanted * logs, -1)
        return ops.mean(loss) if self.reduction == "mean" else loss


class JsdCrossEntropy(nn.Cell):
    """Cross entropy of the first part of a batch, and how far the parts' predictions are from their mean."""

    def __init__(self, num_splits: int = 3, alpha: float = 12, smoothing: float | None = 0.1) -> None:
        super().__init__()
        self.num_splits, self.alpha, self.smoothing = num_splits, alpha, smoothing or 0.0

    def construct(self, output: Tensor, target: Tensor) -> Tensor:
        """output: (num_splits · n, classes). target: int32 labels, of which the first n are read."""
        size = output.shape[0] // self.num_splits
        loss = _smoothed(ops.narrow(output, 0, 0, size), ops.narrow(target, 0, 0, size), self.smoothing)
        logs = _logs(output).reshape((self.num_splits, size, -1))
        shares = ops.expm1(logs) + 1
        mixed = ops.mean(shares, 0)
        inside = ops.logical_and(mixed >= 1e-7, mixed <= 1)
        mixed = ops.where(inside, mixed, ops.stop_gradient(ops.clamp(mixed, 1e-7, 1.0)))
        mixed = ops.log1p(mixed - 1)  # 6e-7 (relative) off at most; ops.log is off by up to 1.7e-6 near 1
        apart = ops.sum(shares * (logs - mixed)) / size
        return loss + self.alpha * apart / self.num_splits


def _logs(x: Tensor) -> Tensor:
    """The logarithms of softmax over the last axis, by expm1: the CPU's exp, and so softmax, is up to 4e-6 off."""
    centred = x - ops.stop_gradient(ops.amax(x, -1, True))
    return centred - ops.log(ops.sum(ops.expm1(centred) + 1, -1, True))


def _one_hot(target: Tensor, x: Tensor) -> Tensor:
    """Ones at the labels (N,), in the shape and dtype of x (N, classes)."""
    places = ops.arange(x.shape[-1]).astype(mstype.int32)
    return (ops.unsqueeze(target, -1).astype(mstype.int32) == places).astype(x.dtype)


def _smoothed(x: Tensor, target: Tensor, smoothing: float) -> Tensor:
    """The mean cross entropy with smoothed labels."""
    logs = _logs(x)
    own = ops.sum(logs * _one_hot(target, x), -1)
    return ops.mean(-(1.0 - smoothing) * own - smoothing * ops.mean(logs, -1))


def _reduced(loss: Tensor, reduction: str) -> Tensor:
    """The mean, the sum, or the loss as it is."""
    if reduction == "none":
        return loss
    return loss.sum() if reduction == "sum" else loss.mean()


class CosineSimilarity(nn.Cell):
    """The cosine of the angle between two vectors along `dim`; each norm is at least eps."""

    def __init__(self, dim: int = 1, eps: float = 1e-08) -> None:
        super().__init__()
        self.dim, self.eps = dim, eps

    def construct(self, x1: Tensor, x2: Tensor) -> Tensor:
        """x1, x2: of shapes that broadcast."""
        one = ops.sqrt(ops.sum(x1 * x1, self.dim, True))
        other = ops.sqrt(ops.sum(x2 * x2, self.dim, True))
        floor = self.eps * ops.ones_like(one)
        return ops.sum((x1 / ops.maximum(one, floor)) * (x2 / ops.maximum(other, floor)), self.dim)


class PairwiseDistance(nn.Cell):
    """The norm of order p of x1 - x2 + eps over the last axis."""

    def __init__(self, p: float = 2.0, eps: float = 1e-06, keepdim: bool = False) -> None:
        super().__init__()
        self.p, self.eps, self.keepdim = p, eps, keepdim

    def construct(self, x1: Tensor, x2: Tensor) -> Tensor:
        """x1, x2: (..., features)."""
        return pairwise_distance(x1, x2, self.p, self.eps, self.keepdim)


def pairwise_distance(x1: Tensor, x2: Tensor, p: float = 2.0, eps: float = 1e-6, keepdim: bool = False) -> Tensor:
    """The norm of order p of the differences plus eps, along the last dimension."""
    difference = ops.abs(x1 - x2 + eps)
    if p == 1.0:
        return difference.sum(-1, keepdims=keepdim)
    if p == 2.0:
        return ops.sqrt((difference * difference).sum(-1, keepdims=keepdim))
    return ops.pow(ops.pow(difference, p).sum(-1, keepdims=keepdim), 1.0 / p)
