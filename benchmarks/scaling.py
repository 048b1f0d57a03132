"""Images a second of whole `msmigrate train` runs with one process and with two, on this CPU.

    python benchmarks/scaling.py [--rounds 3] [--steps 20] [--sync]

The same recipe on made-up images, without validation, started as `msmigrate train --nproc` starts it. One process also
runs on half of the cores, which is what each of two has. The runs take turns, and the median counts. Prints markdown.
"""

from __future__ import annotations

import argparse
import os
import statistics
import sys
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml
from msmigrate.errors import MsmigrateError
from msmigrate.training.options import Spread
from msmigrate.training.run import launch
from msmigrate.training.run.train_job import Job

CASES = [("resnet18", 64, 32), ("resnet50", 128, 8)]  # model, image, images of one process in a step


@dataclass(frozen=True)
class Setup:
    """How many processes, their batch as a share of the case's, and whether one has to do with half of the cores."""

    title: str
    processes: int
    share: float = 1.0
    half: bool = False


SETUPS = [
    Setup("1 process, half of the cores", 1, half=True),
    Setup("1 process", 1),
    Setup("1 process, twice the batch", 1, 2.0),
    Setup("2 processes, the same batch each", 2),
    Setup("2 processes, half the batch each", 2, 0.5),
]


def recipe(model: str, side: int, batch: int, sync: bool) -> dict[str, Any]:
    """What is trained."""
    return {
        "model": {"name": model, "args": {"num_classes": 10}},
        "data": {"source": f"synthetic:2048x{side}", "batch": batch},
        "loss": {"name": "CrossEntropyLoss"},
        "optimizer": {"name": "SGD", "args": {"lr": 0.01, "momentum": 0.9, "weight_decay": 1.0e-4}},
        "sync_batchnorm": sync,
        "train": {"epochs": 100, "log_every": 1000, "checkpoint_every": 100},
    }


def measure(case: tuple[str, int, int], setup: Setup, steps: int, sync: bool) -> tuple[float, float]:
    """Images a second of all processes together, compilation left out, and the seconds of the whole run."""
    model, side, batch = case
    ends: list[dict[str, Any]] = []

    def told(rank: int, event: dict[str, Any]) -> None:
        if rank == 0 and event["event"] == "end":
            ends.append(event)

    cores = os.sched_getaffinity(0)
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "recipe.yaml"
        file.write_text(yaml.safe_dump(recipe(model, side, round(batch * setup.share), sync)), encoding="utf-8")
        job = Job(recipe=file, folder=Path(folder) / "run", max_steps=steps)
        began = time.monotonic()
        try:
            if setup.half:
                os.sched_setaffinity(0, sorted(cores)[: max(1, len(cores) // 2)])
            launch.run(job, Spread(setup.processes), on_event=told)
        finally:
            os.sched_setaffinity(0, cores)
        return float(ends[-1]["images_per_second"]), time.monotonic() - began


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--steps", type=int, default=20)
    parser.add_argument("--sync", action="store_true", help="with BatchNorms over all processes")
    arguments = parser.parse_args()
    load = os.getloadavg()[0]
    print(f"{os.cpu_count()} cores, load {load:.1f}, {arguments.rounds} rounds of {arguments.steps} steps\n")
    print("| model, image | processes | images a step | images/s, median (range) | of 1 process | whole run |")
    print("|---|---|---|---|---|---|")
    for case in CASES:
        speeds: dict[Setup, list[float]] = {setup: [] for setup in SETUPS}
        seconds: dict[Setup, list[float]] = {setup: [] for setup in SETUPS}
        for _ in range(arguments.rounds):
            for setup in SETUPS:
                try:
                    speed, whole = measure(case, setup, arguments.steps, arguments.sync)
                except MsmigrateError as error:
                    sys.exit(f"{setup.title}: {error}")
                speeds[setup].append(speed)
                seconds[setup].append(whole)
        alone = statistics.median(speeds[SETUPS[1]])
        for setup in SETUPS:
            median, images = statistics.median(speeds[setup]), round(case[2] * setup.share) * setup.processes
            spread = f"{min(speeds[setup]):.1f}–{max(speeds[setup]):.1f}"
            print(
                f"| {case[0]}, {case[1]}² | {setup.title} | {images} | {median:.1f} ({spread}) | "
                f"{median / alone:.2f} × | {statistics.median(seconds[setup]):.0f} s |",
                flush=True,
            )


if __name__ == "__main__":
    main()
