"""A failing module under examination: what MindSpore computed with it alone, and how far a hypothesis is from that."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from math import inf, log10

import numpy as np
import torch
from torch import nn

from ..trace import sample_positions
from ..verdict import EPS32, FLOOR_ULPS, RATIO, Verdict, judge
from .torch_alone import Around, CannotRun, Given, Tensors, alone, copied
from .torch_module_verbs import Trial

LARGEST = 1e12  # ratios are capped here, so that they can be averaged
SCREENED = 10.0  # a quick look without a float32 run lets ratios up to this many times RATIO through


@dataclass(frozen=True)
class Subject:
    """One tensor that MindSpore recorded of the module: its elements (flat; a sample where `sampled`), its shape, and
    torch's own noise on it, as a share of its size."""

    stage: str
    elements: np.ndarray
    shape: tuple[int, ...]
    sampled: bool
    noise: float

    def taken_from(self, array: np.ndarray) -> np.ndarray:
        """The elements of a whole tensor that were recorded, flat."""
        elements = array.reshape(-1)
        if not self.sampled:
            return elements
        return elements[sample_positions(elements.size, self.elements.size)]


@dataclass(frozen=True)
class Outcome:
    """How a hypothesis did: the ratio of every tensor (infinite where the two cannot be compared), and the names of
    those that fail."""

    ratios: Mapping[str, float]
    failing: frozenset[str]

    @property
    def worst(self) -> float:
        """The largest ratio."""
        return max(self.ratios.values(), default=0.0)

    @property
    def middle(self) -> float:
        """Mean decimal logarithm of the ratios, each at least RATIO: how far off the module is altogether."""
        logs = [log10(min(max(ratio, RATIO), LARGEST)) for ratio in self.ratios.values()]
        return sum(logs) / len(logs) if logs else 0.0

    @property
    def key(self) -> tuple[int, float]:
        """Orders outcomes: fewest failing tensors, then nearest."""
        return (len(self.failing), self.middle)


@dataclass
class Specimen:
    """One call of a failing module.

    module: torch's, float32, never changed. given: the recorded call; None where the specimen has its inputs elsewhere.
    subjects: MindSpore's tensors by name. around: the context that a run needs: shared random draws, sides of kinks.
    unlike: the tensors that MindSpore has otherwise or not at all, as is known: they fail nothing by their absence.
    """

    path: str
    module: nn.Module
    given: Given | None
    subjects: Mapping[str, Subject]
    around: Around
    unlike: frozenset[str] = field(default=frozenset(), kw_only=True)
    how = "alone, on the same input and upstream gradients"

    def computed(self, trials: Sequence[Trial], dtype: torch.dtype, gradients: bool = True) -> Tensors:
        """What the module computes with these trials one upon another. Raises CannotRun."""
        module = copied(self.module, dtype)
        for trial in trials:
            trial.apply(module)
        assert self.given is not None
        return alone(module, self.given, dtype, gradients, self.around)

    def quick(self, trials: Sequence[Trial], gradients: bool = True) -> Outcome:
        """The outcome by a float64 run alone, against torch's recorded noise. Raises CannotRun."""
        return self._outcome(self.computed(trials, torch.float64, gradients), None, gradients)

    def outcome(self, trials: Sequence[Trial]) -> Outcome:
        """The outcome, its noise measured by a float32 run under the same hypothesis. Raises CannotRun."""
        exact = self.computed(trials, torch.float64)
        return self._outcome(exact, self.computed(trials, torch.float32), True)

    def look(self, trials: Sequence[Trial]) -> Outcome | None:
        """`outcome`, or None where the module does not run so, or is plainly nowhere near."""
        try:
            return self.outcome(trials)
        except CannotRun:
            return None

    def _outcome(self, exact: Tensors, single: Tensors | None, gradients: bool) -> Outcome:
        ratios: dict[str, float] = {}
        failing = set()
        names = [n for n in self.subjects if gradients or self.subjects[n].stage != "gradients"]
        for name in names:
            ratio, fails = self._compare(
                self.subjects[name], exact.get(name), None if single is None else single.get(name)
            )
            ratios[name] = ratio
            if fails:
                failing.add(name)
        for name in set(exact) - set(self.subjects) - self.unlike:
            if gradients and np.any(exact[name]):  # MindSpore has no such tensor
                ratios[name] = inf
                failing.add(name)
        return Outcome(ratios, frozenset(failing))

    def _compare(self, subject: Subject, exact: np.ndarray | None, single: np.ndarray | None) -> tuple[float, bool]:
        if exact is None or exact.shape != subject.shape or not exact.size:
            gone = exact is None and not np.any(subject.elements)
            return (0.0, False) if gone else (inf, True)
        reference = subject.taken_from(exact).astype(np.float64)
        noisy = reference if single is None else subject.taken_from(single)
        measure = judge(reference, [noisy], subject.elements, relative_floor=subject.noise)
        return (measure.ratio if np.isfinite(measure.ratio) else inf), measure.verdict is Verdict.FAIL


def noise_of(exact: np.ndarray, runs: Sequence[np.ndarray], floor: float = 0.0) -> float:
    """torch's own noise on one tensor as a share of its size: the largest of its float32 runs, at least `floor`."""
    size = float(np.linalg.norm(exact.astype(np.float64)))
    if not size:
        return max(floor, FLOOR_ULPS * EPS32)
    away = max((float(np.linalg.norm(run.astype(np.float64) - exact)) for run in runs), default=0.0)
    return max(away / size, floor, FLOOR_ULPS * EPS32)
