"""What parity-step says of models that somebody else published: mindcv's against torchvision's and timm's.

    python benchmarks/zoo/mindcv_exam.py [--drawn] [--only NAME …] [--keep DIR]

Needs mindcv (pip install --no-deps mindcv; tqdm and PyYAML are all it wants besides MindSpore). Each pair is given to
`msmigrate parity-step --torch torchvision:… --mindspore mindcv:…` as a user would, without a map of names: eleven that
were chosen, and with --drawn fifteen that were drawn by lot out of mindcv_twins.yaml before any of them had run. Prints
markdown: how the names were aligned, which modules differ when they run alone, and what is said of the cause.
"""

from __future__ import annotations

import argparse
import importlib.util
import json
import random
import subprocess
import sys
import tempfile
import time
from collections import Counter
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

HERE = Path(__file__).parent
# mindcv's model: torchvision's
PAIRS = {
    "resnet18(num_classes=10)": "resnet18(num_classes=10)",
    "squeezenet1_1(num_classes=10)": "squeezenet1_1(num_classes=10)",
    "mobilenet_v2_100(num_classes=10)": "mobilenet_v2(num_classes=10)",
    "mobilenet_v3_small_100(num_classes=10)": "mobilenet_v3_small(num_classes=10)",
    "mnasnet_050(num_classes=10)": "mnasnet0_5(num_classes=10)",
    "shufflenet_v2_x0_5(num_classes=10)": "shufflenet_v2_x0_5(num_classes=10)",
    "googlenet(num_classes=10)": "googlenet(num_classes=10, aux_logits=False, init_weights=False)",
    "regnet_y_400mf(num_classes=10)": "regnet_y_400mf(num_classes=10)",
    "densenet121(num_classes=10)": "densenet121(num_classes=10)",
    "efficientnet_b0(num_classes=10)": "efficientnet_b0(num_classes=10)",
    "convnext_tiny(num_classes=10)": "convnext_tiny(num_classes=10, stochastic_depth_prob=0.0)",
}
SEED = 1  # of the lot
DRAWN = 15
SMALL = 25.0  # millions of parameters: larger ones are not drawn
BATCHES = {True: 2, False: 4}  # of those that were drawn: images of 200 pixels and more, and smaller ones


@dataclass(frozen=True)
class Pair:
    """Two models that are to be the same, and the step they are compared on: images a step, and their size."""

    mindcv: str
    torch: str
    batch: int = 4
    size: int = 64

    @property
    def name(self) -> str:
        """Mindcv's function."""
        return self.mindcv.partition("(")[0]


def chosen() -> list[Pair]:
    """The eleven pairs that were chosen."""
    return [Pair(theirs, f"torchvision:{ours}") for theirs, ours in PAIRS.items()]


def drawn(count: int = DRAWN) -> list[Pair]:
    """So many pairs by lot; with a larger count the first ones stay as they are."""
    twins = yaml.safe_load((HERE / "mindcv_twins.yaml").read_text())
    small = [twin for twin in twins if twin["millions"] <= SMALL]
    random.Random(SEED).shuffle(small)
    return [Pair(twin["mindcv"], twin["torch"], BATCHES[twin["size"] >= 200], twin["size"]) for twin in small[:count]]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--drawn", nargs="?", type=int, const=DRAWN, metavar="COUNT", help="so many drawn by lot")
    parser.add_argument("--only", nargs="*", metavar="NAME", help="of these, mindcv's names")
    parser.add_argument("--keep", type=Path, help="leave the reports there, as NAME.json and NAME.txt")
    given = parser.parse_args()
    if importlib.util.find_spec("mindcv") is None:
        sys.exit("mindcv is not installed: pip install --no-deps mindcv")
    pairs = chosen() if given.drawn is None else drawn(given.drawn)
    with tempfile.TemporaryDirectory() as temporary:
        folder = given.keep or Path(temporary)
        folder.mkdir(parents=True, exist_ok=True)
        for pair in pairs:
            if given.only is None or pair.name in given.only:
                began = time.monotonic()
                said = examine(pair, folder / f"{pair.name}.json")
                (folder / f"{pair.name}.txt").write_text(said)
                show(pair.name, folder / f"{pair.name}.json", said, time.monotonic() - began)


def examine(pair: Pair, report: Path) -> str:
    """Run the command on one pair; what it prints. The report is there unless the pair was refused."""
    recipe = yaml.safe_load((HERE / "step.yaml").read_text())
    recipe["data"]["batch"] = pair.batch
    for step in recipe["data"]["transforms"]:
        if "size" in step.get("args", {}):
            step["args"]["size"] = pair.size + 8 * (step["name"] == "Resize")
    step = report.with_suffix(".yaml")
    step.write_text(yaml.safe_dump(recipe))
    command = [sys.executable, "-m", "msmigrate", "parity-step", str(step), "--steps", "2"]
    command += ["--torch", pair.torch, "--mindspore", f"mindcv:{pair.mindcv}", "--json", str(report)]
    done = subprocess.run(command, capture_output=True, text=True, errors="replace", check=False)
    return done.stdout + done.stderr


def show(name: str, report: Path, said: str, seconds: float) -> None:
    """Print what was found about one pair."""
    print(f"### {name} ({seconds:.0f} s)\n")
    if not report.exists():
        print(f"refused: {' '.join(said.split())}\n", flush=True)
        return
    found = json.loads(report.read_text())
    for note in found["notes"]:
        print(f"- {note}")
    print(f"- distributions that differ: {counted(initial(found))}")
    faulty = [m for m in found["modules"] if m["verdict"] == "fail" and m["own"]]
    for kind in dict.fromkeys(module["kind"] for module in faulty):
        same = [module for module in faulty if module["kind"] == kind]
        first = f"{same[0]['name'] or '(model)'} ({same[0]['mindspore']}): {same[0]['why']}"
        print(f"- at fault, {len(same)} {kind}; the first is {first}")
    for text, count in Counter(without_place(cause) for cause in found["causes"]).items():
        print(f"- cause ({count}): {text}")
    print(flush=True)


def without_place(cause: dict[str, Any]) -> str:
    """What a cause says, without the name of its module."""
    words = [word for word in cause["text"].split() if word.rstrip(":,") not in cause["place"].split()]
    return " ".join(words)


def initial(report: dict[str, Any]) -> list[str]:
    """Which parameters start from another distribution: what was said, without its numbers."""
    failed = (f for f in report["findings"] if f["stage"] == "init" and f["verdict"] == "fail")
    return [f"{finding['name'].rpartition('.')[2]} of {finding['module'] or 'a module'}" for finding in failed]


def counted(words: list[str]) -> str:
    """Each word once, with how often it comes."""
    return ", ".join(f"{word} ({count})" for word, count in Counter(words).items()) or "none"


if __name__ == "__main__":
    main()
