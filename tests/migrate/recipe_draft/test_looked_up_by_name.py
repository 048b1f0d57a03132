"""Methods and classes that a script looks up by a name which it computes: what they do to training is in a line."""

from __future__ import annotations

from pathlib import Path

import pytest
from drafts import listed

SCRIPT = """
import operator
import torch
from torch import nn
from torch.utils.data import DataLoader
from torchvision import datasets, transforms
{classes}
class Loop:
    def __init__(self, net, rows, parts):
        self.net, self.rows, self.parts = net, rows, parts
        self.optimizer = torch.optim.SGD(net.parameters(), lr=0.3)
        self.criterion = nn.CrossEntropyLoss()
    def tell(self, when):
        {tell}
    def run(self):
        for epoch in range(40):
            for x, y in self.rows:
                self.optimizer.zero_grad()
                loss = self.criterion(self.net(x), y)
                loss.backward()
                self.optimizer.step()
            {end}
rows = DataLoader(datasets.ImageFolder("a", transforms.ToTensor()), batch_size=4)
loop = Loop(nn.Linear(4, 2), rows, [{parts}])
{later}
loop.run()
"""
CHANGE = 'loop.optimizer.param_groups[0]["lr"] *= 0.9'
PART = f"class Slower:\n    def at_end(self, loop):\n        {CHANGE}\n"
OF_BASE = f"class Part:\n    def at_end(self, loop): pass\n{PART.replace('Slower', 'Slower(Part)')}"
EACH = "for part in self.parts: "


def lines(folder: Path, **parts: str) -> list[str]:
    text = SCRIPT
    given = {"classes": PART, "tell": "pass", "end": "pass", "parts": "Slower()", "later": "pass"} | parts
    for name, indent in {"classes": 0, "tell": 8, "end": 12, "parts": 0, "later": 0}.items():
        text = text.replace(f"{{{name}}}", given[name].replace("\n", "\n" + " " * indent))
    (folder / "train.py").write_text(text)
    return listed(folder / "train.py")


TELLS = {
    "a parameter": (EACH + "getattr(part, when)(self)", 'self.tell("at_end")'),
    "an f-string": (EACH + 'getattr(part, f"at_{when}")(self)', 'self.tell("end")'),
    "a sum": (EACH + 'getattr(part, "at_" + when)(self)', 'self.tell("end")'),
    "a name first": (EACH + "\n    does = getattr(part, when, None)\n    does and does(self)", 'self.tell("at_end")'),
    "a name in a loop": ("pass", 'for when in ("at_end",): [getattr(one, when)(self) for one in self.parts]'),
    "a name that is not known": (EACH + "getattr(part, when)(self)", "self.tell(input())"),
    "getattribute": (EACH + "part.__getattribute__(when)(self)", 'self.tell("at_end")'),
    "methodcaller": (EACH + "operator.methodcaller(when, self)(part)", 'self.tell("at_end")'),
    "methodcaller with the name": ("pass", 'for part in self.parts: operator.methodcaller("at_end", self)(part)'),
}


@pytest.mark.parametrize("classes", [PART, OF_BASE], ids=["alone", "of a base"])
@pytest.mark.parametrize("way", TELLS)
def test_a_method_that_is_looked_up_by_a_computed_name_is_in_a_line(way: str, classes: str, tmp_path: Path) -> None:
    """Its name stands nowhere as an attribute, so it counted as called by nothing."""
    tell, end = TELLS[way]
    assert any(line.startswith(CHANGE) for line in lines(tmp_path, classes=classes, tell=tell, end=end))


@pytest.mark.parametrize("later", ["loop.parts.append(Slower())", "loop.parts = [Slower()]"])
def test_so_is_that_of_an_object_which_is_added_later(later: str, tmp_path: Path) -> None:
    tell, end = TELLS["a parameter"]
    assert any(line.startswith(CHANGE) for line in lines(tmp_path, parts="", later=later, tell=tell, end=end))


