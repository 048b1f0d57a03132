"""The variable of a loop over few epochs is no list, and how often a loop runs is in the draft, whatever shows it."""

from __future__ import annotations

from pathlib import Path

import pytest
from drafts import drafted, listed

SCRIPT = """
import tqdm
from tqdm import trange
import torch
from torch import nn
from torch.utils.data import DataLoader
from torchvision import datasets, transforms
net = nn.Linear(4, 2)
rows = DataLoader(datasets.ImageFolder("a", transforms.ToTensor()), batch_size=4)
optimizer = torch.optim.SGD(net.parameters(), lr=0.3)
criterion = nn.CrossEntropyLoss()
many = 30
{before}
for {loop}:
    for i, (x, y) in enumerate(rows):
        {first}
        loss = criterion(net(x), y)
        loss.backward()
        optimizer.step()
    {end}
"""
CHANGE = 'optimizer.param_groups[0]["lr"] *= 0.9'
SLOWER = f"def slower(optimizer):\n    {CHANGE}\n"


def script(folder: Path, **parts: str) -> Path:
    given = {"before": "pass", "loop": "epoch in range(4)", "first": "optimizer.zero_grad()", "end": "pass"} | parts
    text = SCRIPT
    for name, indent in {"before": 0, "loop": 0, "first": 8, "end": 4}.items():
        text = text.replace(f"{{{name}}}", given[name].replace("\n", "\n" + " " * indent))
    (folder / "train.py").write_text(text)
    return folder / "train.py"


CONDITIONS = [
    *("epoch == 2 and slower(optimizer)", "epoch != 2 or slower(optimizer)", "slower(optimizer) if epoch == 2 else 0"),
    *(
        "0 if epoch != 2 else slower(optimizer)",
        "epoch in (2, 3) and slower(optimizer)",
        "while epoch == 2:\n    slower(optimizer)",
    ),
    *("now = epoch == 3\nif now: slower(optimizer)", "now = epoch == 3\nnow and slower(optimizer)"),
    *("if epoch == 2 and slower(optimizer): pass", "assert epoch != 2 or slower(optimizer) is None"),
]
INSIDE = ["if epoch in (2, 3):\n        ", "if epoch == 2:\n        ", "if epoch > 2: ", "epoch > 2 and print(1)\n    "]


@pytest.mark.parametrize("loop", ["epoch in range(4)", "epoch in range(40)", "epoch, _ in enumerate([1, 2, 3])"])
@pytest.mark.parametrize("end", CONDITIONS)
def test_what_runs_in_some_of_the_epochs_is_in_a_line(end: str, loop: str, tmp_path: Path) -> None:
    """Of up to 16 rounds the variable was the list of all, which no condition on one of them is true of."""
    assert any(line.startswith(CHANGE) for line in listed(script(tmp_path, before=SLOWER, end=end, loop=loop)))


@pytest.mark.parametrize("inside", INSIDE)
def test_so_is_what_a_function_does_that_gets_the_epoch(inside: str, tmp_path: Path) -> None:
    before = f"def slower(optimizer, epoch):\n    {inside}{CHANGE}\n"
    assert any(
        line.startswith(CHANGE) for line in listed(script(tmp_path, before=before, end="slower(optimizer, epoch)"))
    )


def test_the_number_of_epochs_is_as_before(tmp_path: Path) -> None:
    assert drafted(script(tmp_path))["train"]["epochs"] == 4
    assert drafted(script(tmp_path, loop="epoch in tqdm.trange(0, many)"))["train"]["epochs"] == 30


BARS = {
    "trange": ("bar = trange(many)", "epoch in bar"),
    "of a module": ("bar = tqdm.trange(0, many)", "epoch in bar"),
    "of a range": ("bar = tqdm.tqdm(range(many), desc='a')", "one in bar"),
    "counted": ("bar = trange(many)", "i, one in enumerate(bar)"),
}


@pytest.mark.parametrize("way", BARS)
def test_a_bar_with_a_name_says_how_many_rounds_there_are(way: str, tmp_path: Path) -> None:
    """It counted as one that only prints."""
    before, loop = BARS[way]
    assert any("many is 30" in line for line in listed(script(tmp_path, before=before, loop=loop)))


ZERO = [
    *(
        "i % 4 == 0 and optimizer.zero_grad()",
        "optimizer.zero_grad() if i % 4 == 0 else None",
        "i % 4 or net.zero_grad()",
    ),
    *("_ = optimizer.zero_grad() if i % 4 == 0 else 0", "assert i % 4 or optimizer.zero_grad() is None"),
    *("if i % 4 == 0 and optimizer.zero_grad() is None: pass", "[optimizer.zero_grad() for _ in range(i)]"),
]


@pytest.mark.parametrize("first", ZERO)
def test_gradients_that_are_cleared_at_times_are_in_a_line(first: str, tmp_path: Path) -> None:
    """A recipe clears them at every step, and these counted as that."""
    assert any("zero_grad()" in line for line in listed(script(tmp_path, first=first)))


@pytest.mark.parametrize("end", ["slower(optimizer)", "epoch == 2 and slower(optimizer)", "done = slower(optimizer)"])
def test_a_lambda_that_sets_the_rate_is_in_a_line(end: str, tmp_path: Path) -> None:
    before = "slower = lambda optimizer: optimizer.param_groups[0].update(lr=0.1)"
    assert any(end in line for line in listed(script(tmp_path, before=before, end=end)))
