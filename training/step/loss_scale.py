"""torch.amp.GradScaler's rule for the loss scale, without a framework."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from ..recipe.schema import DynamicLossScale, Recipe


@dataclass
class LossScale:
    """The scale in force, and how many good steps in a row it has seen; without a rule it is static."""

    scale: float
    rule: DynamicLossScale | None = None
    growth_tracker: int = 0

    @classmethod
    def of(cls, recipe: Recipe) -> LossScale | None:
        """The recipe's loss scale, or None where it has none."""
        rule = recipe.dynamic_loss_scale
        if rule is not None:
            return cls(rule.init_scale, rule)
        return cls(recipe.loss_scale) if recipe.loss_scale is not None else None

    def update(self, finite: bool) -> None:
        """What GradScaler.update() does after a step whose gradients were all finite, or were not."""
        if self.rule is None:
            return
        if not finite:
            self.scale, self.growth_tracker = _float32(self.scale * self.rule.backoff_factor), 0
            return
        self.growth_tracker += 1
        if self.growth_tracker == self.rule.growth_interval:
            grown = _float32(self.scale * self.rule.growth_factor)
            self.scale = grown if math.isfinite(grown) else self.scale
            self.growth_tracker = 0


def _float32(value: float) -> float:
    with np.errstate(over="ignore"):
        return float(np.float32(value))
