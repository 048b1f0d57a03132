"""Objects whose methods a step calls: what their constructor sets is in a line, or where they are made."""

from __future__ import annotations

from pathlib import Path

import pytest
from drafts import listed
from msmigrate.migrate.analyze.script_analysis import analyze_script
from msmigrate.reports.script_analysis import recipe_text

SCRIPT = """
import numpy as np
import torch
from torch import nn
from torch.utils.data import DataLoader
from elsewhere import Data
{made}
loader = DataLoader(Data("a"), batch_size=4, shuffle=True)
net = nn.Linear(4, 2)
optimizer = torch.optim.SGD(net.parameters(), lr=0.3)
criterion = nn.CrossEntropyLoss()
{before}
for epoch in range(3):
    for x, y in loader:
        {step}
        optimizer.zero_grad()
        loss = criterion(net(x), y)
        loss.backward()
        optimizer.step()
"""
MIX = """
class Mix:
    def __init__({given}):
        {sets}
    def {method}(self, x, y):
        return x * {factor}, y
"""


def mix(sets: str, factor: str, given: str = "self", method: str = "mix") -> str:
    """A class whose method changes a batch."""
    made = MIX.replace("{sets}", sets).replace("{factor}", factor)
    return made.replace("{given}", given).replace("{method}", method)


def script(folder: Path, made: str, before: str = "mix = Mix()", step: str = "x, y = mix.mix(x, y)") -> Path:
    """A script that makes such an object and calls it."""
    text = SCRIPT.replace("{made}", made).replace("{before}", before).replace("{step}", step)
    (folder / "train.py").write_text(text)
    return folder / "train.py"


BETA = "self.drawn = torch.distributions.Beta(1.7, 1.7)"
FULL = "self.weight = torch.full((4,), 1.7)"


@pytest.mark.parametrize(
    ("made", "before", "step"),
    [
        (mix(BETA, "self.drawn.sample()"), "mix = Mix()", "x, y = mix.mix(x, y)"),
        (mix(BETA, "self.drawn.sample()", method="__call__"), "mix = Mix()", "x, y = mix(x, y)"),
        (mix(FULL, "self.weight"), "mix = Mix()", "x, y = mix.mix(x, y)"),
        (mix("self.weight = 1.7", "self.weight"), "mix = Mix()", "x, y = mix.mix(x, y)"),
        (mix("self.weight = 1.7", "self.weight", method="__call__"), "mix = Mix()", "x, y = mix(x, y)"),
        (mix("self.weight = [1.7, 2.7]", "self.weight[0]"), "mix = Mix()", "x, y = mix.mix(x, y)"),
        (mix("self.weight = weight", "self.weight", "self, weight=1.7"), "mix = Mix()", "x, y = mix.mix(x, y)"),
        (mix("self.weight = weight", "self.weight", "self, weight"), "mix = Mix(1.7)", "x, y = mix.mix(x, y)"),
        (mix(FULL, "self.weight") + "class More(Mix): pass", "mix = More()", "x, y = mix.mix(x, y)"),
        (mix(FULL, "self.weight"), "mixes = [Mix()]", "for one in mixes:\n            x, y = one.mix(x, y)"),
        (mix(FULL, "self.weight"), "pass", "x, y = Mix().mix(x, y)"),
    ],
)
def test_what_a_constructor_sets_for_a_step_is_said_or_its_call_is_a_line(
    made: str, before: str, step: str, tmp_path: Path
) -> None:
    """`mix = Mix()` was passed over, and what `Mix` sets was "accounted for where it is called"."""
    found = script(tmp_path, made, before, step)
    text = recipe_text(analyze_script(found))
    assert "1.7" in text or any("Mix()" in line or "More()" in line for line in listed(found))


METER = """
class Meter:
    def __init__(self):
        self.total = torch.zeros(1)
    def add(self, value):
        self.total += value
"""


def test_a_meter_that_reaches_no_training_is_no_line(tmp_path: Path) -> None:
    assert not any("Meter" in line for line in listed(script(tmp_path, METER, "meter = Meter()", "meter.add(3)")))
