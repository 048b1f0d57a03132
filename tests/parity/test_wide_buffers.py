"""A buffer that is float64 in the torch model itself is float64 in MindSpore, too; and what fails has no cause that is
none of its own."""

from __future__ import annotations

from pathlib import Path

import pytest
from msmigrate.parity.job import Pair, ParityJob
from msmigrate.parity.run import parity_step
from msmigrate.training.recipe import reader as recipes

RECIPE = Path(__file__).parent / "tiny.yaml"
TORCH = """
import numpy as np
import torch
from torch import nn


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.fc = nn.Linear(3, 10)
        self.register_buffer("steps", torch.tensor(np.linspace(1.0, 2.0, 7)))

    def forward(self, x):
        return self.fc(x.mean((2, 3)))


def build():
    return Net()
"""
MINDSPORE = """
import mindspore
import numpy as np
from mindspore import Parameter, Tensor, nn


class Net(nn.Cell):
    def __init__(self):
        super().__init__()
        self.fc = nn.Dense(3, 10)
        self.steps = Parameter(Tensor(np.linspace(1.0, 2.0, 7), DTYPE), name="steps", requires_grad=False)

    def construct(self, x):
        return self.fc(x.mean((2, 3)))


def build():
    return Net()
"""


@pytest.mark.parametrize("dtype", ["float64", "float32"])
def test_it_is_compared_in_its_own_dtype(dtype: str, tmp_path: Path) -> None:
    (tmp_path / "torch_net.py").write_text(TORCH)
    (tmp_path / "mindspore_net.py").write_text(MINDSPORE.replace("DTYPE", f"mindspore.{dtype}"))
    pair = Pair(f"{tmp_path}/torch_net.py:build", f"{tmp_path}/mindspore_net.py:build")
    report = parity_step(
        RECIPE, ParityJob(recipes.load(RECIPE), tmp_path / "run", pair, steps=1, batch=4, init_seeds=1)
    )
    if dtype == "float64":
        assert report.parity
        return
    first = report.first_divergence
    assert first is not None and first.place == "init (values) steps"
    assert first.why == "expected dtype float64, got float32"
    assert not [cause.fault for cause in report.causes if cause.fault], report.causes
