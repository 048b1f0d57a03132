"""What a script says is not asked for, and a model that may be another one is not drafted as if it were sure."""

from __future__ import annotations

import importlib.util
import runpy
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from drafts import drafted, has, listed
from msmigrate.migrate.analyze.script_analysis import analyze_script
from msmigrate.migrate.library_names import TABLES
from msmigrate.reports.script_analysis import recipe_text

Write = Callable[..., Path]

HEAD = """
import argparse, ast, math, os
import timm, torch, torch.nn as nn, torchvision
from torch.utils.data import DataLoader
from torchvision import datasets, transforms
"""
REST = """
loader = DataLoader(datasets.ImageFolder("birds", transforms.ToTensor()), batch_size=16, shuffle=True, drop_last=True)
criterion = nn.CrossEntropyLoss()
opt = torch.optim.SGD(net.parameters(), lr={0})
for epoch in range(4):
    for x, y in loader:
        opt.zero_grad()
        loss = criterion(net(x), y)
        loss.backward()
        opt.step()
"""
NET = "net = torchvision.models.resnet18(num_classes=7)\n"
RATES = {
    "[0.2 for _ in range(3)][0]": 0.2,
    "[0.1 * i for i in range(1, 4)][1]": 0.2,
    "[0.1 if i else 0.2 for i in range(3)][0]": 0.2,
    "tuple(0.2 for _ in range(2))[1]": 0.2,
    "max(0.05 * i for i in [1, 4])": 0.2,
    "eval('0.2')": 0.2,
    "ast.literal_eval('[0.2, 0.1]')[0]": 0.2,
    "{'a': ast.literal_eval('0.2')}['a']": 0.2,
    "[float(v) for v in open('a')][0]": "???",
    "[r for r in [0.2, 0.1] if r > 0.15][0]": 0.2,
    "[r for r in [0.3, 0.2] if r < 0.25][0]": 0.2,
    "[r for r in [0.2, 0.1] if r > float(open('a').read())][0]": "???",
    "[float(v) for v in os.environ['a']][0]": "???",
    "eval(open('a').read())": "???",
    "eval('open')": "???",
    "[a * b for a in [0.2] for b in open('a')][0]": "???",
}


@pytest.mark.parametrize(("rate", "value"), RATES.items(), ids=RATES)
def test_a_value_that_reading_can_compute_is_drafted(rate: str, value: object, write: Write) -> None:
    found = drafted(write(HEAD + NET + REST.replace("{0}", rate)))
    given = found["optimizer"]["args"]["lr"]
    assert given == (pytest.approx(value) if isinstance(value, float) else value)


def test_arguments_of_a_model_are_drafted_whatever_they_are(write: Write) -> None:
    line = "net = timm.create_model('resnet18', block=None, global_pool='avg', sizes=eval('[]'), more=os.environ['x'])"
    found = drafted(write(f"{HEAD}{line}\n{REST.replace('{0}', '0.2')}"))
    assert found["model"]["args"] == {"block": None, "global_pool": "avg", "sizes": [], "more": "???"}


def test_what_names_a_file_of_weights_is_asked_for(write: Write) -> None:
    line = "net = timm.create_model('resnet18', checkpoint_path='best.pth')"
    found = drafted(write(f"{HEAD}{line}\n{REST.replace('{0}', '0.2')}"))
    assert found["model"]["args"] == {"checkpoint_path": "???"}


@pytest.mark.parametrize(
    "way",
    [
        "from timm.data.constants import IMAGENET_DEFAULT_MEAN as M, IMAGENET_DEFAULT_STD as S",
        "from timm.data import IMAGENET_DEFAULT_MEAN, IMAGENET_DEFAULT_STD\n"
        "M, S = IMAGENET_DEFAULT_MEAN, IMAGENET_DEFAULT_STD",
        "M, S = timm.data.IMAGENET_DEFAULT_MEAN, timm.data.constants.IMAGENET_DEFAULT_STD",
    ],
)
def test_constants_of_timm_are_known(way: str, write: Write) -> None:
    own = "transforms.Compose([transforms.ToTensor(), transforms.Normalize(M, S)])"
    script = write(f"{HEAD}{way}\n{NET}{REST.replace('{0}', '0.2').replace('transforms.ToTensor()', own)}")
    wanted = {"mean": [0.485, 0.456, 0.406], "std": [0.229, 0.224, 0.225]}
    assert drafted(script)["data"]["transforms"][1] == {"name": "Normalize", "args": wanted}


