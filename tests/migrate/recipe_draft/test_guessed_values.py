"""Values that something else changes than the line that gives them: what was drafted is what stood there before."""

from __future__ import annotations

from pathlib import Path

import pytest
from drafts import drafted

SCRIPT = """
import collections, contextlib, functools, itertools, random
import numpy as np
import torch
from torch import nn
from torch.utils.data import DataLoader
from torchvision import datasets, transforms
from elsewhere import read
{made}
net = nn.Linear(4, 2)
data = datasets.ImageFolder("a", transforms.ToTensor())
loader = DataLoader(data, batch_size=4, shuffle=True)
optimizer = torch.optim.SGD(net.parameters(), lr={rate})
criterion = nn.CrossEntropyLoss()
for epoch in range(3):
    for x, y in loader:
        loss = criterion(net(x), y)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
"""


def rate_of(folder: Path, made: str, rate: str) -> object:
    script = folder / "train.py"
    script.write_text(SCRIPT.replace("{made}", made).replace("{rate}", rate))
    return drafted(script)["optimizer"]["args"]["lr"]


CLASSES = [
    (
        (
            "class Cfg:\n    def __setattr__(self, k, v):\n"
            "        object.__setattr__(self, k, v / 2)\ncfg = Cfg()\ncfg.lr = 0.4"
        ),
        "cfg.lr",
        [0.4],
    ),
    (
        (
            "class Cfg:\n    def __setattr__(self, k, v):\n        super().__setattr__(k, v / 2)\n"
            "cfg = Cfg()\ncfg.lr = 0.4"
        ),
        "cfg.lr",
        [0.4],
    ),
    (
        ("class Cfg:\n    def __setattr__(self, k, v):\n        self.__dict__[k] = v / 2\ncfg = Cfg()\ncfg.lr = 0.4"),
        "cfg.lr",
        [0.4],
    ),
    (
        (
            "class Cfg:\n    def __init__(self):\n        self.lr = 0.4\n"
            "    def __setattr__(self, k, v):\n        object.__setattr__(self, k, v / 2)\n"
            "cfg = Cfg()"
        ),
        "cfg.lr",
        [0.4],
    ),
    (
        (
            "class Base:\n    def __setattr__(self, k, v):\n"
            "        object.__setattr__(self, k, v / 2)\nclass Cfg(Base):\n    pass\ncfg = Cfg()\n"
            "cfg.lr = 0.4"
        ),
        "cfg.lr",
        [0.4],
    ),
    (
        ("class Cfg:\n    lr = 0.1\n    def __setattr__(self, k, v):\n        pass\ncfg = Cfg()\ncfg.lr = 0.4"),
        "cfg.lr",
        [0.4],
    ),
    (
        (
            "class Cfg:\n    lr = 0.4\n    def __getattribute__(self, k):\n"
            "        return object.__getattribute__(self, k) / 2\ncfg = Cfg()"
        ),
        "cfg.lr",
        [0.4],
    ),
    (
        (
            "class Half:\n    def __init__(self, v):\n        self.v = v\n"
            "    def __get__(self, of, kind):\n        return self.v / 2\nclass Cfg:\n"
            "    lr = Half(0.4)\ncfg = Cfg()"
        ),
        "cfg.lr",
        [0.4],
    ),
    (
        (
            'class Half:\n    def __get__(self, of, kind):\n        return of.__dict__["v"]\n'
            '    def __set__(self, of, v):\n        of.__dict__["v"] = v / 2\nclass Cfg:\n'
            "    lr = Half()\ncfg = Cfg()\ncfg.lr = 0.4"
        ),
        "cfg.lr",
        [0.4],
    ),
    (
        (
            "class Cfg:\n    @property\n    def lr(self):\n        return self.v\n    @lr.setter\n"
            "    def lr(self, v):\n        self.v = v / 2\ncfg = Cfg()\ncfg.lr = 0.4"
        ),
        "cfg.lr",
        [0.4],
    ),
    (
        (
            "class Cfg:\n    def get(self):\n        return self.v\n    def put(self, v):\n"
            "        self.v = v / 2\n    lr = property(get, put)\ncfg = Cfg()\ncfg.lr = 0.4"
        ),
        "cfg.lr",
        [0.4],
    ),
    (
        (
            "class Meta(type):\n    def __new__(kind, name, bases, space):\n"
            '        space["lr"] = space["lr"] / 2\n'
            "        return super().__new__(kind, name, bases, space)\nclass cfg(metaclass=Meta):\n"
            "    lr = 0.4"
        ),
        "cfg.lr",
        [0.4],
    ),
    (
        (
            "class Meta(type):\n    def __call__(kind, *args):\n"
            "        made = super().__call__(*args)\n        made.lr = 0.2\n        return made\n"
            "class Cfg(metaclass=Meta):\n    lr = 0.4\ncfg = Cfg()"
        ),
        "cfg.lr",
        [0.4],
    ),
    (
        (
            "class Meta(type):\n    def __getattribute__(kind, k):\n"
            "        return type.__getattribute__(kind, k) / 2\nclass cfg(metaclass=Meta):\n"
            "    lr = 0.4"
        ),
        "cfg.lr",
        [0.4],
    ),
    (
        (
            "class Base:\n    def __init_subclass__(kind):\n        kind.lr = kind.lr / 2\n"
            "class cfg(Base):\n    lr = 0.4"
        ),
        "cfg.lr",
        [0.4],
    ),
    (("def half(kind):\n    kind.lr = kind.lr / 2\n    return kind\n@half\nclass cfg:\n    lr = 0.4"), "cfg.lr", [0.4]),
    (
        (
            "class Cfg:\n    lr = 0.4\n    def __new__(kind):\n        made = object.__new__(kind)\n"
            "        made.lr = 0.2\n        return made\ncfg = Cfg()"
        ),
        "cfg.lr",
        [0.4],
    ),
    (
        (
            "class Cfg(dict):\n    def __setitem__(self, k, v):\n"
            '        super().__setitem__(k, v / 2)\ncfg = Cfg()\ncfg["lr"] = 0.4'
        ),
        'cfg["lr"]',
        [0.4],
    ),
    (
        (
            "class Cfg(dict):\n    def __getitem__(self, k):\n"
            "        return super().__getitem__(k) / 2\ncfg = Cfg(lr=0.4)"
        ),
        'cfg["lr"]',
        [0.4],
    ),
    (
        ("class Cfg(dict):\n    def __getattr__(self, k):\n        return self[k] / 2\ncfg = Cfg(lr=0.4)"),
        "cfg.lr",
        [0.4],
    ),
]


