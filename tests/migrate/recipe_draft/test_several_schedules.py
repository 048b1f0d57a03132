"""Schedules of which another one may be the one that moves: when it moves is asked for."""

from __future__ import annotations

from pathlib import Path

import pytest
from drafts import drafted

SCRIPT = """
import torch
from torch import nn
from torch.optim.lr_scheduler import CosineAnnealingLR, LinearLR, SequentialLR, StepLR
from torch.utils.data import DataLoader
from warmup_scheduler import GradualWarmupScheduler
from elsewhere import Data, read, log
loader = DataLoader(Data("a"), batch_size=4, shuffle=True)
net = nn.Linear(4, 2)
optimizer = torch.optim.SGD(net.parameters(), lr=0.3)
criterion = nn.CrossEntropyLoss()
{made}
for epoch in range(3):
    for x, y in loader:
        optimizer.zero_grad()
        loss = criterion(net(x), y)
        loss.backward()
        optimizer.step()
    {moves}
"""
COSINE = "cosine = CosineAnnealingLR(optimizer, 7)\n"
WARM = "schedule = GradualWarmupScheduler(optimizer, multiplier=1, total_epoch=3, after_scheduler=cosine)"
RESUMED = "schedule = CosineAnnealingLR(optimizer, 9)"


def moves_of(folder: Path, made: str, moves: str) -> object:
    """When the drafted schedule moves."""
    (folder / "train.py").write_text(SCRIPT.replace("{made}", made).replace("{moves}", moves))
    return drafted(folder / "train.py")["schedule"]["per"]


@pytest.mark.parametrize(
    ("made", "moves"),
    [
        (COSINE + WARM, "schedule.step()"),
        (f"if read():\n    {RESUMED}\nelse:\n    {COSINE}    {WARM}", "schedule.step()"),
        (f"warm = read()\nif warm:\n    {COSINE}    {WARM}\nelse:\n    {RESUMED}", "schedule.step()"),
        (
            f"if read():\n    {RESUMED}\n    warm = False\nelse:\n    warm = True\nif warm:\n    {COSINE}    {WARM}",
            "schedule.step()",
        ),
        ("first = CosineAnnealingLR(optimizer, 9)\nsecond = StepLR(optimizer, 7)", "first.step()"),
        ("first = CosineAnnealingLR(optimizer, 9)\nsecond = StepLR(optimizer, 7)", "first.step()\n    second.step()"),
    ],
)
def test_where_another_schedule_may_move_it_is_asked_for(made: str, moves: str, tmp_path: Path) -> None:
    """The cosine that stands inside of a warm-up was drafted as one that moves by itself."""
    assert moves_of(tmp_path, made, moves) == "???"


@pytest.mark.parametrize(
    ("made", "moves"),
    [
        (COSINE, "cosine.step()"),
        (COSINE + "log(cosine)", "cosine.step()"),
        (COSINE + 'kept = {"a": cosine}', 'kept["a"].step()'),
        (
            "schedule = SequentialLR(optimizer, [LinearLR(optimizer, 0.1), StepLR(optimizer, 7)], milestones=[2])",
            "schedule.step()",
        ),
    ],
)
def test_one_that_moves_is_drafted(made: str, moves: str, tmp_path: Path) -> None:
    assert moves_of(tmp_path, made, moves) == "epoch"
