"""Settings that a script keeps in a class of its own: one that derives from dict, one whose attributes another function
sets, and one that declares an option for each of its attributes."""

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

class Net(nn.Module):
    def __init__(self, cfg):
        super().__init__()
        self.layer = nn.Linear(4, {get})
    def forward(self, x):
        return self.layer(x)

class Rows(Dataset):
    def __init__(self, cfg):
        self.rows = read({get})
    def __getitem__(self, index):
        return self.rows[index]
    def __len__(self):
        return 4

parser = argparse.ArgumentParser()
parser.add_argument("--size", type=int, default=77)
args = parser.parse_args()
{cfg}
net = {net}
loader = DataLoader({data}, batch_size=4, shuffle=True)
optimizer = torch.optim.SGD(net.parameters(), lr=cfg.lr)
criterion = nn.CrossEntropyLoss()
for epoch in range(3):
    for x, y in loader:
        optimizer.zero_grad()
        loss = criterion(net(x), y)
        loss.backward()
        optimizer.step()
"""
PLAIN = {"made": "", "get": "cfg.hidden", "net": "Net(cfg)", "data": 'Data("a")'}
GET = "class Config(dict):\n    __getattr__ = dict.get\n"
BOTH = "class Config(dict):\n    def __getattr__(self, name):\n        return self[name]\n"
BOTH += "    def __setattr__(self, name, value):\n        self[name] = value\n"
OF_DICT = "class Config(dict):\n    __getattr__ = dict.__getitem__\n    __setattr__ = dict.__setitem__\n"
BARE = "class Config:\n    pass\n"
ORDERED = "from collections import OrderedDict\nclass Config(OrderedDict):\n    __getattr__ = OrderedDict.get\n"
USERS = "from collections import UserDict\nclass Config(UserDict):\n    def __getattr__(self, name):\n"
USERS += "        return self.data[name]\n"
TABLE = '{"hidden": 77, "lr": 0.3, "other": 88}'


def script(folder: Path, **parts: str) -> Path:
    """A script of these parts."""
    text = SCRIPT
    for name, part in {**PLAIN, **parts}.items():
        text = text.replace("{" + name + "}", part)
    (folder / "train.py").write_text(text)
    return folder / "train.py"


def built(size: str, attributes: bool) -> str:
    """A function that makes settings."""
    sets = "made.hidden = {0}\n    made.lr = 0.3" if attributes else "made['hidden'] = {0}\n    made['lr'] = 0.3"
    return f"def settings(args):\n    made = Config()\n    {sets.format(size)}\n    return made\n"


NOT_CALLED = "def run(args):\n    cfg = settings(args)\n    cfg.hidden = 1\n    return cfg\n"
UPDATED = "def settings(args):\n    made = Config()\n    made.update(hidden=77, lr=0.3)\n    return made\n"


@pytest.mark.parametrize("of", [{"net": "Net(cfg)"}, {"net": "nn.Linear(4, 2)", "data": "Rows(cfg)"}])
@pytest.mark.parametrize(
    ("made", "cfg"),
    [
        (GET, "cfg = Config(hidden=77, lr=0.3, other=88)"),
        (GET, f"cfg = Config({TABLE})"),
        (GET, f"cfg = Config(**{TABLE})"),
        (GET, f"cfg = Config()\ncfg.update({TABLE})"),
        (GET, "cfg = Config()\ncfg.update(hidden=77, lr=0.3)"),
        (GET, "cfg = Config()\ncfg['hidden'] = 77\ncfg['lr'] = 0.3"),
        (GET + "class Mine(Config):\n    pass\n", f"cfg = Mine({TABLE})"),
        (GET + UPDATED, "cfg = settings(args)"),
        (ORDERED, f"cfg = Config({TABLE})"),
        (USERS, f"cfg = Config({TABLE})"),
        (BOTH, f"cfg = Config({TABLE})"),
        (BOTH + built("args.size", True), "cfg = settings(args)"),
        (BOTH + built("args.size", False), "cfg = settings(args)"),
        (OF_DICT + built("args.size", True), "cfg = settings(args)"),
        (BARE + built("args.size", True), "cfg = settings(args)"),
        (BARE + built("args.size", True) + NOT_CALLED, "cfg = settings(args)"),
        ("", f"cfg = argparse.Namespace(**{TABLE})"),
        ("from types import SimpleNamespace", "cfg = SimpleNamespace(hidden=77, lr=0.3)"),
    ],
)
def test_what_is_read_of_settings_is_said_where_a_model_or_data_get_them(
    made: str, cfg: str, of: dict[str, str], tmp_path: Path
) -> None:
    """A function that sets them by attributes has no lines, and its call said only what it reads of others."""
    found = script(tmp_path, made=made, cfg=cfg, **of)
    text = recipe_text(analyze_script(found))
    assert "cfg.hidden is 77" in text or "made.hidden = args.size [args.size is 77]" in text
    assert drafted(found)["optimizer"]["args"]["lr"] == 0.3


UNKNOWN = [
    (GET, f"cfg = Config({TABLE})\ncfg.update(read())"),
    (GET, f"cfg = Config({TABLE})\ncfg.update(**read())"),
    (BOTH.replace("self[name]\n    def", "self[name] * 2\n    def"), f"cfg = Config({TABLE})"),
    ("class Config(dict):\n    def __getattr__(self, name):\n        return 5\n", f"cfg = Config({TABLE})"),
    ("", "cfg = argparse.Namespace(**read())"),
]


@pytest.mark.parametrize(("made", "cfg"), UNKNOWN)
def test_settings_that_may_be_others_are_asked_for(made: str, cfg: str, tmp_path: Path) -> None:
    assert drafted(script(tmp_path, made=made, cfg=cfg))["optimizer"]["args"]["lr"] == "???"


INIT = "def __init__(self):\n        self.hidden = 77\n        self.lr = 0.3\n        self.kind = 'a'\n"
DECLARES = "for key, value in vars(self).items():\n"
DECLARES += "            parser.add_argument('--' + key, type=type(value), default=value)"
OWN = "class Config:\n    {0}\n    def parse(self):\n        parser = argparse.ArgumentParser()\n"
OWN += "        {1}\n        {2}\n"
RETURNS = "return parser.parse_args()"
BACK = "self.__dict__.update(vars(parser.parse_args()))\n        return self"
EACH = (
    "for key, value in vars(parser.parse_args()).items():\n            setattr(self, key, value)\n        return self"
)
NAMES = "for key in dir(self):\n            if not key.startswith('_') and key != 'parse':\n"
NAMES += "                parser.add_argument('--' + key, default=getattr(self, key))"
MANY = INIT + "".join(f"        self.more{number} = {number}\n" for number in range(40))
FIELDS = "import dataclasses\n@dataclasses.dataclass\nclass Settings:\n    hidden: int = 77\n    lr: float = 0.3\n"
OUTSIDE = f"class Settings:\n    {INIT}\ndef parse(of):\n    parser = argparse.ArgumentParser()\n"
OUTSIDE += "    for key, value in vars(of).items():\n"
OUTSIDE += "        parser.add_argument(f'--{key}', default=value)\n    return parser.parse_args()\n"
LOOP = "more = argparse.ArgumentParser()\nfor {0}:\n    more.add_argument('--' + {1}, default={2})\n"
LOOP += "cfg = more.parse_args()"
ATTRIBUTES = [
    (OWN.format(INIT, DECLARES, RETURNS), "cfg = Config().parse()"),
    (OWN.format(INIT, DECLARES.replace("vars(self)", "self.__dict__"), RETURNS), "cfg = Config().parse()"),
    (OWN.format(INIT, DECLARES.replace("'--' + key", "f'--{key}'"), RETURNS), "cfg = Config().parse()"),
    (OWN.format(INIT, DECLARES, BACK), "cfg = Config().parse()"),
    (OWN.format(INIT, DECLARES, EACH), "cfg = Config().parse()"),
    (OWN.format(MANY, DECLARES, RETURNS), "cfg = Config().parse()"),
    (OWN.format("hidden = 77\n    lr = 0.3", NAMES, RETURNS), "cfg = Config().parse()"),
    (OUTSIDE, "cfg = parse(Settings())"),
    (FIELDS, LOOP.format("one in dataclasses.fields(Settings)", "one.name", "one.default")),
    (f"DEFAULTS = {TABLE}", LOOP.format("key, value in DEFAULTS.items()", "key", "value")),
    (f"DEFAULTS = {TABLE}", LOOP.format("key in DEFAULTS", "key", "DEFAULTS[key]")),
    (f"DEFAULTS = {TABLE}", LOOP.format("key in sorted(DEFAULTS.keys())", "key", "DEFAULTS[key]")),
    (f"class Settings:\n    {INIT}", "parser.set_defaults(**vars(Settings()))\ncfg = parser.parse_args()"),
]


@pytest.mark.parametrize(("made", "cfg"), ATTRIBUTES)
def test_options_that_a_loop_declares_have_their_defaults(made: str, cfg: str, tmp_path: Path) -> None:
    """They had no values, and what a model read of them was in no line."""
    found = script(tmp_path, made=made, cfg=cfg)
    assert "hidden is 77" in recipe_text(analyze_script(found))
    assert drafted(found)["optimizer"]["args"]["lr"] == 0.3


@pytest.mark.parametrize("size", ["len(read())", "read()['size']"])
def test_one_whose_default_reading_cannot_tell_is_a_line(size: str, tmp_path: Path) -> None:
    made = OWN.format(INIT.replace("77", size), DECLARES, RETURNS)
    assert any(
        "[reading cannot tell this default]" in line
        for line in listed(script(tmp_path, made=made, cfg="cfg = Config().parse()"))
    )


def test_a_loop_over_what_was_not_read_leaves_options_unknown(tmp_path: Path) -> None:
    cfg = LOOP.format("key, value in read().items()", "key", "value")
    assert drafted(script(tmp_path, cfg=cfg))["optimizer"]["args"]["lr"] == "???"