@pytest.mark.parametrize(("made", "rate", "wrong"), CLASSES)
def test_what_a_class_makes_of_an_attribute_is_not_what_it_was_given(
    made: str, rate: str, wrong: list[float], tmp_path: Path
) -> None:
    assert rate_of(tmp_path, made, rate) not in wrong


SHARED = [
    ('a = {"o": {"lr": 0.4}}\nb = a | {"k": 1}\nb["o"]["lr"] = 0.2', 'a["o"]["lr"]', [0.4]),
    ('rows = [{"lr": 0.4}] * 2\nrows[1]["lr"] = 0.2', 'rows[0]["lr"]', [0.4]),
    ("rows = [[0.4]] * 2\nrows[1][0] = 0.2", "rows[0][0]", [0.4]),
    ('rows = dict.fromkeys("ab", [0.4])\nrows["b"][0] = 0.2', 'rows["a"][0]', [0.4]),
    ("one = [0.4]\nrows = [one] + [[1]]\nrows[0][0] = 0.2", "one[0]", [0.4]),
    ('a = {"o": {"lr": 0.4}}\nb = {**a}\nb["o"]["lr"] = 0.2', 'a["o"]["lr"]', [0.4]),
    ("a = [[0.4]]\nb = [*a]\nb[0][0] = 0.2", "a[0][0]", [0.4]),
    ("a = [[0.4]]\nb = a[:]\nb[0][0] = 0.2", "a[0][0]", [0.4]),
    ("a = [[0.4]]\nb = list(a)\nb[0][0] = 0.2", "a[0][0]", [0.4]),
    ("one = [0.4]\npair = (one, 3)\npair[0][0] = 0.2", "one[0]", [0.4]),
    ('o = {"lr": 0.4}\na = {}\na |= {"o": o}\na["o"]["lr"] = 0.2', 'o["lr"]', [0.4]),
    ('one = [0.4]\nfor k, v in zip("a", [one]):\n    v[0] = 0.2', "one[0]", [0.4]),
    ("a = [0.4]\n(b := a)[0] = 0.2", "a[0]", [0.4]),
    ('t = {}\na = t.setdefault("k", [0.4])\nt["k"][0] = 0.2', "a[0]", [0.4]),
    ('t = {"k": [0.4]}\nt.get("k")[0] = 0.2', 't["k"][0]', [0.4]),
    ('t = {"k": [0.4]}\nfor v in t.values():\n    v[0] = 0.2', 't["k"][0]', [0.4]),
    ('t = {"k": [0.4]}\nfor k, v in t.items():\n    v[0] = 0.2', 't["k"][0]', [0.4]),
    ("a = [0.4]\nfor v in itertools.chain([a]):\n    v[0] = 0.2", "a[0]", [0.4]),
    ("def f(v, seen=[0.4]):\n    seen[0] = v\n    return seen\nf(0.2)\ns = f(0.3)", "s[0]", [0.4]),
]


