"""Values that another statement changes or may change: the new one is drafted, or asked for; never the one before."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from drafts import drafted, has, listed, reasons
from msmigrate.migrate.analyze.script_analysis import analyze_script
from msmigrate.reports.script_analysis import recipe_text

Write = Callable[..., Path]

HEAD = """
import json, os, sys
from pathlib import Path
import torch, torch.nn as nn, torchvision
import torch.nn.functional as F
from torch.utils.data import DataLoader, Dataset
from torchvision import datasets, transforms
"""
REST = """
net = torchvision.models.resnet18(num_classes=7)
data = datasets.ImageFolder("birds/train", transforms.ToTensor())
loader = DataLoader(data, batch_size=16, shuffle=True, drop_last=True)
criterion = nn.CrossEntropyLoss()
opt = torch.optim.SGD(net.parameters(), lr={0})
"""
LOOP = """
for epoch in range(4):
    for x, y in loader:
        opt.zero_grad()
        loss = criterion(net(x), y)
        loss.backward()
        opt.step()
"""
SETTINGS = "rate = 0.2\nrates = [0.2, 0.1]\ntable = {'rate': 0.2}\nclass Own:\n    rate = 0.2\n"
GIVEN, SEEN = "float(sys.argv[1])", "os.path.exists('x')"
OPTIONS = "import argparse\np = argparse.ArgumentParser()\np.add_argument('--rate', type=float, default=0.2)\n"
OPTIONS += "args = p.parse_args()\n"
OWN = "class Own:\n    rate = 0.2\nown = Own()\n"
KEPT = "class Kept:\n    def __init__(self, rate=0.2):\n        self.rate = rate\nkept = Kept()\n"
GIVES, SETS = "def get():\n    return 0.2\n", "def conf():\n    global rate\n    rate = 0.7\n"
DECORATOR = """
rate = 0.2
kept_functions = []
def call(f):
    f()
    return f
def given(value):
    def wrap(f):
        f(value)
        return f
    return wrap
def now(f):
    return f()
def double(f):
    def g(*a):
        return 2 * f(*a)
    return g
def timed(f):
    def g(*a, **k):
        print("begins")
        return f(*a, **k)
    return g
def logged(f):
    def g(*a, **k):
        found = f(*a, **k)
        print(found)
        return found
    return g
def keep(f):
    kept_functions.append(f)
    return f
def faster(cls):
    cls.rate = 0.7
    return cls
class Halved:
    def __init__(self, f):
        self.f = f
    def __call__(self):
        return self.f() / 2
