"""Small training runs for the tests of the loop: write a recipe and a job, start the worker, read what it left."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from msmigrate.training import checkpoints
from msmigrate.training.run.run_log import Follower
from msmigrate.training.run.train_job import Job

# Digits of 8 x 8, cropped at random and mixed: an epoch of the 1437 has 44 steps of 32.
RECIPE: dict[str, Any] = {
    "model": {"name": "resnet_tiny", "args": {"num_classes": 10}},
    "data": {
        "source": "digits:train",
        "validation": "digits:test",
        "batch": 32,
        "transforms": [
            {"name": "RandomCrop", "args": {"size": 8, "padding": 1}},
            {"name": "Grayscale", "args": {"num_output_channels": 3}},
            {"name": "ToTensor"},
        ],
        "eval_transforms": [{"name": "Grayscale", "args": {"num_output_channels": 3}}, {"name": "ToTensor"}],
    },
    "optimizer": {
        "name": "SGD",
        "args": {"lr": 0.1, "momentum": 0.9, "weight_decay": 5.0e-4},
        "no_weight_decay": ["norm", "bias"],
    },
    "train": {"epochs": 1, "log_every": 1, "mode": "pynative"},
}


STARTED_AT: dict[Path, int] = {}  # job file -> the length of the run's log when its worker was started last


def merged(*trees: dict[str, Any]) -> dict[str, Any]:
    """The trees one over another, key by key; None takes a key out."""
    result: dict[str, Any] = {}
    for tree in trees:
        for key, value in tree.items():
            old = result.get(key)
            result[key] = merged(old, value) if isinstance(old, dict) and isinstance(value, dict) else value
    return {key: value for key, value in result.items() if value is not None}


def make_job(folder: Path, *changes: dict[str, Any], mode: str = "pynative", **options: Any) -> Path:
    """Write the recipe with these changes and a job for it; returns the job's file."""
    folder.mkdir(parents=True, exist_ok=True)
    recipe = folder / "recipe.yaml"
    recipe.write_text(json.dumps(merged(RECIPE, *changes)), encoding="utf-8")  # JSON is YAML
    job = Job.model_validate({"recipe": recipe, "folder": folder / "run", "mode": mode, **options})
    file = folder / f"job{'-resumed' if job.resume else ''}.json"
    job.write(file)
    return file


def start(job_file: Path) -> subprocess.Popen[str]:
    """Start the worker on a job."""
    log = Job.read(job_file).log
    STARTED_AT[job_file] = log.stat().st_size if log.exists() else 0
    return subprocess.Popen(
        [sys.executable, "-m", "msmigrate.training.run.mindspore_worker", str(job_file)],
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        env={name: value for name, value in os.environ.items() if name != "ONEDNN_MAX_CPU_ISA"},
    )


def finish(process: subprocess.Popen[str], code: int = 0, timeout: float = 300) -> str:
    """Wait for a worker to end with this code; returns its output."""
    output, _ = process.communicate(timeout=timeout)
    assert process.returncode == code, output
    return output


def kill_at(process: subprocess.Popen[str], job_file: Path, step: int, delay: float = 0.0) -> None:
    """kill -9 the worker once it has logged this step or a later one, and some seconds later if so wanted."""
    follower = Follower(Job.read(job_file).log)
    follower._at = STARTED_AT[job_file]  # what an earlier start has logged does not count
    deadline = time.monotonic() + 240
    while time.monotonic() < deadline:
        if any(event["event"] == "step" and event["step"] >= step for event in follower.events()):
            time.sleep(delay)
            process.send_signal(signal.SIGKILL)
            process.communicate()
            return
        assert process.poll() is None, process.communicate()[0]
        time.sleep(0.002)
    raise AssertionError(f"step {step} did not come")


def events(job_file: Path, kind: str | None = None) -> list[dict[str, Any]]:
    """The run's log."""
    found = Follower(Job.read(job_file).log).events()
    return found if kind is None else [event for event in found if event["event"] == kind]


def final(job_file: Path) -> checkpoints.Checkpoint:
    """The newest checkpoint of a run, which has to be undamaged."""

    def no(text: str) -> None:
        raise AssertionError(text)

    found = checkpoints.newest(Job.read(job_file).checkpoints, no)
    assert found is not None
    return found[1]


def assert_equal_to_the_bit(one: checkpoints.Checkpoint, other: checkpoints.Checkpoint) -> None:
    """Weights, buffers, optimizer state, moving average, loss scale, and where the run stands."""
    assert one.run is not None
    assert other.run is not None
    # MindSpore tries several ways to share a sum among threads in the first steps of a process, so that the loss that
    # it gives out (and nothing else) may differ in its last bit
    assert one.run.pop("loss_sum") == pytest.approx(other.run.pop("loss_sum"), rel=1e-6)
    assert one.run == other.run
    assert list(one.tensors) == list(other.tensors)
    different = [
        name
        for name, array in one.tensors.items()
        if array.tobytes() != other.tensors[name].tobytes() or array.dtype != other.tensors[name].dtype
    ]
    assert different == []
    assert all(np.isfinite(array).all() for array in one.tensors.values())
