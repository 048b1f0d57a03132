"""Settings that a function changes and hands back: each is in a line, or the call of the function is."""

from __future__ import annotations

from pathlib import Path

import pytest
from drafts import drafted, listed
from msmigrate.migrate.analyze.script_analysis import analyze_script
from msmigrate.reports.script_analysis import recipe_text

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


PARSER = """
import {module} as parsers
import torch
from torch import nn
from torch.utils.data import DataLoader
from torchvision import datasets, transforms
parser = parsers.{made}
{add}
args = parser.parse_args()
net = nn.Linear(4, 2)
data = datasets.ImageFolder("a", transforms.ToTensor())
loader = DataLoader(data, batch_size=4, shuffle=True)
optimizer = torch.optim.SGD(net.parameters(), lr=args.lr)
criterion = nn.CrossEntropyLoss()
for epoch in range(3):
    for x, y in loader:
        loss = criterion(net(x), y)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
"""
RATE = 'parser.add_argument("--lr", type=float, default=0.4)'


@pytest.mark.parametrize(
    ("made", "add", "rate"),
    [
        ("ArgumentParser()", RATE, 0.4),
        ("ArgParser()", RATE, 0.4),
        ("ArgParser()", 'parser.add("--lr", type=float, default=0.4)', 0.4),
        ("ArgParser()", 'parser.add_arg("--lr", type=float, default=0.4)', 0.4),
        ("ArgParser()", 'parser.add_argument("--config", is_config_file=True)\n' + RATE, 0.4),
        ("ArgParser()", 'parser.add_argument("--config", is_config_file=True, default="a.txt")\n' + RATE, "???"),
        ("ArgParser()", 'parser.add_argument("-c", required=True, is_config_file=True)\n' + RATE, "???"),
        ('ArgParser(default_config_files=["a.txt"])', RATE, "???"),
        ("ArgParser()", 'group = parser.add_argument_group("a")\n' + RATE.replace("parser", "group"), 0.4),
    ],
)
def test_defaults_of_configargparse_are_read_where_no_file_gives_others(
    made: str, add: str, rate: object, tmp_path: Path
) -> None:
    script = tmp_path / "train.py"
    text = PARSER.replace("{module}", "configargparse").replace("{made}", made).replace("{add}", add)
    script.write_text(text)
    assert drafted(script)["optimizer"]["args"]["lr"] == rate


WHOLE = """
import argparse
import torch
from torch import nn
from torch.utils.data import DataLoader
from torchvision import datasets, transforms

class Net(nn.Module):
    def __init__(self, width, **more):
        super().__init__()
        self.layer = nn.Linear(width, more["classes"])
    def forward(self, x):
        return self.layer(x.flatten(1))

def loaders(kind, batch=4, **more):
    data = datasets.ImageFolder(more["folder"], transforms.ToTensor())
    return DataLoader(data, batch_size=batch, shuffle=more["mixed"], num_workers=more["workers"])

parser = argparse.ArgumentParser()
parser.add_argument("--width", type=int, default=13)
parser.add_argument("--classes", type=int, default=7)
parser.add_argument("--batch", type=int, default=24)
parser.add_argument("--folder", default="/birds")
parser.add_argument("--mixed", action="store_true")
parser.add_argument("--workers", type=int, default=3)
args = parser.parse_args()
{options}
net = Net(**options)
loader = loaders("train", **options)
optimizer = torch.optim.SGD(net.parameters(), lr=0.2)
criterion = nn.CrossEntropyLoss()
for epoch in range(3):
    for x, y in loader:
        loss = criterion(net(x), y)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
"""


@pytest.mark.parametrize("options", ["options = vars(args)", "options = args.__dict__"])
def test_options_that_are_handed_over_as_a_whole_are_said_where_the_draft_asks(options: str, tmp_path: Path) -> None:
    """The batch was asked for, and what the model gets was in no line: `Net(**vars(args))`."""
    script = tmp_path / "train.py"
    script.write_text(WHOLE.replace("{options}", options))
    text = recipe_text(analyze_script(script))
    section = drafted(script)["data"]
    assert (section["batch"], section["source"], section["workers"]) == (24, "folder:/birds", 3)
    assert section["shuffle"] is False
    said = next(line for line in text.splitlines() if "Net(**options)" in line)
    assert "options.width is 13" in said and "options.classes is 7" in said


OF_TIMM = """
import argparse
import torch
from torch import nn
from torch.utils.data import DataLoader
from torchvision import datasets, transforms
from timm.models import create_model
from timm.optim import create_optimizer, create_optimizer_v2, optimizer_kwargs
from timm.scheduler import create_scheduler, create_scheduler_v2, scheduler_kwargs
parser = argparse.ArgumentParser()
parser.add_argument("--opt", default="sgd")
parser.add_argument("--lr", type=float, default=0.4)
parser.add_argument("--sched", default="step")
parser.add_argument("--decay-rate", type=float, default=0.15)
args = parser.parse_args()
kept = {"args": args}
torch.save(kept, "a")
net = create_model("resnet18", num_classes=7)
data = datasets.ImageFolder("a", transforms.ToTensor())
loader = DataLoader(data, batch_size=4, shuffle=True)
optimizer = {optimizer}
scheduler, epochs = {schedule}
criterion = nn.CrossEntropyLoss()
for epoch in range(3):
    for x, y in loader:
        loss = criterion(net(x), y)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    scheduler.step(epoch)
"""


@pytest.mark.parametrize(
    "optimizer", ["create_optimizer_v2(net, **optimizer_kwargs(cfg=args))", "create_optimizer(args, net)"]
)
@pytest.mark.parametrize(
    "schedule", ["create_scheduler(args, optimizer)", "create_scheduler_v2(optimizer, **scheduler_kwargs(args))"]
)
def test_options_that_an_optimizer_or_a_schedule_is_made_of_are_said_there(
    optimizer: str, schedule: str, tmp_path: Path
) -> None:
    """They were said once, at the first listed line that has them, which may be one that saves them."""
    script = tmp_path / "train.py"
    script.write_text(OF_TIMM.replace("{optimizer}", optimizer).replace("{schedule}", schedule))
    said = recipe_text(analyze_script(script)).splitlines()
    for call in (optimizer, schedule):
        assert any(call in line and "args.opt is" in line and "args.decay_rate is 0.15" in line for line in said)


def test_a_comment_names_the_line_of_a_value_and_not_what_else_was_put_there(tmp_path: Path) -> None:
    script = tmp_path / "train.py"
    more = "options = vars(args)\nif options['folder'] is None:\n    options['folder'] = 31"
    script.write_text(WHOLE.replace("{options}", more))
    assert "= 31" not in recipe_text(analyze_script(script)).split("not_in_this_recipe")[0]


def test_a_comment_names_the_line_that_computes_a_value(tmp_path: Path) -> None:
    script = tmp_path / "train.py"
    add = RATE + '\nparser.add_argument("--batch", type=int, default=24)\nsize = max(1, parser.parse_args().batch // 2)'
    text = PARSER.replace("{module}", "argparse").replace("{made}", "ArgumentParser()").replace("{add}", add)
    script.write_text(text.replace("batch_size=4", "batch_size=size"))
    assert drafted(script)["data"]["batch"] == 12
    said = recipe_text(analyze_script(script)).split("not_in_this_recipe")[0]
    assert "size = max(1, parser.parse_args().batch // 2)" in said and "batch has the default 24" in said
