"""Losses that MindSpore lacks, or computes otherwise than torch on the CPU; with torch's argument names."""

from __future__ import annotations

from collections.abc import Callable

from mindspore import Tensor, nn, ops


class KLDivLoss(nn.Cell):
    """The Kullback-Leibler divergence of a target from an input of logarithms; torch's log_target and 'batchmean'.

    MindSpore's own knows no log_target, and gives the target no gradient.
    """

    def __init__(self, reduction: str = "mean", log_target: bool = False) -> None:
        super().__init__()
        self.reduction, self.log_target = reduction, log_target

    def construct(self, input: Tensor, target: Tensor) -> Tensor:
        """input: log-probabilities; target: probabilities, or their logarithms with log_target."""
        if self.log_target:
            loss = ops.exp(target) * (target - input)
        else:
            positive = target > 0  # 0 times its logarithm is 0
            logarithm = ops.log(ops.where(positive, target, ops.ones_like(target)))
            loss = ops.where(positive, target * (logarithm - input), -target * input)
        if self.reduction == "none":
            return loss
        if self.reduction == "sum":
            return loss.sum()
        if self.reduction == "batchmean":
            return loss.sum() / input.shape[0]
        return loss.mean()


class TripletMarginLoss(nn.Cell):
    """How much nearer the positive should be to the anchor than the negative; distances of order p, with torch's eps.

    MindSpore's own adds no eps to the differences.
    """

    def __init__(
        self, margin: float = 1.0, p: float = 2.0, eps: float = 1e-6, swap: bool = False, reduction: str = "mean"
    ) -> None:
        super().__init__()
        self.margin, self.p, self.eps, self.swap, self.reduction = margin, p, eps, swap, reduction

    def _distance(self, one: Tensor, other: Tensor) -> Tensor:
        difference = ops.abs(one - other + self.eps)
        if self.p == 1.0:
            return difference.sum(-1)
        if self.p == 2.0:
            return ops.sqrt((difference * difference).sum(-1))
        return ops.pow(ops.pow(difference, self.p).sum(-1), 1.0 / self.p)

    def construct(self, anchor: Tensor, positive: Tensor, negative: Tensor) -> Tensor:
        """anchor, positive, negative: (..., features)."""
        near, far = self._distance(anchor, positive), self._distance(anchor, negative)
        if self.swap:
            far = ops.minimum(far, self._distance(positive, negative))
        loss = ops.relu(near - far + self.margin)
        if self.reduction == "none":
            return loss
        return loss.sum() if self.reduction == "sum" else loss.mean()


class TripletMarginWithDistanceLoss(nn.Cell):
    """How much nearer the positive should be to the anchor than the negative, by a distance of one's own.

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
        difference = one - other + 1e-6
        return ops.sqrt((difference * difference).sum(-1))

    def construct(self, anchor: Tensor, positive: Tensor, negative: Tensor) -> Tensor:
        """anchor, positive, negative: (..., features)."""
        near, far = self._distance(anchor, positive), self._distance(anchor, negative)
        if self.swap:
            far = ops.minimum(far, self._distance(positive, negative))
        loss = ops.relu(near - far + self.margin)
        if self.reduction == "none":
            return loss
        return loss.sum() if self.reduction == "sum" else loss.mean()


class BCELoss(nn.Cell):
    """The cross entropy of probabilities, its logarithms no lower than -100; a weight may be broadcast.

    MindSpore's own reads past the end of a weight that is smaller than the input.
    """

    def __init__(self, weight: Tensor | None = None, reduction: str = "mean") -> None:
        super().__init__()
        self.weight, self.reduction = weight, reduction

    def construct(self, input: Tensor, target: Tensor) -> Tensor:
        """input: probabilities; target: the same shape, from 0 to 1."""
        fixed = ops.stop_gradient(input)
        one = ops.ones_like(fixed)
        yes = ops.where(fixed > 0, ops.log(ops.where(fixed > 0, fixed, one)), -100 * one)
        no = ops.where(fixed < 1, ops.log(ops.where(fixed < 1, 1 - fixed, one)), -100 * one)
        value = -(target * ops.maximum(yes, -100 * one) + (1 - target) * ops.maximum(no, -100 * one))
        # the logarithm's own gradient is infinite at 0 and 1; torch divides by 1e-12 there
        slope = ops.stop_gradient((fixed - target) / ops.maximum(fixed * (1 - fixed), 1e-12 * one))
        loss = value + slope * (input - fixed)
        if self.weight is not None:
            loss = loss * self.weight
        if self.reduction == "none":
            return loss
        return loss.sum() if self.reduction == "sum" else loss.mean()


class SoftMarginLoss(nn.Cell):
    """log(1 + exp(-target * input)) for targets of -1 and 1; MindSpore's own has no kernel on the CPU."""

    def __init__(self, reduction: str = "mean") -> None:
        super().__init__()
        self.reduction = reduction

    def construct(self, input: Tensor, target: Tensor) -> Tensor:
        """input, target: of one shape."""
        margin = target * input
        loss = ops.relu(-margin) + ops.log1p(ops.exp(-ops.abs(margin)))
        if self.reduction == "none":
            return loss
        return loss.sum() if self.reduction == "sum" else loss.mean()


class MultiMarginLoss(nn.Cell):
    """By how much other classes come within the margin of the label's; MindSpore's own wants labels of int64."""

    def __init__(self, p: int = 1, margin: float = 1.0, weight: Tensor | None = None, reduction: str = "mean") -> None:
        super().__init__()
        self.p, self.margin, self.weight, self.reduction = p, margin, weight, reduction

    def construct(self, input: Tensor, target: Tensor) -> Tensor:
        """input: (N, C); target: (N,) of integers."""
        label = ops.expand_dims(target, 1)
        loss = ops.relu(self.margin - ops.gather_elements(input, 1, label) + input)
        if self.p == 2:
            loss = loss * loss
        if self.weight is not None:
            loss = loss * ops.expand_dims(ops.gather(self.weight, target, 0), 1)
        others = ops.expand_dims(ops.arange(input.shape[1]), 0) != label
        loss = ops.where(others, loss, ops.zeros_like(loss)).sum(1) / input.shape[1]
        if self.reduction == "none":
            return loss
        return loss.sum() if self.reduction == "sum" else loss.mean()


class MultiLabelMarginLoss(nn.Cell):
    """By how much other classes come within 1 of each of the labels; MindSpore's own has no kernel on the CPU."""

    def __init__(self, reduction: str = "mean") -> None:
        super().__init__()
        self.reduction = reduction

    def construct(self, input: Tensor, target: Tensor) -> Tensor:
        """input: (N, C); target: (N, C) of integers, the labels of each row first, then -1."""
        valid = ops.cumsum((target < 0).astype(input.dtype), 1) == 0  # what follows the first -1 counts no more
        classes = ops.arange(input.shape[1]).reshape((1, 1, -1))
        hits = (ops.expand_dims(target, 2) == classes).astype(input.dtype) * ops.expand_dims(
            valid.astype(input.dtype), 2
        )
        others = hits.sum(1) == 0
        chosen = ops.gather_elements(input, 1, ops.maximum(target, ops.zeros_like(target)))
        loss = ops.relu(1 - ops.expand_dims(chosen, 2) + ops.expand_dims(input, 1))
        counted = ops.logical_and(ops.expand_dims(valid, 2), ops.expand_dims(others, 1))
        loss = (loss * counted.astype(input.dtype)).sum((1, 2)) / input.shape[1]
        if self.reduction == "none":
            return loss
        return loss.sum() if self.reduction == "sum" else loss.mean()
