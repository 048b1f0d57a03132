"""Made-up runs: trace folders as the recorders would have left them, with something changed on one side."""

from __future__ import annotations

import zlib
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np
from msmigrate.parity.compare_traces import Traces, compare
from msmigrate.parity.result import Report
from msmigrate.parity.run_folder import MINDSPORE, TORCH32, TORCH32_OTHER, TORCH64, matched
from msmigrate.parity.trace import TraceWriter

NOISE = 2e-7
KINKS = {"matched": [3, 0], "differing": [0, 2]}
# where an entry is recorded: by every side alone, or in the steps with MindSpore's choices (torch64 twice)
ALONE, MATCHED = "alone", "matched"


@dataclass(frozen=True)
class Tensor:
    """One entry of the made-up step; values are normal, fixed by the name."""

    stage: str
    part: str
    name: str
    family: str = ALONE
    shape: tuple[int, ...] = (4, 30)
    exact: bool = False
    module: str | None = None
    call: int = 0


STEP = (
    Tensor("data", "step1", "images"),
    Tensor("init", "values", "conv.weight", exact=True),
    Tensor("init", "distribution", "conv.weight", shape=(3000,)),
    Tensor("forward", "train", "conv", module="Conv2d"),
    Tensor("forward", "train", "bn", module="BatchNorm2d"),
    Tensor("forward", "train", "relu", module="ReLU"),
    Tensor("forward", "train", "relu", module="ReLU", call=1),
    Tensor("loss", "step1", "logits", MATCHED),
    Tensor("loss", "step1", "loss", MATCHED, shape=()),
    Tensor("loss", "given logits", "loss", shape=()),
    Tensor("gradients", "parameters", "bn.weight", MATCHED),
    Tensor("gradients", "parameters", "conv.weight", MATCHED),
    Tensor("update", "given gradients", "conv.weight"),
    Tensor("update", "step1", "conv.weight", MATCHED),
)
# what torch's float32 runs lack where they end with the first step
LATER = (
    Tensor("update", "step2", "conv.weight", MATCHED),
    Tensor("update", "step2 momentum_buffer", "conv.weight", MATCHED),
    Tensor("update", "step2 loss", "logits", MATCHED),
    Tensor("update", "step2 loss", "loss", MATCHED, shape=()),
    Tensor("update", "learning rate and weight decay", "conv.weight", MATCHED, shape=(2, 2)),
)
FIRST = (Tensor("update", "step1 momentum_buffer", "conv.weight", MATCHED), *LATER)
Change = Callable[[Tensor, np.ndarray], "tuple[Tensor, np.ndarray] | None"]


@dataclass
class Run:
    """A run to be written: `mindspore`, `torch32`, `torch64` change or leave out (None) what that side records."""

    mindspore: Change = lambda tensor, array: (tensor, array)
    torch32: Change = lambda tensor, array: (tensor, array)
    torch64: Change = lambda tensor, array: (tensor, array)
    extra: list[tuple[Tensor, np.ndarray]] = field(default_factory=list)  # recorded by MindSpore only, at the end
    more: tuple[Tensor, ...] = ()  # further tensors of the step
    about: dict[str, dict[str, Any]] = field(default_factory=dict)  # trace name -> what its head says differently
    sample: int | None = None
    later: bool = False  # whether a second step was taken, in float64 and by MindSpore

    def write(self, folder: Path) -> Path:
        """Write the seven traces."""
        for run, name in enumerate((TORCH64, TORCH32, TORCH32_OTHER)):
            change = self.torch64 if name == TORCH64 else self.torch32
            self._one(folder / name, run, ALONE, change)
            self._one(folder / matched(name), run, MATCHED, change)
        self._one(folder / MINDSPORE, 3, "", self.mindspore)
        return folder

    def traces(self, folder: Path) -> Traces:
        """The written run, opened."""
        return Traces.load(self.write(folder))

    def report(self, folder: Path) -> Report:
        """The written run, compared."""
        return Report("made-up", "0", {}, compare(self.traces(folder)))

    def _one(self, folder: Path, run: int, family: str, change: Change) -> None:
        head = {"recipe": "0", "versions": {"made-up": "1"}, "kinks": KINKS, "dtype": "float32"}
        writer = TraceWriter(folder, {**head, **self.about.get(folder.name, {})}, self.sample)
        step = [*STEP, *self.more, *(FIRST if self.later else ())]
        step = [tensor for tensor in step if run not in (1, 2) or tensor not in LATER]
        recorded = [change(tensor, values(tensor, run)) for tensor in step if family in ("", tensor.family)]
        for tensor, array in [pair for pair in recorded if pair] + (self.extra if not family else []):
            writer.add(*entry(tensor), array, tensor.call, digest=tensor.exact, module=tensor.module)
        writer.close()


def entry(tensor: Tensor) -> tuple[str, str, str]:
    return tensor.stage, tensor.part, tensor.name


def values(tensor: Tensor, run: int) -> np.ndarray:
    """What run 0 (float64), 1, 2 (float32) or 3 (MindSpore) has: the same but for rounding."""
    seed = zlib.crc32(repr((entry(tensor), tensor.call)).encode())
    exact = np.random.default_rng(seed).standard_normal(tensor.shape)
    if tensor.exact:
        return exact.astype(np.float32)
    if tensor.part == "learning rate and weight decay":
        return np.full(tensor.shape, 0.1)
    if tensor.part == "distribution":
        return np.random.default_rng(run).standard_normal(tensor.shape).astype(np.float32)
    if run == 0:
        return exact
    noise = np.random.default_rng(run).standard_normal(tensor.shape)
    return np.asarray(exact * (1 + NOISE * noise), dtype=np.float32)


def only(stage: str, name: str, change: Callable[[np.ndarray], np.ndarray]) -> Change:
    """Change the values of one tensor, wherever the stage has it."""

    def apply(tensor: Tensor, array: np.ndarray) -> tuple[Tensor, np.ndarray]:
        return tensor, change(array.copy()) if (tensor.stage, tensor.name) == (stage, name) else array

    return apply


def without(stage: str, name: str) -> Change:
    """Leave one tensor out."""
    return lambda tensor, array: None if (tensor.stage, tensor.name) == (stage, name) else (tensor, array)


def renamed(stage: str, name: str, to: str) -> Change:
    """Record one tensor under another name."""

    def apply(tensor: Tensor, array: np.ndarray) -> tuple[Tensor, np.ndarray]:
        return (replace(tensor, name=to), array) if (tensor.stage, tensor.name) == (stage, name) else (tensor, array)

    return apply
