"""Everything that can be known before a run: data, steps, schedule's length, memory."""

from __future__ import annotations

import os
import platform
from dataclasses import asdict, dataclass
from importlib import metadata
from typing import Any

import numpy as np

from ...errors import BadRecipe
from ...workers.worker import INSTRUCTION_SET, LOG_LEVEL
from ..data.sources import WITH_TEST_IMAGES, Arrays, Source, open_sources
from ..device_targets import Targets, free_memory
from ..recipe.schema import Recipe, Schedule
from .train_job import Job


@dataclass(frozen=True)
class SourceFacts:
    """One source: how many images and classes it has, and how many images its smallest and largest class; 0 classes for
    examples without any."""

    source: str
    images: int
    classes: int
    smallest: int
    largest: int


@dataclass(frozen=True)
class RunData:
    """The data of a run. shard: images of one process in an epoch; warnings: what looks like a mistake, but may be
    intended."""

    training: SourceFacts
    validation: SourceFacts | None
    shard: int
    steps_per_epoch: int
    warnings: tuple[str, ...]


def look(recipe: Recipe, processes: int = 1) -> RunData:
    """Open the recipe's sources, without reading an image, and check that they can be trained on.

    Raises BadInput or BadRecipe, in one line with the remedy, for a source that does not exist, for more classes than
    the model has, a label out of range, a validation set of other classes, and a batch larger than a process's shard.
    """
    training, held_out = open_sources(recipe.data, recipe.model)
    facts = _facts(recipe.data.source, training)
    validation = None if held_out is None else _facts(str(recipe.data.validation), held_out)
    shard = shard_size(facts.images, processes, recipe.data.drop_last)
    batch = recipe.data.batch
    steps = shard // batch if recipe.data.drop_last else -(-shard // batch)
    if not steps:
        among = f" over {processes} processes are {shard} each" if processes > 1 else ""
        fewer = ", or use fewer processes" if processes > 1 else ""
        raise BadRecipe(
            f"data.batch {batch} is larger than what one process gets: {facts.images} images{among}; lower data.batch "
            f"to {max(shard, 1)} or less, or set data.drop_last: false{fewer}"
        )
    return RunData(facts, validation, shard, steps, tuple(_warnings(facts, recipe)))


def shard_size(images: int, processes: int, drop_last: bool) -> int:
    """How many images one process gets in an epoch, as torch's DistributedSampler deals them out."""
    return images // processes if drop_last else -(-images // processes)


def _facts(name: str, source: Source | Arrays) -> SourceFacts:
    if not source.classes:
        return SourceFacts(name, len(source), 0, 0, 0)
    counts = np.bincount(source.labels, minlength=len(source.classes))
    return SourceFacts(name, len(source), len(source.classes), int(counts.min()), int(counts.max()))


def _warnings(facts: SourceFacts, recipe: Recipe) -> list[str]:
    found, classes = [], recipe.model.num_classes
    if 0 < facts.classes < classes:
        found.append(
            f"{facts.source} has {facts.classes} classes and the model {classes}: the others will never be seen"
        )
    if recipe.data.validation == recipe.data.source and not recipe.data.source.startswith(WITH_TEST_IMAGES):
        found.append("data.validation is the training data: its accuracy says nothing about other images")
    return found


FRAMEWORK_BYTES = 640_000_000  # measured: a process that has imported MindSpore 2.10 and done nothing yet
PACKAGES = ("msmigrate", "mindspore", "numpy", "torch")
HALF = ("O1", "O2", "O3")  # levels at which nearly all activations have two bytes a number


@dataclass(frozen=True)
class RunPlan:
    """The plan, each part as a dict of plain values: `as_json` is what --json prints.

    net and memory are empty where MindSpore did not start, data where the images are missing, graph (the result of
    compiling the step, see graph_facts of mindspore_net_facts.py) where nothing is compiled. problems: why the run
    would not start here; warnings: what looks like a mistake.
    """

    recipe: dict[str, Any]
    environment: dict[str, Any]
    data: dict[str, Any]
    steps: dict[str, Any]
    net: dict[str, Any]
    memory: dict[str, Any]
    graph: dict[str, Any]
    out: dict[str, Any]
    gate: dict[str, Any]
    launch: list[dict[str, str]]
    problems: list[str]
    warnings: list[str]

    def as_json(self) -> dict[str, Any]:
        """The plan for programs, JSON-serialisable."""
        return asdict(self)


def environment(job: Job, targets: Targets, nproc: int) -> dict[str, Any]:
    """Python, versions, the target and whether it can be used here, and the environment that MindSpore gets."""
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
    """The sources, and how their images are divided into steps."""
    return {
        "training": asdict(found.training),
        "validation": asdict(found.validation) if found.validation else None,
        "shard": found.shard,
        "batch": recipe.data.batch,
        "images_per_step": recipe.data.batch * processes,
        "micro_batches": recipe.accumulate,
    }


def steps(recipe: Recipe, job: Job, steps_per_epoch: int) -> dict[str, Any]:
    """Epochs, steps per epoch and in all; max_steps ends the run earlier."""
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
    precision. Temporary memory of kernels, and the images that are being prepared, are not included: ResNet-18 on 32
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


CLOSE = 0.02  # a schedule that ends this near the run's end (a share of the run) was meant to end with it


def span(name: str, args: dict[str, Any]) -> int | None:
    """The number of moves after which a schedule ends; None for one without an end (StepLR, a warm-up alone).

    name, args: torch's. CosineAnnealingLR climbs again after T_max (torch's documentation gives the recursive form), so
    T_max counts as its end.
    """
    short = name.rpartition(".")[2]
    try:
        if short == "CosineAnnealingLR":
            return int(args["T_max"])
        if short == "PolynomialLR":
            return int(args.get("total_iters", 5))
        if short == "OneCycleLR":
            return int(args.get("total_steps") or args["epochs"] * args["steps_per_epoch"])
        if short == "SequentialLR":
            last = args["schedulers"][-1]
            after = span(last["name"], last.get("args", {}))
            return None if after is None else int(args["milestones"][-1]) + after
    except (KeyError, IndexError, TypeError, ValueError):
        pass  # errors of the schedule are reported where it is made
    return None


def warnings(schedule: Schedule | None, steps: int, epochs: int) -> list[str]:
    """A warning where a schedule ends long before or after a run of this many optimizer steps and epochs."""
    if schedule is None or not steps:
        return []
    moves, unit = (steps, "step") if schedule.per == "step" else (epochs, "epoch")
    end = span(schedule.name, schedule.args)
    if end is None or abs(end - moves) <= max(1.0, CLOSE * moves):
        return []
    what = f"the schedule is made for {_count(end, unit)}, and the run has {_count(moves, unit)}"
    if end > moves:
        return [f"{what}: the learning rate does not reach its final value"]
    return [f"{what}: after that its learning rate stays at the final value, or climbs again as torch's cosine does"]


def _count(number: int, unit: str) -> str:
    return f"{number:,} {unit}{'s' * (number != 1)}"
