"""A net that takes batches of one size alone is seen with a whole batch, and not with two examples."""

from __future__ import annotations

from pathlib import Path

from msmigrate.parity.job import Pair, ParityJob
from msmigrate.parity.run import parity_step
from msmigrate.training.recipe import reader as recipes

RECIPE = Path(__file__).parents[1] / "tiny.yaml"
TORCH = """
from torch import nn


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.fc = nn.Linear(3, 10)

    def forward(self, x):
        return self.fc(x.mean((2, 3))).reshape(2, 2, 10).flip(0).reshape(4, 10)


def build():
    return Net()
"""


def test_a_net_of_four_examples(tmp_path: Path) -> None:
    (tmp_path / "torch_net.py").write_text(TORCH)
    text = TORCH.replace("from torch", "from mindspore").replace("Module", "Cell").replace("Linear", "Dense")
    (tmp_path / "mindspore_net.py").write_text(text.replace("forward", "construct").replace("flip(0)", "flip((0,))"))
    pair = Pair(f"{tmp_path}/torch_net.py:build", f"{tmp_path}/mindspore_net.py:build")
    job = ParityJob(recipes.load(RECIPE), tmp_path / "run", pair, steps=1, batch=4, init_seeds=1)
    assert parity_step(RECIPE, job).parity
