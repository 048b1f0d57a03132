"""Why the clipping of given gradients differs: they come with norms just below and above the one that is allowed."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np

from ...training.recipe.schema import Recipe
from ..compare import Traces
from ..record.recorder import NORMS
from ..result import Cause, Finding
from .evidence import cause, failed
from .optimizer_formulas import CLIP_EPS

PART = "given norms"
NEAR = 4e-7  # how near the factors of a hypothesis have to be: norms are recorded from float32 values


def explain(recipe: Recipe, traces: Traces, findings: Sequence[Finding]) -> list[Cause]:
    """The cause of what failed with given norms: which factor MindSpore multiplied the gradients by at each norm."""
    if recipe.clip is None or not failed(findings, "update", PART):
        return []
    factors = _factors(traces)
    if factors is None:
        return []
    largest = recipe.clip.max_norm
    usual = np.array([min(1.0, largest / (norm * largest + CLIP_EPS)) for norm in NORMS])
    off = float(np.max(np.abs(factors - 1.0)))
    factors = factors * usual
    for fault, text, expected in _hypotheses(largest):
        left = float(np.max(np.abs(factors / expected - 1.0)))
        if left <= NEAR < off:
            told = ", ".join(f"{factor:.8g}" for factor in factors)
            norms = ", ".join(f"{norm:g}" for norm in NORMS)
            evidence = (
                f"gradients with {norms} times the allowed norm are multiplied by {told}: to {left:.1g} as if {text}; "
                f"torch's factors are {off:.2g} away"
            )
            return [cause("update", "every parameter", fault, text, evidence, left / NEAR, off / NEAR)]
    return []


def _factors(traces: Traces) -> np.ndarray | None:
    """The norm of all gradients as MindSpore clipped them over torch's, one for each given norm."""
    found = []
    for norm in NORMS:
        key = ("update", PART, f"gradients' norms at {norm:g}", 0)
        ours, theirs = traces.alone[0].entries.get(key), traces.mindspore.entries.get(key)
        if ours is None or theirs is None or ours.shape != theirs.shape or theirs.nonfinite or ours.sampled:
            return None
        exact = float(np.linalg.norm(traces.alone[0].array(key)))
        share = float(np.linalg.norm(traces.mindspore.array(key))) / exact
        found.append(share)
    return np.array(found)


def _hypotheses(largest: float) -> Iterator[tuple[str, str, np.ndarray]]:
    norms = np.array(NORMS)
    without = np.minimum(1.0, 1.0 / norms)
    yield "clip-global-eps", "clipped without the 1e-6 that torch adds to the norm", without
    yield "clip-missing", "the gradients are not clipped", np.ones_like(norms)
    always = largest / (norms * largest + CLIP_EPS)
    yield "clip-always", "gradients below the norm are scaled up to it", always
    yield "clip-always", "gradients below the norm are scaled up to it, without torch's 1e-6", 1.0 / norms