MADE = f"    def __call__(self, loop):\n        {CHANGE}\n"
LISTED_CLASSES = {
    "subclasses": (f"class Part: pass\nclass Slower(Part):\n{MADE}", "[of() for of in Part.__subclasses__()]"),
    "init_subclass": (
        f"class Part:\n    known = {{}}\n    def __init_subclass__(cls): Part.known[cls.__name__] = cls\n"
        f"class Slower(Part):\n{MADE}",
        '[Part.known["Slower"]()]',
    ),
}


@pytest.mark.parametrize("way", LISTED_CLASSES)
def test_a_class_that_only_its_base_names_counts_as_used(way: str, tmp_path: Path) -> None:
    classes, parts = LISTED_CLASSES[way]
    found = lines(tmp_path, classes=classes, parts="", later=f"loop.parts = {parts}", end=EACH + "part(self)")
    assert any(line.startswith(CHANGE) for line in found)


def test_what_a_text_that_is_evaluated_names_counts_as_called(tmp_path: Path) -> None:
    classes = f'def slower(loop):\n    {CHANGE}\nhow = "slower"\n'
    assert any(line.startswith(CHANGE) for line in lines(tmp_path, classes=classes, parts="", end="eval(how)(self)"))


@pytest.mark.parametrize("way", ["getattr(args, name)", "print(getattr(part, name))", 'getattr(part, "size" + name)'])
def test_a_method_that_no_such_name_fits_is_still_passed_over(way: str, tmp_path: Path) -> None:
    end = f"import argparse\nargs = argparse.Namespace()\nfor part, name in zip(self.parts, [input()]): {way}"
    assert not any(line.startswith(CHANGE) for line in lines(tmp_path, end=end))


OWN = """
import torch
from torch import nn
from torch.utils.data import DataLoader
from torchvision import datasets, transforms
{of}
net = nn.Linear(4, 2)
rows = DataLoader(datasets.ImageFolder("a", transforms.ToTensor()), batch_size=4)
optimizer = {optimizer}
{schedule}
criterion = nn.CrossEntropyLoss()
for epoch in range(40):
    for x, y in rows:
        optimizer.zero_grad()
        loss = criterion(net(x), y)
        loss.backward()
        optimizer.step()
"""
SCHEDULE = """
class Falling(torch.optim.lr_scheduler.{0}):
    def __init__(self, optimizer, power=0.83, last=-1):
        self.power = power
        super().__init__(optimizer, last)
    def {1}(self):
        return [one * (1 - self.last_epoch / 61) ** self.power for one in self.base_lrs]
"""


@pytest.mark.parametrize("base", ["_LRScheduler", "LRScheduler", "StepLR"])
@pytest.mark.parametrize("method", ["get_lr", "_get_closed_form_lr"])
def test_the_rates_of_a_schedule_of_the_scripts_own_are_in_a_line(base: str, method: str, tmp_path: Path) -> None:
    """torch calls this method, and nothing of the script does."""
    of = SCHEDULE.format(base, method)
    made = "torch.optim.SGD(net.parameters(), lr=0.1)"
    (tmp_path / "train.py").write_text(OWN.format(of=of, optimizer=made, schedule="schedule = Falling(optimizer)"))
    found = listed(tmp_path / "train.py")
    assert any(line.startswith("return [one * (1 - self.last_epoch / 61)") and "0.83" in line for line in found)


def test_the_defaults_of_an_optimizer_of_the_scripts_own_are_said(tmp_path: Path) -> None:
    """Only the lines of its step() were listed, which read them from the groups."""
    of = """
class Own(torch.optim.Optimizer):
    def __init__(self, params, lr=1e-3, betas=(0.8, 0.77), k=7):
        defaults = dict(lr=lr, betas=betas, k=k)
        super().__init__(params, defaults)
    def step(self, closure=None):
        for group in self.param_groups:
            for one in group["params"]:
                one.data.add_(one.grad, alpha=-group["lr"] * group["betas"][0])
def other(table):
    return {k: v for k, v in table.items()}
"""
    (tmp_path / "train.py").write_text(OWN.format(of=of, optimizer="Own(net.parameters(), lr=0.1)", schedule="pass"))
    line = next(line for line in listed(tmp_path / "train.py") if line.startswith("defaults = dict"))
    assert "betas is [0.8, 0.77]" in line and "k is 7" in line
