"""Factors of the learning rate, as users write them for LambdaLR and MultiplicativeLR."""

from __future__ import annotations


def noam(step: int, width: int = 32, warm: int = 4) -> float:
    """The schedule of "Attention is all you need"."""
    return float(width**-0.5 * min((step + 1) ** -0.5, (step + 1) * warm**-1.5))


def slower(epoch: int) -> float:
    return 0.9 if epoch % 2 else 1.0
