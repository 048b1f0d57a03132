"""Training in evaluation mode, and a model that runs in training mode outside of a step: both are in a line."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from drafts import drafted, listed, reasons

Write = Callable[..., Path]

HEAD = """
import os
import torch, torch.nn as nn, torchvision
from torch.utils.data import DataLoader
from torchvision import datasets, transforms

net = torchvision.models.resnet18(num_classes=7)
loader = DataLoader(datasets.ImageFolder("birds", transforms.ToTensor()), batch_size=16, shuffle=True, drop_last=True)
criterion = nn.CrossEntropyLoss()
opt = torch.optim.SGD(net.parameters(), lr=0.2)
zeros = torch.zeros(1, 3, 64, 64)
"""
BATCHES = """
for x, y in loader:
    opt.zero_grad()
    loss = criterion(net(x), y)
    loss.backward()
    opt.step()
"""
SHOW = "net.eval()\nwith torch.no_grad():\n    print(net(zeros).max())\n"


def inside(text: str, depth: int = 1) -> str:
    """The lines of a text, further to the right."""
    return "".join(f"{'    ' * depth}{line}\n" for line in text.strip().splitlines())


EPOCHS = "for epoch in range(4):\n"
EVERY = BATCHES.replace("for x, y in loader", "for i, (x, y) in enumerate(loader)")
RUN = f"def run():\n{inside(BATCHES)}"
TEST = f"def test():\n{inside(SHOW)}"
OWN = (
    "class Own:\n    def __init__(self):\n        self.net = net\n"
    "    def train(self):\n        for epoch in range(4):\n"
)
OWN_TEST = (
    "            self.test()\n    def test(self):\n        self.net.eval()\n        print(self.net(zeros).max())\n"
)
STAYS = {
    "at the end of each epoch": EPOCHS + inside(BATCHES) + inside(SHOW),
    "with train() once before": "net.train()\n" + EPOCHS + inside(BATCHES) + inside(SHOW),
    "before a function that trains": f"{RUN}net.eval()\n{EPOCHS}    run()\n",
    "in a function that evaluates": f"{RUN}{TEST}{EPOCHS}    run()\n    test()\n",
    "every so many steps": EPOCHS + inside(EVERY) + "        if i % 100 == 0:\n" + inside(SHOW, 3),
    "with train() in the first epoch": (
        f"{EPOCHS}    if epoch == 0:\n        net.train()\n{inside(BATCHES)}{inside(SHOW)}"
    ),
    "by a function that freezes": f"def freeze(m):\n    m.eval()\nfreeze(net)\n{EPOCHS}{inside(BATCHES)}",
    "by a flag that is not known": f"net.train(os.path.exists('x'))\n{EPOCHS}{inside(BATCHES)}",
    "by the class's method": f"nn.Module.eval(net)\n{EPOCHS}{inside(BATCHES)}",
    "by map": f"list(map(lambda m: m.eval(), net.modules()))\n{EPOCHS}{inside(BATCHES)}",
    "in a trainer of its own": OWN + inside(BATCHES.replace("net(x)", "self.net(x)"), 3) + OWN_TEST + "Own().train()\n",
}
BY_FLAG = """
def run(train):
    {0}
    for x, y in loader:
        with torch.set_grad_enabled(train):
            loss = criterion(net(x), y)
        if train:
            opt.zero_grad()
            loss.backward()
            opt.step()
for epoch in range(4):
    run(True)
    run(False)
"""
PHASES = """
for epoch in range(4):
    for phase in ["train", "val"]:
        if phase == "train":
            net.train()
        else:
            net.eval()
        for x, y in loader:
            opt.zero_grad()
            with torch.set_grad_enabled(phase == "train"):
                loss = criterion(net(x), y)
                if phase == "train":
                    loss.backward()
                    opt.step()