@pytest.mark.parametrize(("made", "rate", "wrong"), SHARED)
def test_a_change_by_another_name_of_an_object_counts(made: str, rate: str, wrong: list[float], tmp_path: Path) -> None:
    assert rate_of(tmp_path, made, rate) not in wrong


ORDERED = [
    ("rates = sorted([0.4, 0.1, 0.2])", "rates[0]", [0.4]),
    ("rates = [0.4, 0.1]\nbest = sorted(rates)[0]", "best", [0.4]),
    ("rates = sorted([0.1, 0.4], reverse=True)", "rates[0]", [0.1]),
    ("rates = [0.4, 0.1]\nrates.sort()", "rates[0]", [0.4]),
    ("rates = [0.4, 0.1]\nrates.reverse()", "rates[0]", [0.4]),
    ("rates = list(reversed([0.4, 0.1]))", "rates[0]", [0.4]),
    ("rates = [0.4, 0.1][::-1]", "rates[0]", [0.4]),
    ("rates = list({0.4, 0.1})", "rates[0]", [0.4]),
    ("rates = {0.4, 0.1}", "rates.pop()", [0.4]),
    ("best = max([0.1, 0.4], key=lambda v: -v)", "best", [0.4]),
    ("best = min(0.4, 0.1)", "best", [0.4]),
    ("best = next(iter(sorted([0.4, 0.1])))", "best", [0.4]),
    ("for rate in sorted([0.4, 0.1]):\n    break", "rate", [0.4]),
    ('t = {"b": 0.4, "a": 0.1}\nrate = [t[k] for k in sorted(t)][0]', "rate", [0.4]),
    ('t = {"b": 0.1, "a": 0.4}\nk, rate = t.popitem()', "rate", [0.1]),
    ("r = [0.1, 0.4]\nrate = r.pop()", "rate", [0.1]),
    ("r = [0.1, 0.4]\nr.pop()\nrate = r.pop()", "rate", [0.4]),
    ("r = [0.1]\nr.insert(0, 0.4)", "r[0]", [0.1]),
    ("r = [0.1, 0.4]\ndel r[0]", "r[0]", [0.1]),
    ("r = [0.1, 0.4]\nr.remove(0.1)", "r[0]", [0.1]),
    ("r = collections.deque([0.1, 0.4])\nr.rotate(1)", "r[0]", [0.1]),
    ("r = [0.1, 0.4]\nrandom.shuffle(r)", "r[0]", [0.1]),
    ("r = random.sample([0.1, 0.4], 2)", "r[0]", [0.1]),
    ("r = np.sort([0.4, 0.1])", "r[0]", [0.4]),
]


@pytest.mark.parametrize(("made", "rate", "wrong"), ORDERED)
def test_an_order_that_a_call_gives_is_not_the_one_that_stands_there(
    made: str, rate: str, wrong: list[float], tmp_path: Path
) -> None:
    assert rate_of(tmp_path, made, rate) not in wrong


