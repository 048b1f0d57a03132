"""Losses that a recipe does not know, as a user brings them; all take logits (N, K) and one-hot targets (N, K)."""

from __future__ import annotations

import torch.nn.functional as F
from torch import Tensor, nn


class SmoothL1(nn.Module):
    def forward(self, logits: Tensor, targets: Tensor) -> Tensor:
        return F.smooth_l1_loss(logits, targets)


class Binary(nn.Module):
    """Binary cross entropy of small probabilities, some of them below 1e-12. (None is near one: there float32's own
    rounding of 1 - p is worth more than any clamp, and nothing could be told.)"""

    def forward(self, logits: Tensor, targets: Tensor) -> Tensor:
        return F.binary_cross_entropy((-20.0 * logits.abs()).sigmoid(), targets)


class Divergence(nn.Module):
    def forward(self, logits: Tensor, targets: Tensor) -> Tensor:
        return F.kl_div(F.log_softmax(logits, dim=1), 0.9 * targets + 0.01, reduction="batchmean")


LOSSES = {"smooth_l1": SmoothL1, "binary": Binary, "divergence": Divergence}
