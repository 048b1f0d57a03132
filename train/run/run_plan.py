"""The plan of a training run: everything that can be known before it is started."""

from __future__ import annotations

import os
import platform
from dataclasses import asdict, dataclass
from importlib import metadata
from typing import Any

from ..mindspore_environment import INSTRUCTION_SET, LOG_LEVEL
from ..recipe import Recipe
from .free_memory import free_memory
from .job import Job
from .run_data import RunData
from .targets import Targets

FRAMEWORK_BYTES = 640_000_000  # measured: a process that has imported MindSpore 2.10 and done nothing yet
PACKAGES = ("msmigrate", "mindspore", "numpy", "torch")
HALF = ("O1", "O2", "O3")  # levels at which nearly all activations have two bytes a number


@dataclass(frozen=True)
class RunPlan:
    """The plan, each part as a dict of plain values: `as_json` is what --json prints.

    net and memory are empty where MindSpore could not be asked, data where the images are not there. problems: why the
    run would not start here; warnings: what looks like a mistake.
    """

    recipe: dict[str, Any]
    environment: dict[str, Any]
    data: dict[str, Any]
    steps: dict[str, Any]
    net: dict[str, Any]
    memory: dict[str, Any]
    out: dict[str, Any]
    gate: dict[str, Any]
    launch: list[dict[str, str]]
    problems: list[str]
    warnings: list[str]

    def as_json(self) -> dict[str, Any]:
        """The plan for programs, JSON-serialisable."""
        return asdict(self)


def environment(job: Job, targets: Targets, nproc: int) -> dict[str, Any]:
    """Python, versions, the target and whether it can be used here, and the variables MindSpore is started with."""
    variables = {
        name: {"value": os.environ.get(name, value), "set_by": "you" if name in os.environ else "msmigrate"}
        for name, value in (INSTRUCTION_SET, LOG_LEVEL)
    }
    problem = targets.problem(job.target, job.device_id, nproc)
    return {
        "python": platform.python_version(),
        "versions": {name: version for name in PACKAGES if (version := _version(name))},
        "target": job.target,
        "usable": problem is None,
        "problem": problem,
        "mode": job.mode,
        "processes": job.processes,
        "device_id": job.device_id,
        "variables": variables,
    }


def data(recipe: Recipe, found: RunData, processes: int) -> dict[str, Any]:
    """The sources, and how their images fall into steps."""
    return {
        "training": asdict(found.training),
        "validation": asdict(found.validation) if found.validation else None,
        "shard": found.shard,
        "batch": recipe.data.batch,
        "images_per_step": recipe.data.batch * processes,
        "micro_batches": recipe.accumulate,
    }


def steps(recipe: Recipe, job: Job, steps_per_epoch: int) -> dict[str, Any]:
    """Epochs, steps an epoch and in all; max_steps ends the run sooner."""
    epochs = job.epochs or recipe.train.epochs
    limit = job.max_steps or recipe.train.max_steps
    total = epochs * steps_per_epoch
    return {
        "epochs": epochs,
        "steps_per_epoch": steps_per_epoch,
        "steps": min(total, limit) if limit else total,
        "max_steps": limit,
    }


def memory(recipe: Recipe, job: Job, net: dict[str, Any], nproc: int) -> dict[str, Any]:
    """Bytes that one process will need, estimated, and what this machine has free where that is the target's memory.

    Activations: the outputs of all layers for one micro-batch, kept for the backward pass, two bytes a number in mixed
    precision. What kernels need for a moment, and the images that are being prepared, is not in it: ResNet-18 on 32
    images of 128 pixels is estimated at 1.14 GB and was measured to take 1.27 (PyNative) and 1.33 (graph) on a CPU.
    """
    half = recipe.amp is not None and recipe.amp.level in HALF
    images = recipe.data.batch // recipe.accumulate
    parts = {
        "weights": net["weights_bytes"] + (net["weights_bytes"] // 2 if half else 0),
        "gradients": net["gradient_bytes"] * (2 if recipe.accumulate > 1 else 1),
        "optimizer": net["optimizer_bytes"],
        "ema": net["ema_bytes"],
        "activations": (net["activation_bytes"] or 0) * images // (2 if half else 1),
    }
    if job.target == "CPU":
        parts["mindspore"] = FRAMEWORK_BYTES
    total = sum(parts.values())
    unknown = ["activations"] if net["activation_bytes"] is None else []
    free = free_memory() if job.target == "CPU" else None
    return {
        "parts": parts,
        "micro_batch": images,
        "total": total,
        "unknown": unknown,
        "processes_here": nproc,
        "free": free,
        "fits": None if free is None or unknown else total * nproc <= free,
    }


def _version(name: str) -> str | None:
    try:
        return metadata.version(name)
    except metadata.PackageNotFoundError:
        return None