MARKED = [
    (
        ("def slow(*a):\n    return 0.2\ndef mark(f):\n    return slow\n@mark\ndef rate():\n    return 0.4"),
        "rate()",
        [0.4],
    ),
    (("mark = lambda f: (lambda *a: (lambda: 0.2)())\n@mark\ndef rate():\n    return 0.4"), "rate()", [0.4]),
    (
        (
            "def mark(f):\n    def inner(*a):\n        return f(*a) / 2\n    return inner\n@mark\n"
            "def rate():\n    return 0.4"
        ),
        "rate()",
        [0.4],
    ),
    (
        (
            "class Mark:\n    def __init__(self, f):\n        self.f = f\n    def __call__(self):\n"
            "        return self.f() / 2\n@Mark\ndef rate():\n    return 0.4"
        ),
        "rate()",
        [0.4],
    ),
    ("def mark(f):\n    return 0.2\n@mark\ndef rate():\n    return 0.4", "rate", [0.4]),
    (
        (
            "def slow(*a):\n    return 0.2\ndef mark(k):\n    def on(f):\n        return slow\n"
            "    return on\n@mark(3)\ndef rate():\n    return 0.4"
        ),
        "rate()",
        [0.4],
    ),
    (
        (
            "class A:\n    def slow(self):\n        return 0.2\n    def mark(f):\n"
            "        return A.slow\ndef other():\n    return 0.2\n@(lambda f: other)\ndef rate():\n"
            "    return 0.4"
        ),
        "rate()",
        [0.4],
    ),
    ("def rate(v=0.4):\n    return v\nrate = functools.partial(rate, 0.2)", "rate()", [0.4]),
    (
        ('T = {}\ndef mark(f):\n    T["f"] = lambda: 0.2\n    return f\n@mark\ndef rate():\n    return 0.4'),
        'T["f"]()',
        [0.4],
    ),
    (
        (
            'def slow():\n    return 0.2\ndef mark(f):\n    if read("k"):\n        return slow\n'
            "    return f\n@mark\ndef rate():\n    return 0.4"
        ),
        "rate()",
        [0.4],
    ),
]


@pytest.mark.parametrize(("made", "rate", "wrong"), MARKED)
def test_what_a_decorator_puts_in_place_of_a_function_is_not_what_that_gives(
    made: str, rate: str, wrong: list[float], tmp_path: Path
) -> None:
    assert rate_of(tmp_path, made, rate) not in wrong


HANDED = [
    (
        ('c = {"lr": 0.4}\nhalve = lambda: c.update(lr=c["lr"] / 2)\nfor k in range(read("n")):\n    halve()'),
        'c["lr"]',
        [0.4],
    ),
    (
        ('c = [0.4]\ndef halve(*args):\n    args[0][0] = args[0][0] / 2\nfor k in range(read("n")):\n    halve(c)'),
        "c[0]",
        [0.4],
    ),
    (('c = [0.4]\ndef halve(**kw):\n    kw["c"][0] = 0.2\nfor k in range(read("n")):\n    halve(c=c)'), "c[0]", [0.4]),
    (
        (
            "class C:\n    lr = 0.4\nclass H:\n    pass\nh = H()\nh.c = C()\n"
            'for k in range(read("n")):\n    h.c = C()\n    h.c.lr = 0.2'
        ),
        "h.c.lr",
        [0.4],
    ),
    ("c = [0.4]\ndef halve(*args):\n    args[0][0] = 0.2\nhalve(c)", "c[0]", [0.4]),
    ('c = {"lr": 0.4}\nhalve = lambda: c.update(lr=0.2)\nhalve()', 'c["lr"]', [0.4]),
    ('c = {"lr": 0.4}\nhalve = lambda t: t.update(lr=0.2)\nhalve(c)', 'c["lr"]', [0.4]),
]


@pytest.mark.parametrize(("made", "rate", "wrong"), HANDED)
def test_what_a_function_changes_of_any_of_its_arguments_is_not_what_it_was(
    made: str, rate: str, wrong: list[float], tmp_path: Path
) -> None:
    assert rate_of(tmp_path, made, rate) not in wrong


