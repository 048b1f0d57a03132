"""Weights of one number, and models that return shares: what every classifier of two classes has."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import yaml
from msmigrate.parity.align.model_structure import Values
from msmigrate.parity.job import Pair, ParityJob
from msmigrate.parity.record.randomness import given_logits
from msmigrate.parity.result import Report
from msmigrate.parity.run import parity_step
from msmigrate.parity.tensor_verdict import Verdict
from msmigrate.training.recipe import reader as recipes

HERE = Path(__file__).parent
NETS = {
    "torch": """
import torch
from torch import nn


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.fc = nn.Linear(192, 5)
        self.scale = nn.Parameter(torch.full((1,), 1.5))
        self.temperature = nn.Parameter(torch.tensor(2.0))

    def forward(self, x):
        x = self.fc(nn.functional.avg_pool2d(x, x.shape[-1] // 8).flatten(1)) * self.scale / self.temperature
        return x


class Shares(Net):
    def forward(self, x):
        return torch.sigmoid(super().forward(x))


def loss(outputs, labels):
    return nn.BCELoss()(outputs, nn.functional.one_hot(labels, 5).to(outputs.dtype))


def shares():
    return {"model": Shares(), "loss": loss}


class Chosen(Net):
    def forward(self, x):
        x = super().forward(x)
        return {"places": [x.argmax(-1)], "shares": torch.sigmoid(x)}


def chosen():
    return {"model": Chosen(), "loss": lambda outputs, labels: loss(outputs["shares"], labels)}
""",
    "mindspore": """
import mindspore
from mindspore import Parameter, Tensor, nn, ops


class Net(nn.Cell):
    def __init__(self):
        super().__init__()
        self.fc = nn.Dense(192, 5)
        self.scale = Parameter(Tensor([1.5]))
        self.temperature = Parameter(mindspore.tensor(2.0))

    def construct(self, x):
        size = x.shape[-1] // 8
        x = self.fc(ops.avg_pool2d(x, size, size).flatten(start_dim=1)) * self.scale / self.temperature
        return x


class Shares(Net):
    def construct(self, x):
        return ops.sigmoid(super().construct(x))


def loss(outputs, labels):
    rows = ops.one_hot(labels, 5, Tensor(1.0), Tensor(0.0))
    return SCALE * nn.BCELoss(reduction="mean")(outputs, rows)


def shares():
    return {"model": Shares(), "loss": loss}


SCALE = 1.0


class Chosen(Net):
    def construct(self, x):
        x = super().construct(x)
        return {"places": [ops.argmax(x, -1)], "shares": ops.sigmoid(x)}


def chosen():
    return {"model": Chosen(), "loss": lambda outputs, labels: loss(outputs["shares"], labels)}
""",
}
RECIPE: dict[str, Any] = {"optimizer": {"name": "Adam", "args": {"lr": 0.01}}, "clip": {"max_norm": 0.5}}


def run(folder: Path, function: str, scale: float = 1.0) -> Report:
    """The report on a pair of these nets; scale: of MindSpore's own loss."""
    for side, text in NETS.items():
        (folder / f"{side}_net.py").write_text(text.replace("SCALE = 1.0", f"SCALE = {scale}"))
    recipe = folder / "recipe.yaml"
    recipe.write_text(yaml.safe_dump({**yaml.safe_load((HERE / "pair.yaml").read_text()), **RECIPE}))
    pair = Pair(f"{folder}/torch_net.py:{function}", f"{folder}/mindspore_net.py:{function}")
    job = ParityJob(recipes.load(recipe), folder / "traces", pair=pair, steps=1, init_seeds=1, no_replay=True)
    return parity_step(recipe, job)


def failed(report: Report) -> list[str]:
    places = [finding.place for finding in report.findings if finding.verdict is Verdict.FAIL]
    return [place for place in places if "distribution" not in place]


def test_a_weight_of_one_number_has_a_count_without_axes_and_is_clipped(tmp_path: Path) -> None:
    """Adam's steps are one number for each weight, and not in the weight's shape."""
    report = run(tmp_path, "Net()")
    assert not failed(report)
    weights = {"fc.weight", "fc.bias", "scale", "temperature"}
    for part in ("step1 step", "step1", "given norms"):
        assert {finding.name for finding in report.findings if finding.part == part} >= weights, part


@pytest.mark.parametrize(("scale", "fails"), [(1.0, False), (1.001, True)])
def test_the_loss_of_a_model_that_returns_shares_is_given_shares(scale: float, fails: bool, tmp_path: Path) -> None:
    report = run(tmp_path, "shares()", scale)
    given = [finding for finding in report.findings if finding.part == "given logits"]
    assert {finding.name for finding in given} == {"loss", "logits.grad"}
    assert all((finding.verdict is Verdict.FAIL) is fails for finding in given)
    assert bool(failed(report)) is fails


@pytest.mark.parametrize(("scale", "fails"), [(1.0, False), (1.001, True)])
def test_the_first_output_may_be_the_places_of_the_largest(scale: float, fails: bool, tmp_path: Path) -> None:
    """As of a policy, which returns the action that it took: the logits are the first floating output."""
    report = run(tmp_path, "chosen()", scale)
    assert any(finding.name == "logits" for finding in report.findings)
    assert bool(failed(report)) is fails, failed(report)


@pytest.mark.parametrize(
    ("array", "values"),
    [
        ([-1.0, 2.0], Values.ANY),
        ([0.0, 1.0], Values.SHARES),
        ([0.0, 7.0], Values.POSITIVE),
        ([0.5, np.nan], Values.ANY),
        ([], Values.ANY),
        ([1, 0], Values.ANY),
    ],
)
def test_what_the_numbers_of_an_output_are(array: list[float], values: Values) -> None:
    found = np.array(array, np.float32 if array != [1, 0] else np.int64)
    assert Values.of(found) is values
    given = given_logits((50, 3), values)
    assert given.dtype == np.float32 and bool(given.min() < 0) is (values is Values.ANY)
    assert bool(given.max() < 1) is (values is Values.SHARES)
