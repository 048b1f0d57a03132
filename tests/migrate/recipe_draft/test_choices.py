"""One of several objects by a condition that reading does not decide, also inside of an expression."""

from __future__ import annotations

from pathlib import Path

import pytest
from drafts import drafted, listed

SCRIPT = """
import torch, torch.nn as nn, torchvision
import torchvision.transforms as T
from torch.optim.lr_scheduler import CosineAnnealingLR, StepLR
from torch.utils.data import DataLoader, Subset

class Wide(nn.Module):
    def forward(self, x):
        return x

class Deep(nn.Module):
    def forward(self, x):
        return x

settings, many = read_settings(), 3
net = NET
opt = OPT
moves = MOVES
data = torchvision.datasets.ImageFolder("birds", TRANSFORM)
loader = LOADER
for epoch in range(4):
    for x, y in BATCHES:
        opt.zero_grad()
        loss = nn.functional.cross_entropy(net(x), y)
        loss.backward()
        opt.step()
    moves.step()
"""
PLAIN = {
    "NET": "torchvision.models.resnet18()",
    "OPT": "torch.optim.SGD(net.parameters(), lr=0.2)",
    "MOVES": "StepLR(opt, 3)",
    "TRANSFORM": "T.ToTensor()",
    "LOADER": "DataLoader(data, batch_size=16)",
    "BATCHES": "loader",
}
OTHER = {
    "NET": "torchvision.models.resnet34()",
    "OPT": "torch.optim.Adam(net.parameters(), lr=0.3)",
    "MOVES": "CosineAnnealingLR(opt, 5)",
    "TRANSFORM": "T.Compose([T.ToTensor(), T.Normalize(0.5, 0.5)])",
    "LOADER": "DataLoader(data, batch_size=32)",
    "BATCHES": "loader[:3]",
}
SHAPES = (
    *("{a} if settings.wide else {b}", "{b} if settings.wide else {a}", "settings.get('one') or {a}"),
    *("settings.wide and {a}", "{{'a': {a}, 'b': {b}}}[settings.kind]", "[{a}, {b}][settings.at]"),
    *(
        "{{'a': {a}, 'b': {b}}}.get(settings.kind)",
        "max([{a}, {b}], key=size)",
        "(kept := {a}) if settings.wide else {b}",
    ),
)


def script(tmp_path: Path, **parts: str) -> Path:
    """The script with other parts."""
    text = SCRIPT
    for name, value in {**PLAIN, **parts}.items():
        text = text.replace(name, value)
    written = tmp_path / "train.py"
    written.write_text(text)
    return written


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("part", PLAIN)
def test_what_is_made_in_an_undecided_choice_is_listed(tmp_path: Path, part: str, shape: str) -> None:
    made = shape.format(a=PLAIN[part], b=OTHER[part])
    found = listed(script(tmp_path, **{part: made}))
    assert any(PLAIN[part] in line and ("settings" in line or "max(" in line) for line in found)


@pytest.mark.parametrize("made", ["Wide() if settings.wide else Deep()", "(Wide if settings.wide else Deep)()"])
def test_of_two_models_of_the_script_neither_is_lost(tmp_path: Path, made: str) -> None:
    path = script(tmp_path, NET=made)
    assert drafted(path)["model"] == "???"
    assert any("Wide" in line and "Deep" in line for line in listed(path))


@pytest.mark.parametrize(
    "part, made",
    [
        ("OPT", "torch.optim.SGD(net.parameters() if settings.all else net.fc.parameters(), lr=0.2)"),
        ("OPT", "torch.optim.SGD((net if settings.all else net.fc).parameters(), lr=0.2)"),
        ("LOADER", "DataLoader(data if settings.all else Subset(data, range(9)), batch_size=16)"),
        ("LOADER", "DataLoader(data, batch_size=16, sampler=Some(data) if settings.all else None) if many else None"),
    ],
)
def test_so_is_a_choice_inside_of_a_call(tmp_path: Path, part: str, made: str) -> None:
    assert any("settings.all" in line for line in listed(script(tmp_path, **{part: made})))


@pytest.mark.parametrize(
    "part, made",
    [
        ("NET", "torchvision.models.resnet18() if many > 2 else torchvision.models.resnet34()"),
        ("NET", "[torchvision.models.resnet18(), torchvision.models.resnet34()][0]"),
        ("MOVES", "StepLR(opt, 3 if many else 4)"),
    ],
)
def test_a_choice_that_is_decided_is_none(tmp_path: Path, part: str, made: str) -> None:
    assert not any(PLAIN[part] in line for line in listed(script(tmp_path, **{part: made})))
