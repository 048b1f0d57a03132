"""A default is made once, where its function is defined: a list in it keeps what calls put there, a name what it was.

What a condition puts into a list may not be there."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from drafts import drafted

Write = Callable[..., Path]

SCRIPT = """
import functools, os
from dataclasses import dataclass
import torch, torch.nn as nn, torchvision
from torch.utils.data import DataLoader
from torchvision import datasets, transforms

{before}
net = torchvision.models.resnet18(num_classes=7)
loader = DataLoader(datasets.ImageFolder("birds", transforms.ToTensor()), batch_size=16, shuffle=True, drop_last=True)
criterion = nn.CrossEntropyLoss()
opt = torch.optim.SGD(net.parameters(), lr={rate})
for epoch in range(4):
    for x, y in loader:
        opt.zero_grad()
        loss = criterion(net(x), y)
        loss.backward()
        opt.step()
"""
ADDS = "kept.append(0.1)\n    return sum(kept)"
METHOD = "class A:\n    def get(self, kept=[0.1]):\n        kept.append(0.1)\n        return sum(kept)\nA().get()"
WRAPPER = "def hand_on(f):\n    @functools.wraps(f)\n    def g(*a):\n        return f(*a)\n    return g\n"
MADE_ONCE = {
    "a number": ("def get(r=0.2):\n    return r", "get()", 0.2),
    "a name that changes": ("rate = 0.2\ndef get(r=rate):\n    return r\nrate = 0.7", "get()", 0.2),
    "a list of another name": ("rates = [0.2]\ndef get(kept=rates):\n    return kept[-1]\nrates = [0.7]", "get()", 0.2),
    "one that is filled": ("rates = [0.2]\ndef get(kept=rates):\n    return kept[-1]\nrates.append(0.7)", "get()", 0.7),
    "a list that grows": (f"def get(kept=[0.1]):\n    {ADDS}\nget()", "get()", 0.3),
    "an empty list": (f"def get(kept=[]):\n    {ADDS}\nget()", "get()", 0.2),
    "a loop of calls": (f"def get(kept=[]):\n    {ADDS}\nfor _ in range(3):\n    get()", "get()", 0.4),
    "a table": (
        "def get(kept={}):\n    kept['n'] = kept.get('n', 0.1) * 2\n    return kept['n']\nget()",
        "get()",
        0.4,
    ),
    "a table that is updated": (
        "def get(kept={'r': 0.2}, **more):\n    kept.update(more)\n    return kept['r']\nget(r=0.7)",
        "get()",
        0.7,
    ),
    "an element": (
        "def get(kept=[0.1]):\n    found = kept[0]\n    kept[0] = 0.7\n    return found\nget()",
        "get()",
        0.7,
    ),
    "what is taken out": ("def get(kept=[0.7, 0.2]):\n    return kept.pop()\nget()", "get()", 0.7),
    "what a call gave": (f"def make():\n    return [0.1]\ndef get(kept=make()):\n    {ADDS}\nget()", "get()", 0.3),
    "what is handed on": (
        "def add(kept):\n    kept.append(0.1)\ndef get(kept=[0.1]):\n    add(kept)\n    return sum(kept)\nget()",
        "get()",
        0.3,
    ),
    "an object": (
        "class S:\n    rate = 0.2\ndef get(s=S()):\n    s.rate += 0.1\n    return s.rate\nget()",
        "get()",
        0.4,
    ),
    "of a method": (METHOD, "A().get()", 0.3),
    "of a decorated function": (f"{WRAPPER}@hand_on\ndef get(kept=[0.1]):\n    {ADDS}\nget()", "get()", 0.3),
    "in a function": (
        "def outer(v):\n    def inner(r=v):\n        return r\n    v = 0.7\n    return inner()",
        "outer(0.2)",
        0.2,
    ),
}
SET = {
    "__defaults__": ("def get(r=0.2):\n    return r\nget.__defaults__ = (0.7,)", "get()"),
    "__kwdefaults__": ("def get(*, r=0.2):\n    return r\nget.__kwdefaults__ = {'r': 0.7}", "get()"),
    "an element of these": ("def get(*, r=0.2):\n    return r\nget.__kwdefaults__['r'] = 0.7", "get()"),
    "by a method": ("def get(*, r=0.2):\n    return r\nget.__kwdefaults__.update(r=0.7)", "get()"),
    "by setattr": ("def get(r=0.2):\n    return r\nsetattr(get, '__defaults__', (0.7,))", "get()"),
    "of __init__": (
        "class A:\n    def __init__(self, r=0.2):\n        self.r = r\nA.__init__.__defaults__ = (0.7,)",
        "A().r",
    ),
    "__code__": (
        "def get(r=0.2):\n    return r\ndef other(r=0.2):\n    return 0.7\nget.__code__ = other.__code__",
        "get()",
    ),
    "a field of a dataclass": ("@dataclass\nclass C:\n    rate: float = 0.7\nC.rate = 0.2", "C().rate"),
    "a definition in a loop": (
        "made = []\nfor v in [0.2, 0.7]:\n    def g(r=v):\n        return r\n    made.append(g)",
        "made[0]()",
    ),
    "a call under a condition": (f"def get(kept=[0.1]):\n    {ADDS}\nif os.path.exists('x'):\n    get()", "get()"),
}
SEEN = "if os.path.exists('x'):\n    "
PERHAPS = {
    "append, the sum": ("rates = [0.1]", "rates.append(0.1)", "sum(rates)"),
    "append, the last": ("rates = [0.1]", "rates.append(0.7)", "rates[-1]"),
    "append, how many": ("rates = [0.1]", "rates.append(0.7)", "0.1 * len(rates)"),
    "extend": ("rates = [0.1]", "rates.extend([0.1])", "sum(rates)"),
    "+=": ("rates = [0.1]", "rates += [0.1]", "sum(rates)"),
    "insert": ("rates = [0.1]", "rates.insert(0, 0.7)", "rates[0]"),
    "pop": ("rates = [0.1, 0.7]", "rates.pop(0)", "rates[0]"),
    "reverse": ("rates = [0.1, 0.7]", "rates.reverse()", "rates[0]"),
    "an entry": ("table = {'r': 0.1}", "table['s'] = 0.1", "sum(table.values())"),
    "by a function": ("rates = [0.1]\ndef add():\n    rates.append(0.1)", "add()", "sum(rates)"),
}


def rate_of(before: str, rate: str, write: Write) -> object:
    """The rate that a draft has."""
    found = drafted(write(SCRIPT.replace("{before}", before).replace("{rate}", rate)))
    return found["optimizer"]["args"]["lr"]


@pytest.mark.parametrize(("before", "rate", "value"), MADE_ONCE.values(), ids=MADE_ONCE)
def test_a_default_is_made_once(before: str, rate: str, value: float, write: Write) -> None:
    assert rate_of(before, rate, write) == pytest.approx(value)


@pytest.mark.parametrize(("before", "rate"), SET.values(), ids=SET)
def test_a_default_that_may_be_another_is_asked_for(before: str, rate: str, write: Write) -> None:
    assert rate_of(before, rate, write) == "???"


@pytest.mark.parametrize(("before", "change", "rate"), PERHAPS.values(), ids=PERHAPS)
def test_what_a_condition_does_to_a_list_is_asked_for(before: str, change: str, rate: str, write: Write) -> None:
    assert rate_of(f"{before}\n{SEEN}{change}", rate, write) == "???"


def test_the_first_of_a_list_stays_where_more_is_added(write: Write) -> None:
    assert rate_of(f"rates = [0.2]\n{SEEN}rates.append(0.7)", "rates[0]", write) == 0.2
