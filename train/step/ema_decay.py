"""How much of an exponential moving average one update keeps: timm's rules, for both frameworks."""

from __future__ import annotations

from ..recipe import Ema


def decay(ema: Ema, update: int) -> float:
    """The share of the average that stays in the given update, counted from 1.

    Without warmup and without update_after_step it is constant, as in timm.utils.ModelEmaV2. With either it is
    ModelEmaV3's get_decay of that update: 0, so that the average is a copy, up to and with update_after_step + 1.
    """
    if not ema.warmup and not ema.update_after_step:
        return ema.decay
    step = max(0, update - ema.update_after_step - 1)
    if step == 0:
        return 0.0
    if not ema.warmup:
        return ema.decay
    warmed = 1 - (1 + step / ema.warmup_gamma) ** -ema.warmup_power
    return max(min(warmed, ema.decay), ema.min_decay)