@pytest.mark.parametrize(("package", "file"), [("timm", "data/constants.py"), ("transformers", "utils/constants.py")])
def test_the_constants_are_those_of_the_libraries(package: str, file: str) -> None:
    spec = importlib.util.find_spec(package)
    if spec is None:
        pytest.skip(f"{package} is not installed")
    names: dict[str, Any] = runpy.run_path(str(Path(spec.origin or "").parent / file))
    mine = {name: value for name, value in TABLES["constants"].items() if name.startswith(package)}
    assert mine
    for name, value in mine.items():
        found = names[name.rpartition(".")[2]]
        assert (list(found) if isinstance(value, list) else found) == value


REGISTERED = {
    "by a decorator": (
        "from timm.models import register_model\n@register_model\ndef resnet18(**k):\n    return nn.Linear(3, 3)\n"
    ),
    "a class": "from timm.models import register_model\n@register_model\nclass resnet18(nn.Linear):\n    pass\n",
    "by a call": "def resnet18(**k):\n    return nn.Linear(3, 3)\ntimm.models.register_model(resnet18)\n",
    "under its name": (
        "from timm.models import register_model\n@register_model('resnet18')\n"
        "def own(**k):\n    return nn.Linear(3, 3)\n"
    ),
    "in a table": (
        "def own(**k):\n    return nn.Linear(3, 3)\ntimm.models._registry._model_entrypoints['resnet18'] = own\n"
    ),
}


@pytest.mark.parametrize("before", REGISTERED.values(), ids=REGISTERED)
def test_a_registered_name_is_the_scripts_own_model(before: str, write: Write) -> None:
    made = "net = timm.create_model('resnet18', num_classes=7)\n"
    script = write(f"{HEAD}{before}{made}{REST.replace('{0}', '0.2')}")
    assert drafted(script)["model"] == "???"
    assert "a model of the script's own is registered as resnet18" in recipe_text(analyze_script(script))


def test_another_registered_name_is_not(write: Write) -> None:
    before = REGISTERED["by a decorator"].replace("resnet18", "own18")
    made = "net = timm.create_model('resnet18', num_classes=7)\n"
    assert drafted(write(f"{HEAD}{before}{made}{REST.replace('{0}', '0.2')}"))["model"]["name"] == "timm:resnet18"


CLASSES = "class A(nn.Linear):\n    pass\nclass B(A):\n    pass\n"
ONE_OF = {
    "by returns": (
        "def build(a):\n    if a == 'x':\n        return A(3, 3)\n    return B(3, 3)\nnet = build(os.environ['a'])\n"
    ),
    "by a condition": "if os.environ['a'] == 'x':\n    net = A(3, 3)\nelse:\n    net = B(3, 3)\n",
    "by functions": (
        "def a():\n    return A(3, 3)\ndef b():\n    return B(3, 3)\nnet = a() if os.environ['a'] == 'x' else b()\n"
    ),
}


@pytest.mark.parametrize("made", ONE_OF.values(), ids=ONE_OF)
def test_a_model_under_a_condition_says_it(made: str, write: Write) -> None:
    found = listed(write(f"{HEAD}{CLASSES}{made}{REST.replace('{0}', '0.2')}"))
    assert any("A(3, 3)" in line and "only where" in line for line in found) or has(found, "net = a() if")


def test_a_table_that_is_too_long_for_a_line_is_listed_itself(tmp_path: Path) -> None:
    table = "{'sizes': [30, 60, 111, 162, 213, 264, 7001], 'steps': [8, 16, 32, 64, 100, 300], 'clip': True}"
    text = """
import torch, torch.nn as nn
from settings import *
net, opt = nn.Linear(4, 7), None
opt = torch.optim.SGD(net.parameters(), lr=0.2)
for epoch in range(4):
    for x, y in read(SMALL):
        opt.zero_grad()
        nn.functional.cross_entropy(net(x), y).backward()
        opt.step()
"""
    (tmp_path / "settings.py").write_text(f"SMALL = {table}\n")
    (tmp_path / "train.py").write_text(text)
    assert any(line.startswith("SMALL = ") and "7001" in line for line in listed(tmp_path / "train.py"))
