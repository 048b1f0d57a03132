"""Take strangers' models from their file to a trained, measured and exported net, and list what came of each command.

    python benchmarks/third_party.py CHECKOUTS [--only NAME] [--keep DIR]

CHECKOUTS is as for strangers.py; the models and what their user writes are in third_party.yaml. Prints markdown.
"""

from __future__ import annotations

import argparse
import re
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import yaml

LIST = Path(__file__).with_name("third_party.yaml")
BEST = "run/checkpoints/best.ckpt"
# command -> its words, and what of what it prints goes into the table
COMMANDS: dict[str, tuple[list[str], str]] = {
    "convert-model": (["convert-model", "MODEL", "-o", "written.py"], r"written\.py: .*? lines"),
    "parity-step": (["parity-step", "recipe.yaml"], r"Parity: \d+ tensors|No parity.*|Unproven.*"),
    "train": (["train", "recipe.yaml", "--out", "run"], r"validation loss [\d.]+"),
    "eval": (["eval", BEST, "--recipe", "recipe.yaml"], r"loss [\d.]+"),
    "predict": (["predict", BEST, "val.npz", "--out", "outputs.npz", "--recipe", "recipe.yaml"], r"output .*"),
    "export": (["export", BEST, "-o", "net.mindir", "--recipe", "recipe.yaml"], r"MindIR = MindSpore.*"),
    "export onnx": (
        ["export", BEST, "-o", "net.onnx", "--format", "onnx", "--recipe", "recipe.yaml"],
        r"ONNX = torch.*",
    ),
}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("checkouts", type=Path)
    parser.add_argument("--only", action="append", metavar="NAME")
    parser.add_argument("--keep", type=Path, metavar="DIR", help="leave each model's folder there")
    given = parser.parse_args()
    print("| model | command | exit code | seconds | |\n|---|---|---|---|---|", flush=True)
    for model in yaml.safe_load(LIST.read_text(encoding="utf-8")):
        if given.only and model["name"] not in given.only:
            continue
        with tempfile.TemporaryDirectory() as temporary:
            folder = (given.keep or Path(temporary)) / model["name"].replace(" ", "-")
            one(model, given.checkouts / model["repository"].replace("/", "__"), folder)


def one(model: dict[str, Any], checkout: Path, folder: Path) -> None:
    """Write a model's files beside a copy of its repository, and run every command on it until one fails."""
    shutil.copytree(checkout / model.get("folder", ""), folder, ignore=shutil.ignore_patterns(".git"))
    for name, text in {**model["files"], "recipe.yaml": model["recipe"]}.items():
        (folder / name).write_text(text, encoding="utf-8")
    subprocess.run([sys.executable, "data.py"], cwd=folder, check=True)
    for command, (words, shown) in COMMANDS.items():
        words = [model["model"] if word == "MODEL" else word for word in words]
        if command == "convert-model":
            words += [word for shape in model.get("inputs", []) for word in ("--input", shape)]
        began = time.monotonic()
        done = subprocess.run(
            [sys.executable, "-m", "msmigrate", *words], cwd=folder, capture_output=True, text=True, check=False
        )
        (folder / f"{command.replace(' ', '-')}.log").write_text(done.stdout + done.stderr, encoding="utf-8")
        found = re.findall(shown, done.stdout + done.stderr)
        said = found[-1] if found else (done.stderr.strip().splitlines() or [""])[-1][:160]
        print(
            f"| {model['name']} | {command} | {done.returncode} | {time.monotonic() - began:.0f} | {said} |", flush=True
        )
        if done.returncode and command in ("convert-model", "train"):
            return


if __name__ == "__main__":
    main()
