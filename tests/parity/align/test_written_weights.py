"""A net that writes into its weights as it runs: by MindSpore's own memory, or by other memory, which no update
reaches."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from msmigrate.parity.align.mismatched_tensors import out_of_reach
from msmigrate.parity.job import Pair, ParityJob
from msmigrate.parity.result import Finding, Report
from msmigrate.parity.run import parity_step
from msmigrate.parity.tensor_verdict import Verdict
from msmigrate.training.recipe import reader as recipes

RECIPE = """
model: {name: lenet5}  # not built
data: {source: "synthetic:16x4", batch: 4, transforms: [{name: ToTensor}]}
optimizer: {name: SGD, args: {lr: 0.1, momentum: 0.9}}
"""
TORCH = """
import torch
from torch import nn

class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.fc, self.out = nn.Linear(48, 6), nn.Linear(6, 5)

    def forward(self, x):
        self.fc.weight.data[:, 40:] *= 0.5
        return self.out(torch.tanh(self.fc(x.flatten(1))))
"""
MINDSPORE = """
from mindspore import nn, ops

class Net(nn.Cell):
    def __init__(self, how):
        super().__init__()
        self.fc, self.out, self.how = nn.Dense(48, 6), nn.Dense(6, 5), how

    def construct(self, x):
        weight = ops.stop_gradient(self.fc.weight)
        weight[:, 40:] = weight[:, 40:] * 0.5
        if self.how == "assign":
            ops.assign(self.fc.weight, weight)
        else:
            self.fc.weight.set_data(weight)
        return self.out(ops.tanh(self.fc(x.reshape(x.shape[0], -1))))
"""


def compared(folder: Path, how: str) -> Report:
    for name, text in (("recipe.yaml", RECIPE), ("torch_side.py", TORCH), ("mindspore_side.py", MINDSPORE)):
        (folder / name).write_text(text)
    pair = Pair(f"{folder / 'torch_side.py'}:Net()", f"{folder / 'mindspore_side.py'}:Net('{how}')")
    job = ParityJob(recipes.load(folder / "recipe.yaml"), folder / "run", pair, steps=2, init_seeds=1, no_replay=True)
    return parity_step(folder / "recipe.yaml", job)


@pytest.mark.parametrize("how", ["set_data", pytest.param("assign", marks=pytest.mark.full)])
def test_updates_of_other_memory_are_named(tmp_path: Path, how: str) -> None:
    found = compared(tmp_path, how)
    if how == "assign":
        assert found.parity, [finding.place for finding in found.findings if finding.verdict is Verdict.FAIL]
        return
    assert not found.parity and {f.name for f in found.findings if f.verdict is Verdict.FAIL} == {"fc.weight"}
    assert [(cause.fault, cause.place) for cause in found.causes] == [("set-data-not-trained", "fc.weight")]
    assert "set_data" in found.causes[0].fix


@pytest.mark.parametrize(
    ("stage", "verdict", "replaced", "named"),
    [
        ("update", Verdict.FAIL, ["other", "fc.weight"], True),
        ("update", Verdict.PASS, ["fc.weight"], False),  # a step of one's own may be its own optimizer
        ("gradients", Verdict.FAIL, ["fc.weight"], False),
        ("update", Verdict.FAIL, ["other"], False),
        ("update", Verdict.FAIL, None, False),  # of an older recording
        ("update", Verdict.FAIL, "fc.weight", False),  # a trace may come from anyone
    ],
)
def test_only_what_fails_is_explained(stage: Any, verdict: Verdict, replaced: object, named: bool) -> None:
    found = out_of_reach([Finding(stage, "given gradients", "fc.weight", 0, verdict, "")], replaced)
    assert [cause.place for cause in found] == ["fc.weight"] * named
