"""What MindSpore's side held when its second step began, and each one after it: the same steps of torch, and those of
the compiled net, begin with it.

Rounding that differs by 1e-7 after one step takes another side at some ReLU of the next, and where a net multiplies
rounding, torch's own second step is a tenth of itself from its float64 values: nothing could be judged there. From
one beginning every step is judged by what it computes itself. Nothing is hidden by it: what a step leaves behind is
compared before the next one begins.
"""

from __future__ import annotations

import shutil
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

import numpy as np
from safetensors.numpy import load_file, save_file

FOLDER = "mindspore-starts"  # in a run's
VALUES, EMA, STATE = "values", "ema", "state"

Arrays = Mapping[str, np.ndarray]


class Holder(Protocol):
    """A side of the recording, as far as it can be asked what it holds; names and shapes are torch's."""

    def parameters(self) -> Arrays: ...

    def buffers(self) -> Arrays: ...

    def ema(self) -> Arrays: ...

    def optimizer_state(self) -> Mapping[str, Arrays]: ...


@dataclass(frozen=True)
class StepStart:
    """values: weights and buffers by name; ema: their moving average; state: the optimizer's floating state by torch's
    key, then name."""

    values: Arrays
    ema: Arrays
    state: Mapping[str, Arrays]

    @property
    def finite(self) -> bool:
        """Whether all of it is finite: nothing can begin with what is not."""
        held = (self.values, self.ema, *self.state.values())
        return all(bool(np.isfinite(array).all()) for arrays in held for array in arrays.values())


class StepStarts:
    """A file for each step from the second on, in the folder of a run."""

    def __init__(self, run: Path) -> None:
        self.folder = run / FOLDER

    def keep(self, side: Holder, step: int) -> None:
        """Write down what `side` holds before a step (from 1)."""
        if step == 1:
            return
        self.folder.mkdir(exist_ok=True)
        held = {(VALUES, ""): {**side.parameters(), **side.buffers()}, (EMA, ""): side.ema()}
        held |= {(STATE, key): arrays for key, arrays in side.optimizer_state().items()}
        arrays = {
            f"{kind} {key} {name}": np.ascontiguousarray(array)
            for (kind, key), each in held.items()
            for name, array in each.items()
            if array.dtype.kind == "f"
        }
        save_file(arrays, self._file(step))

    def of(self, step: int) -> StepStart | None:
        """What was held before a step; None for the first one, where nothing was kept, and where it is not finite."""
        if step == 1 or not self._file(step).exists():
            return None
        found: dict[str, dict[str, dict[str, np.ndarray]]] = {VALUES: {}, EMA: {}, STATE: {}}
        for label, array in load_file(self._file(step)).items():
            kind, key, name = label.split(" ", 2)
            found[kind].setdefault(key, {})[name] = array
        start = StepStart(found[VALUES].get("", {}), found[EMA].get("", {}), found[STATE])
        return start if start.finite else None

    def remove(self) -> None:
        """Remove them: nothing needs them once both sides have taken their steps."""
        shutil.rmtree(self.folder, ignore_errors=True)

    def _file(self, step: int) -> Path:
        return self.folder / f"step{step}.safetensors"
