"""The MindSpore twins of losses_torch.py."""

from __future__ import annotations

from mindspore import Tensor, nn, ops


class SmoothL1(nn.Cell):
    def construct(self, logits: Tensor, targets: Tensor) -> Tensor:
        return nn.SmoothL1Loss(beta=1.0, reduction="mean")(logits, targets)


class Binary(nn.Cell):
    """torch clamps the logarithm at -100, and its gradient divides by p (1 - p), at least 1e-12."""

    def construct(self, logits: Tensor, targets: Tensor) -> Tensor:
        p = ops.sigmoid(-20.0 * ops.abs(logits))
        exact = ops.stop_gradient(p)
        size = exact.size
        slope = (exact - targets) / ops.maximum(exact * (1.0 - exact), ops.full_like(exact, 1e-12)) / size
        log_p = ops.maximum(ops.log(exact), ops.full_like(exact, -100.0))
        log_q = ops.maximum(ops.log(1.0 - exact), ops.full_like(exact, -100.0))
        value = -(targets * log_p + (1.0 - targets) * log_q).mean()
        return value + (slope * (p - exact)).sum()


class Divergence(nn.Cell):
    """(The gradient of MindSpore's own LogSoftmax is less exact on CPUs than float32 need be.)"""

    def construct(self, logits: Tensor, targets: Tensor) -> Tensor:
        return ops.kl_div(logits - ops.logsumexp(logits, 1, True), 0.9 * targets + 0.01, reduction="batchmean")


LOSSES = {"smooth_l1": SmoothL1, "binary": Binary, "divergence": Divergence}
