"""What only one place of a script shows: defaults, tables that others take in, new parts of a model, clipped parts."""

from __future__ import annotations

from pathlib import Path

import pytest
from drafts import drafted, listed

SCRIPT = """
import itertools, json, os
import numpy as np, pandas as pd
import torch
from torch import nn
from torch.utils.data import DataLoader, Dataset
from elsewhere import read, make
{top}
net = {net}
{data}
optimizer = torch.optim.SGD({params}, lr=0.3)
criterion = nn.CrossEntropyLoss()
{before}
for epoch in range(40):
    for x, y in rows:
        optimizer.zero_grad()
        loss = criterion(net(x), y)
        loss.backward()
        {clip}
        optimizer.step()
"""
PLAIN = {
    "top": "pass",
    "net": "nn.Linear(4, 2)",
    "data": "rows = DataLoader(read(), batch_size=4)",
    "params": "net.parameters()",
    "before": "pass",
    "clip": "pass",
}


def script(folder: Path, **parts: str) -> Path:
    text = SCRIPT
    for name, part in (PLAIN | parts).items():
        text = text.replace(f"{{{name}}}", part)
    (folder / "train.py").write_text(text)
    return folder / "train.py"


HEAD = "def head(size):\n    made = nn.Linear(size, 2)\n    nn.init.zeros_(made.bias)\n    return made\n"


@pytest.mark.parametrize("change", ["net.last = head(4)", "net.last, net.size = head(4), 4", "net.parts[0] = head(4)"])
def test_a_part_of_a_model_that_a_function_makes_is_in_a_line(change: str, tmp_path: Path) -> None:
    """The function's statements are each accounted for, and the line that puts its result into the model was not."""
    assert any(line.startswith(change) for line in listed(script(tmp_path, top=HEAD, net="make()", before=change)))


DATA = """
class Rows(Dataset):
    def __init__(self, path):
        self.rows, self.table = json.load(open(path)), pd.read_csv(path)
        self.values, self.groups = np.load(path), {{"a": {{}}}}
    def __len__(self): return len(self.rows)
    def __getitem__(self, i): return torch.tensor(self.rows[i]["x"]), self.rows[i]["y"]
    def prepare(self):
        {0}
of = Rows("a.json")
of.prepare()
rows = DataLoader(of, batch_size=4)
"""
CHANGES = [
    *('self.rows[0]["x"] = 1', 'self.rows[0]["x"] += 1', 'self.rows[0]["x"][1] = 2', 'self.groups["a"]["b"] = 2'),
    *(
        'row = self.rows[0]\n        row["x"] = 1',
        'for row in self.rows: row["x"] = 1',
        "some = self.rows\n        some.append(1)",
    ),
    *('for i, row in enumerate(self.rows): row["x"] = i', 'for k, v in self.groups.items(): v["b"] = 2'),
    *('for row, v in zip(self.rows, self.values): row["x"] = v', "[row.update(x=1) for row in self.rows]"),
    *('if (row := self.rows[0]): row["x"] = 1', "list(map(lambda row: row.update(x=1), self.rows))"),
    *(
        "torch.from_numpy(self.values).mul_(2)",
        '[row.pop("x") for row in self.rows]',
        "self.more()\n    def more(self):\n        self.rows[0][1] = 3",
    ),
]
NONE = [
    "print(len(self.rows))",
    "some = []\n        some.append(self.rows[0])",
    "some = dict(self.rows[0])\n        some.update(x=1)",
]


@pytest.mark.parametrize("change", CHANGES)
def test_a_method_that_changes_what_a_data_set_holds_is_in_a_line(change: str, tmp_path: Path) -> None:
    """Also a part of a part, and by another name; only what it sets by an attribute was seen."""
    assert "of.prepare()" in listed(script(tmp_path, data=DATA.format(change)))


@pytest.mark.parametrize("change", NONE)
def test_a_method_that_changes_nothing_of_it_is_not(change: str, tmp_path: Path) -> None:
    assert "of.prepare()" not in listed(script(tmp_path, data=DATA.format(change)))


BOTH = "list(net.parameters()) + list(other.parameters())"
CLIP = "nn.utils.clip_grad_norm_({}, 1.0)"
SOME = [
    *((BOTH, "other.parameters()"), (BOTH, "net.parameters()"), ("net.parameters()", "other.parameters()")),
    *(
        ("[*net.parameters(), *other.parameters()]", "other.parameters()"),
        ("net.parameters()", "net.last.parameters()"),
    ),
    ("itertools.chain(net.parameters(), other.parameters())", "other.parameters()"),
    ('[{"params": net.parameters()}, {"params": other.parameters(), "lr": 0.2}]', "net.parameters()"),
]
WHOLE = [("net.parameters()", "net.parameters()"), (BOTH, BOTH), ("net.parameters()", "net.module.parameters()")]