TRIED = [
    ('try:\n    rate = float(read("k"))\nexcept ValueError:\n    rate = 0.2', "rate", [0.2]),
    (('rate = 0.4\ntry:\n    k = read("k")\n    rate = 0.2\nexcept Exception:\n    pass'), "rate", [0.4, 0.2]),
    (('rate = 0.4\nwith contextlib.suppress(Exception):\n    read("k")\n    rate = 0.2'), "rate", [0.4, 0.2]),
    (
        ('def rate():\n    try:\n        return float(read("k"))\n    except Exception:\n        return 0.2'),
        "rate()",
        [0.2],
    ),
    ('rate = 0.4\ntry:\n    read("k")\nfinally:\n    rate = 0.2', "rate", [0.4]),
    (('rate = 0.4\ntry:\n    read("k")\nexcept Exception:\n    pass\nelse:\n    rate = 0.2'), "rate", [0.4, 0.2]),
]


@pytest.mark.parametrize(("made", "rate", "wrong"), TRIED)
def test_a_value_behind_what_may_raise_is_one_of_two(made: str, rate: str, wrong: list[float], tmp_path: Path) -> None:
    assert rate_of(tmp_path, made, rate) not in wrong


@pytest.mark.parametrize(
    ("made", "rate", "value"),
    [
        (
            (
                "class Cfg:\n    def __setattr__(self, k, v):\n        super().__setattr__(k, v)\n"
                "cfg = Cfg()\ncfg.lr = 0.4"
            ),
            "cfg.lr",
            0.4,
        ),
        (
            (
                "class Cfg:\n    def __setattr__(self, k, v):\n        if k == 'n':\n"
                "            raise KeyError(k)\n        object.__setattr__(self, k, v)\ncfg = Cfg()\n"
                "cfg.lr = 0.4"
            ),
            "cfg.lr",
            0.4,
        ),
        (
            ("class Cfg:\n    def __setattr__(self, k, v):\n        self.__dict__[k] = v\ncfg = Cfg()\ncfg.lr = 0.4"),
            "cfg.lr",
            0.4,
        ),
        (
            (
                "class Once(type):\n    _made = {}\n    def __call__(kind, *args):\n"
                "        if kind not in kind._made:\n"
                "            kind._made[kind] = super().__call__(*args)\n"
                "        return kind._made[kind]\nclass Cfg(metaclass=Once):\n    lr = 0.4\ncfg = Cfg()"
            ),
            "cfg.lr",
            0.4,
        ),
        (("class Cfg(dict):\n    def __getattr__(self, k):\n        return self[k]\ncfg = Cfg(lr=0.4)"), "cfg.lr", 0.4),
        ("a = {'lr': 0.4} | {'k': 3}", "a['lr']", 0.4),
        ("a = {'lr': 0.1} | {'lr': 0.4}", "a['lr']", 0.4),
        ("a = {'lr': 0.1}\na |= {'lr': 0.4}", "a['lr']", 0.4),
        ("a = [0.4] * 3", "a[2]", 0.4),
        ("rates = sorted([0.4, 0.1])", "rates[1]", 0.4),
        ("def first(*args):\n    return args[0]", "first(0.4, 3)", 0.4),
        ("first = lambda a, k: a[k]", "first([0.1, 0.4], 1)", 0.4),
        (
            (
                "def mark(f):\n    @functools.wraps(f)\n    def inner(*a):\n        return f(*a)\n"
                "    return inner\n@mark\ndef rate():\n    return 0.4"
            ),
            "rate()",
            0.4,
        ),
        ("rate = 0.4\ntry:\n    k = read('k')\nexcept Exception:\n    pass", "rate", 0.4),
        ("try:\n    rate = 0.4\n    k = read('k')\nexcept Exception:\n    pass", "rate", 0.4),
        ("rate = 0.1\ntry:\n    rate = 0.4\n    read('k')\nexcept Exception:\n    pass", "rate", 0.4),
        ("rate = 0.1\ntry:\n    read('k')\n    rate = 0.4\nexcept Exception:\n    raise", "rate", 0.4),
        (("rate = 0.1\ntry:\n    read('k')\n    rate = 0.4\nexcept KeyboardInterrupt:\n    pass"), "rate", 0.4),
        ("kinds = {'a', 'b'}\nrate = 0.4 if 'a' in kinds else 0.1", "rate", 0.4),
    ],
)
def test_a_value_that_nothing_changes_is_drafted(made: str, rate: str, value: float, tmp_path: Path) -> None:
    assert rate_of(tmp_path, made, rate) == value
