"""What it saves on a CPU that MindSpore launches each operator itself: seconds, and processor seconds, of small steps.

    python benchmarks/small_steps.py [--rounds 3] [--steps 60]

Each run is a process of its own; those with MindSpore's threads, as it is without msmigrate, and those where operators
launch themselves take turns, and the medians count. Prints markdown.
"""

from __future__ import annotations

import argparse
import json
import statistics
import subprocess
import sys
import time

MODES = ("pynative", "graph")
LAUNCHES = ("threads", "itself")
WARM = 3


def measure(mode: str, launch: str, steps: int) -> None:
    """Take the steps, and print their wall seconds and processor seconds."""
    from msmigrate.workers.worker import prepare_mindspore

    prepare_mindspore()
    import mindspore
    import numpy as np
    from msmigrate.training import device_targets
    from msmigrate.training.models import mindspore_models
    from msmigrate.training.recipe.schema import Recipe
    from msmigrate.training.step.mindspore_step import TrainStep

    if launch == "itself":
        device_targets.use("CPU", 0, mindspore.PYNATIVE_MODE)
    recipe = Recipe.model_validate({"model": {"name": "lenet5"}, "optimizer": {"name": "SGD", "args": {"lr": 0.01}}})
    step = TrainStep(recipe, mindspore_models.of_recipe(recipe.model).set_train(), mode=mode)
    images = np.random.default_rng(0).standard_normal((32, 1, 32, 32), dtype=np.float32)
    labels = (np.arange(32) % 10).astype(np.int32)
    for i in range(steps + WARM):
        if i == WARM:
            wall, processor = time.perf_counter(), time.process_time()
        step.train(mindspore.Tensor(images), mindspore.Tensor(labels)).loss.asnumpy()
    print(json.dumps([time.perf_counter() - wall, time.process_time() - processor]), flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--steps", type=int, default=60)
    parser.add_argument("--one", nargs=2, metavar=("MODE", "LAUNCH"), help="take the steps in this process")
    arguments = parser.parse_args()
    if arguments.one:
        mode, launch = arguments.one
        measure(mode, launch, arguments.steps)
        return
    found: dict[tuple[str, str], list[tuple[float, float]]] = {}
    for _ in range(arguments.rounds):
        for mode in MODES:
            for launch in LAUNCHES:
                command = [sys.executable, __file__, f"--steps={arguments.steps}", "--one", mode, launch]
                done = subprocess.run(command, capture_output=True, text=True)
                if done.returncode:
                    sys.exit(done.stderr[-2000:])
                found.setdefault((mode, launch), []).append(json.loads(done.stdout.splitlines()[-1]))
    print(f"| mode | operators are launched by | s for {arguments.steps} steps | processor s |\n|---|---|---|---|")
    for (mode, launch), runs in found.items():
        wall, processor = (statistics.median(values) for values in zip(*runs, strict=True))
        by = "threads, MindSpore's default" if launch == "threads" else "themselves, as msmigrate has it"
        print(f"| {mode} | {by} | {wall:.2f} | {processor:.2f} |")


if __name__ == "__main__":
    main()
