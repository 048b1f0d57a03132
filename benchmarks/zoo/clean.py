"""Does parity-step give a false alarm on architectures that were carried over rightly?

    python benchmarks/zoo/clean.py [--seeds 3] [--batches 2] [--only NAME …]

Runs parity-step on torchvision's architectures (torch_small.py) against their hand-written MindSpore twins
(mindspore_*.py), each with several seeds (other weights) and batch sizes (4 images, 6, 8 …), every module also alone.
Prints markdown; exit code 1 when a tensor failed.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import tempfile
import time
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import yaml
from msmigrate.parity.tensor_verdict import RATIO

HERE = Path(__file__).parent
STEPS = 2
LONGEST = 500  # letters of what a run says that stopped
TWINS = {
    "mindspore_plain.py": ("alexnet", "vgg11_bn", "squeezenet1_1"),
    "mindspore_mobile.py": ("mobilenet_v2", "mobilenet_v3_small", "mnasnet0_5", "efficientnet_b0"),
    "mindspore_branched.py": ("shufflenet_v2_x0_5", "googlenet"),
    "mindspore_densenet.py": ("densenet",),
    "mindspore_regnet.py": ("regnet_y",),
    "mindspore_convnext.py": ("convnext",),
    "mindspore_attention.py": ("vit", "swin"),
}
# the package's own twins, which recipes name
OWN = {"resnet18": "resnet18(num_classes=10)", "resnext50": "resnet50(num_classes=10, groups=32, width_per_group=4)"}
PAIRS: dict[str, tuple[str, str]] = {
    **{
        name: (f"{HERE / 'torch_small.py'}:{name}", f"{HERE / file}:{name}")
        for file, names in TWINS.items()
        for name in names
    },
    **{name: (f"torchvision:{model}", f"msmigrate:{model}") for name, model in OWN.items()},
}


@dataclass
class Row:
    """What all runs of one architecture showed."""

    runs: int = 0
    tensors: int = 0
    modules: int = 0
    largest: float = 0.0
    place: str = ""
    alarms: list[str] = field(default_factory=list)
    undecided: Counter[str] = field(default_factory=Counter)  # by stage and part


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--batches", type=int, default=2, help="how many batch sizes: 4 images, 6, 8 …")
    parser.add_argument("--only", nargs="*", choices=list(PAIRS), default=list(PAIRS), metavar="NAME")
    given = parser.parse_args()
    print("| architecture | runs | modules | tensors | largest ratio | at | no verdict | false alarms |")
    print("|---|---|---|---|---|---|---|---|")
    rows = {}
    for name in given.only:
        rows[name] = row = Row()
        for seed in range(1, given.seeds + 1):
            for batch in range(4, 4 + 2 * given.batches, 2):
                began = time.monotonic()
                run(name, seed, batch, row)
                told = f"{name}, seed {seed}, {batch} images: {time.monotonic() - began:.0f} s {dict(row.undecided)}"
                print(told, file=sys.stderr, flush=True)
        print(
            f"| {name} | {row.runs} | {row.modules} | {row.tensors} | {row.largest:.2f} | {row.place} "
            f"| {sum(row.undecided.values())} | {len(row.alarms)} |",
            flush=True,
        )
    alarms = [alarm for row in rows.values() for alarm in row.alarms]
    runs = sum(row.runs for row in rows.values())
    print(f"\n{len(alarms)} false alarms in {runs} runs of {len(rows)} architectures (a tensor fails above {RATIO:g}).")
    for line in alarms:
        print(f"- {line}")
    sys.exit(1 if alarms else 0)


def run(name: str, seed: int, batch: int, row: Row) -> None:
    """Compare one pair once, and add what was found to its row."""
    label = f"{name}, seed {seed}, {batch} images"
    torch, mindspore = PAIRS[name]
    with tempfile.TemporaryDirectory() as temporary:
        recipe, report = Path(temporary) / "step.yaml", Path(temporary) / "report.json"
        recipe.write_text(yaml.safe_dump({**yaml.safe_load((HERE / "step.yaml").read_text()), "seed": seed}))
        command = [sys.executable, "-m", "msmigrate", "parity-step", str(recipe), "--steps", str(STEPS)]
        command += ["--torch", torch, "--mindspore", mindspore, "--batch", str(batch), "--json", str(report)]
        done = subprocess.run(
            [*command, "--no-diagnosis"], capture_output=True, text=True, errors="replace", check=False
        )
        if report.exists():
            add(label, json.loads(report.read_text()), row)
        else:
            row.alarms.append(f"{label}: {' '.join((done.stdout + done.stderr).split())[-LONGEST:]}")


def add(label: str, report: dict[str, Any], row: Row) -> None:
    """Add one report to the row."""
    row.runs += 1
    row.tensors += len(report["findings"])
    row.modules = max(row.modules, len(report["modules"]))
    row.alarms += [f"{label}: module {m['name']}: {m['why']}" for m in report["modules"] if m["verdict"] == "fail"]
    for finding in report["findings"]:
        place = f"{finding['stage']} ({finding['part']}) {finding['name']}"
        if (finding["ratio"] or 0.0) > row.largest:
            row.largest, row.place = finding["ratio"], place
        if finding["verdict"] == "fail":
            row.alarms.append(f"{label}: {place}: {finding['why']}")
        elif finding["verdict"] == "no verdict":
            row.undecided[f"{finding['stage']} {finding['part']}"] += 1


if __name__ == "__main__":
    main()
