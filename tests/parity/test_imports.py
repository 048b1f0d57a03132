"""What the processes of a comparison import beyond the frameworks: nothing that pair and recipe do not need."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import numpy as np

DEMO = Path(__file__).parents[2] / "examples" / "demo"
NOT_NEEDED = {"torchvision", "timm", "transformers", "sklearn", "pandas", "matplotlib", "black", "rich"}
COMPILER = "torch._dynamo.convert_frame"  # part of what each step of an optimizer would import
NEVER = {"torch": {*NOT_NEEDED, "mindspore", "scipy", COMPILER}, "mindspore": {*NOT_NEEDED, "torch"}}


def test_a_pair_that_brings_its_batches_needs_the_frameworks_alone(tmp_path: Path) -> None:
    batch = {"images": np.random.default_rng(0).random((4, 3, 32, 32), np.float32), "labels": np.arange(4)}
    np.savez(tmp_path / "batch.npz", **batch)
    sides = [word for side in ("torch", "mindspore") for word in (f"--{side}", f"{DEMO / side}_net.py:build")]
    options = ["--batch-file", "batch.npz", "--steps", "1", "--init-seeds", "1", "--no-diagnosis", "--keep", "kept"]
    done = subprocess.run(
        [sys.executable, "-m", "msmigrate", "parity-step", "synthetic", *sides, *options],
        cwd=tmp_path,
        env={**os.environ, "PYTHONPROFILEIMPORTTIME": "1"},
        capture_output=True,
        text=True,
    )
    assert done.returncode == 1, done.stderr  # the demo's wrong line
    for side, never in NEVER.items():
        lines = (tmp_path / "kept" / f"{side}.log").read_text(encoding="utf-8").splitlines()
        found = {line.rpartition("|")[2].strip() for line in lines if line.startswith("import time:")}
        assert side in found and not found & never, side
