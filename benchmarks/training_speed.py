"""Images a second of the step that `msmigrate train` runs, next to plain hand-written loops, on this CPU.

    python benchmarks/training_speed.py [--rounds 3] [--steps 12]

Each loop is a process of its own, with the same model, batch and weights; they take turns, and the median of all steps
counts. Prints markdown.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import subprocess
import sys
from pathlib import Path
from typing import Any

HERE = Path(__file__).parent
CASES = [("resnet18", 64, 32), ("resnet50", 224, 8)]
LOOPS = {
    "msmigrate": ["loop_mindspore.py", "msmigrate"],
    "msmigrate, `finite: loss`": ["loop_mindspore.py", "msmigrate-loss"],
    "MindSpore, functional": ["loop_mindspore.py", "functional"],
    "MindSpore, Model.train": ["loop_mindspore.py", "model"],
    "torch": ["loop_torch.py"],
}


def measure(loop: list[str], case: tuple[str, int, int], steps: int) -> dict[str, Any]:
    """What one process says of its steps."""
    script, *kind = loop
    command = [sys.executable, str(HERE / script), *kind, case[0], str(case[1]), str(case[2]), str(steps)]
    done = subprocess.run(command, capture_output=True, text=True)
    if done.returncode:
        sys.exit(done.stderr[-2000:])
    return json.loads(done.stdout.splitlines()[-1])


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--steps", type=int, default=12)
    arguments = parser.parse_args()
    print(
        f"{os.cpu_count()} cores, load {os.getloadavg()[0]:.1f}, {arguments.rounds} rounds of {arguments.steps} steps\n"
    )
    print("| model, batch, image | loop | s a step, median (range) | images/s | msmigrate is | first step |")
    print("|---|---|---|---|---|---|")
    for case in CASES:
        seconds: dict[str, list[float]] = {name: [] for name in LOOPS}
        first: dict[str, list[float]] = {name: [] for name in LOOPS}
        for _ in range(arguments.rounds):
            for name, loop in LOOPS.items():
                found = measure(loop, case, arguments.steps)
                seconds[name] += found["steps"]
                first[name].append(found["first"])
        own = statistics.median(seconds["msmigrate"])
        for name, values in seconds.items():
            median = statistics.median(values)
            print(
                f"| {case[0]}, {case[2]}, {case[1]}² | {name} | {median:.3f} ({min(values):.3f}–{max(values):.3f}) | "
                f"{case[2] / median:.1f} | {median / own:.2f} × | {statistics.median(first[name]):.1f} s |",
                flush=True,
            )


if __name__ == "__main__":
    main()
