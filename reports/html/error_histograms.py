"""How the elements of a tensor are off: distributions of error and noise, made from the traces of a run.

The distance of an element from float64 is counted by its power of ten, in units of the tensor's root mean square, so
that rounding (some 1e-7) and faults (far above) stand apart in one picture.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from ...errors import BadTrace
from ...parity.graph_mode import GRAPH, MARK
from ...parity.result import Finding
from ...parity.run_folder import MINDSPORE, MINDSPORE_REPLAY, TORCH32, TORCH64, matched, replayed
from ...parity.trace import Key, Trace, sample_positions
from ...parity.verdict import Verdict
from ..formatting import packed

# exact, the float32 run whose noise is shown, MindSpore; where an entry is in several, the last counts (compare.py)
FAMILIES = (
    (TORCH64, TORCH32, MINDSPORE),
    (matched(TORCH64), matched(TORCH32), MINDSPORE),
    (replayed(TORCH64), replayed(TORCH32), MINDSPORE_REPLAY),
    (TORCH64, TORCH32, GRAPH),
    (matched(TORCH64), matched(TORCH32), GRAPH),
)
PER_DECADE = 4  # bins
LOWEST, HIGHEST = -12, 6  # powers of ten; what lies outside goes into the outermost bin
WORST_OF_STAGE = 12  # tensors of each stage, beside those that failed
MOST_FAILED = 400  # a page of a thousand failed tensors shows no more than one of the first hundreds
ELEMENTS = 5  # worst elements that are listed
SAME = 0.01  # how far the error here may be from the finding's; beyond, the trace is not the one it was judged on


class Histograms:
    """The traces of a run's folder, opened; missing or damaged ones give no histograms."""

    def __init__(self, folder: Path) -> None:
        self._traces: dict[str, Trace] = {}
        for name in {name for family in FAMILIES for name in family}:
            try:
                self._traces[name] = Trace(folder / name)
            except BadTrace:
                continue
        self._where: dict[tuple[str, str, str], tuple[tuple[str, str, str], Key]] = {}
        for family in FAMILIES:
            if family[2] not in self._traces:
                continue
            mark = MARK if family[2] == GRAPH else ""
            for name in family[:2]:
                entries = self._traces[name].entries.values() if name in self._traces else ()
                self._where |= {(e.stage, mark + e.part, e.label): (family, e.key) for e in entries}

    def of(self, findings: Sequence[Finding]) -> dict[int, dict[str, Any]]:
        """Histograms by the index of the finding: of the failed, and of the worst of each stage."""
        found = {}
        for index in _chosen(findings):
            try:
                histogram = self._histogram(findings[index])
            except BadTrace:
                continue
            if histogram is not None:
                found[index] = histogram
        return found

    def _histogram(self, finding: Finding) -> dict[str, Any] | None:
        where = self._where.get((finding.stage, finding.part, finding.name))
        if where is None or finding.error is None or finding.part == "distribution":
            return None
        family, key = where
        exact, plain, subject = (self._array(name, key) for name in family)
        noise = None if exact is None or plain is None else plain - exact
        exact = plain if exact is None else exact  # the starting values, which no precision is more exact on
        if exact is None or subject is None or exact.shape != subject.shape:
            return None
        if noise is not None and noise.shape != exact.shape:
            return None
        error = subject - exact
        size = float(np.linalg.norm(exact))
        distance = float(np.linalg.norm(error)) / (size or 1.0)
        if not math.isclose(distance, finding.error, rel_tol=SAME):
            return None
        unit = size / math.sqrt(exact.size) if size else 1.0
        entry = self._traces[family[2]].entries[key]
        return {
            "elements": int(exact.size),
            "of": math.prod(entry.shape),
            "error": _bins(error / unit),
            **({} if noise is None else {"noise": _bins(noise / unit)}),
            **_likeness(exact, subject),
            "worst": list(_worst(exact, subject, np.abs(error), entry.shape, entry.sampled)),
        }

    def _array(self, name: str, key: Key) -> np.ndarray | None:
        trace = self._traces.get(name)
        if trace is None or key not in trace.entries:
            return None
        array = trace.array(key).astype(np.float64)
        return array if array.size and np.isfinite(array).all() else None


def _chosen(findings: Sequence[Finding]) -> list[int]:
    failed = [i for i, f in enumerate(findings) if f.verdict is Verdict.FAIL][:MOST_FAILED]
    chosen = dict.fromkeys(failed)
    ranked = sorted(range(len(findings)), key=lambda i: findings[i].ratio or 0.0, reverse=True)
    for stage in {f.stage for f in findings}:
        worst = [i for i in ranked if findings[i].stage == stage and (findings[i].error or 0.0) > 0.0]
        chosen |= dict.fromkeys(worst[:WORST_OF_STAGE])
    return sorted(chosen)


def _bins(distances: np.ndarray) -> dict[str, Any]:
    """Counts of |distance| by quarters of a decade from 10**LOWEST; first: the first bin that is not empty."""
    sizes = np.abs(distances)
    nonzero = sizes[sizes > 0.0]
    at = np.floor((np.log10(nonzero) - LOWEST) * PER_DECADE).astype(np.int64)
    last = (HIGHEST - LOWEST) * PER_DECADE - 1
    counts = np.bincount(np.clip(at, 0, last), minlength=last + 1)
    filled = np.flatnonzero(counts)
    zeros = int(sizes.size - nonzero.size)
    if not filled.size:
        return {"zeros": zeros, "first": 0, "counts": []}
    return {"zeros": zeros, "first": int(filled[0]), "counts": counts[filled[0] : filled[-1] + 1].tolist()}


def _likeness(exact: np.ndarray, subject: np.ndarray) -> dict[str, Any]:
    """Cosine of the two, and the factor that brings float64 nearest to MindSpore: what one constant would explain."""
    square, other = float(np.dot(exact, exact)), float(np.dot(subject, subject))
    if square == 0.0 or other == 0.0:
        return {}
    product = float(np.dot(exact, subject))
    # six digits: a factor of 1.0001 is a fault that has been planted and found
    return {
        "factor": float(f"{product / square:.6g}"),
        "cosine": float(f"{product / math.sqrt(square * other):.6g}"),
    }


def _worst(
    exact: np.ndarray, subject: np.ndarray, error: np.ndarray, shape: tuple[int, ...], sampled: bool
) -> Iterator[list[Any]]:
    """The elements that are farthest off: index in the whole tensor, float64's value, MindSpore's."""
    positions = sample_positions(math.prod(shape), error.size) if sampled else np.arange(error.size)
    count = min(ELEMENTS, error.size)
    for at in sorted(np.argpartition(error, -count)[-count:], key=lambda i: -error[i]):
        if error[at] > 0.0:
            index = [int(i) for i in np.unravel_index(positions[at], shape)] if shape else []
            yield [index, packed(float(exact[at])), packed(float(subject[at]))]
