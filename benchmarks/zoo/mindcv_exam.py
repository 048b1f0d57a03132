"""What parity-step says of models that somebody else published: mindcv's against torchvision's.

    python benchmarks/zoo/mindcv_exam.py [--only NAME …] [--keep DIR]

Needs mindcv (pip install --no-deps mindcv; tqdm and PyYAML are all it wants besides MindSpore). Each pair is given to
`msmigrate parity-step --torch torchvision:… --mindspore mindcv:…` as a user would, without a map of names. Prints
markdown: how the names were aligned, which modules differ when they run alone, and what is said of the cause.
"""

from __future__ import annotations

import argparse
import importlib.util
import json
import subprocess
import sys
import tempfile
import time
from collections import Counter
from pathlib import Path
from typing import Any

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


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    names = [model.partition("(")[0] for model in PAIRS]
    parser.add_argument("--only", nargs="*", choices=names, default=names, metavar="NAME")
    parser.add_argument("--keep", type=Path, help="leave the reports there, as NAME.json and NAME.txt")
    given = parser.parse_args()
    if importlib.util.find_spec("mindcv") is None:
        sys.exit("mindcv is not installed: pip install --no-deps mindcv")
    with tempfile.TemporaryDirectory() as temporary:
        folder = given.keep or Path(temporary)
        folder.mkdir(parents=True, exist_ok=True)
        for theirs, ours in PAIRS.items():
            name = theirs.partition("(")[0]
            if name in given.only:
                began = time.monotonic()
                said = examine(theirs, ours, folder / f"{name}.json")
                (folder / f"{name}.txt").write_text(said)
                show(name, folder / f"{name}.json", said, time.monotonic() - began)


def examine(mindcv: str, torchvision: str, report: Path) -> str:
    """Run the command on one pair; what it prints. The report is there unless the pair was refused."""
    command = [sys.executable, "-m", "msmigrate", "parity-step", str(HERE / "step.yaml"), "--steps", "2"]
    command += ["--torch", f"torchvision:{torchvision}", "--mindspore", f"mindcv:{mindcv}", "--json", str(report)]
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
