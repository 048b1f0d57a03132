"""What kernels.py gives to both frameworks, and how distances are measured; it imports neither."""

from __future__ import annotations

import numpy as np

SHAPE = (400, 1000)


def values() -> tuple[np.ndarray, np.ndarray]:
    """What goes in, and what comes back from above."""
    draws = np.random.default_rng(0)
    x, upstream = (draws.standard_normal(SHAPE).astype(np.float32) for _ in range(2))
    return x, upstream


def distance(found: np.ndarray, exact: np.ndarray) -> dict[str, float]:
    """Root mean square of the error, and its bias, as shares of the exact result's root mean square and mean size."""
    error = found.astype(np.float64) - exact
    return {
        "off": float(np.sqrt((error**2).mean() / (exact**2).mean())),
        "bias": float(error.mean() / np.abs(exact).mean()),
    }
