"""Whether an exported file computes what the net computes, and the net what torch does, at measured noise.

Judged as parity-step judges (parity/verdict.py). With the torch model at hand, its float64 run is the reference and its
float32 runs are the noise, for the net and for the file. The file is also held against the net itself, where the same
noise counts; without a torch model the noise is what the net's outputs move when its weights and inputs are off by
float32's own rounding. Where the net gives the same for every example, as one whose last layer is all zeros does, there
is nothing to compare, and no verdict.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np

from ..parity.verdict import Measure, Verdict, judge
from .job import EXPORTED, INPUTS, TORCH32, TORCH32_OTHER, TORCH64, load

NET, FILE, TORCH = "MindSpore", "the file", "torch"
SAYS_NOTHING = (
    "the net gives the same whatever it is given, so there is nothing to compare (is a layer all zeros, as a new "
    "transformer's head is? a trained checkpoint or other --images tell more)"
)


@dataclass(frozen=True)
class Comparison:
    """One output of `subject` held against that of `against`; batch: examples at a time in the file, 0 for the net."""

    subject: str
    against: str
    output: int
    batch: int
    shape: tuple[int, ...]
    measure: Measure

    @property
    def passed(self) -> bool:
        """Whether it is the same but for rounding; where torch itself is too noisy, that is not known."""
        return self.measure.verdict is Verdict.PASS


def compare(folder: Path, sizes: Sequence[int], *, torch: bool) -> list[Comparison]:
    """Every comparison of an export; the file's outputs are in the folder for each size of batches."""
    net = load(folder / "net.npz")
    found = []
    if torch:
        exact, *runs = (load(folder / name) for name in (TORCH64, TORCH32, TORCH32_OTHER))
        noise = [[run - each for run, each in zip(one, exact, strict=True)] for one in runs]
        found += _against(NET, TORCH, 0, net, exact, runs)
    else:
        moved = [load(folder / f"moved{i}.npz") for i in range(2)]
        noise = [[run.astype(np.float64) - each for run, each in zip(one, net, strict=True)] for one in moved]
    near = [[each + by for each, by in zip(net, one, strict=True)] for one in noise] if _fits(net, noise) else [net]
    for size in sizes:
        outputs = load(folder / EXPORTED.format(size))
        found += _against(FILE, NET, size, outputs, net, near)
        if torch:
            found += _against(FILE, TORCH, size, outputs, exact, runs)
    if _says_nothing(load(folder / INPUTS), net):
        found = [_without_verdict(one) if one.passed else one for one in found]
    return found


def _says_nothing(inputs: Sequence[np.ndarray], outputs: Sequence[np.ndarray]) -> bool:
    """Whether every output is the same for all examples, though their inputs are not; of one example, one number."""
    differ = any(bool((array != array[:1]).any()) for array in inputs)
    if differ:
        return all(array.ndim and len(array) == len(inputs[0]) and not (array != array[:1]).any() for array in outputs)
    return all(array.size > 1 and not (array != array.flat[0]).any() for array in outputs)


def _without_verdict(one: Comparison) -> Comparison:
    return replace(one, measure=replace(one.measure, verdict=Verdict.NONE, why=SAYS_NOTHING))


def _fits(net: Sequence[np.ndarray], noise: Sequence[Sequence[np.ndarray]]) -> bool:
    """Whether torch's outputs are as many and as large as the net's; where not, the comparison with torch says so."""
    return all([a.shape for a in one] == [b.shape for b in net] for one in noise)


def _against(
    subject: str,
    against: str,
    batch: int,
    outputs: Sequence[np.ndarray],
    reference: Sequence[np.ndarray],
    runs: Sequence[Sequence[np.ndarray]],
) -> list[Comparison]:
    found = []
    for index in range(max(len(outputs), len(reference))):
        have = [list(arrays[index].shape) if index < len(arrays) else None for arrays in (outputs, reference)]
        if have[0] != have[1]:
            words = [f"shape {shape}" if shape is not None else "no such output" for shape in have]
            why = f"{subject} has {words[0]} and {against} {words[1]}"
            measure = Measure(Verdict.FAIL, np.inf, 0.0, 0.0, 0.0, 0.0, why)
        else:
            noisy = [run[index].reshape(-1).astype(np.float64) for run in runs]
            flat = (array[index].reshape(-1).astype(np.float64) for array in (reference, outputs))
            exact, got = flat
            measure = judge(exact, noisy, got)
        found.append(Comparison(subject, against, index, batch, tuple(have[0] or ()), measure))
    return found
