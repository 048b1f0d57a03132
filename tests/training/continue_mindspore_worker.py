"""MindSpore's half: go on from what torch kept: `python continue_mindspore_worker.py FOLDER`."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import numpy as np
from continue_cases import AFTER, BEFORE, CASES, STEPS_PER_EPOCH, chosen, modes
from msmigrate.errors import MsmigrateError
from msmigrate.workers.worker import leave, prepare_mindspore
from step_cases import Case, batches, sampled
from worker import dump

prepare_mindspore()

import mindspore  # noqa: E402
from mindspore import Tensor  # noqa: E402
from msmigrate.migrate.checkpoint.convert import convert  # noqa: E402
from msmigrate.migrate.checkpoint.formats.reader import GROUPS  # noqa: E402
from msmigrate.training import checkpoints  # noqa: E402
from msmigrate.training.models import mindspore_models  # noqa: E402
from msmigrate.training.models.mindspore_models import canonical_parameters  # noqa: E402
from msmigrate.training.run.mindspore_setup import go_on, opened  # noqa: E402
from msmigrate.training.step import mindspore_step_state  # noqa: E402
from msmigrate.training.step.mindspore_step import TrainStep  # noqa: E402
from msmigrate.training.step.mindspore_step_state import torch_groups  # noqa: E402
from step_mindspore_worker import smooth, start  # noqa: E402


def started(case: Case, path: Path, mode: str) -> tuple[TrainStep, Any, list[str]]:
    """A step that goes on from a file."""
    mindspore.set_seed(5)
    net = smooth(mindspore_models.build(case.model)).set_train()
    found = opened(path, path.parent, case.recipe)
    mindspore_models.load_weights(net, found.weights, str(path), case.recipe)
    step = TrainStep(case.recipe, net, mode)
    progress, notes = go_on(step, found, path, STEPS_PER_EPOCH)
    return step, progress, notes


def record(found: dict[str, np.ndarray], place: str, step: TrainStep) -> None:
    """Weights, averages, the optimizer's state."""
    named = {f"weights/{held.name}": held.parameter for held in canonical_parameters(step.net)}
    named |= {f"ema/{name}": average for name, average in step.ema().items()}
    for key, values in mindspore_step_state.optimizer_state(step).items():
        named |= {f"state/{key}/{name}": value for name, value in values.items() if key != "step"}
    found |= {f"{place}/{name}": sampled(value.asnumpy()) for name, value in named.items()}
    if step.scaler is not None:
        found[f"{place}/scale"] = np.float64(step.loss_scale)
    found[f"{place}/rate"] = np.float64(list(step.learning_rates().values())[-1])


def kept(found: dict[str, np.ndarray], folder: Path, name: str, case: Case) -> None:
    """Begin here: keep a checkpoint as `msmigrate train` does, go on, and convert what was kept."""
    step = TrainStep(case.recipe, start(case), modes(name)[0])
    for index, batch in enumerate(batches(case)):
        if index == BEFORE:
            weights = {each.parameter.name: each.parameter.asnumpy() for each in canonical_parameters(step.net)}
            state = {**weights, **mindspore_step_state.state(step), GROUPS: torch_groups(step)}
            checkpoints.write(folder / f"{name}.kept.ckpt", state, {"step": index})
        if index < BEFORE + AFTER:
            step.train(Tensor(batch.images), Tensor(batch.labels.astype(np.int32)))
            step.end_epoch()
        if BEFORE <= index < BEFORE + AFTER:
            record(found, f"{name}/began/{index}", step)
    convert(folder / f"{name}.kept.ckpt", folder / f"{name}.back.pth", training=True)


def refused(folder: Path) -> dict[str, str]:
    """What going on under another recipe says."""
    said = {}
    convert(folder / "adamw.pth", folder / "adamw.ckpt", training=True)
    pairs = (("adam", "sgd"), ("sgd", "adam"), ("adamw", "adam"), ("adamw.ckpt", "adam"), ("everything", "dampening"))
    for file, recipe in pairs:
        path = folder / (file if file.endswith(".ckpt") else f"{file}.pth")
        try:
            said[f"{file} as {recipe}"] = "; ".join(started(CASES[recipe], path, "pynative")[2])
        except MsmigrateError as error:
            said[f"{file} as {recipe}"] = f"{type(error).__name__}: {error}"
    return said


def main(folder: Path) -> None:
    """Go on, compiled and operator by operator."""
    arrays: dict[str, np.ndarray] = {}
    facts: dict[str, Any] = {"notes": {}, "progress": {}}
    for name, case in chosen().items():
        for mode in modes(name):
            step, progress, facts["notes"][name] = started(case, folder / f"{name}.pth", mode)
            facts["progress"][name] = [progress.step, progress.epoch, progress.step_in_epoch]
            for index, batch in enumerate(batches(case)):
                if BEFORE <= index < BEFORE + AFTER:
                    step.train(Tensor(batch.images), Tensor(batch.labels.astype(np.int32)))
                    step.end_epoch()
                    record(arrays, f"{name}/{mode}/{index}", step)
        kept(arrays, folder, name, case)
    facts["refused"] = refused(folder)
    dump(folder / "mindspore", facts, arrays)


if __name__ == "__main__":
    main(Path(sys.argv[1]))
    leave()
