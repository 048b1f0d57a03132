"""A layer of the user's own, from its row in docs/own_mappings.yaml: converted there and back, and analyzed."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from safetensors.numpy import load_file, save_file

OWN = Path(__file__).parents[2] / "docs" / "own_mappings.yaml"

TORCH = """
import torch
from torch import nn

class Gate(nn.Module):
    def __init__(self, channels, groups=2):
        super().__init__()
        self.channels, self.groups = channels, groups
        self.weight = nn.Parameter(torch.full((channels,), 0.5))
        self.filters = nn.Parameter(torch.zeros(channels, groups, 3))
        self.register_buffer("seen", torch.zeros(()))

    def forward(self, x):
        return x * self.weight.view(-1, 1)

def build():
    return nn.Sequential(nn.Conv1d(3, 4, 3), Gate(4), nn.Softsign())
"""
MINDSPORE = """
import mindspore as ms
import numpy as np
from mindspore import nn

class Gate(nn.Cell):
    def __init__(self, channels, groups=2):
        super().__init__()
        self.gamma = ms.Parameter(ms.Tensor(np.ones(channels, np.float32)), name="gamma")
        self.filters = ms.Parameter(ms.Tensor(np.ones((channels, groups, 1, 3), np.float32)), name="filters")

def build():
    return nn.SequentialCell(nn.Conv1d(3, 4, 3, pad_mode="valid", has_bias=True), Gate(4))
"""
SHAPES = {"0.weight": (4, 3, 3), "0.bias": (4,), "1.weight": (4,), "1.filters": (4, 2, 3), "1.seen": ()}


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Both nets and a checkpoint of torch's."""
    (tmp_path / "mynet.py").write_text(TORCH)
    (tmp_path / "mynet_ms.py").write_text(MINDSPORE)
    draw = np.random.default_rng(1)
    tensors = {name: np.asarray(draw.normal(size=shape), np.float32) for name, shape in SHAPES.items()}
    save_file(tensors, tmp_path / "net.safetensors", metadata={"format": "pt"})
    return tmp_path


def run(folder: Path, *words: str) -> subprocess.CompletedProcess[str]:
    """Run msmigrate in the folder."""
    line = [sys.executable, "-m", "msmigrate", *words]
    return subprocess.run(line, capture_output=True, text=True, check=False, cwd=folder)


def test_a_layer_of_ones_own_is_converted_there_and_back(folder: Path) -> None:
    there = ("convert-ckpt", "net.safetensors", "net.ckpt", "--model", "mynet.py:build", "--into", "mynet_ms.py:build")
    without = run(folder, *there)
    assert without.returncode == 2
    assert "the net has no parameter 1.weight" in without.stderr
    own = ("--mappings", str(OWN))
    done = run(folder, *there, *own)
    assert (done.returncode, done.stderr) == (0, "")
    back = run(folder, "convert-ckpt", "net.ckpt", "back.safetensors", *own)
    assert (back.returncode, back.stderr) == (0, "")
    before, after = load_file(folder / "net.safetensors"), load_file(folder / "back.safetensors")
    for name in set(SHAPES) - {"1.seen"}:
        assert after[name].tobytes() == before[name].tobytes(), name
        assert after[name].shape == before[name].shape


def test_analyze_sees_it_and_the_row_in_a_built_in_ones_place(folder: Path) -> None:
    words = ("analyze", "mynet.py:build", "--input", "1x3x9", "--json")
    found = {row["torch"]: row for row in json.loads(run(folder, *words, "--mappings", str(OWN)).stdout)["operators"]}
    assert found["mynet.Gate"]["mindspore"] == "mynet_ms.Gate"
    assert found["mynet.Gate"]["call"] == "mynet_ms.Gate(channels=4, groups=2)"
    assert found["torch.nn.Softsign"]["mindspore"] == "mynet_ms.Softsign"
    plain = {row["torch"]: row for row in json.loads(run(folder, *words).stdout)["operators"]}
    assert "mynet.Gate" not in plain
    assert plain["torch.nn.Softsign"]["mindspore"] != "mynet_ms.Softsign"
