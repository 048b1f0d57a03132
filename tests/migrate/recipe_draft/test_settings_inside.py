"""Options that are handed over whole are said where no line reads them; code that does not run changes none of them."""

from __future__ import annotations

from pathlib import Path

import pytest
from drafts import drafted, listed
from msmigrate.migrate.analyze.script_analysis import analyze_script
from msmigrate.reports.script_analysis import recipe_text

SCRIPT = """
import argparse
import torch
from torch import nn
from torch.utils.data import DataLoader, Dataset
from elsewhere import Data, read

{made}

def train(net, loader, args):
    optimizer = torch.optim.SGD(net.parameters(), lr=args.lr)
    criterion = {criterion}
    for epoch in range(3):
        for x, y in loader:
            {step}
            loss = criterion(net(x), y)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()

if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--lr", type=float, default=0.3)
    parser.add_argument("--hidden", type=int, default=77)
    parser.add_argument("--other", type=int, default=88)
    args = parser.parse_args()
    {before}
    net = {net}
    loader = DataLoader({data}, batch_size=4, shuffle=True)
    train(net, loader, args)
"""
PLAIN = {
    "made": "",
    "criterion": "nn.CrossEntropyLoss()",
    "step": "pass",
    "before": "pass",
    "net": "nn.Linear(4, 2)",
    "data": 'Data("a")',
}
NET = """
class Net(nn.Module):
    def __init__(self, args):
        super().__init__()
        self.layer = nn.Linear(4, args.hidden)
    def forward(self, x):
        return self.layer(x)
"""
LATER = """
class Net(nn.Module):
    def __init__(self, args):
        super().__init__()
        self.args = args
        self.layer = nn.Linear(4, 4)
    def forward(self, x):
        return self.layer(x) * self.args.hidden
"""
OUTER = """
class Outer(nn.Module):
    def __init__(self, args):
        super().__init__()
        self.net = Net(args)
    def forward(self, x):
        return self.net(x)
"""
ROWS = """
class Rows(Dataset):
    def __init__(self, args):
        self.rows = read(args.hidden)
    def __getitem__(self, index):
        return self.rows[index]
    def __len__(self):
        return 4
"""
LOSS = """
class Loss(nn.Module):
    def __init__(self, args):
        super().__init__()
        self.weight = args.hidden
    def forward(self, x, y):
        return ((x - y) ** 2).mean() * self.weight
"""
CUT = """
class Cut:
    def __init__(self, args):
        self.size = args.hidden
    def __call__(self, x):
        return x[: self.size]
"""
NOISE = "def noise(x, args):\n    return x + args.hidden"
LONG = (
    "def noise(x, args):\n    a = x * 2\n    b = a + x\n    c = b + a\n    d = c * b\n    e = d + a\n    f = e - b\n"
    "    return f + args.hidden"
)
TRAINER = "class Trainer:\n    def __init__(self, args):\n        self.args = args\n        self.net = Net(args)\n"


def script(folder: Path, **parts: str) -> Path:
    """A script of these parts."""
    text = SCRIPT
    for name, plain in PLAIN.items():
        text = text.replace(
            "{" + name + "}", parts.get(name, plain).replace("\n", "\n    " * (name == "before") or "\n")
        )
    (folder / "train.py").write_text(text)
    return folder / "train.py"


@pytest.mark.parametrize(
    "parts",
    [
        {"made": NET, "net": "Net(args)"},
        {"made": NET, "net": "Net(args=args)"},
        {"made": NET, "net": 'Net(args).to("cuda")'},
        {"made": NET, "net": "nn.Sequential(Net(args), nn.ReLU())"},
        {"made": LATER, "net": "Net(args)"},
        {"made": NET + OUTER, "net": "Outer(args)"},
        {"made": NET + "class Outer(Net): pass", "net": "Outer(args)"},
        {"made": NET.replace("args.hidden", 'getattr(args, "hidden")'), "net": "Net(args)"},
        {"made": NET + "def build(args):\n    return Net(args)", "net": "build(args)"},
        {"made": NET + TRAINER, "net": "Trainer(args).net"},
        {"made": NET + "class Settings:\n    hidden = 77", "net": "Net(Settings)"},
        {"made": NET + "class Settings:\n    def __init__(self):\n        self.hidden = 77", "net": "Net(Settings())"},
        {"made": ROWS, "data": "Rows(args)"},
        {
            "made": ROWS.replace("read(args.hidden)", "args").replace("self.rows[", "read(self.rows.hidden)["),
            "data": "Rows(args)",
        },
        {"made": "def rows(args):\n    return Data(args.hidden)", "data": "rows(args)"},
        {"made": CUT, "data": "Data(Cut(args))"},
        {"made": LOSS, "criterion": "Loss(args)"},
        {"made": NOISE, "step": "x = noise(x, args)"},
        {"made": LONG, "step": "x = noise(x, args)"},
    ],
)
def test_what_a_model_or_a_function_reads_of_the_options_is_said_where_it_gets_them(
    parts: dict[str, str], tmp_path: Path
) -> None:
    """`Net(args)` was in a line, and what `Net` reads of them in none."""
    found = recipe_text(analyze_script(script(tmp_path, **parts)))
    assert "hidden is 77" in found
    assert "other is 88" not in found  # that nothing reads


