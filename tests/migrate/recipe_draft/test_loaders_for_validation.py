"""Which loader a draft validates on: one that code which runs reads."""

from __future__ import annotations

from pathlib import Path

import pytest
from drafts import drafted

SCRIPT = """
import argparse
import torch
from torch import nn
from torch.utils.data import DataLoader
from torchvision import datasets, transforms

parser = argparse.ArgumentParser()
parser.add_argument("--check", action="store_true")
args = parser.parse_args()
net = nn.Linear(4, 2)
data = datasets.ImageFolder("a", transforms.ToTensor())
loader = DataLoader(data, batch_size=4, shuffle=True)
val_data = datasets.ImageFolder("b", transforms.ToTensor())
val_loader = DataLoader(val_data, batch_size=31)
test_loader = DataLoader(val_data, batch_size=17)
optimizer = torch.optim.SGD(net.parameters(), lr=0.3)
criterion = nn.CrossEntropyLoss()
{made}
def evaluate(loader):
    net.eval()
    for x, y in loader:
        print(net(x))

for epoch in range(3):
    net.train()
    for x, y in loader:
        optimizer.zero_grad()
        loss = criterion(net(x), y)
        loss.backward()
        optimizer.step()
    {end}
"""
UNUSED = "def eval(net):\n    for x, y in val_loader:\n        print(net(x))\n"
METHOD = "class Old:\n    def run(self):\n        for x, y in val_loader:\n            print(net(x))\n"
HOLDS = """
class Run:
    def __init__(self, check):
        self.check = check
    def go(self):
        for x, y in self.check:
            print(net(x))
run = Run(val_loader)
"""


@pytest.mark.parametrize(
    ("made", "end", "batch"),
    [
        ("", "evaluate(val_loader)", 31),
        (UNUSED, "evaluate(test_loader)", 17),  # net.eval() is another eval
        (METHOD, "evaluate(test_loader)", 17),
        ("", "if args.check:\n    evaluate(val_loader)\nevaluate(test_loader)", 17),
        (UNUSED, "pass", None),
        (METHOD, "pass", None),
        ("", "pass", None),
        ("print(len(val_loader), type(test_loader))", "pass", None),
        ("", "if args.check:\n    evaluate(val_loader)", None),
        ("from elsewhere import check", "check(net, val_loader)", 31),
        ("", "for one in [val_loader]:\n    evaluate(one)", 31),
        ("loaders = {'a': loader, 'b': val_loader}", "evaluate(loaders['b'])", 31),
        (HOLDS, "run.go()", 31),
        ("", "x, y = next(iter(val_loader))\nprint(net(x))", 31),
        ("", "print([net(x) for x, y in val_loader])", 31),
    ],
)
def test_a_loader_that_nothing_reads_is_not_validated_on(
    made: str, end: str, batch: int | None, tmp_path: Path
) -> None:
    script = tmp_path / "train.py"
    script.write_text(SCRIPT.replace("{made}", made).replace("{end}", end.replace("\n", "\n    ")))
    section = drafted(script)["data"]
    assert section.get("eval_batch") == batch
    assert ("validation" in section) == (batch is not None)
