"""What kernels.py gives to both frameworks, and how distances are measured; it imports neither."""

from __future__ import annotations

import numpy as np

SHAPE = (400, 1000)
NEARLY_ZERO = 0.1
ALONG_ROWS = ("softmax", "log_softmax")  # functions of a whole row: torch wants to be told the dimension
OF_POSITIVE = ("log",)  # functions that take no others: these get the values without their signs


def values(name: str) -> tuple[np.ndarray, np.ndarray]:
    """What goes into a function, and what comes back from above."""
    draws = np.random.default_rng(0)
    x, upstream = (draws.standard_normal(SHAPE).astype(np.float32) for _ in range(2))
    return np.abs(x) if name in OF_POSITIVE else x, upstream


def distance(found: np.ndarray, exact: np.ndarray) -> dict[str, float]:
    """Root mean square of the error, and its bias, as shares of the exact result's root mean square and mean size; and
    of the error alone where the result is nearly zero."""
    error = found.astype(np.float64) - exact
    small = error[np.abs(exact) < NEARLY_ZERO]
    return {
        "near_zero": float(np.sqrt((small**2).mean())) if small.size else 0.0,
        "off": float(np.sqrt((error**2).mean() / (exact**2).mean())),
        "bias": float(error.mean() / np.abs(exact).mean()),
    }
