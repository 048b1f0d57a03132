"""Initial distributions: what each framework draws for a model trained from scratch, and whether the two agree.

The two frameworks' random streams differ, so values cannot be compared; distributions can.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass

import numpy as np

from .trace import TraceWriter, sample_positions

PART = "distribution"
PER_SEED = 4096  # values kept of a tensor for each seed
FIRST_SEED = 1000
ALPHA = 1e-6  # chance of one false alarm in a whole model, shared out over its tensors
STD_SIGMAS = 6.0
FEWEST = 10  # drawn values below which neither test could tell a wrong distribution
ROUNDING = 8 * 2.0**-23  # MindSpore's log of a float32 is 1 or 2 of its units off, and by where it stands
RELIABLE = 400  # drawn values from which their own fourth moment is trusted


def add_initial_values(writer: TraceWriter, seeds: int, draw: Callable[[int], Mapping[str, np.ndarray]]) -> None:
    """Record, for each parameter, values pooled over `seeds` newly drawn models."""
    pooled: dict[str, list[np.ndarray]] = {}
    for seed in range(FIRST_SEED, FIRST_SEED + seeds):
        for name, values in draw(seed).items():
            flat = values.reshape(-1)
            if flat.size > PER_SEED:
                flat = flat[sample_positions(flat.size, PER_SEED)]
            pooled.setdefault(name, []).append(flat.copy())
    for name, parts in pooled.items():
        writer.add("init", PART, name, np.concatenate(parts), whole=True)


@dataclass(frozen=True)
class DistributionCheck:
    """Two samples held against each other; `agree` is the verdict at ALPHA over `tests` tensors, None where the
    values are too few for one."""

    statistic: float  # Kolmogorov-Smirnov D
    critical: float
    std_ratio: float  # MindSpore's standard deviation over torch's; 1 when both are constant
    agree: bool | None
    why: str = ""


def compare_distributions(torch_values: np.ndarray, mindspore_values: np.ndarray, tests: int) -> DistributionCheck:
    """Two-sample Kolmogorov-Smirnov test and ratio of standard deviations.

    The critical value is the asymptotic sqrt(-ln(a/2)/2 · (n+m)/(n·m)) (Smirnov 1948; as in Knuth, TAOCP 3.3.1), with
    a = ALPHA / tests (Bonferroni). The standard deviations may differ by STD_SIGMAS standard errors, from the fourth
    moment: var(ln s) = (kurtosis - 1) / 4n, with at least a normal distribution's kurtosis for fewer values than
    RELIABLE: by bad luck ten values look as if they had none. Constant tensors have to be equal, but for ROUNDING.
    """
    x, y = np.sort(torch_values.astype(np.float64)), np.sort(mindspore_values.astype(np.float64))
    n, m = len(x), len(y)
    std_x, std_y = float(x.std()), float(y.std())
    if _constant(x) or _constant(y):  # its computed deviation need not be zero
        equal = _constant(x) and _constant(y) and _constant(np.sort([x[0], y[0]]))
        what = f"torch {_describe(x)}, MindSpore {_describe(y)}"
        return DistributionCheck(0.0 if equal else 1.0, 0.0, 1.0 if equal else math.inf, equal, "" if equal else what)
    both = np.concatenate([x, y])
    distance = np.searchsorted(x, both, side="right") / n - np.searchsorted(y, both, side="right") / m
    statistic = float(np.abs(distance).max())
    critical = math.sqrt(-math.log(ALPHA / tests / 2) / 2 * (n + m) / (n * m))
    ratio = std_y / std_x
    error = math.sqrt((_kurtosis(x) - 1) / (4 * n) + (_kurtosis(y) - 1) / (4 * m))
    if min(n, m) < FEWEST:
        return DistributionCheck(statistic, critical, ratio, None, f"{min(n, m)} drawn values cannot tell")
    why = []
    if statistic > critical:
        why.append(f"KS distance {statistic:.3f} above {critical:.3f}")
    if abs(math.log(ratio)) > STD_SIGMAS * error:
        why.append(f"standard deviation {std_y:.3g} against torch's {std_x:.3g}")
    return DistributionCheck(statistic, critical, ratio, not why, "; ".join(why))


def _constant(values: np.ndarray) -> bool:
    """Whether sorted values are one number, as far as a computed one goes, such as log(10)."""
    return bool(values[-1] - values[0] <= ROUNDING * max(abs(values[0]), abs(values[-1])))


def _kurtosis(values: np.ndarray) -> float:
    centred = values - values.mean()
    kurtosis = float((centred**4).mean() / (centred**2).mean() ** 2)
    return max(kurtosis, 3.0 if len(values) < RELIABLE else 1.0)


def _describe(values: np.ndarray) -> str:
    return f"is {values[0]:g} throughout" if _constant(values) else f"has standard deviation {values.std():.3g}"
