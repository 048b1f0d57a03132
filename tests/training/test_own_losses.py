"""Losses that people write, of what their models return: dictionaries, several outputs, parameters as they are."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from msmigrate.errors import BadInput, WorkerFailed
from msmigrate.parity.job import Pair, ParityJob
from msmigrate.parity.result import Outcome, Report
from msmigrate.parity.run import parity_step as compared_pair
from msmigrate.parity.tensor_verdict import Verdict
from msmigrate.training.recipe import reader as recipes
from msmigrate.workflows.parity_step import parity_step

TORCH = """
import torch
from torch import nn
from torch.nn import functional as F


class Heads(nn.Module):
    def __init__(self):
        super().__init__()
        self.body = nn.Sequential(nn.Conv2d(1, 6, 3), nn.ReLU(), nn.Flatten())
        self.kind, self.size = nn.Linear(216, 4), nn.Linear(216, 1)
        self.log_vars = nn.Parameter(torch.tensor([0.3, -0.2]))

    def forward(self, x):
        x = self.body(x)
        return {"kind": self.kind(x), "rest": (self.size(x).squeeze(1), self.log_vars)}


def weighted(found, labels):
    size, log_vars = found["rest"]
    both = torch.stack([F.cross_entropy(found["kind"], labels), F.mse_loss(size, labels.to(size.dtype))])
    return {"size": both[1].detach(), "loss": (torch.exp(-log_vars) * both + log_vars).sum()}


def several(found, labels):
    return F.cross_entropy(found["kind"], labels), found["rest"][0]


class Two(Heads):
    def forward(self, x):
        x = self.body(x)
        return self.kind(x), 2 * self.kind(x)
"""
MINDSPORE = """
import mindspore
from mindspore import Parameter, Tensor, nn, ops


class Heads(nn.Cell):
    def __init__(self):
        super().__init__()
        conv = nn.Conv2d(1, 6, 3, pad_mode="pad", has_bias=True)
        self.body = nn.SequentialCell(conv, nn.ReLU(), nn.Flatten())
        self.kind, self.size = nn.Dense(216, 4), nn.Dense(216, 1)
        self.log_vars = Parameter(Tensor([0.3, -0.2], mindspore.float32))

    def construct(self, x):
        x = self.body(x)
        return {"kind": self.kind(x), "rest": (self.size(x).squeeze(1), self.log_vars)}


def weighted(found, labels):
    size, log_vars = found["rest"]
    both = ops.stack([ops.cross_entropy(found["kind"], labels), ops.mse_loss(size, labels.astype(size.dtype))])
    return {"size": both[1], "loss": (ops.exp(-log_vars) * both + log_vars).sum()}


def several(found, labels):
    return ops.cross_entropy(found["kind"], labels), found["rest"][0]


class Two(Heads):
    def construct(self, x):
        x = self.body(x)
        x = 1.01 * x - ops.stop_gradient(0.01 * x)
        return self.kind(x), 2 * self.kind(x)
"""
RECIPE = """
model: {name: net.py:Heads, source: net_ms.py, classes: 4}
data: {source: "arrays:rows.npz", batch: 8}
loss: {name: net.py:LOSS, source: net_ms.py}
optimizer: {name: Adam, args: {lr: 0.01}}
"""


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The files of a user, who works in their folder."""
    (tmp_path / "net.py").write_text(TORCH)
    (tmp_path / "net_ms.py").write_text(MINDSPORE)
    draws = np.random.default_rng(0)
    rows = draws.standard_normal((16, 1, 8, 8)).astype(np.float32)
    np.savez(tmp_path / "rows.npz", input=rows, labels=np.arange(16) % 4)
    monkeypatch.chdir(tmp_path)
    return tmp_path


def compared(loss: str, more: str = "", **options: Any) -> Report:
    """The verdict of a recipe that is named as people do, from its own folder."""
    Path("recipe.yaml").write_text(RECIPE.replace("LOSS", loss) + more)
    return parity_step("recipe.yaml", steps=2, **options).report


def test_a_dictionary_with_the_loss_of_several_outputs_and_a_parameter(folder: Path) -> None:
    """A compiled step said that there was no file of the loss; the dictionary and the parameter stopped both sides."""
    found = compared("weighted", mode="graph")
    assert found.outcome is Outcome.PARITY, [(f.place, f.why) for f in found.findings if f.verdict is Verdict.FAIL]
    judged = {(f.stage, f.part, f.name) for f in found.findings if f.verdict is Verdict.PASS}
    assert {("gradients", "parameters", "log_vars"), ("update", "step2", "log_vars")} <= judged


@pytest.mark.full
def test_in_mixed_precision_every_output_reaches_the_loss_in_float32(folder: Path) -> None:
    """torch's side stopped: 'dict' object has no attribute 'to'."""
    found = compared("weighted", "amp: {level: O1, dtype: float16}\n", no_replay=True)
    assert found.outcome is Outcome.PARITY, [(f.place, f.why) for f in found.findings if f.verdict is Verdict.FAIL]


def test_several_values_are_no_loss(folder: Path) -> None:
    with pytest.raises(
        (BadInput, WorkerFailed), match=r"returns 2 values: return one number, a tensor, or a dictionary|several values"
    ):
        compared("several", no_replay=True)


NUMBERS = """
import torch
from msmigrate.errors import BadInput
from msmigrate.training.step.torch_step import as_number

for found, says in [
    ({"total": torch.tensor(1.0)}, "a dictionary with total"),
    ({"loss": torch.ones(3)}, "no single number as 'loss'"),
    (torch.ones(4), "[4] numbers"),
    ([torch.tensor(1.0)], "1 values"),
    (0.5, "a float"),
]:
    try:
        raise AssertionError(as_number(found))
    except BadInput as error:
        assert f"the torch loss returns {says}: return one number" in str(error), error
assert as_number({"loss": torch.tensor(2.0), "more": 1}) == as_number(torch.tensor([2.0]))
print("all five")
"""


def test_what_is_no_number_says_what_it_is() -> None:
    done = subprocess.run([sys.executable, "-c", NUMBERS], capture_output=True, text=True, timeout=100)
    assert done.stdout == "all five\n", done.stderr[-2000:]


def test_of_two_outputs_the_first_one_alone_says_nothing_of_a_factor(folder: Path) -> None:
    """Every gradient was "0.5 times torch's", where those behind one layer are 1.01 times."""
    np.savez("batch.npz", input=np.load("rows.npz")["input"][:8], labels=np.arange(8) % 4)
    pair = Pair("net.py:Two", "net_ms.py:Two", None, None, Path("batch.npz"), outputs=True, freezes=True)
    recipe = recipes.load(recipes.find(None))
    found = compared_pair(recipes.find(None), ParityJob(recipe, Path("run").absolute(), pair, steps=1, init_seeds=1))
    failed = {f.name for f in found.findings if f.verdict is Verdict.FAIL and f.part == "parameters"}
    assert failed == {"body.0.weight", "body.0.bias"}
    assert not [cause.text for cause in found.causes if cause.place == "every parameter"]