"""
BACK = {
    "train() begins each epoch": f"{EPOCHS}    net.train()\n{inside(BATCHES)}{inside(SHOW)}",
    "train() ends each epoch": f"{EPOCHS}{inside(BATCHES)}{inside(SHOW)}    net.train()\n",
    "train() in the function": f"def run():\n    net.train()\n{inside(BATCHES)}{TEST}{EPOCHS}    run()\n    test()\n",
    "train() behind it under its condition": EPOCHS
    + inside(EVERY)
    + f"        if i % 100 == 0:\n{inside(SHOW, 3)}            net.train()\n",
    "evaluated when all is trained": EPOCHS + inside(BATCHES) + SHOW,
    "train(True)": f"net.train(True)\n{EPOCHS}{inside(BATCHES)}",
    "train(flag) of each call": BY_FLAG.format("net.train(train)"),
    "one or the other by a flag": BY_FLAG.format("net.train() if train else net.eval()"),
    "either by a flag": BY_FLAG.format("if train:\n        net.train()\n    else:\n        net.eval()"),
    "phases": PHASES,
    "a trainer of its own": OWN
    + "            self.net.train()\n"
    + inside(BATCHES.replace("net(x)", "self.net(x)"), 3)
    + OWN_TEST
    + "Own().train()\n",
}


def of_modes(found: list[str]) -> list[str]:
    """The lines that switch a mode."""
    return [line for line in found if "eval" in line or "net.train(" in line]


@pytest.mark.parametrize("rest", STAYS.values(), ids=STAYS)
def test_training_in_evaluation_mode_is_listed(rest: str, write: Write) -> None:
    assert of_modes(listed(write(HEAD + rest)))


@pytest.mark.parametrize("rest", BACK.values(), ids=BACK)
def test_what_is_switched_back_before_a_step_is_not(rest: str, write: Write) -> None:
    assert not of_modes(listed(write(HEAD + rest)))


def test_the_line_says_that_backward_passes_follow(write: Write) -> None:
    found = reasons(write(HEAD + STAYS["at the end of each epoch"]))
    assert found["net.eval()"] == "backward passes follow in this mode"


RUNS = [
    "from torchsummary import summary\nsummary(net, (3, 64, 64))",
    "import torchsummary\ntorchsummary.summary(net, input_size=(3, 64, 64))",
    "traced = torch.jit.trace(net, zeros)",
    "torch.jit.save(torch.jit.trace(net, zeros), 'a.pt')",
    "y0 = torch.func.functional_call(net, dict(net.named_parameters()), zeros)",
    "y0 = torch.vmap(net)(zeros[None])",
    "from torch.utils.checkpoint import checkpoint\ny0 = checkpoint(net, zeros)",
    "y0 = net.forward(zeros)",
    "y0 = net.__call__(zeros)",
    "shapes = [one.shape for one in map(net, [zeros])]",
    "print(net.layer1(torch.zeros(1, 64, 64, 64)).shape)",
    "print(net.forward_features(zeros).shape)",
    "def look(n):\n    return n(zeros).shape\nprint(look(net))",
    "class Look:\n    def __init__(self, n):\n        self.n = n\n    def at(self, x):\n        return self.n(x)\n"
    "print(Look(net).at(zeros))",
]


@pytest.mark.parametrize("line", RUNS)
def test_a_model_that_runs_in_training_mode_is_listed(line: str, write: Write) -> None:
    assert drafted(write(f"{HEAD}{line}\n{EPOCHS}{inside(BATCHES)}")).get("not_in_this_recipe")


@pytest.mark.parametrize("line", [one for one in RUNS if "trace" not in one and "vmap" not in one])
def test_one_that_runs_in_evaluation_mode_is_not(line: str, write: Write) -> None:
    before = f"net.eval()\n{line}\nnet.train()\n"
    assert not drafted(write(f"{HEAD}{before}{EPOCHS}{inside(BATCHES)}")).get("not_in_this_recipe")


PLAYERS = """
import os
import torch, torch.nn as nn

G, D = nn.Linear(3, 3), nn.Linear(3, 1)
og = torch.optim.Adam(G.parameters(), lr=0.1)
od = torch.optim.Adam(D.parameters(), lr=0.1)
{0}
for epoch in range(4):
    {1}
    for step in range(7):
        od.zero_grad()
        D(torch.randn(3, 3)).mean().backward()
        od.step()
        og.zero_grad()
        D(G(torch.randn(3, 3))).mean().backward()
        og.step()
    {2}
"""


@pytest.mark.parametrize(
    ("before", "first", "last", "switches"),
    [
        ("", "D.train()", "G.eval()", True),
        ("G.train(os.path.exists('x'))", "pass", "pass", True),
        ("", "G.train()", "G.eval()", False),
        ("", "G.train(); D.train()", "G.eval(); D.eval()", False),
    ],
)
def test_each_of_two_players_has_a_mode_of_its_own(
    before: str, first: str, last: str, switches: bool, write: Write
) -> None:
    found = listed(write(PLAYERS.format(before, first, last)))
    assert any("backward passes follow" in line for line in found) == switches


KEPT = """
import torch
from torch import nn
from torch.utils.data import DataLoader
from elsewhere import Data, read
class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.one = nn.Linear(4, 2)
        self.norm = nn.BatchNorm1d(2)
    def forward(self, x, y=None):
        self.last = self.norm(self.one(x))
        return self.last
    def loss(self, y):
        return nn.functional.cross_entropy(self.last, y)