def test_what_the_options_get_later_is_a_line_of_its_own(tmp_path: Path) -> None:
    found = script(tmp_path, made=NET, net="Net(args)", before="args.hidden = len(read())")
    assert "args.hidden = len(read())" in listed(found)
    assert "hidden is 77" not in recipe_text(analyze_script(found))


def test_options_are_said_at_the_model_and_at_the_data_that_read_them(tmp_path: Path) -> None:
    """What a function before them reads of the same options is said there, too."""
    seen = "def look(args):\n    print(args.hidden)\n    return read(args.hidden)\n"
    found = script(tmp_path, made=NET + seen, net="Net(args)", before="found = look(args)")
    assert "Net(args) [args.hidden is 77]" in recipe_text(analyze_script(found))


DEFAULTS = [
    "if args.other > 99:\n    args.lr = 3",
    "if args.other > 99:\n    for one in read():\n        args.lr = 3",
    "if args.other > 99:\n    while read():\n        args.lr += 3",
    "if args.other > 99:\n    for one in read():\n        if one:\n            args.lr = 3",
    'if args.other > 99:\n    for one in read():\n        vars(args)["lr"] = 3',
    "if args.other > 99:\n    for key, value in read():\n        setattr(args, key, value)",
    "if args.other > 99 and change(args):\n    print(3)",
    "if args.other > 99 and read() and change(args):\n    print(3)",
    "if args.other < 99 or change(args):\n    print(3)",
    "if args.other > 99 and not change(args) and not args.other:\n    args = read()",
    "assert args.other < 99 or change(args)",
    "found = args.other < 99 or change(args)",
    "found = 3 if args.other < 99 else change(args)",
]
CHANGE = "def change(args):\n    args.lr = read()\n"


@pytest.mark.parametrize("before", DEFAULTS)
def test_what_runs_with_other_options_only_changes_no_value(before: str, tmp_path: Path) -> None:
    """A loop in such a branch, and what stands behind a false `and`, made the value unknown."""
    assert drafted(script(tmp_path, made=CHANGE, before=before))["optimizer"]["args"]["lr"] == 0.3


@pytest.mark.parametrize("before", ["read() and change(args)", "read() or change(args)", "args.lr and change(args)"])
def test_what_may_run_behind_and_changes_a_value(before: str, tmp_path: Path) -> None:
    found = script(tmp_path, made=CHANGE, before=f"if {before}:\n    print(3)")
    assert drafted(found)["optimizer"]["args"]["lr"] == "???"
    assert any("change(args)" in line for line in listed(found))


UNNAMED = """
import argparse
import torch
from torch import nn
from torch.utils.data import DataLoader
from elsewhere import Data, read
{imported}

def parse(known=False):
    parser = argparse.ArgumentParser()
    parser.add_argument("--lr", type=float, default=0.3)
    parser.add_argument("--resume", default=False)
    parser.add_argument("--search", type=int, default=None)
    return parser.parse_known_args()[0] if known else parser.parse_args()

def train(args):
    net = nn.Linear(4, 2)
    loader = DataLoader(Data("a"), batch_size=4, shuffle=True)
    optimizer = torch.optim.SGD(net.parameters(), lr=args.lr)
    criterion = nn.CrossEntropyLoss()
    for epoch in range(3):
        {first}
        for x, y in loader:
            optimizer.zero_grad()
            loss = criterion(net(x), y)
            loss.backward()
            optimizer.step()

def main(args):
    if args.resume:
        args = argparse.Namespace(**read())
    if not args.search:
        train(args)

def run(**changes):
    {run}

if __name__ == "__main__":
    main(parse())
"""
RUNS = [
    "args = parse(True)\n    for key, value in changes.items():\n        setattr(args, key, value)\n    main(args)",
    "args = parse(True)\n    vars(args).update(changes)\n    main(args)",
    "main(argparse.Namespace(**changes))",
    "main(read())",
    "for rate in (0.1, 0.2):\n        args = parse()\n        args.lr = rate\n        main(args)",
    "args = parse()\n    args.search = 3\n    main(args)",
    "args = parse()\n    args.resume = True\n    main(args)",
    "train(read())",
]
TOOLS = {"tools.py": "def run():\n    return 3\n\nclass Calls:\n    def run(self):\n        return 3\n"}
NAMED = [
    ("", "pass"),
    ("import tools", "tools.run()"),
    ("import tools as more", "more.run()"),
    ("from tools import Calls", "Calls().run()"),
]


