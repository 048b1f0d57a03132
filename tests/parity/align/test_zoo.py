"""Architectures that were carried over rightly give no alarm: torchvision's, against the twins in benchmarks/zoo.

`python benchmarks/zoo/clean.py` runs them over several seeds and batch sizes, and prints the table.
"""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

ZOO = Path(__file__).parents[3] / "benchmarks" / "zoo"
FIRST = {"vit": "mindspore_attention.py"}
SLOW = {
    "alexnet": "mindspore_plain.py",
    "vgg11_bn": "mindspore_plain.py",
    "squeezenet1_1": "mindspore_plain.py",
    "mobilenet_v2": "mindspore_mobile.py",
    "mobilenet_v3_small": "mindspore_mobile.py",
    "mnasnet0_5": "mindspore_mobile.py",
    "efficientnet_b0": "mindspore_mobile.py",
    "shufflenet_v2_x0_5": "mindspore_branched.py",
    "densenet": "mindspore_densenet.py",
    "googlenet": "mindspore_branched.py",
    "regnet_y": "mindspore_regnet.py",
    "convnext": "mindspore_convnext.py",
    "swin": "mindspore_attention.py",
}
# The share of tensors whose noise may be too large to judge by, where it is over a fiftieth. They are the biases of
# convolutions before a BatchNorm, and what follows small channels' statistics. docs/clean_architectures.md counts
# 7.4 %, 6.0 %, 2.1 % and 2.0 % over six runs; a single one may have half as many more.
UNDECIDED = {"mnasnet0_5": 0.11, "mobilenet_v2": 0.09, "convnext": 0.032, "vgg11_bn": 0.03}


def report(name: str, file: str, folder: Path, *options: str) -> dict[str, Any]:
    """What parity-step says of one pair, which is a pass on the command line too."""
    out = folder / "report.json"
    command = [sys.executable, "-m", "msmigrate", "parity-step", str(ZOO / "step.yaml"), "--json", str(out)]
    command += ["--torch", f"{ZOO / 'torch_small.py'}:{name}", "--mindspore", f"{ZOO / file}:{name}", *options]
    done = subprocess.run(command, capture_output=True, text=True, timeout=1200, check=False)
    assert done.returncode == 0, done.stdout[-3000:] + done.stderr[-3000:]
    return json.loads(out.read_text())


def alarms(found: dict[str, Any]) -> list[str]:
    """Every tensor and module that failed."""
    tensors = [f"{f['stage']} ({f['part']}) {f['name']}" for f in found["findings"] if f["verdict"] == "fail"]
    return tensors + [f"module {m['name']}" for m in found["modules"] if m["verdict"] == "fail"]


@pytest.mark.full
@pytest.mark.parametrize("name", FIRST)
def test_a_transformer_gives_no_alarm(name: str, tmp_path: Path) -> None:
    found = report(name, FIRST[name], tmp_path, "--steps", "1", "--init-seeds", "1")
    assert not alarms(found)
    assert len(found["modules"]) > 30  # each layer and each block ran alone
    # its head starts at zero, and torch's gradients with it: they are moved, or nothing would be compared
    gradients = [f for f in found["findings"] if (f["stage"], f["part"]) == ("gradients", "parameters")]
    assert all(f["ratio"] > 0 for f in gradients)


@pytest.mark.full
@pytest.mark.parametrize("name", SLOW)
def test_an_architecture_gives_no_alarm(name: str, tmp_path: Path) -> None:
    found = report(name, SLOW[name], tmp_path, "--steps", "2")
    assert not alarms(found)
    undecided = sum(f["verdict"] == "no verdict" for f in found["findings"])
    assert undecided <= len(found["findings"]) * UNDECIDED.get(name, 1 / 50)