loader = DataLoader(Data("a"), batch_size=4, shuffle=True)
net = Net()
optimizer = torch.optim.SGD(net.parameters(), lr=0.3)
criterion = nn.CrossEntropyLoss()
rows = read("b")
for epoch in range(3):
    for x, y in loader:
        {step}
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
"""


@pytest.mark.parametrize(
    ("step", "line"),
    [
        ("z = torch.cat([x[:, 0], x[:, 1]])\nout = net(z)\nloss = net.loss(y)", "z = torch.cat("),
        ('z = x[:, 0].to("cuda")\nnet(z)\nloss = net.loss(y)', "z = x[:, 0]"),
        ("z = rows[x]\nnet(z)\nloss = net.loss(y)", "z = rows[x]"),
        ("z = rows[x]\nnet(z, y)\nloss = net.loss(y)", "z = rows[x]"),
        ("z = rows[x] * 2\nnet(z)\nloss = criterion(net(x), y)", "z = rows[x] * 2"),
        ("z = rows[x] * 2\nprint(net(z))\nloss = criterion(net(x), y)", "z = rows[x] * 2"),
        ("with torch.no_grad():\n    z = rows[x] * 2\n    net(z)\nloss = criterion(net(x), y)", "z = rows[x] * 2"),
        ("w = rows * 3\nwith torch.no_grad():\n    net(w[x])\nloss = criterion(net(x), y)", "w = rows * 3"),
    ],
)
def test_what_a_model_gets_whose_result_nothing_reads_is_in_lines(step: str, line: str, tmp_path: Path) -> None:
    """A pass in training mode moves statistics, and the model may keep what it computed for its own loss."""
    script = tmp_path / "train.py"
    script.write_text(KEPT.replace("{step}", step.replace("\n", "\n        ")))
    assert any(one.startswith(line) for one in listed(script))


def test_what_a_model_gets_in_evaluation_for_a_print_is_no_line(tmp_path: Path) -> None:
    script = tmp_path / "train.py"
    step = "net.eval()\nwith torch.no_grad():\n    print(net(rows[x]))\nnet.train()\nloss = criterion(net(x), y)"
    script.write_text(KEPT.replace("{step}", step.replace("\n", "\n        ")))
    assert not any("rows[x]" in one or "rows =" in one for one in listed(script))


BOTH = """
def run({takes}):
    {mode}
    for x, y in batches:
        loss = criterion(net(x), y)
        if {test}:
            opt.zero_grad()
            loss.backward()
            opt.step()
    return loss.item()

for epoch in range(4):
    {trains}
    print({validates})
"""
VALID = 'valid = DataLoader(datasets.ImageFolder("others", transforms.ToTensor()), batch_size=16)\n'
OF_BOTH = {"takes": "batches, train", "mode": "pass", "test": "train"}
OF_BOTH |= {"trains": "run(loader, True)", "validates": "run(valid, False)"}
BY_PHASE = {"takes": "batches, phase", "trains": 'run(loader, "train")', "validates": 'run(valid, "val")'}
OTHERWISE = "def run({takes}):\n    for x, y in batches:\n        loss = criterion(net(x), y)\n"
BY_STEP = """
def step(x, y, train):
    loss = criterion(net(x), y)
    if train:
        opt.zero_grad()
        loss.backward()
        opt.step()
    return loss.item()

for epoch in range(4):
    for x, y in loader:
        step(x, y, True)
    for x, y in valid:
        print(step(x, y, False))
"""
IN_A_LOOP = """
for epoch in range(4):
    for {each}:
        {mode}
        for x, y in {batches}:
            loss = criterion(net(x), y)
            if {test}:
                opt.zero_grad()
                loss.backward()
                opt.step()