@pytest.mark.parametrize(("imported", "first"), NAMED)
@pytest.mark.parametrize("run", RUNS)
def test_a_function_that_nothing_names_changes_nothing_that_was_read(
    run: str, imported: str, first: str, tmp_path: Path
) -> None:
    """A second start for other scripts made the options unknown, and its `main(args)` a second place of steps; a `run`
    of another file or class counted as a call of it."""
    for name, text in TOOLS.items():
        (tmp_path / name).write_text(text)
    found = tmp_path / "train.py"
    found.write_text(UNNAMED.replace("{imported}", imported).replace("{first}", first).replace("{run}", run))
    draft = drafted(found)
    assert draft["optimizer"]["args"]["lr"] == 0.3
    assert draft["train"]["epochs"] == 3
    assert not listed(found)


@pytest.mark.parametrize("named", ["run()", "import train\ntrain.run()", "globals()['run']()", "read(run)"])
def test_a_function_that_something_names_is_in_lines(named: str, tmp_path: Path) -> None:
    found = tmp_path / "train.py"
    text = UNNAMED.replace("{imported}", "").replace("{first}", "pass").replace("{run}", RUNS[5])
    lines = "\n    ".join(named.splitlines())
    found.write_text(text.replace("    main(parse())\n", f"    main(parse())\n    {lines}\n"))
    assert listed(found)


TABLE = """
class Settings(dict):
    def __getattr__(self, name):
        {get}
    def __setattr__(self, name, value):
        {set}
"""
LIGHTNING = """
import argparse
import torch
from torch import nn
import pytorch_lightning as pl
from torch.utils.data import DataLoader
from elsewhere import Data

{table}

def settings(args):
    made = Settings()
    made.rate = args.lr
    made.weight = args.weight
    return made

class Net(pl.LightningModule):
    def __init__(self, config):
        super().__init__()
        self.net = nn.Linear(4, 2)
        self.config = config
    def training_step(self, batch, index):
        x, y = batch
        return nn.functional.cross_entropy(self.net(x), y) * self.config.weight
    def configure_optimizers(self):
        return torch.optim.Adam(self.parameters(), lr=self.config.rate)
    def train_dataloader(self):
        return DataLoader(Data("a"), batch_size=4, shuffle=True)

if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--lr", type=float, default=0.3)
    parser.add_argument("--weight", type=float, default=0.7)
    pl.Trainer(max_epochs=3).fit(Net(settings(parser.parse_args())))
"""
GETS = [
    "return self[name]",
    "return self.get(name)",
    "try:\n            return self[name]\n        except KeyError:\n            raise AttributeError(name)",
    "if name in self:\n            return self[name]\n        raise AttributeError(name)",
]


@pytest.mark.parametrize("get", GETS)
@pytest.mark.parametrize("put", ["self[name] = value", "self.__setitem__(name, value)"])
def test_settings_that_a_table_keeps_by_attributes_are_known_to_a_library(get: str, put: str, tmp_path: Path) -> None:
    """That `__setattr__` may be called with any name made all of them unknown before the library's calls were read."""
    script_ = tmp_path / "train.py"
    script_.write_text(LIGHTNING.replace("{table}", TABLE.replace("{get}", get).replace("{set}", put)))
    assert drafted(script_)["optimizer"]["args"]["lr"] == 0.3
    assert any("self.config.weight is 0.7" in line for line in listed(script_))


def test_settings_that_a_table_changes_stay_unknown(tmp_path: Path) -> None:
    script_ = tmp_path / "train.py"
    table = TABLE.replace("{get}", GETS[0]).replace("{set}", "self[name] = value / 2")
    script_.write_text(LIGHTNING.replace("{table}", table))
    assert drafted(script_)["optimizer"]["args"]["lr"] == "???"
    assert "self[name] = value / 2" in listed(script_)
