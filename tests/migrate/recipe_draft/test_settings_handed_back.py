"""Settings that a function changes and hands back: each is in a line, or the call of the function is."""

from __future__ import annotations

from pathlib import Path

import pytest
from drafts import drafted, listed

SCRIPT = """
import argparse, types
import torch
from torch import nn
from torch.utils.data import DataLoader
from torchvision import datasets, transforms
from elsewhere import read

{made}

def train(net, loader):
    optimizer = torch.optim.SGD(net.parameters(), lr={rate})
    criterion = nn.CrossEntropyLoss()
    for epoch in range(3):
        for x, y in loader:
            optimizer.zero_grad()
            loss = criterion(net(x), y)
            loss.backward()
            optimizer.step()

if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--lr", type=float, default=0.4)
    {call}
    net = nn.Linear(4, 2)
    data = datasets.ImageFolder("a", transforms.ToTensor())
    loader = DataLoader(data, batch_size=4, shuffle=True)
    train(net, loader)
"""
FINISH = "def finish(args):\n    config = read(args)\n    {change}\n    return {back}\n"
OPTION = 'args.lr = config.getfloat("rate", fallback=0.2)'
ENTRY = 'args["lr"] = config.getfloat("rate", fallback=0.2)'
PARSED = "args = parser.parse_args()\n"
CLASS = "class Settings:\n    lr = 0.4\n"
METHOD = """
class Options:
    def __init__(self, args):
        self.args = args
    def parse(self):
        config = read(self.args)
        {change}
        return {back}
"""


def finish(change: str, back: str = "args") -> str:
    return FINISH.replace("{change}", change).replace("{back}", back)


def method(change: str, back: str) -> str:
    return METHOD.replace("{change}", change).replace("{back}", back)


@pytest.mark.parametrize(
    ("made", "call", "rate"),
    [
        (finish(OPTION), PARSED + "args = finish(args)", "args.lr"),
        (finish(OPTION, "3"), PARSED + "seed = finish(args)", "args.lr"),
        (finish(OPTION, "args, 3"), PARSED + "args, seed = finish(args)", "args.lr"),
        (finish(OPTION, "True"), PARSED + "if finish(args):\n    print(3)", "args.lr"),
        (finish(OPTION, "3"), PARSED + "print(finish(args))", "args.lr"),
        (finish(OPTION), "args = finish(parser.parse_args())", "args.lr"),
        (finish(OPTION), "if (args := finish(parser.parse_args())):\n    print(3)", "args.lr"),
        (finish(OPTION), PARSED + "args: argparse.Namespace = finish(args)", "args.lr"),
        (finish('setattr(args, "lr", config.getfloat("rate"))'), PARSED + "args = finish(args)", "args.lr"),
        (finish('vars(args).update(lr=config.getfloat("rate"))'), PARSED + "args = finish(args)", "args.lr"),
        (finish('vars(args)["lr"] = config.getfloat("rate")'), PARSED + "args = finish(args)", "args.lr"),
        (finish('args.__dict__["lr"] = config.getfloat("rate")'), PARSED + "args = finish(args)", "args.lr"),
        (finish(OPTION) + "def outer(args):\n    return finish(args)\n", PARSED + "args = outer(args)", "args.lr"),
        (finish(ENTRY), 'args = {"lr": 0.4}\nargs = finish(args)', 'args["lr"]'),
        (finish(ENTRY, "3"), 'args = {"lr": 0.4}\nseed = finish(args)', 'args["lr"]'),
        (finish(OPTION), "args = types.SimpleNamespace(lr=0.4)\nargs = finish(args)", "args.lr"),
        (CLASS + finish(OPTION), "args = Settings()\nargs = finish(args)", "args.lr"),
        (CLASS + finish(OPTION, "3"), "args = Settings()\nseed = finish(args)", "args.lr"),
        (method(f"self.{OPTION}", "self.args"), "args = Options(parser.parse_args()).parse()", "args.lr"),
        (method(f"self.{OPTION[5:]}", "self"), "args = Options(parser.parse_args()).parse()", "args.lr"),
    ],
)
def test_a_setting_that_a_function_changes_is_in_a_line_whatever_it_hands_back(
    made: str, call: str, rate: str, tmp_path: Path
) -> None:
    """`args = finish(args)` counted as reading the command line, and what it set was in no line."""
    script = tmp_path / "train.py"
    text = SCRIPT.replace("{made}", made).replace("{call}", call.replace("\n", "\n    ")).replace("{rate}", rate)
    script.write_text(text)
    assert drafted(script)["optimizer"]["args"]["lr"] == "???"
    words = ("rate", "finish(", "outer(", ".parse()")
    assert any(word in line for line in listed(script) for word in words)


def test_settings_that_are_known_are_said_where_they_are_used(tmp_path: Path) -> None:
    script = tmp_path / "train.py"
    made = "def finish(args):\n    args.lr = 0.25\n    return args\n"
    text = SCRIPT.replace("{made}", made).replace("{call}", PARSED.replace("\n", "\n    ") + "args = finish(args)")
    script.write_text(text.replace("{rate}", "args.lr"))
    assert drafted(script)["optimizer"]["args"]["lr"] == 0.25
    assert not listed(script)
