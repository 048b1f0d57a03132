"""How sharp and how calm parity-step's verdict is: clean pairs over many seeds, then known faults, one at a time.

    python benchmarks/verdict.py [RECIPE] [--seeds 30] [--faults NAME[@SIZE] …]

A clean pair must never fail; its ratios (error over noise or floor) show how far from failing it stays. A fault is one
of tests/parity/mindspore_*.py, by name and, where it has one, by size (bn_eps has none, eps_first@1.001e-5 has). Each
framework records all cases in one process. Prints markdown; exit code 1 when a clean pair failed or a fault passed.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np
from msmigrate.parity.build_result import report
from msmigrate.parity.job import ParityJob
from msmigrate.parity.options import STAGES
from msmigrate.parity.result import Report
from msmigrate.parity.tensor_verdict import RATIO, Verdict
from msmigrate.training.recipe import reader as recipes

CASES = Path(__file__).parent.parent / "tests" / "parity"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("recipe", nargs="?", type=Path, default=CASES / "tiny.yaml")
    parser.add_argument("--seeds", type=int, default=30, help="clean pairs, at least one")
    parser.add_argument("--first-seed", type=int, default=100)
    parser.add_argument(
        "--faults",
        nargs="*",
        metavar="NAME",
        help="faults to record after the clean pairs (default: all that tests plant)",
    )
    given = parser.parse_args()
    if given.faults is None:
        given.faults = list(json.loads((CASES / "cases.json").read_text())["faults"])
    recipe = recipes.load(given.recipe)
    # the faults share the start of the first clean pair, which therefore is the recipe's own
    seeds = [recipe.seed, *range(given.first_seed, given.first_seed + given.seeds - 1)]
    with tempfile.TemporaryDirectory() as temporary:
        root = Path(temporary)
        record(root, given.recipe, [*(f"none-{seed}={seed}" for seed in seeds), *given.faults])
        clean = {seed: report(given.recipe, ParityJob(recipe, root / f"none-{seed}")) for seed in seeds}
        faults = {fault: report(given.recipe, ParityJob(recipe, root / fault)) for fault in given.faults}
    alarms = show_clean(given.recipe.name, clean)
    missed = show_faults(faults) if faults else 0
    sys.exit(1 if alarms or missed else 0)


def record(root: Path, recipe: Path, cases: list[str]) -> None:
    """Let both frameworks record every case under `root`; a process that stops ends the benchmark."""
    logs, processes = [root / "torch.log", root / "mindspore.log"], []
    for script, log in zip(("torch_cases.py", "mindspore_cases.py"), logs, strict=True):
        part = ["0/1"] if script.startswith("mindspore") else []  # of the cases, whose tests share them out
        command = [sys.executable, str(CASES / script), str(root), *part, str(recipe), *cases]
        with log.open("w") as stderr:
            # one thread each: two pools on few cores fight
            environment = {**os.environ, "OMP_NUM_THREADS": "1"}
            processes.append(subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=stderr, env=environment))
    try:
        while any(process.poll() is None for process in processes) and not any(process.poll() for process in processes):
            time.sleep(0.2)  # once one has stopped with an error, the other would wait in vain
        stopped = [log for process, log in zip(processes, logs, strict=True) if process.poll()]
    finally:
        for process in processes:
            process.kill()
            process.wait()
    for log in stopped:
        sys.exit(f"{log.stem} stopped:\n{log.read_text()[-2000:]}")


def show_clean(name: str, reports: dict[int, Report]) -> int:
    """Print the ratios of the clean pairs by stage; returns how many pairs were not green."""
    print(f"### {name}: {len(reports)} clean pairs\n")
    print("| stage | tensors a pair | ratio: median | 95th percentile | largest | failed | no verdict |")
    print("|---|---|---|---|---|---|---|")
    for stage in STAGES:
        found = [f for each in reports.values() for f in each.findings if f.stage == stage]
        ratios = [f.ratio for f in found if f.ratio is not None]
        shown = (
            " | ".join(f"{x:.2f}" for x in (np.median(ratios), *np.percentile(ratios, [95, 100]))) if ratios else "| |"
        )
        failed = sum(f.verdict is Verdict.FAIL for f in found)
        undecided = sum(f.verdict is Verdict.NONE for f in found)
        print(f"| {stage} | {len(found) // len(reports)} | {shown} | {failed} | {undecided} |")
    red = [seed for seed, each in reports.items() if not each.parity]
    print(f"\n{len(red)} false alarms in {len(reports)} pairs (a tensor fails above {RATIO:g}).")
    judged = [(f.ratio, seed, f.place) for seed, each in reports.items() for f in each.findings if f.ratio is not None]
    for ratio, seed, place in sorted(judged, reverse=True)[:3]:
        print(f"- ratio {ratio:.2f}: seed {seed}, {place}")
    for seed in red:
        first = reports[seed].first_divergence
        print(f"- seed {seed}: {first.place + ': ' + first.why if first else 'a stage without a verdict'}")
    return len(red)


def show_faults(reports: dict[str, Report]) -> int:
    """Print where each fault was found; returns how many were not."""
    print("\n| fault | found at | ratio | failed tensors, by stage |\n|---|---|---|---|")
    for fault, each in reports.items():
        first = each.first_divergence
        failed = {stage.stage: stage.failed for stage in each.stages if stage.failed}
        counts = ", ".join(f"{stage} {count}" for stage, count in failed.items())
        largest = max((f.ratio for f in each.findings if f.ratio is not None), default=0.0)
        place = first.place if first else f"**missed** (largest ratio {largest:.2f})"
        ratio = f"{first.ratio:.3g}" if first and first.ratio is not None else ""
        print(f"| {fault} | {place} | {ratio} | {counts} |")
    return sum(each.parity for each in reports.values())


if __name__ == "__main__":
    main()
