"""Four faults at once in a MindSpore net, found, placed and explained in one run of parity-step."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest
from msmigrate.parity.job import ParityJob
from msmigrate.parity.run import parity_step
from msmigrate.training.recipe import reader as recipes

HERE = Path(__file__).parent
RECIPE = HERE.parent / "tiny.yaml"
BROKEN = (sys.executable, str(HERE / "mindspore_broken_worker.py"))


@pytest.mark.full
@pytest.mark.parametrize(
    ("faults", "expected"),
    [
        (
            "bn_eps+bn_momentum+maxpool_same+residual_forgotten",
            {
                "maxpool": ("forward", "maxpool-same-stem", "pad_mode='same'"),
                "layer2.0.bn2": ("forward", None, "eps=0.001"),
                "layer3.0": ("forward", None, "`out += identity`"),
                "layer3.0.bn1": ("update", "bn-momentum-complement", "momentum=0.9"),
            },
        ),
        (
            "norm_always_batch+buffers_frozen+shortcut_detached@1e-3",
            {
                "layer2.0.bn1": ("forward", "bn-use-batch-statistics-true", "in evaluation mode"),
                "layer1.0.bn2": ("update", None, "running statistics that do not move"),
                "layer2.0.downsample": ("gradients", None, "MindSpore's is 0.999 times torch's"),
            },
        ),
    ],
)
def test_every_fault_of_a_net_is_explained(
    faults: str, expected: dict[str, tuple[str, str | None, str]], tmp_path: Path
) -> None:
    options = ParityJob(recipes.load(RECIPE), tmp_path / "run", init_seeds=1)
    found = parity_step(RECIPE, options, mindspore_worker=[*BROKEN, faults])
    causes = {cause.place: cause for cause in found.causes if cause.place in {m.name for m in found.modules}}
    assert set(causes) == set(expected), found.causes
    for place, (stage, fault, words) in expected.items():
        assert (causes[place].stage, causes[place].fault) == (stage, fault) and words in causes[place].text
