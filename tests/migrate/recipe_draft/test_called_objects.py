"""Steps that stand behind a callee which is no plain function: what a script computes for them is in the account."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from drafts import drafted, has, listed
from msmigrate.migrate.analyze.script_analysis import analyze_script
from msmigrate.reports.script_analysis import notes, recipe_text

Write = Callable[..., Path]

STEPPING = """
import functools, os
import torch, torch.nn as nn, torchvision
from torch.utils.data import DataLoader
from torchvision import datasets, transforms

net = torchvision.models.resnet18(num_classes=7)
loader = DataLoader(datasets.ImageFolder("birds", transforms.ToTensor()), batch_size=16, drop_last=True)
criterion = nn.CrossEntropyLoss()
opt = torch.optim.SGD(net.parameters(), lr=0.2)

def step(x, y):
    opt.zero_grad()
    loss = criterion(net(x), y)
    loss.backward()
    opt.step()
    return loss.item()

class Stepper:
    def __call__(self, x, y):
        return step(x, y)

class Meta(nn.Module):
    def __init__(self):
        super().__init__()
        self.net, self.opt = net, opt

    def forward(self, x, y):
        loss = criterion(self.net(x), y)
        return self.update(loss)

    def update(self, loss):
        self.opt.zero_grad()
        loss.backward()
        self.opt.step()
        return loss.item()

{before}
for epoch in range(4):
    for x, y in loader:
        x = x.flip(-1)
        target = y % 5
        {call}
"""
CALLS = {
    "a model that steps": ("s = Meta()", "s(x, target)"),
    "one by keywords": ("s = Meta()", "s(x=x, y=target)"),
    "one in a list": ("s = [Meta()]", "s[0](x, target)"),
    "one in a table": ("s = {'a': Meta()}", "s['a'](x, target)"),
    "one in a ModuleList": ("s = nn.ModuleList([Meta()])", "s[0](x, target)"),
    "one on a device or not": ("s = Meta()\ns = s.cuda() if torch.cuda.is_available() else s", "s(x, target)"),
    "one in a wrapper": ("s = nn.DataParallel(Meta())", "s(x, target)"),
    "one in a Sequential": ("s = nn.Sequential(Meta())", "s(x, target)"),
    "one of two objects": ("s = Meta() if os.path.exists('x') else Stepper()", "s(x, target)"),
    "one that is printed": ("s = Meta()", "print(s(x, target))"),
    "one in a condition": ("s = Meta()", "if s(x, target) > 3: print('high')"),
    "one that is kept": ("s, kept = Meta(), []", "kept.append(s(x, target))"),
    "one as an attribute": ("class Holder: pass\nh = Holder()\nh.step = Meta()", "h.step(x, target)"),
    "an object": ("s = Stepper()", "s(x, target)"),
    "a partial": ("s = functools.partial(step)", "s(x, target)"),
    "a partial of an object": ("s = functools.partial(Stepper())", "s(x, target)"),
    "a compiled function": ("s = torch.compile(step)", "s(x, target)"),
    "a lambda": ("s = lambda a, b: step(a, b)", "s(x, target)"),
    "a partial that a function gets": (
        "def run(f, a, b):\n    f(a, b)\ns = functools.partial(step)",
        "run(s, x, target)",
    ),
}


@pytest.mark.parametrize(("before", "call"), CALLS.values(), ids=CALLS)
def test_what_a_called_object_is_given_is_accounted_for(before: str, call: str, write: Write) -> None:
    found = listed(write(STEPPING.replace("{before}", before).replace("{call}", call)))
    assert has(found, "x = x.flip(-1)", "target = y % 5")


def test_what_a_model_without_steps_is_given_for_a_print_is_not(write: Write) -> None:
    measures = "net.eval()\n        with torch.no_grad():\n            print(net(x).max(), target)\n        net.train()"
    script = STEPPING.replace("{before}", "").replace("{call}", f"step(x, y)\n        {measures}")
    found = listed(write(script))
    assert has(found, "x = x.flip(-1)") and not has(found, "target = y % 5")


@pytest.mark.parametrize(
    ("loop", "epochs"),
    [
        ("xs, ys = zip(*list(loader))\n    {0}(torch.cat(xs), torch.cat(ys))", "???"),
        ("x, y = next(iter(loader))\n    {0}(x, y)", "???"),
        ("for x, y in loader:\n        {0}(x, y)", 4),
    ],
)
@pytest.mark.parametrize("callee", ["Meta()", "Stepper()"])
def test_a_round_with_one_step_is_no_epoch(loop: str, epochs: object, callee: str, write: Write) -> None:
    head = STEPPING.partition("{before}")[0]
    script = write(f"{head}s = {callee}\nfor epoch in range(4):\n    {loop.format('s')}\n")
    assert drafted(script)["train"]["epochs"] == epochs


def test_the_model_is_not_the_list_that_holds_its_parameters(write: Write) -> None:
    own = """
import torch, torch.nn as nn
class Learner(nn.Module):
    def __init__(self):
        super().__init__()
        self.kept = nn.ParameterList([nn.Parameter(torch.zeros(3))])
    def parameters(self):
        return self.kept