"""
LOAD = f"def load(name):\n    if not {SEEN}:\n        return {{0}}\n    {{1}}\n"

# what stands before, the rate, and which is drafted; None: it is asked for
CHANGED: dict[str, tuple[str, str, float | None]] = {
    # an attribute of a file, or of a class
    "of a file": (f"import settings\nsettings.rate = {GIVEN}\n", "settings.rate", None),
    "of a file, known": ("import settings\nsettings.rate = 0.7\n", "settings.rate", 0.7),
    "of a file, times": ("import settings\nsettings.rate *= 2\n", "settings.rate", 0.4),
    "of a file, in a function": (
        f"import settings\ndef go():\n    settings.rate = {GIVEN}\ngo()\n",
        "settings.rate",
        None,
    ),
    "of a file, perhaps": (f"import settings\nif {SEEN}:\n    settings.rate = 0.9\n", "settings.rate", None),
    "of a file, in another": ("import settings, change\n", "settings.rate", None),
    "of a file, imported later": (
        f"import settings\nsettings.rate = {GIVEN}\nfrom settings import rate\n",
        "rate",
        None,
    ),
    "of a file, as a table": ("import settings\nvars(settings).update(json.load(open('x')))\n", "settings.rate", None),
    "of a file, its dict": ("import settings\nsettings.__dict__.update(rate=0.7)\n", "settings.rate", None),
    "of a file's class": (f"import settings\nsettings.Own.rate = {GIVEN}\n", "settings.Own.rate", None),
    "of a file's list": (f"import settings\nsettings.rates[0] = {GIVEN}\n", "settings.rates[0]", None),
    "of a class": (f"{OWN}Own.rate = {GIVEN}\n", "Own.rate", None),
    "of a class, in its object": (f"{OWN}Own.rate = 0.7\n", "own.rate", 0.7),
    "of a class, its object's own": (f"{OWN}own.rate = 0.5\nOwn.rate = {GIVEN}\n", "own.rate", 0.5),
    "of a class, by its method": (
        f"class Own:\n    rate = 0.2\n    @classmethod\n    def load(cls):\n        cls.rate = {GIVEN}\nOwn.load()\n",
        "Own.rate",
        None,
    ),
    "of a base": (f"{OWN}class More(Own):\n    pass\nOwn.rate = {GIVEN}\n", "More.rate", None),
    "of a class, in a loop": (f"{OWN}for i in range(int({GIVEN})):\n    Own.rate *= 0.5\n", "Own.rate", None),
    # by a name
    "setattr": (f"{OPTIONS}setattr(args, 'rate', {GIVEN})\n", "args.rate", None),
    "setattr, known": (f"{OPTIONS}setattr(args, 'rate', 0.7)\n", "args.rate", 0.7),
    "setattr, any name": (
        f"{KEPT}for k, v in json.load(open('x')).items():\n    setattr(kept, k, v)\n",
        "kept.rate",
        None,
    ),
    "setattr of a file": (
        "import settings\nfor k, v in json.load(open('x')).items():\n    setattr(settings, k, v)\n",
        "settings.rate",
        None,
    ),
    "delattr": (f"{OPTIONS}delattr(args, 'rate')\n", "getattr(args, 'rate', 0.5)", None),
    "del": (f"{KEPT}del kept.rate\n", "getattr(kept, 'rate', 0.5)", None),
    "del of an entry": ("table = {'rate': 0.2}\ndel table['rate']\n", "table.get('rate', 0.5)", None),
    "getattr": (f"{KEPT}kept.rate = 0.7\n", "getattr(kept, 'rate')", 0.7),
    "globals": ("rate = 0.2\nglobals()['rate'] = 0.7\n", "rate", 0.7),
    "globals, any name": (
        "rate = 0.2\nfor k, v in json.load(open('x')).items():\n    globals()[k] = v\n",
        "rate",
        None,
    ),
    "globals, a table": ("rate = 0.2\nglobals().update(json.load(open('x')))\n", "rate", None),
    "everything of a file that is not there": ("rate = 0.2\nfrom lacking import *\n", "rate", None),
    "everything of a library": ("rate = 0.2\nfrom torch.nn import *\n", "rate", 0.2),
    "__setattr__": (f"{KEPT}object.__setattr__(kept, 'rate', 0.7)\n", "kept.rate", 0.7),
    "__setattr__, any name": (f"{KEPT}for k in sys.argv:\n    kept.__setattr__(k, 0.7)\n", "kept.rate", None),
    "__dict__": (f"{KEPT}kept.__dict__['rate'] = 0.7\n", "kept.rate", 0.7),
    "vars": (f"{OPTIONS}vars(args)['rate'] = {GIVEN}\n", "args.rate", None),
    "vars, by a name": (f"{OPTIONS}table = vars(args)\ntable['rate'] = {GIVEN}\n", "args.rate", None),
    "vars, by a name, updated": (
        f"{OPTIONS}table = vars(args)\ntable.update(json.load(open('x')))\n",
        "args.rate",
        None,
    ),
    "vars, copied": (f"{OPTIONS}table = dict(vars(args))\ntable['rate'] = 0.7\n", "args.rate", 0.2),
    "a setter": (
        f"{KEPT}class Half(Kept):\n    @property\n    def part(self):\n        return self.rate\n    @part.setter\n"
        "    def part(self, value):\n        self.rate = value / 2\nkept = Half()\nkept.part = 0.5\n",
        "kept.rate",
        0.25,
    ),
    "a table of its own class": (
        f"class Table(dict):\n    pass\nt = Table(rate=0.2)\nt['rate'] = {GIVEN}\n",
        "t.rate",
        None,
    ),
    "with": (
        f"{KEPT}class Held(Kept):\n    def __enter__(self):\n        self.rate = 0.7\n        return self\n"
        "    def __exit__(self, *_):\n        pass\nwith Held() as held:\n    pass\n",
        "held.rate",
        0.7,
    ),
    "what else is given": ("def make(**kw):\n    return kw.get('rate', 0.2)\n", "make(**json.load(open('x')))", None),
    "nothing else is given": ("def make(**kw):\n    return kw.get('rate', 0.2)\n", "make(other=1)", 0.2),
    "unknown or": ("rate = float(input() or 0.2)\n", "rate", None),
    # copies
    "a copy of a table": ("import copy\na = {'rate': 0.2}\nb = copy.deepcopy(a)\nb['rate'] = 0.7\n", "a['rate']", 0.2),
    "a copy of an object": (f"import copy\n{KEPT}other = copy.copy(kept)\nother.rate = 0.7\n", "kept.rate", 0.2),
    "another name": ("a = {'rate': 0.2}\nb = a\nb['rate'] = 0.7\n", "a['rate']", 0.7),
    # elements of lists, entries of tables
    "of a list, taken": ("rates = [0.2, 0.1]\nrates.pop(0)\n", "rates[0]", 0.1),
    "of a list, any taken": ("rates = [0.2, 0.1]\nrates.pop(int(sys.argv[1]))\n", "rates[0]", None),
    "of a list": (f"rates = [0.2, 0.1]\nrates[0] = {GIVEN}\n", "rates[0]", None),
    "of a list, known": ("rates = [0.2, 0.1]\nrates[0] = 0.7\n", "rates[0]", 0.7),
    "of a list, any": ("rates = [0.2, 0.1]\nrates[int(sys.argv[1])] = 0.7\n", "rates[0]", None),
    "of a list, a part": ("rates = [0.2, 0.1]\nrates[:] = json.load(open('x'))\n", "rates[0]", None),
    "of a list, perhaps": (f"rates = [0.2, 0.1]\nif {SEEN}:\n    rates[0] = 0.9\n", "rates[0]", None),
    "of a list, in a function": (f"rates = [0.2, 0.1]\ndef f(r):\n    r[0] = {GIVEN}\nf(rates)\n", "rates[0]", None),
    "of a list, in a loop": (f"rates = [0.2, 0.1]\nwhile {SEEN}:\n    rates[0] /= 2\n", "rates[0]", None),
    "of a list, in order": ("rates = [0.2, 0.1]\nrates.sort()\n", "rates[0]", None),
    "of a list, turned": ("rates = [0.2, 0.1]\nrates.reverse()\n", "rates[0]", 0.1),
    "of a list, shuffled": ("import random\nrates = [0.2, 0.1]\nrandom.shuffle(rates)\n", "rates[0]", None),
    "of a list, without one": ("rates = [0.2, 0.1]\ndel rates[0]\n", "rates[0]", None),
    "of a table, perhaps": (f"table = {{'rate': 0.2}}\nif {SEEN}:\n    table['rate'] = 0.9\n", "table['rate']", None),
    "of a table, perhaps more": (
        f"table = {{'rate': 0.2}}\nif {SEEN}:\n    table.update(rate=0.9)\n",
        "table['rate']",
        None,
    ),
    "of an object, perhaps": (f"{KEPT}if {SEEN}:\n    kept.rate = {GIVEN}\n", "kept.rate", None),
    "of the options, perhaps": (f"{OPTIONS}if {SEEN}:\n    args.rate = {GIVEN}\n", "args.rate", None),
    "of an open table": ("table = {**json.load(open('x'))}\n", "table.get('rate', 0.2)", None),
    "of an open table, asked": (
        "table = {'a': 1, **json.load(open('x'))}\nrate = table['rate'] if 'rate' in table else 0.2\n",
        "rate",
        None,
    ),
    "of an open table, made": ("table = dict(a=1, **json.load(open('x')))\n", "table.get('rate', 0.2)", None),
    "of a closed table": ("table = {'a': 1}\n", "table.get('rate', 0.2)", 0.2),
    # one of several
    "two tables": (f"table = {{'rate': 0.7}}\nif {SEEN}:\n    table = {{'rate': 0.2}}\n", "table['rate']", None),
    "two tables, one rate": (
        f"if {SEEN}:\n    table = {{'rate': 0.2, 'n': 1}}\nelse:\n    table = {{'rate': 0.2, 'n': 2}}\n",
        "table['rate']",
        0.2,
    ),
    "two tuples": (f"{LOAD.format('0.7, 1', 'return 0.2, 2')}rate, _ = load('x')\n", "rate", None),
    "two lists": (f"rates = [0.2, 1] if {SEEN} else [0.7, 1]\n", "rates[0]", None),
    "two objects": (f"{KEPT}if {SEEN}:\n    kept = Kept(0.7)\nelse:\n    kept = Kept(0.2)\n", "kept.rate", None),
    "two objects that are returned": (
        f"{KEPT}{LOAD.format('Kept(0.7)', 'return Kept(0.2)')}kept = load('x')\n",
        "kept.rate",
        None,
    ),
    "a table or a file": (
        f"{LOAD.format('{}', 'return json.load(open(name))')}rate = load('x').get('rate', 0.2)\n",
        "rate",
        None,
    ),
    "a tuple or a file": (
        f"{LOAD.format('0.2, 1', 'return json.load(open(name))')}rate, _ = load('x')\n",
        "rate",
        None,
    ),
    # code that may not run, and a loop that may end early
    "a list that may be empty": (
        "found = [p for p in Path('x').iterdir()]\nif found:\n    rate = 0.2\nelse:\n    rate = 0.7\n",
        "rate",
        None,
    ),
    "a list that a loop fills": (
        "found = []\nfor p in os.listdir('x'):\n    found.append(p)\nrate = 0.2 if found else 0.7\n",
        "rate",
        None,
    ),
    "a match": ("rate = 0.2\nmatch sys.argv[1]:\n    case 'a':\n        rate = 0.7\n", "rate", None),
    "an except": ("rate = 0.2\ntry:\n    work()\nexcept ValueError:\n    rate = 0.7\n", "rate", None),
    "an except that ends": (
        "rate = 0.2\ntry:\n    work()\nexcept ValueError:\n    rate = 0.7\n    raise\n",
        "rate",
        0.2,
    ),
    "an except for a library": (
        "try:\n    import apex\n    rate = 0.2\nexcept ImportError:\n    rate = 0.7\n",
        "rate",
        0.2,
    ),
    "a break": (f"for rate in [0.1, 0.2]:\n    if {SEEN}:\n        break\n", "rate", None),
    "no break": (f"for rate in [0.1, 0.2]:\n    if {SEEN}:\n        continue\n", "rate", 0.2),
    "a break after it": (
        f"rate = 0.5\nfor one in ['a', 'b']:\n    if {SEEN}:\n        rate = 0.3\n        break\n",
        "rate",
        None,
    ),
    "a break, and an else": (
        f"for one in ['a', 'b']:\n    if {SEEN}:\n        rate = 0.3\n        break\nelse:\n    rate = 0.6\n",
        "rate",
        None,
    ),
    "a while with an else": (
        f"n = 0\nwhile n < 3:\n    if {SEEN}:\n        rate = 0.3\n        break\n    n += 1\nelse:\n    rate = 0.6\n",
        "rate",
        None,
    ),
    "an else without a break": ("for one in ['a', 'b']:\n    print(one)\nelse:\n    rate = 0.6\n", "rate", 0.6),
    # what a decorator does with a function
    "a decorator that calls": (f"{DECORATOR}@call\n{SETS}", "rate", 0.7),
    "a method that calls": (
        "rate = 0.2\nclass App:\n    def config(self, f):\n        f()\napp = App()\n"
        "@app.config\ndef conf():\n    global rate\n    rate = 0.7\n",
        "rate",
        0.7,
    ),
    "a decorator of a library": (
        f"from sacred import Experiment\nex = Experiment('a')\nrate = 0.2\n@ex.config\n{SETS}",
        "rate",
        None,
    ),
    "a decorator with a value": (
        f"{DECORATOR}@given(0.7)\n{SETS.replace('()', '(v)').replace('0.7', 'v')}",
        "rate",
        0.7,
    ),
    "a decorator that doubles": (f"{DECORATOR}@double\n{GIVES}", "get()", None),
    "a decorator that doubles a method": (
        f"{DECORATOR}class C:\n    @double\n    def get(self):\n        return 0.2\n",
        "C().get()",
        None,
    ),
    "a decorator that calls at once": (f"{DECORATOR}@now\n{GIVES}", "get", 0.2),
    "a decorator that hands on": (f"{DECORATOR}@timed\n{GIVES}", "get()", 0.2),
    "a decorator that hands on by a name": (f"{DECORATOR}@logged\n{GIVES}", "get()", 0.2),
    "a decorator that keeps": (f"{DECORATOR}@keep\n{GIVES}", "get()", 0.2),
    "a class as decorator": (f"{DECORATOR}@Halved\n{GIVES}", "get()", 0.1),
    "a decorator of a class": (f"{DECORATOR}@faster\nclass C:\n    rate = 0.2\n", "C.rate", 0.7),
    "a decorator of functools": (f"import functools\n@functools.lru_cache\n{GIVES}", "get()", 0.2),
    "a decorator that was not found": (f"from lacking import twice\n@twice\n{GIVES}", "get()", None),
    "a decorator for the end": (f"import atexit\nrate = 0.2\n@atexit.register\n{SETS}", "rate", 0.2),
    # := where it may not run
    "behind and": (f"rate = 0.2\nif {SEEN} and (rate := 0.7):\n    pass\n", "rate", None),
    "behind or": (f"rate = 0.2\nif {SEEN} or (rate := 0.7):\n    pass\n", "rate", None),
    "behind True and": ("rate = 0.2\nif True and (rate := 0.7):\n    pass\n", "rate", 0.7),
    "behind False and": ("rate = 0.2\nif False and (rate := 0.7):\n    pass\n", "rate", 0.2),
    "behind an option": (f"{OPTIONS}rate = 0.2\nif args.rate > 1 and (rate := 0.7):\n    pass\n", "rate", 0.2),
    "in one of two": (f"rate = 0.2\nx = (rate := 0.7) if {SEEN} else 1\n", "rate", None),
    "in a comparison": ("rate = 0.2\n0 < float(sys.argv[1]) < (rate := 0.7)\n", "rate", None),
    "in a comprehension": ("rate = 0.2\n[rate := float(v) for v in sys.argv]\n", "rate", None),
    "in a generator": ("rate = 0.2\nany((rate := float(v)) for v in sys.argv[1:])\n", "rate", None),
    "in a table's comprehension": ("rate = 0.2\n{v: (rate := float(v)) for v in sys.argv}\n", "rate", None),
    # exec
    "exec of a file": ("rate = 0.2\nexec(open('conf.py').read())\n", "rate", None),
    "exec of a file that has it": ("rate = 0.2\nexec(open('settings.py').read())\n", "rate", None),
    "exec of a file without it": ("speed = 0.2\nexec(open('settings.py').read())\n", "speed", 0.2),
    "exec of the command line's": ("rate = 0.2\nexec(open('lines.py').read())\n", "rate", 0.2),
    "exec of what is compiled": ("rate = 0.2\nexec(compile(open('conf.py').read(), 'x', 'exec'))\n", "rate", None),
    "exec of a text": ("rate = 0.2\nexec('rate = 0.7')\n", "rate", None),
    "exec of a path": ("rate = 0.2\nexec(Path('conf.py').read_text())\n", "rate", None),
    "exec into a table": ("table = {'rate': 0.2}\nexec(open('conf.py').read(), table)\n", "table['rate']", None),
    "exec in a function": ("rate = 0.2\ndef read():\n    exec(open('x').read(), globals())\nread()\n", "rate", None),
    "exec in a function's names": ("rate = 0.2\ndef read():\n    exec(open('x').read())\nread()\n", "rate", 0.2),
    "exec, perhaps": (f"rate = 0.2\nif {SEEN}:\n    exec(open('conf.py').read())\n", "rate", None),
    # settings that a function gets which was not found
    "a table given away": ("from lacking import fill\ntable = {'rate': 0.2}\nfill(table)\n", "table['rate']", None),
    "a table given by name": (
        "from lacking import fill\ntable = {'rate': 0.2}\nfill(conf=table)\n",
        "table['rate']",
        None,
    ),
    "a table inside": (
        "from lacking import fill\ntable = {'opt': {'rate': 0.2}}\nfill(table)\n",
        "table['opt']['rate']",
        None,
    ),
    "a table given to a method": (
        "from lacking import Loader\nl = Loader()\ntable = {'rate': 0.2}\nl.fill(table)\n",
        "table['rate']",
        None,
    ),
    "a list given away": ("import lacking\nrates = [0.2, 0.1]\nlacking.fill(rates)\n", "rates[0]", None),
    "an object given away": (f"from lacking import fill\n{KEPT}fill(kept)\n", "kept.rate", None),
    "a copy given away": ("from lacking import fill\ntable = {'rate': 0.2}\nfill(dict(table))\n", "table['rate']", 0.2),
    "what it has given away": (
        "from lacking import fill\ntable = {'rate': 0.2}\nfill(**table)\n",
        "table['rate']",
        0.2,
    ),
    "a table for a log": ("import wandb\ntable = {'rate': 0.2}\nwandb.init(config=table)\n", "table['rate']", 0.2),
    # other ways to say the same
    "by dict's method": ("table = {'rate': 0.2}\ndict.update(table, rate=0.7)\n", "table['rate']", 0.7),
    "by dict's __setitem__": ("table = {'rate': 0.2}\ndict.__setitem__(table, 'rate', 0.7)\n", "table['rate']", 0.7),
    "by __setitem__": ("table = {'rate': 0.2}\ntable.__setitem__('rate', 0.7)\n", "table['rate']", 0.7),
    "by operator": (
        "import operator\ntable = {'rate': 0.2}\noperator.setitem(table, 'rate', 0.7)\n",
        "table['rate']",
        0.7,
    ),
    "by |=": ("table = {'rate': 0.2}\ntable |= json.load(open('x'))\n", "table['rate']", None),
    "by a method that is handed on": ("rates = [0.2]\nlist(map(rates.append, [0.7]))\n", "rates[-1]", None),
    "in sys.modules": ("rate = 0.2\nsys.modules[__name__].rate = 0.7\n", "rate", 0.7),
    "in sys.modules, of a file": (
        "import settings\nsetattr(sys.modules['settings'], 'rate', 0.7)\n",
        "settings.rate",
        0.7,
    ),
    "in what import_module gives": (
        "import importlib, settings\nimportlib.import_module('settings').rate = 0.7\n",
        "settings.rate",
        0.7,
    ),
    "reloaded": (
        "import importlib, settings\nsettings.rate = 0.7\nimportlib.reload(settings)\n",
        "settings.rate",
        None,
    ),
    "its table": (f"{KEPT}kept.__dict__ = json.load(open('x'))\n", "kept.rate", None),
    "its class": (f"{OWN}class Other:\n    rate = 0.7\nown.__class__ = Other\n", "own.rate", None),
    "by __getattribute__": (
        "class C:\n    rate = 0.2\n    def __getattribute__(self, name):\n        return 0.7\n",
        "C().rate",
        None,
    ),
    "by __init_subclass__": (
        "class B:\n    rate = 0.2\n    def __init_subclass__(cls):\n        cls.rate = 0.7\nclass C(B):\n    pass\n",
        "C.rate",
        0.7,
    ),
    "by __new__": (
        "class C:\n    rate = 0.2\n    def __new__(cls):\n        made = super().__new__(cls)\n"
        "        made.rate = 0.7\n        return made\n",
        "C().rate",
        None,
    ),
    "by replace": (
        "from dataclasses import dataclass, replace\n@dataclass\nclass C:\n    rate: float = 0.2\n"
        "c = replace(C(), rate=0.7)\n",
        "c.rate",
        None,
    ),
    "in a finally": ("rate = 0.2\ntry:\n    work()\nfinally:\n    rate = 0.7\n", "rate", 0.7),
    "exchanged": ("a, rate = 0.7, 0.2\na, rate = rate, a\n", "rate", 0.7),
    "of two names": ("a = rate = 0.2\na = 0.7\n", "rate", 0.2),
    "in a thread": (
        "import threading\nrate = 0.2\ndef go():\n    global rate\n    rate = 0.7\n"
        "threading.Thread(target=go).start()\n",
        "rate",
        None,
    ),
}


def of_rate(before: str, rate: str, write: Write) -> Path:
    """A script whose rate is this, with a file of settings and one that changes them."""
    script = write(HEAD + before + REST.format(rate) + LOOP)
    (script.parent / "settings.py").write_text(SETTINGS)
    (script.parent / "lines.py").write_text("import sys\nfor a in sys.argv[1:]:\n    globals()[a] = 0.7\n")
    (script.parent / "change.py").write_text(f"import settings, sys\nsettings.rate = {GIVEN}\n")
    return script


@pytest.mark.parametrize(("before", "rate", "drafts"), CHANGED.values(), ids=CHANGED)
def test_a_value_that_may_be_another_is_asked_for(before: str, rate: str, drafts: float | None, write: Write) -> None:
    """Most of these drafted 0.2, or the first of several values, without a word."""
    found = drafted(of_rate(before, rate, write))["optimizer"]["args"]
    assert found == {"lr": drafts if drafts is not None else "???"}


def test_the_line_of_the_new_value_is_named(write: Write) -> None:
    for before, rate, said in [
        ("import settings\nsettings.rate = 0.7\n", "settings.rate", "settings.rate = 0.7"),
        (f"{OPTIONS}setattr(args, 'rate', 0.7)\n", "args.rate", "args.rate = 0.7"),
        ("rates = [0.2, 0.1]\n", "rates[0]", "lr: 0.2"),
    ]:
        assert said in recipe_text(analyze_script(of_rate(before, rate, write)))


# what others compute: each is listed, or is not

SET = {
    "where files are": ("os.chdir('/data')", "files whose path is relative are looked for there"),
    "no gradients": ("torch.set_grad_enabled(False)", "gradients are computed or not by this"),
    "perhaps gradients": ("torch.set_grad_enabled(len(sys.argv) > 1)", "gradients are computed or not by this"),
    "a function of torch": ("F.cross_entropy = lambda a, b: a.sum()", "what a library computes is another thing"),
    "a class of torch": ("nn.CrossEntropyLoss = nn.MultiMarginLoss", "what a library computes is another thing"),
    "a method of torch": ("torch.optim.SGD.step = lambda self: None", "what a library computes is another thing"),
    "by setattr": ("setattr(nn, 'CrossEntropyLoss', nn.MultiMarginLoss)", "what a library computes is another thing"),
}
QUIET = [
    "torch.set_grad_enabled(True)",
    "torch.backends.cudnn.benchmark = True",
    "torch._dynamo.config.recompile_limit = 64",
    "torch.cuda.nvtx.range_push('data')",
    "torch.profiler.record_function('data')",
    "os.makedirs('out', exist_ok=True)",
]


@pytest.mark.parametrize(("line", "why"), SET.values(), ids=SET)
def test_what_changes_all_that_follows_is_listed(line: str, why: str, write: Write) -> None:
    """The folder, the gradients and F were in no line; the others were listed without a reason."""
    found = listed(write(f"{HEAD}{line}\n{REST.format(0.2)}{LOOP}"))
    assert has(found, line) and why in found[0]


@pytest.mark.parametrize("line", QUIET)
def test_what_changes_nothing_that_trains_is_not(line: str, write: Write) -> None:
    assert listed(write(f"{HEAD}{line}\n{REST.format(0.2)}{LOOP}")) == []


@pytest.mark.parametrize(
    "line",
    [
        "getattr(net, 'half')()",
        "getattr(net.fc, 'requires_grad_')(False)",
        "getattr(opt, 'load_state_dict')(torch.load('a'))",
    ],
)
def test_a_method_that_getattr_gives_is_that_method(line: str, write: Write) -> None:
    assert has(listed(write(f"{HEAD}{REST.format(0.2)}{line}\n{LOOP}")), line)


def test_the_else_of_a_loop_says_its_condition_and_is_in_no_round(write: Write) -> None:
    before = f"for one in ['a', 'b']:\n    if {SEEN}:\n        break\nelse:\n    torch.nn.init.zeros_(net.fc.weight)\n"
    found = listed(write(f"{HEAD}{REST.format(0.2)}{before}{LOOP}"))
    assert "torch.nn.init.zeros_(net.fc.weight) [only where no break leaves the loop]" in found


LAUNCHED = """
import argparse
from lacking.parallel import start, pretty
p = argparse.ArgumentParser()
p.add_argument('--rate', type=float, default=0.2)
p.add_argument('--world_size', type=int, default=10)
args = p.parse_args()
"""


@pytest.mark.parametrize("call", ["start(args)", "start(args=args)", "import lacking.more\nlacking.more.go(args)"])
def test_a_function_that_was_not_found_may_change_the_options(call: str, write: Write) -> None:
    """The call was in no line, and the rate was that for as many processes as the default says."""
    path = write(f"{HEAD}{LAUNCHED}{call}\nargs.rate *= args.world_size\n{REST.format('args.rate')}{LOOP}")
    said = f"{call.rpartition(chr(10))[2]} [this was not read, and may change the options that it is given]"
    assert said in listed(path) and drafted(path)["optimizer"]["args"] == {"lr": "???"}


@pytest.mark.parametrize("call", ["print(args)", "start(len(sys.argv))", "pretty(vars(args).copy())"])
def test_one_that_gets_no_options_does_not(call: str, write: Write) -> None:
    path = write(f"{HEAD}{LAUNCHED}{call}\nargs.rate *= args.world_size\n{REST.format('args.rate')}{LOOP}")
    assert drafted(path)["optimizer"]["args"] == {"lr": 2.0} and "may change the options" not in str(listed(path))


# what is not part of the training

FABRIC = """
from lightning.fabric import Fabric
fabric = Fabric(accelerator="cuda", devices=1)
"""


@pytest.mark.parametrize(
    "ready",
    [
        "net, opt = fabric.setup(net, opt)\nloader = fabric.setup_dataloaders(loader)\n",
        "net = fabric.setup_module(net)\nopt = fabric.setup_optimizers(opt)\n",
    ],
)
def test_what_fabric_makes_ready_is_what_it_was(ready: str, write: Write) -> None:
    """The loop, the loss and the update were listed, and `backward` as one without an update."""
    path = write(HEAD + FABRIC + REST.format(0.2) + ready + LOOP.replace("loss.backward()", "fabric.backward(loss)"))
    found = listed(path)
    assert not has(found, "opt.step()") and not has(found, "loss =") and not has(found, "for x, y in loader")
    assert has(found, "fabric = Fabric(", "fabric.backward(loss)") and not any("no step()" in one for one in found)


def test_a_function_main_of_another_file_is_not_this_ones(write: Write) -> None:
    """By its name, and by that of a decorator, the test of a file that is imported for something else was run."""
    inside = "".join(f"    {line}\n" for line in (REST.format(0.2) + LOOP).splitlines())
    text = (
        f"{HEAD}import hydra\nfrom other import scores\n@hydra.main(config_name='x')\ndef main(cfg):\n{inside}main()\n"
    )
    script = write(text)
    other = "def scores():\n    return 1\ndef main(name):\n    net = torch.load(name)\n"
    other += "    net.load_state_dict(torch.load('b'))\n    loader = DataLoader(name, batch_size=1)\n"
    other += "    torch.optim.SGD(net.parameters(), lr=3)\n"
    (script.parent / "other.py").write_text(f"{HEAD}{other}if __name__ == '__main__':\n    main('a')\n")
    found = drafted(script)
    assert not [line for line in found.get("not_in_this_recipe", []) if line.startswith("other.py")]
    assert found["optimizer"] == {"name": "SGD", "args": {"lr": 0.2}} and found["data"]["batch"] == 16


ROWS = """
import pandas
class Rows(Dataset):
    def __init__(self, rows):
        self.rows = rows
    def __len__(self):
        return len(self.rows)
    def __getitem__(self, at):
        return self.rows.iloc[at].values, 0