"""
PHASES_ = {"each": 'phase in ["train", "val"]', "mode": "pass", "batches": "loader if phase == 'train' else valid"}
PHASES_ |= {"test": "phase == 'train'"}
OWN_RUN = (
    BOTH.partition("for epoch")[0]
    .replace("\n", "\n    ")
    .replace("run(", "run(self, ")
    .replace("net(x)", "self.net(x)")
)
OWN_CLASS = "class Own:\n    def __init__(self):\n        self.net = net\n" + OWN_RUN + "\n    def fit(self):\n"
OWN_CLASS += "        for epoch in range(4):\n            self.{trains}\n            self.{validates}\nOwn().fit()\n"


def of_parts(text: str, plain: dict[str, str], parts: dict[str, str]) -> str:
    """A text with these parts."""
    for name, part in {**plain, **parts}.items():
        text = text.replace("{" + name + "}", part)
    return text


TRAINS_AND_VALIDATES = [
    (BOTH, {}),
    (BOTH, {"takes": "batches, train=True", "trains": "run(loader)", "validates": "run(valid, train=False)"}),
    (BOTH, {"takes": "batches, train=False", "trains": "run(loader, train=True)", "validates": "run(valid)"}),
    (
        BOTH,
        {"takes": "batches, test=False", "test": "not test", "trains": "run(loader)", "validates": "run(valid, True)"},
    ),
    (BOTH, {**BY_PHASE, "test": 'phase == "train"'}),
    (BOTH, {**BY_PHASE, "test": 'phase != "val"'}),
    (BOTH, {**BY_PHASE, "test": 'phase in ("train", "fit")'}),
    (
        BOTH,
        {
            "takes": "batches, by=None",
            "test": "by is not None",
            "trains": "run(loader, opt)",
            "validates": "run(valid)",
        },
    ),
    (BOTH, {"takes": "batches, by=None", "test": "by", "trains": "run(loader, by=opt)", "validates": "run(valid)"}),
    (BOTH, {"mode": "net.train()"}),
    (BOTH, {"mode": "if train:\n        net.train()"}),
    ("net.train()\n" + BOTH, {}),
    (BOTH.replace("    print({validates})", "    with torch.no_grad():\n        print({validates})"), {}),
    (
        BOTH.replace("for epoch", "def one(batches, train):\n    return run(batches, train)\n\nfor epoch"),
        {"trains": "one(loader, True)", "validates": "one(valid, False)"},
    ),
    (
        BOTH.replace(
            "        if {test}:\n", "        if not {test}:\n            continue\n        if x is not None:\n"
        ),
        {},
    ),
    (BOTH.replace("if {test}:", "if not {test}:\n            print(loss)\n        else:"), {}),
    (
        BOTH,
        {
            "takes": "batches",
            "test": "torch.is_grad_enabled()",
            "trains": "run(loader)\n    torch.no_grad().__enter__()",
            "validates": "0)\n    with torch.no_grad():\n        print(run(valid)",
        },
    ),
    (OWN_CLASS, {}),
    (BY_STEP, {}),
    (IN_A_LOOP, PHASES_),
    (IN_A_LOOP, {**PHASES_, "mode": "if phase == 'train':\n            net.train()"}),
    (
        IN_A_LOOP,
        {
            **PHASES_,
            "each": "train, batches in ((True, loader), (False, valid))",
            "batches": "batches",
            "test": "train",
        },
    ),
]


@pytest.mark.parametrize(("text", "parts"), TRAINS_AND_VALIDATES)
def test_a_validation_in_training_mode_is_listed_where_its_function_trains_too(
    text: str, parts: dict[str, str], write: Write
) -> None:
    """The line that runs the model is a step's, and drafted; that it runs without a backward pass was in no line."""
    found = listed(write(HEAD + VALID + of_parts(text, OF_BOTH, parts)))
    assert any("the model runs here in training mode" in line for line in found)


@pytest.mark.parametrize(
    ("text", "parts"),
    [
        (BOTH, {"mode": "if train:\n        net.train()\n    else:\n        net.eval()"}),
        (BOTH, {"mode": "net.train(train)"}),
        (BOTH, {"mode": "net.train() if train else net.eval()"}),
        (BOTH, {**BY_PHASE, "test": 'phase == "train"', "mode": 'net.train(phase == "train")'}),
        (BOTH, {"trains": "net.train()\n    run(loader, True)\n    net.eval()"}),
        (BOTH, {"validates": "3"}),
        (BOTH.replace("    print(", "net.eval()\nprint("), {}),
        (
            IN_A_LOOP,
            {**PHASES_, "mode": "if phase == 'train':\n            net.train()\n        else:\n            net.eval()"},
        ),
    ],
)
def test_one_in_evaluation_mode_is_not(text: str, parts: dict[str, str], write: Write) -> None:
    found = listed(write(HEAD + VALID + of_parts(text, OF_BOTH, parts)))
    assert not any("the model runs here in training mode" in line for line in found)
