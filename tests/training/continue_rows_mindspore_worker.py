"""MindSpore's half: go on from what torch kept: `python continue_rows_mindspore_worker.py FOLDER`."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import numpy as np
from continue_rows_cases import AFTER, BEFORE, CLASSES, Run, batch, chosen, modes, start
from msmigrate.workers.worker import leave, prepare_mindspore

prepare_mindspore()

from mindspore import Tensor, nn  # noqa: E402
from msmigrate.migrate.checkpoint.convert import convert  # noqa: E402
from msmigrate.migrate.checkpoint.formats.reader import GROUPS  # noqa: E402
from msmigrate.training import checkpoints  # noqa: E402
from msmigrate.training.models.mindspore_models import canonical_parameters, load_weights  # noqa: E402
from msmigrate.training.run.mindspore_setup import go_on  # noqa: E402
from msmigrate.training.step import mindspore_step_state  # noqa: E402
from msmigrate.training.step.mindspore_step import KeptOptimizer, TrainStep  # noqa: E402
from msmigrate.training.step.mindspore_step_state import torch_groups  # noqa: E402


class Net(nn.Cell):
    """The worker's own net in torch."""

    def __init__(self) -> None:
        super().__init__()
        self.conv = nn.Conv2d(1, 2, 3, pad_mode="valid", has_bias=True)
        self.fc = nn.Dense(8, CLASSES)

    def construct(self, images: Any) -> Any:
        held = self.conv(images)
        return self.fc(held.reshape(held.shape[0], -1))


def go(step: TrainStep, last: int, found: dict[str, np.ndarray], place: str) -> None:
    """Take the steps up to the last."""
    while step.steps < last:
        at = step.steps
        step.train(*map(Tensor, batch(at)))
        for held in canonical_parameters(step.net):
            found[f"{place}/{at}/weights/{held.name}"] = held.parameter.asnumpy().copy()
        for key, values in mindspore_step_state.optimizer_state(step).items():
            found |= {f"{place}/{at}/state/{key}/{name}": value.asnumpy().copy() for name, value in values.items()}


def keep(step: TrainStep, path: Path) -> None:
    """Keep a checkpoint as `msmigrate train` does, and convert it."""
    weights = {held.parameter.name: held.parameter.asnumpy() for held in canonical_parameters(step.net)}
    own = path.with_suffix(".ckpt")
    checkpoints.write(
        own, {**weights, **mindspore_step_state.state(step), GROUPS: torch_groups(step)}, {"step": step.steps}
    )
    convert(own, path, training=True)


def began(run: Run, folder: Path, name: str, found: dict[str, np.ndarray]) -> list[str]:
    """Begin here, keep a checkpoint after no step and after some, and go on.

    Then begin again with the same optimizer: returns the names of what is not the same to the bit.
    """
    net, kept = Net(), KeptOptimizer()
    for held in canonical_parameters(net):
        held.parameter.set_data(Tensor(start(held.name)))
    step = TrainStep(run.recipe, net.set_train(), kept=kept)
    keep(step, folder / f"{name}.new.pth")
    go(step, 1, found, f"{name}/new")
    go(step, BEFORE, {}, "")
    keep(step, folder / f"{name}.back.pth")
    go(step, BEFORE + AFTER, found, f"{name}/back")
    for held in canonical_parameters(net):
        held.parameter.copy_(Tensor(start(held.name)))
    again: dict[str, np.ndarray] = {}
    second = TrainStep(run.recipe, net, kept=kept)
    assert second.optimizer is step.optimizer
    go(second, BEFORE, {}, "")
    go(second, BEFORE + AFTER, again, f"{name}/back")
    return [key for key, value in again.items() if not np.array_equal(value, found[key], equal_nan=True)]


def main(folder: Path) -> None:
    """Go on, and begin; torch's file becomes MindSpore's, and torch's again."""
    arrays: dict[str, np.ndarray] = {}
    facts: dict[str, Any] = {"notes": {}, "again": {}}
    for name, run in chosen().items():
        path = folder / f"{name}.start.ckpt"
        convert(folder / f"{name}.pth", path, training=True)  # which optimizer it is, the file has to tell
        convert(path, folder / f"{name}.again.pth", training=True)
        for mode in modes(name):
            net, kept = Net(), checkpoints.read(path)
            load_weights(net, kept.weights, str(path), run.recipe)
            step = TrainStep(run.recipe, net.set_train(), mode)
            _, facts["notes"][name] = go_on(step, kept, path, BEFORE)
            go(step, BEFORE + AFTER, arrays, f"{name}/{mode}")
        facts["again"][name] = began(run, folder, name, arrays)
    np.savez(folder / "mindspore.npz", **arrays)
    (folder / "mindspore_facts.json").write_text(json.dumps(facts))


if __name__ == "__main__":
    main(Path(sys.argv[1]))
    leave()