learner = Learner()
opt = torch.optim.Adam(learner.parameters(), lr=0.1)
"""
    text = recipe_text(analyze_script(write(own)))
    assert "Learner()" in text and "line 6: nn.ParameterList" not in text


PACKAGE = {
    "a class": ("from trainer import Trainer", "core.py", "class Trainer:\n    pass\n", "trainer/core.py defines it"),
    "a function": ("from trainer import fit", "loop.py", "def fit():\n    pass\n", "trainer/loop.py defines it"),
    "a value": ("from trainer import RATE", "values.py", "RATE = 0.1\n", "trainer/values.py defines it"),
    "nothing": ("from trainer import Trainer", "core.py", "class Other:\n    pass\n", ""),
}


@pytest.mark.parametrize(("line", "file", "text", "says"), PACKAGE.values(), ids=PACKAGE)
def test_a_note_says_where_a_package_has_what_it_does_not_hand_on(
    line: str, file: str, text: str, says: str, write: Write
) -> None:
    script = write(f"import torch\n{line}\n")
    folder = script.with_name("trainer")
    folder.mkdir()
    (folder / "__init__.py").write_text("")
    (folder / file).write_text(text)
    found = next(one for one in notes(analyze_script(script)) if "imported but not read" in one)
    assert (says or "no such name") in found and ("defines it" in found) == bool(says)
    assert "upper and lower case" not in found


UNREAD = """
import torch
import src.parts as parts
from elsewhere import TrainModel, fit_model, run_training, train_all, train_loader, train_test_split, launch

def main(cfg):
    CALL

torch.manual_seed(3)
main(load())
"""


@pytest.mark.parametrize(
    "call",
    [
        "train_all(cfg)",
        "fit_model()",
        "best = run_training(cfg)",
        "print(train_all(cfg))",
        "TrainModel(cfg)",
        "parts.train(cfg)",
        "launch(train_all, 3)",
        "from src.grpo import pretrain\n    pretrain(cfg)",
    ],
)
def test_a_call_whose_name_says_that_it_trains_is_listed(call: str, tmp_path: Path) -> None:
    (tmp_path / "train.py").write_text(UNREAD.replace("CALL", call))
    assert has(listed(tmp_path / "train.py"), call.rpartition("\n")[2].strip())


@pytest.mark.parametrize(
    "call", ["rows = train_loader(cfg)", "x, y = train_test_split(read())", "rows = parts.train_transforms(3)"]
)
def test_the_name_of_data_says_no_training(call: str, tmp_path: Path) -> None:
    (tmp_path / "train.py").write_text(UNREAD.replace("CALL", call))
    assert not has(listed(tmp_path / "train.py"), call)


BY_LIBRARY = """
import torch
from sentence_transformers import SentenceTransformer
from torch.utils.data import DataLoader

def tune(model, loader):
    opt = torch.optim.Adam(model.parameters(), lr=7001.0)
    for epoch in range(4):
        for x, y in loader:
            opt.zero_grad()
            model(x).backward()
            opt.step()

model = SentenceTransformer("small")
loader = DataLoader(read(), batch_size=32)
CALL
"""


def test_steps_that_nothing_calls_are_not_those_of_a_library_that_trains(tmp_path: Path) -> None:
    (tmp_path / "train.py").write_text(BY_LIBRARY.replace("CALL", "model.fit([(loader, None)], epochs=3)"))
    recipe = drafted(tmp_path / "train.py")
    assert recipe["optimizer"] == recipe["train"]["epochs"] == "???"
    assert has(listed(tmp_path / "train.py"), "model.fit(")
    (tmp_path / "train.py").write_text(BY_LIBRARY.replace("CALL", "elsewhere(model, loader)"))
    assert drafted(tmp_path / "train.py")["optimizer"]["args"]["lr"] == 7001.0


@pytest.mark.parametrize(
    ("made", "call"),
    [
        ("def cut(x, n):\n    if n == 0:\n        return x, 3\n    return cut(x, n - 1)", "x, k = cut(x, 4)"),
        (
            "def cut(x):\n    return two(x)\ndef two(x):\n    if x:\n        return cut(x)\n    return x, 4",
            "x, k = cut(x)",
        ),
        ("def cut(x, y, n):\n    if n:\n        return cut(y, x, n - 1)\n    return x, y", "x, y = cut(x, y, 4)"),
        ("def cut(x, n):\n    if n:\n        return cut(x, n)\n    return (x, n), 3", "(x, k), m = cut(x, 4)"),
        ("def cut(x, n):\n    if n:\n        return cut(x, n)\n    return x, n, 3", "x, *k = cut(x, 4)"),
        (
            "class Cut:\n    def run(self, x, n):\n        if n:\n            return self.run(x, n)\n        return x",
            "x, k = Cut().run(x, 4)",
        ),
        ("def cut(x):\n    return cut(x)", "x, k = cut(x)"),
    ],
)
def test_a_function_that_returns_a_call_of_itself_is_drafted(made: str, call: str, tmp_path: Path) -> None:
    """Where its result is unpacked, the draft ended in an error of Python's."""
    script = tmp_path / "train.py"
    script.write_text(
        "import torch\nfrom torch import nn\nfrom torch.utils.data import DataLoader\nfrom elsewhere import data\n"
        f"{made}\nnet = nn.Linear(4, 2)\nopt = torch.optim.SGD(net.parameters(), lr=0.3)\n"
        "criterion = nn.CrossEntropyLoss()\nfor epoch in range(3):\n    for x, y in DataLoader(data(), 4):\n"
        f"        {call}\n        loss = criterion(net(x), y)\n        opt.zero_grad()\n"
        "        loss.backward()\n        opt.step()\n"
    )
    assert call in listed(script)