@pytest.mark.parametrize(("params", "clipped"), SOME + WHOLE)
def test_clipping_some_of_what_trains_is_said(params: str, clipped: str, tmp_path: Path) -> None:
    """Where reading could not tell which model trains, the draft clipped all of it."""
    of = script(tmp_path, net="make()", before="pass", params=params, clip=CLIP.format(clipped), top="other = make()")
    assert drafted(of)["clip"] == {"max_norm": 1.0}
    said = [line for line in listed(of) if "is what it clips" in line]
    assert bool(said) == ((params, clipped) in SOME)


@pytest.mark.parametrize("call", ["print(net)", "helper(net)", "max(1, 2)"])
def test_a_star_import_of_models_gives_only_models(call: str, tmp_path: Path) -> None:
    """Any name that no file gave was one of torchvision's models, `print` too."""
    of = script(tmp_path, top="from torchvision.models.vgg import *", net="make()", before=call)
    assert drafted(of)["model"] == "???"
    named = script(tmp_path, top="from torchvision.models import *", net="vgg16(num_classes=2)")
    assert drafted(named)["model"]["name"] == "torchvision:vgg16"


@pytest.mark.parametrize("given", ["**{**usual, **read()}", "**{**usual, **more}"])
def test_a_table_that_another_one_takes_in_is_said(given: str, tmp_path: Path) -> None:
    top = 'usual = {"patience": 11, "cooldown": 41}\nmore = read()\n'
    before = f"schedule = torch.optim.lr_scheduler.ReduceLROnPlateau(optimizer, {given})"
    assert any("41" in line for line in listed(script(tmp_path, top=top, before=before)))


LONG = "/home/some/where/of/a/project/with/a/long/name/results/model/checkpoint_of_the_best_epoch.pth"


@pytest.mark.parametrize(
    "load", ["net.load_state_dict(torch.load(path))", "state = torch.load(path)\nnet.load_state_dict(state)"]
)
def test_a_long_path_is_said_where_it_is_read(load: str, tmp_path: Path) -> None:
    """A string of more than 60 letters was not said."""
    assert any(LONG in line for line in listed(script(tmp_path, top=f'path = "{LONG}"', before=load)))


@pytest.mark.parametrize("read", ['int(os.environ.get("HIDDEN", 4))', 'int(os.getenv("HIDDEN", "4"))'])
def test_what_the_environment_says_is_in_a_line(read: str, tmp_path: Path) -> None:
    """It counted as a place for files."""
    found = listed(script(tmp_path, top=f"size = {read}", net="make()", before="net.last = nn.Linear(size, 2)"))
    assert f"size = {read}" in found
    harmless = listed(script(tmp_path, top='rank = int(os.environ.get("SLURM_PROCID", 0))', before="net.rank = rank"))
    assert not any("SLURM_PROCID" in line for line in harmless)


FUNCTION = """
import torch
from torch import nn
from torch.utils.data import DataLoader
def fit(net, data, batch_size=48, lr=0.07{0}):
    optimizer = torch.optim.SGD(net.parameters(), lr=lr)
    for epoch in range(4):
        for x, y in DataLoader(data, batch_size):
            optimizer.zero_grad()
            loss = nn.functional.cross_entropy(net(x), y)
            loss.backward()
            optimizer.step()
"""
SIGNATURE = "def fit(net, data, batch_size=48, lr=0.07): [nothing that was read calls this: these are its defaults]"


def test_the_defaults_of_a_function_that_nothing_calls_are_said(tmp_path: Path) -> None:
    """Its rate and its batch are asked for, and no line had what they are by default."""
    (tmp_path / "train.py").write_text(FUNCTION.format(""))
    assert SIGNATURE in listed(tmp_path / "train.py")
    (tmp_path / "train.py").write_text(FUNCTION.format("") + "fit(nn.Linear(4, 2), [], 8, 0.1)\n")
    assert not any(line.startswith("def fit") for line in listed(tmp_path / "train.py"))


def test_what_a_data_set_reads_of_the_options_is_said_where_another_line_reads_it_too(tmp_path: Path) -> None:
    """It counted as said by that line, which may be a condition that the defaults decide."""
    top = """
import argparse
parser = argparse.ArgumentParser()
parser.add_argument("--kind", default="vit")
parser.add_argument("--other", default=3)
args = parser.parse_args()
if args.kind == "cnn":
    args.other = 5
class Rows(Dataset):
    def __init__(self, args): self.args = args
    def path(self, args): return args.kind
    def __len__(self): return 3
    def __getitem__(self, i): return torch.load(self.path(self.args)), 0
"""
    text = script(tmp_path, top=top, data="rows = DataLoader(Rows(args), batch_size=4)").parent / "train.py"
    from msmigrate.migrate.analyze.script_analysis import analyze_script
    from msmigrate.reports.script_analysis import recipe_text

    assert "args.kind is 'vit'" in recipe_text(analyze_script(text))