def load(path):
    return pandas.read_csv(path)
def keep(text):
    with open(os.path.join("out", "kept.json"), "w") as f:
        json.dump(text, f)
"""


@pytest.mark.parametrize(("before", "after", "rounds"), [(1, 0, 0), (0, 1, 0), (1, 1, 0), (0, 1, 1)])
def test_what_is_written_behind_the_only_reading_makes_no_data(
    before: int, after: int, rounds: int, write: Write
) -> None:
    """What a script keeps of its run in the end was listed as a file that the data may be read from."""
    kept = "keep({'columns': len(rows.columns), 'rows': rows})\n"
    made = REST.format(0.2).replace('datasets.ImageFolder("birds/train", transforms.ToTensor())', "Rows(rows)")
    text = f"rows = load(where())\n{kept * before}rows = load(where())\n{made}{LOOP}{kept * after}"
    if rounds:
        text = "for fold in range(int(sys.argv[2])):\n" + "".join(f"    {line}\n" for line in text.splitlines())
    found = reasons(write(HEAD + ROWS + text)).values()
    assert any("it may write what" in why for why in found) == bool(before or rounds)


def test_what_a_call_for_its_effect_returns_reaches_no_step(write: Write) -> None:
    """`test(net)` counted as reading the score that it returns, and so each use of that score was listed."""
    own = "def score(a, b):\n    return ((a == b).sum() / len(b)).item()\n"
    own += "def test(net):\n    net.eval()\n    with torch.no_grad():\n        found = score(net(x), y)\n"
    own += "    return found\n"
    loop = LOOP.replace(
        "opt.step()\n",
        "opt.step()\n        now = score(net(x), y)\n        print(now)\n    test(net)\n    net.train()\n",
    )
    assert not has(listed(write(HEAD + own + REST.format(0.2) + loop)), "now = score", "found = score")


STEPS = LOOP.replace("for x, y in loader:", "for i in {0}:\n        x, y = next(batches)")


@pytest.mark.parametrize(
    "inner",
    ["range(steps_per_epoch)", "tqdm(range(len(loader)), desc=f'Epoch {epoch}')", "trange(per_epoch, desc='epoch')"],
)
def test_steps_of_an_epoch_are_no_epochs(inner: str, write: Write) -> None:
    """Each round of the loop around them was said to make one step."""
    before = "from tqdm import tqdm, trange\nsteps_per_epoch = per_epoch = 50\n"
    path = write(HEAD + before + REST.format(0.2) + "batches = iter(loader)\n" + STEPS.format(inner))
    assert drafted(path)["train"]["epochs"] == 4 and "each round makes one step" not in recipe_text(
        analyze_script(path)
    )


@pytest.mark.parametrize(
    ("change", "value"),
    [
        ("args.rate = args.rate / 2", 0.1),
        ("args.rate *= 2", 0.4),
        ("args.rate -= 0.1", 0.1),
        ("setattr(args, 'rate', args.rate * 4)", 0.8),
    ],
)
def test_a_computed_value_names_the_lines_that_compute_it(change: str, value: float, write: Write) -> None:
    """Only the default was named, which is another number."""
    path = write(HEAD + OPTIONS + f"{change}\n" + REST.format("args.rate") + LOOP)
    text = recipe_text(analyze_script(path))
    line = path.read_text().splitlines().index(change) + 1
    before, _, after = text.partition("    lr: ")
    assert float(after.split()[0]) == pytest.approx(value)
    named = before.splitlines()[-2:]
    assert f"line {line}: args.rate" in named[0] and "args.rate has the default 0.2 in argparse" in named[1]


def test_a_case_is_a_condition_with_its_pattern(write: Write) -> None:
    cut = "opt.param_groups[0]['lr'] *= 0.5"
    step = f"        opt.step()\n        match len(x):\n            case 3 | 5:\n                {cut}\n"
    found = listed(write(HEAD + REST.format(0.2) + LOOP.replace("        opt.step()\n", step)))
    assert found == [f"{cut} [only where len(x) matches 3 | 5]"]


# what decorators do with a function that trains

TRAIN = "def train():\n" + "".join(f"    {line}\n" for line in LOOP.strip().splitlines())
WRAPS = "def deco(f):\n    def g(*a, **k):\n{0}    return g\n@deco\n" + TRAIN + "train()\n"
ZEROS, NOT_FOLLOWED = (
    "torch.nn.init.zeros_(net.fc.weight)",
    "what the decorator does with this function is not followed",
)
DECORATED: dict[str, tuple[str, list[str]]] = {
    "before it": (WRAPS.format(f"        {ZEROS}\n        return f(*a, **k)\n"), [ZEROS]),
    "after it": (WRAPS.format(f"        found = f(*a, **k)\n        {ZEROS}\n        return found\n"), [ZEROS]),
    "twice": (WRAPS.format("        f(*a)\n        f(*a)\n"), ["f(*a)", "f(*a)", "@deco def train():"]),
    "in a loop": (
        WRAPS.format("        for i in range(3):\n            f(*a)\n"),
        ["f(*a) [for i in range(3)]", "@deco def train():"],
    ),
    "never": (WRAPS.format("        return None\n"), ["@deco def train():"]),
    "perhaps": (WRAPS.format("        if os.environ.get('A'):\n            return f(*a)\n"), ["@deco def train():"]),
    "again": (
        WRAPS.format(
            f"        try:\n            return f(*a)\n        except RuntimeError:\n            {ZEROS}\n"
            "            f(*a)\n"
        ),
        ["return f(*a)", ZEROS, "f(*a)", "@deco def train():"],
    ),
    "at once": (f"def deco(f):\n    {ZEROS}\n    return f\n@deco\n{TRAIN}train()\n", [ZEROS]),
    "with a model": (
        "def frozen(part):\n    def deco(f):\n        def g(*a):\n            part.requires_grad_(False)\n"
        f"            return f(*a)\n        return g\n    return deco\n@frozen(net.conv1)\n{TRAIN}train()\n",
        ["part.requires_grad_(False)"],
    ),
    "of a class": (f"def deco(cls):\n    {ZEROS}\n    return cls\n@deco\nclass C:\n    pass\n{LOOP}", [ZEROS]),
    "of a library": (f"from lacking import fast\n@fast\n{TRAIN}train()\n", ["@fast def train():"]),
    "of a library, with a model": (
        f"from lacking import fast\n@fast(net)\n{TRAIN}train()\n",
        ["@fast(net) def train():"],
    ),
    "that calls it": (f"from lacking import app\n@app.main\n{TRAIN}", ["@app.main def train():"]),
    "without gradients": (f"@torch.no_grad()\n{TRAIN}train()\n", ["@torch.no_grad() def train():"]),
    "in half precision": (f"@torch.autocast('cuda')\n{TRAIN}train()\n", ["@torch.autocast('cuda') def train():"]),
    "a hook": (
        f"@net.register_forward_hook\ndef hook(m, i, o):\n    return o * 2\n{LOOP}",
        ["@net.register_forward_hook def hook(m, i, o): [it is called by what it is given to]"],
    ),
    "kept and called": (
        f"STEPS = []\ndef step(f):\n    STEPS.append(f)\n    return f\n@step\ndef shrink():\n    {ZEROS}\n"
        f"for one in STEPS:\n    one()\n{LOOP}",
        [ZEROS],
    ),
    "that times it": (
        WRAPS.format("        begun = time.time()\n        found = f(*a, **k)\n        print(time.time() - begun)\n")
        .replace("    return g", "        return found\n    return g")
        .replace("def deco", "import time\ndef deco"),
        [],
    ),
    "that drops the result": (WRAPS.format("        print('begins')\n        f(*a, **k)\n"), []),
    "of functools": (f"import functools\n@functools.lru_cache\n{TRAIN}train()\n", []),
    "of torchrun": (
        f"from torch.distributed.elastic.multiprocessing.errors import record\n@record\n{TRAIN}train()\n",
        [],
    ),
    "of hydra": (f"import hydra\n@hydra.main(config_name='x')\n{TRAIN.replace('()', '(cfg)', 1)}train()\n", []),
    "of a function that does not train": (
        f"from lacking import fast\n@fast\ndef show():\n    print(net)\nshow()\n{LOOP}",
        [],
    ),
}


@pytest.mark.parametrize(("rest", "lines"), DECORATED.values(), ids=DECORATED)
def test_what_a_decorator_does_is_listed(rest: str, lines: list[str], write: Write) -> None:
    """What stands in a decorator was in no line, and nor was one of a library."""
    found = listed(write(HEAD + REST.format(0.2) + rest))
    assert has(found, *lines) and len(found) == len(lines)
    assert all(NOT_FOLLOWED in one for one in found if one.startswith("@") and "hook" not in one)
