"""The batches and the kinds of mixing that timm's worker and the tests share."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
from msmigrate.training.recipe.schema import Mixup

SEEDS = 25
MIXES: dict[str, Any] = {
    "classes": 7,
    "kinds": {
        "both": {},
        "mixup": {"cutmix_alpha": 0.0, "mixup_alpha": 0.2, "label_smoothing": 0.0},
        "cutmix": {"mixup_alpha": 0.0, "label_smoothing": 0.3},
        "sometimes": {"prob": 0.5, "switch_prob": 0.3, "mixup_alpha": 1.0, "cutmix_alpha": 0.4},
        "never": {"prob": 0.0},
        "extreme": {"mixup_alpha": 1e-3, "cutmix_alpha": 1e-3},  # λ is 0 or 1, nearly
    },
}


def mixups() -> Iterator[tuple[str, Mixup, int]]:
    """Every kind with every seed."""
    for name, args in MIXES["kinds"].items():
        for seed in range(SEEDS):
            yield name, Mixup(**args), seed


def inputs(name: str, count: int = 6) -> tuple[np.ndarray, np.ndarray]:
    """Images float32 (count, 3, 13, 18) and labels int64 (count,)."""
    generator = np.random.default_rng(len(name))
    images = generator.normal(size=(count, 3, 13, 18)).astype(np.float32)
    return images, generator.integers(0, MIXES["classes"], count)
