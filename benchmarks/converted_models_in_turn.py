"""Prove a converted model in half the memory: first what torch does alone, then MindSpore, then torch again.

    python benchmarks/converted_models_in_turn.py 'torchvision:vit_h_14(image_size=56)' 1x3x56x56 --out vit_h_14

What convert-model proves with both frameworks at work, `msmigrate record` does for one at a time, every module alone
included, and `msmigrate compare` judges it; for the largest models of converted_models.md, of which both at once do
not fit. Leaves source, weights, traces and findings.json in the new folder --out, and prints how many tensors of each
column passed, failed and have no verdict, and the largest resident set so far.
"""

from __future__ import annotations

import argparse
import json
import re
import resource
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
from converted_models import STAGES, judged

SEED = 0
CLASSES = 1000


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("model", help="torchvision:NAME or another that convert-model takes, of 1,000 classes")
    parser.add_argument("shape", help="of its input, such as 1x3x64x64")
    parser.add_argument("--out", type=Path, required=True, metavar="FOLDER")
    parser.add_argument("--batch", type=int, default=4)
    parser.add_argument("--steps", type=int, default=1)
    parser.add_argument("--init-seeds", type=int, default=1)
    given = parser.parse_args()
    out = given.out.absolute()
    if not re.fullmatch(r"\d+(x\d+)+", given.shape):
        parser.error(f"{given.shape} is no shape such as 1x3x64x64")
    if out.exists():
        parser.error(f"{given.out} is there already: name a new folder")
    out.mkdir(parents=True)
    random = np.random.default_rng(SEED)
    size = (given.batch, *map(int, given.shape.split("x")[1:]))
    images = {f"images{n}": random.standard_normal(size).astype(np.float32) for n in range(1, given.steps + 1)}
    labels = {f"labels{n}": random.integers(CLASSES, size=given.batch) for n in range(1, given.steps + 1)}
    np.savez(out / "batch.npz", **images, **labels)
    run("convert-model", given.model, given.shape, "-o", str(out / "net_ms.py"), "--no-proof")
    maker = given.model.partition(":")[2].partition("(")[0]
    pair = ["--torch", given.model, "--mindspore", f"{out / 'net_ms.py'}:{maker}"]
    pair += ["--batch-file", str(out / "batch.npz"), "--steps", str(given.steps), "--init-seeds", str(given.init_seeds)]
    for framework, half, other in (("torch", "A", ""), ("mindspore", "B", "A"), ("torch", "C", "B")):
        beside = ["--with", str(out / other)] if other else []
        run("record", "--framework", framework, "-o", str(out / half), *beside, *pair)
    code = run("compare", str(out / "C"), str(out / "B"), "--json", str(out / "findings.json"), allowed=(0, 1))
    findings = json.loads((out / "findings.json").read_text(encoding="utf-8"))["findings"]
    for stage in STAGES[1:-1]:
        print(f"{stage:10} {judged(findings, stage)}")
    return code


def run(*words: str, allowed: tuple[int, ...] = (0,)) -> int:
    """Run msmigrate, and say how long it took and what its largest process held."""
    began = time.monotonic()
    code = subprocess.run([sys.executable, "-m", "msmigrate", *words], check=False).returncode
    if code not in allowed:
        sys.exit(code)
    held = resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss / 2**20
    print(f"{words[0]}: {time.monotonic() - began:.0f} s; the largest process so far held {held:.1f} GB", flush=True)
    return code


if __name__ == "__main__":
    sys.exit(main())
