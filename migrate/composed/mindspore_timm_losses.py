"""timm's losses as Cells, under timm's argument names; labels of classes are int32."""

from __future__ import annotations

from mindspore import Tensor, nn, ops
from mindspore import dtype as mstype


class LabelSmoothingCrossEntropy(nn.Cell):
    """The mean cross entropy with labels that hold 1 - smoothing, the rest over all classes alike."""

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
    """The asymmetric loss of several labels, each of which is there or not."""

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
    """The asymmetric loss of one label among classes."""

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
    """Cross entropy of the first part of a batch, and how far the parts' predictions stand from their mean."""

    def __init__(self, num_splits: int = 3, alpha: float = 12, smoothing: float | None = 0.1) -> None:
        super().__init__()
        self.num_splits, self.alpha, self.smoothing = num_splits, alpha, smoothing or 0.0

    def construct(self, output: Tensor, target: Tensor) -> Tensor:
        """output: (num_splits · n, classes). target: of int32, the first n of them are read."""
        size = output.shape[0] // self.num_splits
        loss = _smoothed(ops.narrow(output, 0, 0, size), ops.narrow(target, 0, 0, size), self.smoothing)
        logs = _logs(output).reshape((self.num_splits, size, -1))
        shares = ops.expm1(logs) + 1
        mixed = ops.mean(shares, 0)
        inside = ops.logical_and(mixed >= 1e-7, mixed <= 1)
        mixed = ops.where(inside, mixed, ops.stop_gradient(ops.clamp(mixed, 1e-7, 1.0)))
        mixed = ops.log1p(mixed - 1)  # right to 6e-7 of it; ops.log is off by up to 1.7e-6 near 1
        apart = ops.sum(shares * (logs - mixed)) / size
        return loss + self.alpha * apart / self.num_splits


def _logs(x: Tensor) -> Tensor:
    """The logarithms of softmax over the last axis, by expm1: the CPU's exp, and softmax with it, is right to 4e-6."""
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
    if reduction == "mean":
        return ops.mean(loss)
    return ops.sum(loss) if reduction == "sum" else loss
