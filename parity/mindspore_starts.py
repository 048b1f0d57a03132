"""The weights that each PyNative step began with, kept for the compiled one to begin with the same.

Rounding that differs between the modes, by 1e-7 after one step, takes another side at some ReLU of the next one, and
that moves its gradients by a percent: the compiled step would fail for what both modes are free to do. With the same
weights at its beginning every step is judged by what it computes itself. What it leaves behind is still compared, its
optimizer state goes on as its own, and a step that reads something else than the weights (a constant of the compiler's)
shows all the same. The running statistics are weights here: they are in no gradient, and cross with them.
"""

from __future__ import annotations

import shutil
from pathlib import Path

from mindspore import Tensor
from safetensors.numpy import load_file, save_file

from .mindspore_side import MindSporeSide


class Starts:
    """What the net held at the beginning of the second step and of those after it: a file for each, in a new folder."""

    def __init__(self, side: MindSporeSide, folder: Path) -> None:
        self.side, self.folder = side, folder
        folder.mkdir(parents=True)

    def keep(self, step: int) -> None:
        """Write down what the net holds before a step (from 1)."""
        if step > 1:
            save_file({held.name: held.parameter.asnumpy() for held in self.side.held}, self._file(step))

    def take(self, step: int) -> None:
        """Give the net what it held before this step then, and remove the file."""
        if step > 1:
            values = load_file(self._file(step))
            for held in self.side.held:
                held.parameter.copy_(Tensor(values[held.name]))  # set_data's would not reach what is compiled
            self._file(step).unlink()

    def close(self) -> None:
        """Remove what is left."""
        shutil.rmtree(self.folder, ignore_errors=True)

    def _file(self, step: int) -> Path:
        return self.folder / f"step{step}.safetensors"
