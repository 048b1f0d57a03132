"""Overflows, rules for loss scales, and averages that the workers of test_step_parts.py share; no framework."""

from __future__ import annotations

from typing import Any

import numpy as np

# which of a hundred steps overflow: rarely, and a few times in a row
OVERFLOWS = [bool(hit) for hit in np.random.default_rng(3).random(100) < 0.15]
RULES: dict[str, dict[str, Any]] = {
    "usual": {"init_scale": 65536.0, "growth_factor": 2.0, "backoff_factor": 0.5, "growth_interval": 3},
    "eager": {"init_scale": 1024.0, "growth_factor": 4.0, "backoff_factor": 0.25, "growth_interval": 1},
    "at the end of float32": {
        "init_scale": 2.0**127,
        "growth_factor": 2.0,
        "backoff_factor": 0.5,
        "growth_interval": 1,
    },
}
SCALES = tuple(RULES)
AVERAGES: dict[str, dict[str, Any]] = {
    "constant": {"decay": 0.9},
    "warm": {"decay": 0.99, "warmup": True},
    "warm and capped": {"decay": 0.6, "warmup": True, "warmup_gamma": 2.0, "warmup_power": 0.75},
    "at least": {"decay": 0.9, "warmup": True, "min_decay": 0.5, "warmup_gamma": 10.0},
    "late": {"decay": 0.9, "update_after_step": 3},
    "late and warm": {"decay": 0.9, "warmup": True, "update_after_step": 2},
}
