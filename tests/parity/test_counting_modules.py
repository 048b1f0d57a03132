"""A module that counts how often it runs, and computes with the count, begins anew wherever the weights do."""

from __future__ import annotations

from pathlib import Path

import pytest
from msmigrate.parity.job import Pair, ParityJob
from msmigrate.parity.run import parity_step
from msmigrate.training.recipe import reader as recipes

RECIPE = Path(__file__).parent / "tiny.yaml"
NETS = {
    "torch": """
import torch
from torch import nn


class Warm(nn.Module):
    def __init__(self):
        super().__init__()
        self.fc, self.runs, self.begun = nn.Linear(3, 10), 0, False

    def forward(self, x):
        self.runs += 1
        x = self.fc(x.mean((2, 3))) / self.runs
        if not self.begun:
            x = x + 1.0
        self.begun = True
        return x


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.warm = Warm()

    def forward(self, x):
        return self.warm(x) * 2.0


def build():
    return Net()
""",
    "mindspore": """
from mindspore import nn


class Warm(nn.Cell):
    def __init__(self):
        super().__init__()
        self.fc, self.runs, self.begun = nn.Dense(3, 10), 0, False

    def construct(self, x):
        self.runs += 1
        x = self.fc(x.mean((2, 3))) / (self.runs MORE)
        if not self.begun:
            x = x + 1.0
        self.begun = True
        return x


class Net(nn.Cell):
    def __init__(self):
        super().__init__()
        self.warm = Warm()

    def construct(self, x):
        return self.warm(x) * 2.0


def build():
    return Net()
""",
}


@pytest.mark.parametrize(("more", "parity"), [("", True), ("* 1.001", False)])
def test_a_module_that_counts_its_runs_counts_them_on_both_sides(more: str, parity: bool, tmp_path: Path) -> None:
    for side, text in NETS.items():
        (tmp_path / f"{side}_net.py").write_text(text.replace("MORE", more))
    pair = Pair(f"{tmp_path}/torch_net.py:build", f"{tmp_path}/mindspore_net.py:build")
    job = ParityJob(recipes.load(RECIPE), tmp_path / "run", pair, steps=2, batch=4, init_seeds=1, no_diagnosis=True)
    assert parity_step(RECIPE, job).parity is parity
