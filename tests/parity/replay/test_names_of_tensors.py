"""A parameter that is called as a call's own tensors are, and a state that gets no gradient."""

from __future__ import annotations

from pathlib import Path

import pytest
from msmigrate.parity.job import Pair, ParityJob
from msmigrate.parity.replay.module_calls import gradient_name
from msmigrate.parity.run import parity_step
from msmigrate.training.recipe import reader as recipes

RECIPE = Path(__file__).parents[1] / "tiny.yaml"
TORCH = """
import torch
from torch import nn


class Constant(nn.Module):
    def __init__(self):
        super().__init__()
        self.input = nn.Parameter(torch.linspace(-1.0, 1.0, 3).reshape(1, 3))

    def forward(self, x):
        return x * self.input


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.input = Constant()
        self.read, self.write = (nn.LSTM(3, 3, 2, batch_first=True) for _ in range(2))
        self.fc = nn.Linear(3, 10)

    def forward(self, x):
        y, state = self.read(self.input(x.mean((2, 3)))[:, None])
        return self.fc(self.write(y, state)[0][:, 0])


def build():
    return Net()
"""
MINDSPORE = """
import mindspore
import numpy as np
from mindspore import Parameter, Tensor, nn


class Constant(nn.Cell):
    def __init__(self):
        super().__init__()
        start = np.linspace(-1.0, 1.0, 3, dtype=np.float32).reshape(1, 3)
        self.input = Parameter(Tensor(start), name="input")

    def construct(self, x):
        return x * self.input * MORE


class Net(nn.Cell):
    def __init__(self):
        super().__init__()
        self.input = Constant()
        self.read, self.write = (nn.LSTM(3, 3, 2, batch_first=True) for _ in range(2))
        self.fc = nn.Dense(3, 10)

    def construct(self, x):
        y, state = self.read(self.input(x.mean((2, 3)))[:, None])
        return self.fc(self.write(y, state)[0][:, 0])


def build():
    return Net()
"""


@pytest.mark.parametrize("more", ["1.0", "1.001"])
def test_both_run_alone_and_are_judged(more: str, tmp_path: Path) -> None:
    (tmp_path / "torch_net.py").write_text(TORCH)
    (tmp_path / "mindspore_net.py").write_text(MINDSPORE.replace("MORE", more))
    pair = Pair(f"{tmp_path}/torch_net.py:build", f"{tmp_path}/mindspore_net.py:build")
    job = ParityJob(recipes.load(RECIPE), tmp_path / "run", pair, steps=1, batch=4, init_seeds=1, no_diagnosis=True)
    report = parity_step(RECIPE, job)
    alone = {f.name: f.verdict.value for f in report.findings if f.part == "alone" and f.stage == "gradients"}
    assert "input (input).grad" in alone
    assert report.parity is (more == "1.0")


def test_only_names_of_a_calls_tensors_are_in_parentheses() -> None:
    assert [gradient_name(name) for name in ("weight", "input", "output.1", "input.weight", "inputs")] == [
        "weight.grad",
        "(input).grad",
        "(output.1).grad",
        "input.weight.grad",
        "inputs.grad",
    ]
