"""The options of a full run, each alone and every pair of them, as cases of the step; it imports no framework."""

from __future__ import annotations

from itertools import combinations
from typing import Any

SGD = {"lr": 0.05, "momentum": 0.9, "weight_decay": 0.01}
STEPS = 5
# the scale shrinks in the step that overflows and grows after two good ones in a row
DYNAMIC = {"init_scale": 1024.0, "growth_factor": 2.0, "backoff_factor": 0.5, "growth_interval": 2}
# soft targets, so that one of them can be infinite
MIXUP = {"mixup_alpha": 0.8, "label_smoothing": 0.1}
COSINE = {"name": "CosineAnnealingLR", "args": {"T_max": 8}}
GROUPS = {
    "name": "SGD",
    "args": SGD,
    "no_weight_decay": ["bias"],
    "groups": [
        {"params": ["fc*.weight"], "args": {"lr": 0.01, "weight_decay": 0.1}},
        {"params": ["conv1.*"], "args": {"lr": 0.02, "momentum": 0.0}},
    ],
}

OPTIONS: dict[str, dict[str, Any]] = {
    "accumulation": {"accumulate": 2},
    "clipping": {"clip": {"max_norm": 0.1}},
    "static scale": {"loss_scale": 1024.0},
    "dynamic scale": {"dynamic_loss_scale": DYNAMIC, "mixup": MIXUP},
    "O1": {"amp": {"level": "O1"}},
    "O2": {"amp": {"level": "O2"}},
    "O3": {"amp": {"level": "O3"}},
    "average": {"ema": {"decay": 0.9}},
    "warm average": {"ema": {"decay": 0.6, "warmup": True, "warmup_gamma": 1.0, "warmup_power": 0.75}},
    "epochs": {"schedule": {**COSINE, "per": "epoch"}},
    "groups": {"optimizer": GROUPS},
    "soft targets": {"mixup": MIXUP},
    "nesterov": {"optimizer": {"name": "SGD", "args": {**SGD, "nesterov": True}}},
}
OVERFLOWS = "dynamic scale"  # the option whose third step overflows
# what a user's own loop does in hand_written_torch_loop.py
LOOP = {
    "optimizer": {"name": "SGD", "args": {**SGD, "nesterov": True}},
    "schedule": COSINE,
    "accumulate": 2,
    "clip": {"max_norm": 0.5},
    "dynamic_loss_scale": DYNAMIC,
    "mixup": MIXUP,
    "ema": {"decay": 0.9},
}
# in float16 the first two scales overflow, in the float64 reference none does
TOO_LARGE = {"init_scale": 2.0**34, "growth_factor": 2.0, "backoff_factor": 2.0**-10, "growth_interval": 2}
LOOP_HALF = {
    **LOOP,
    "amp": {"level": "O1"},
    "dynamic_loss_scale": TOO_LARGE,
    "ema": {"decay": 0.9, "warmup": True},
}


def pairs() -> dict[str, dict[str, Any]]:
    """Every pair of options that can stand in one recipe: name -> keys."""
    found = {}
    for (first, left), (second, right) in combinations(OPTIONS.items(), 2):
        shared = left.keys() & right.keys() - {"mixup"}
        if not shared and {"loss_scale", "dynamic_loss_scale"} - (left | right).keys():
            found[f"{first} and {second}"] = {**left, **right}
    return found
