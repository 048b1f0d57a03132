"""A residual net written by hand in both frameworks agrees, and each mistake of published ports is found and named."""

from __future__ import annotations

from pathlib import Path

import pytest
from msmigrate.parity.job import Pair, ParityJob
from msmigrate.parity.result import Report
from msmigrate.parity.run import parity_step
from msmigrate.parity.tensor_verdict import Verdict
from msmigrate.training.recipe import reader as recipes

EXAMPLE = Path(__file__).parents[3] / "examples" / "handwritten_resnet"
full = pytest.mark.full
FAULTS = [  # what MindSpore's build is given -> the stage that shows it first, the first cause's place and text
    pytest.param("pooled stride", "forward", "layers.1.0.conv2", "net.stages[1][0].pool (MaxPool2d)", marks=full),
    pytest.param("early stride", "forward", "layers.1.0.conv1", "as with stride=(2, 2)", marks=full),
    pytest.param("same padding", "forward", "conv1", "pad_mode='same'", marks=full),
    pytest.param("momentum", "update", "bn1", "as with momentum=0.9; torch has momentum=0.1", marks=full),
    pytest.param("smoothing", "loss", "your own loss", "0.1/(K - 1) each", marks=full),
    pytest.param("xavier", "init", "conv1.weight and 5 more", "drawn as XavierUniform()", marks=full),
    pytest.param("truncated", "init", "fc.weight", "TruncatedNormal(sigma=0.01)", marks=full),
    pytest.param("decayed norms", "update", "", "", marks=full),  # found at the norms' scales, and no cause is named
]


def report(folder: Path, fault: str, *, replay: bool = True, size: str = "") -> Report:
    mindspore = f"{EXAMPLE}/mindspore_resnet.py:build({size}fault={fault!r})"
    pair = Pair(f"{EXAMPLE}/torch_resnet.py:build({size.rstrip(', ')})", mindspore)
    recipe = recipes.load(EXAMPLE / "recipe.yaml")
    job = ParityJob(recipe, folder / "traces", pair=pair, steps=2, no_replay=not replay)
    return parity_step(EXAMPLE / "recipe.yaml", job)


def test_the_port_that_is_right_agrees(tmp_path: Path) -> None:
    found = report(tmp_path, "")
    assert found.parity, [(f.place, f.why) for f in found.findings if f.verdict is not Verdict.PASS]


@pytest.mark.parametrize(("fault", "stage", "place", "text"), FAULTS)
def test_a_mistake_of_published_ports_is_named(fault: str, stage: str, place: str, text: str, tmp_path: Path) -> None:
    found = report(tmp_path, fault, replay=stage in ("forward", "update"))
    assert not found.parity
    assert found.first_divergence is not None and found.first_divergence.stage == stage
    if place:
        assert found.causes[0].place == place and text in found.causes[0].text
        assert found.causes[0].fix
    else:
        failed = {f.name for f in found.findings if f.stage == stage and f.verdict is Verdict.FAIL}
        assert {"bn1.weight", "bn1.bias"} <= failed


@full
def test_resnet50_by_hand_agrees(tmp_path: Path) -> None:
    found = report(tmp_path, "", size="width=64, depths=(3, 4, 6, 3), classes=10, ")
    assert found.parity, [(f.place, f.why) for f in found.findings if f.verdict is not Verdict.PASS]
