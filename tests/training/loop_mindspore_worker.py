"""Run cases of the loop, one after another in this process: `python loop_mindspore_worker.py FOLDER [CASE]`."""

from __future__ import annotations

import contextlib
import json
import sys
from collections.abc import Iterator
from pathlib import Path
from unittest import mock

import numpy as np
from loop_cases import ALONE, CASES, MOST_SKIPPED, POISONED, ROW
from loop_runs import make_job
from msmigrate.workers.worker import leave, prepare_mindspore

prepare_mindspore()

from mindspore import Tensor, float32, ops  # noqa: E402
from msmigrate.training import checkpoints  # noqa: E402
from msmigrate.training.data import (  # noqa: E402
    mindspore_dataloader,
    sources,
)
from msmigrate.training.models import mindspore_models  # noqa: E402
from msmigrate.training.run import mindspore_training_loop, mindspore_worker  # noqa: E402
from msmigrate.training.step import mindspore_step  # noqa: E402


@contextlib.contextmanager
def poisoned() -> Iterator[None]:
    """Put a NaN into one image of one batch."""
    original = mindspore_dataloader.Loader.epoch

    def epoch(self, number: int, start: int = 0):
        for step, batch in enumerate(original(self, number, start), start + 1):
            if step == POISONED:
                images = batch.images.asnumpy().copy()
                images[ROW, 0, 5, 5:7] = np.nan
                object.__setattr__(batch, "images", Tensor(images))
            yield batch

    with mock.patch.object(mindspore_dataloader.Loader, "epoch", epoch):
        yield


@contextlib.contextmanager
def bad_labels() -> Iterator[None]:
    """A source whose labels are no classes of the model."""
    original = sources.open_source

    def open_source(*args, **kwargs):
        source = original(*args, **kwargs)
        source.labels = source.labels.copy()
        source.labels[[7, 9]] = 10, -1
        return source

    with mock.patch.object(sources, "open_source", open_source):
        yield


def no_memory() -> contextlib.AbstractContextManager[object]:
    """A step that wants four terabytes; what MindSpore says to that is its own."""

    def train(self, images: Tensor, labels: Tensor) -> object:
        return ops.zeros((1 << 20, 1 << 20), float32).asnumpy()

    return mock.patch.object(mindspore_step.TrainStep, "train", train)


WITH = {
    "overflows always": lambda: mock.patch.object(mindspore_training_loop, "MOST_SKIPPED", MOST_SKIPPED),
    "poisoned": poisoned,
    "poisoned and scaled": poisoned,
    "bad labels": bad_labels,
    "no memory": no_memory,
    "no tensorboard": lambda: mock.patch.dict(sys.modules, {"tensorboard.compat.proto": None}),
}


def starting_weights(file: Path, model: str) -> None:
    """Weights that no seed draws."""
    net = mindspore_models.build(model)
    generator = np.random.default_rng(0)
    weights = {
        name: generator.uniform(-0.1, 0.1, parameter.shape).astype(np.float32)
        for name, parameter in net.parameters_and_names()
    }
    checkpoints.write(file, weights, {})


def main(folder: Path, cases: list[str]) -> None:
    """Run these cases and write down the exit codes."""
    codes = {}
    for name in cases:
        changes, options = {**CASES, **ALONE}[name]
        place = folder / name
        job = make_job(place, *changes, **options)
        if name == "from a checkpoint":
            starting_weights(place / "start.ckpt", "lenet5")
        elif name == "wrong checkpoint":
            starting_weights(place / "other.ckpt", "resnet_tiny")
        with WITH.get(name, contextlib.nullcontext)():
            codes[name] = mindspore_worker.main(job)
    (folder / "codes.json").write_text(json.dumps(codes), encoding="utf-8")


if __name__ == "__main__":
    main(Path(sys.argv[1]), sys.argv[2:] or list(CASES))
    leave()
