"""A model that writes into the batch that it is given changes nothing for whoever else gets the batch."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from msmigrate.parity.job import Pair, ParityJob
from msmigrate.parity.run import parity_step
from msmigrate.training.recipe import reader as recipes

RECIPE = Path(__file__).parent / "tiny.yaml"
TORCH = """
from torch import nn


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.fc = nn.Linear(6, 10)

    def forward(self, WORDS):
        WRITES
        return self.fc(x)


def build():
    return Net()
"""
MINDSPORE = """
from mindspore import nn


class Net(nn.Cell):
    def __init__(self):
        super().__init__()
        self.fc = nn.Dense(6, 10)

    def construct(self, WORDS):
        WRITES
        return self.fc(x)


def build():
    return Net()
"""
FORMS = {
    "added to": ("x", "x += 0.5", "x = x + 0.5"),
    "multiplied": ("x", "x.mul_(0.25)", "x = x * 0.25"),
    "a part": ("x", "x[:, 1] = 2.0 * x[:, 0]", "x = x.copy(); x[:, 1] = 2.0 * x[:, 0]"),
    "the second": ("x, scale", "scale.clamp_(min=0.1); x = x * scale", "x = x * scale.clamp(min=0.1)"),
}


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("right", [True, False])
def test_the_batch_is_each_run_s_own(form: str, right: bool, tmp_path: Path) -> None:
    words, writes, counterpart = FORMS[form]
    files = {"torch": TORCH.replace("WRITES", writes), "mindspore": MINDSPORE.replace("WRITES", counterpart)}
    if not right:
        files["mindspore"] = files["mindspore"].replace("self.fc(x)", "self.fc(x + 0.01)")
    for side, text in files.items():
        (tmp_path / f"{side}_net.py").write_text(text.replace("WORDS", words))
    draws = np.random.default_rng(0)
    batch = {f"labels{step}": draws.integers(0, 10, 8) for step in (1, 2)}
    for step in (1, 2):
        for n, _ in enumerate(words.split(", ")):
            batch[f"input{step}{f'.{n}' * bool(n)}"] = draws.normal(size=(8, 6)).astype(np.float32)
    np.savez(tmp_path / "batch.npz", **batch)
    pair = Pair(*(f"{tmp_path / side}_net.py:build" for side in files), batch=tmp_path / "batch.npz")
    job = ParityJob(recipes.load(RECIPE), tmp_path / "run", pair, steps=2, no_diagnosis=True)
    report = parity_step(RECIPE, job)
    assert report.parity == right
    if not right:
        assert report.first_divergence is not None and report.first_divergence.stage == "forward"
