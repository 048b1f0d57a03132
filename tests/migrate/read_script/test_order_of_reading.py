"""What is read first: the script itself, whatever the files that it imports have for runs of their own."""

from __future__ import annotations

from pathlib import Path

import pytest
import yaml
from msmigrate.migrate.analyze.script_analysis import analyze_script
from msmigrate.migrate.read_script import interpreter
from msmigrate.reports.script_analysis import recipe_text

SCRIPT = """
import torch
from torch import nn
from torch.utils.data import DataLoader
from torchvision import datasets, transforms
import parts
net = nn.Linear(parts.WIDTH, 2)
data = datasets.ImageFolder("a", transforms.ToTensor())
loader = DataLoader(data, batch_size=4, shuffle=True)
optimizer = torch.optim.SGD(net.parameters(), lr=parts.RATE)
criterion = nn.CrossEntropyLoss()
for epoch in range(3):
    for x, y in loader:
        loss = criterion(net(x), y)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
"""
PARTS = "WIDTH, RATE = 5, 0.4\nif __name__ == '__main__':\n    WIDTH = 7\n" + "    shown = [WIDTH, RATE, WIDTH]\n" * 300


def test_what_an_imported_file_does_as_a_script_does_not_use_up_the_reading(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its 300 statements were read first, and nothing of the script was: no model, no loader, no optimizer."""
    (tmp_path / "parts.py").write_text(PARTS)
    script = tmp_path / "train.py"
    script.write_text(SCRIPT)
    monkeypatch.setattr(interpreter, "BUDGET", 1_000)
    recipe = yaml.safe_load(recipe_text(analyze_script(script)))
    assert recipe["optimizer"] == {"name": "SGD", "args": {"lr": 0.4}} and recipe["data"]["batch"] == 4


def test_what_an_imported_file_does_as_a_script_gives_it_no_names(tmp_path: Path) -> None:
    (tmp_path / "parts.py").write_text(PARTS.replace("WIDTH = 7", "RATE = 0.1"))
    script = tmp_path / "train.py"
    script.write_text(SCRIPT)
    assert yaml.safe_load(recipe_text(analyze_script(script)))["optimizer"]["args"]["lr"] == 0.4


@pytest.mark.parametrize("made", ["f = lambda n: f(n - 1)", "f = lambda n: f(n - 1) + f(n - 2)", "f = lambda g: g(g)"])
def test_a_lambda_that_calls_itself_is_read_to_an_end(made: str, tmp_path: Path) -> None:
    script = tmp_path / "train.py"
    call = "f(f)" if "g" in made else "f(30)"
    script.write_text(SCRIPT.replace("import parts\n", f"{made}\nk = {call}\n").replace("parts.WIDTH", "3"))
    assert yaml.safe_load(recipe_text(analyze_script(script)))["data"]["batch"] == 4
