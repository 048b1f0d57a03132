"""Fine-tuning as a recipe says it: proven where both sides do it, red where MindSpore does not, refused where it is not
meant."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest
from msmigrate.errors import MsmigrateError
from msmigrate.parity.job import ParityJob
from msmigrate.parity.result import Report
from msmigrate.parity.run import parity_step
from msmigrate.parity.tensor_verdict import Verdict
from msmigrate.parity.trace import DISTRIBUTION
from msmigrate.training.recipe import reader as recipes

HERE = Path(__file__).parent
RECIPE = """
model:
  name: resnet_tiny
  args: {num_classes: %d, width: 4}
  checkpoint: pretrained.pth
  %s
data: {source: "synthetic:16x48", batch: 4, transforms: [{name: ToTensor}]}
optimizer:
  name: AdamW
  args: {lr: 0.01}
  groups: [{params: ["layer4.*"], args: {lr: 0.001, weight_decay: 0.2}}]
clip: {max_norm: 1.0}
ema: {decay: 0.9}
"""
TUNED = """
  fresh: ["fc.*"]
  freeze: ["*", "!layer4.*", "!fc.*"]
  freeze_statistics: ["bn1", "layer[1-3].*"]
"""
PRETRAINED = """
import torch
from msmigrate.training.models import torch_models
torch.manual_seed(5)
model = torch_models.build("resnet_tiny", num_classes=20, width=4)
for _ in range(3):
    model(torch.rand(8, 3, 48, 48))
torch.save(model.state_dict(), "pretrained.pth")
"""


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with the checkpoint of a model of 20 classes."""
    found = tmp_path_factory.mktemp("fine_tuning")
    subprocess.run([sys.executable, "-c", PRETRAINED], cwd=found, check=True)
    return found


def report(folder: Path, name: str, model: str, classes: int = 3, worker: str | None = None) -> Report:
    """The report of a recipe; with a worker in place of MindSpore's own, no module runs alone."""
    file = folder / f"{name}.yaml"
    file.write_text(RECIPE % (classes, model.strip()))
    job = ParityJob(recipes.load(file), folder / name, steps=2 if worker is None else 1, no_replay=worker is not None)
    command = {} if worker is None else {"mindspore_worker": [sys.executable, str(HERE / worker)]}
    return parity_step(file, job, **command)


def test_a_new_head_on_a_frozen_body_is_proven_and_told(folder: Path) -> None:
    found = report(folder, "tuned", TUNED)
    assert found.parity, [(f.place, f.why) for f in found.findings if f.verdict is not Verdict.PASS]
    drawn = {f.name for f in found.findings if f.stage == "init" and f.part == DISTRIBUTION}
    assert drawn == {"fc.weight", "fc.bias"}  # only what is drawn has a distribution
    gradients = {f.name for f in found.findings if f.stage == "gradients" and f.part == "parameters"}
    assert {name.partition(".")[0] for name in gradients} == {"layer4", "fc"}
    notes = " | ".join(found.notes)
    assert "drawn by the model (model.fresh): fc.weight, fc.bias" in notes
    assert "frozen (model.freeze): conv1.weight, bn1.weight, bn1.bias and 36 more" in notes
    assert "running statistics frozen (model.freeze_statistics): bn1, layer1.0.bn1" in notes


@pytest.mark.full
def test_what_mindspore_does_not_freeze_or_draws_otherwise_is_red(folder: Path) -> None:
    found = report(folder, "forgotten", TUNED, worker="mindspore_fine_tuning_worker.py")
    failed = {(f.stage, f.part, f.name) for f in found.findings if f.verdict is Verdict.FAIL}
    stages = {(stage, name) for stage, _, name in failed}
    assert ("init", DISTRIBUTION, "fc.weight") in failed  # the head
    assert ("gradients", "conv1.weight") in stages  # it trains
    assert any(stage == "update" and name == "bn1.running_mean" for stage, _, name in failed)  # its statistics move


@pytest.mark.parametrize(
    ("classes", "model", "words"),
    [
        (3, "", "fc.weight and 1 more have another shape, the first [20, 128] in the file and [3, 128] in the model; "
         "for a new head write fresh: [fc.*] under model"),
        pytest.param(20, 'freeze: ["layer1"]', "model.freeze.0: 'layer1' matches no parameter; did you mean 'layer1.*'",
                     marks=pytest.mark.full),
    ],
)  # fmt: skip
def test_what_cannot_be_meant_is_refused_in_one_line(folder: Path, classes: int, model: str, words: str) -> None:
    with pytest.raises(MsmigrateError) as caught:
        report(folder, f"refused{classes}", model, classes)
    assert words in str(caught.value) and "\n" not in str(caught.value)
