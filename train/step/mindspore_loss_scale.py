"""The loss scale in MindSpore, static or by torch.amp.GradScaler's rule."""

from __future__ import annotations

from typing import Any

from mindspore import Parameter, Tensor, nn, ops
from mindspore import dtype as mstype

from ..recipe import Recipe


class LossScale(nn.Cell):
    """The scale and GradScaler's growth tracker, as parameters, so that a compiled step reads and writes them.

    Calling it with whether the gradients were finite (a bool scalar) is GradScaler's `update()`: shrink at once after
    an overflow, grow after growth_interval good steps in a row, and not beyond float32. A static scale never changes.
    The new scale is a float32 product, where torch rounds a float64 one: equal for factors that float32 holds, as 2
    and 0.5, and within one unit in the last place otherwise.
    """

    def __init__(self, scale: float, growth: float, backoff: float, interval: int) -> None:
        super().__init__(auto_prefix=False)
        self.scale = Parameter(Tensor(scale, mstype.float32), name="loss_scale", requires_grad=False)
        self.growth_tracker = Parameter(Tensor(0, mstype.int32), name="growth_tracker", requires_grad=False)
        self.dynamic = interval > 0
        self.growth, self.backoff, self.interval = growth, backoff, interval

    @classmethod
    def of(cls, recipe: Recipe) -> LossScale | None:
        """The recipe's loss scale, or None where it has none."""
        rule = recipe.dynamic_loss_scale
        if rule is not None:
            return cls(rule.init_scale, rule.growth_factor, rule.backoff_factor, rule.growth_interval)
        return cls(recipe.loss_scale, 1.0, 1.0, 0) if recipe.loss_scale is not None else None

    def construct(self, finite: Any) -> bool:
        """See the class."""
        if self.dynamic:
            good = self.growth_tracker + 1
            full = good >= self.interval
            grown = self.scale * self.growth
            grown = ops.where(ops.isfinite(grown), grown, self.scale)
            kept = ops.where(full, grown, self.scale)
            count = ops.where(ops.logical_and(finite, ops.logical_not(full)), good, ops.zeros_like(good))
            ops.assign(self.scale, ops.where(finite, kept, self.scale * self.backoff))
            ops.assign(self.growth_tracker, ops.cast(count, mstype.int32))
        return True
