"""Objects that a script changes after it made them: the data set by its own methods, what only a model or a data set
reads, the lists that a function gets; and what a launcher of the training collects."""

from __future__ import annotations

from pathlib import Path

import pytest
from drafts import drafted, has, listed

START = """
import os, random, torch, torch.nn as nn, torchvision
from torch.utils.data import DataLoader, Dataset, Sampler

ROWS, SCALE = read("birds"), 1
TABLE = {"s": 1}

class Blur:
    kind = 1

    def __init__(self):
        self.strength = 1

    def set_strength(self, s):
        self.strength = s

    def set_kind(self, s):
        Blur.kind = s

    def show(self):
        print(self.strength)

    def __call__(self, x):
        return x * self.strength * self.kind

class Order(Sampler):
    def __init__(self, n):
        self.n = n

    def set_length(self, n):
        self.n = n

    def __iter__(self):
        return iter(range(self.n))

class Birds(Dataset):
    limit = None

    def __init__(self, rows, blur):
        self.rows, self.blur, self.size = rows, blur, 3

    def first(self, n):
        self.rows = self.rows[:n]
        return self

    def add(self, one):
        self.rows.append(one)

    def mix(self):
        random.shuffle(self.rows)

    def drop(self, n):
        del self.rows[n:]

    def outer(self, n):
        self.first(n)

    def set_size(self, n):
        setattr(self, "size", n)

    @classmethod
    def set_limit(cls, n):
        cls.limit = n

    def names(self):
        return [str(one) for one in self.rows]

    def __getitem__(self, i):
        return self.blur(self.rows[i]) * SCALE, 1

class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.body, self.ratio = nn.Linear(4, 7), 0.1

    def set_ratio(self, ratio):
        self.ratio = ratio
        return self

    def new_head(self, n):
        self.head = nn.Linear(4, n)

    def show(self):
        print(sum(one.numel() for one in self.parameters()))

    def forward(self, x):
        return self.body(x) * self.ratio

class Weighed(nn.Module):
    def __init__(self):
        super().__init__()
        self.weight = 1.0

    def set_weight(self, weight):
        self.weight = weight

    def forward(self, a, b):
        return nn.functional.cross_entropy(a, b) * self.weight

def scaled(a):
    return a * SCALE

def set_scale(n):
    global SCALE
    SCALE = n

def prepare(rows, n):
    rows.first(n)

def clear(rows):
    rows.clear()
    return 3

def keep(rows, n):
    del rows[n:]
    return 3

def mix(rows):
    random.shuffle(rows)
    return True

def order(rows):
    rows.sort(key=len)
    return 1, 2

def nested(rows):
    kept = clear(rows)
    return kept

def doubled(rows):
    for row in rows:
        row.mul_(2)
    return 3

def count(rows):
    return len(rows)
"""
STEP = """
blur, order_ = Blur(), Order(10)
data = Birds(ROWS, blur)
LATE
loader = DataLoader(data, batch_size=16, drop_last=True, sampler=order_)
net, criterion = Net(), Weighed()
BEFORE
opt = torch.optim.SGD(net.parameters(), lr=0.2)
for epoch in range(4):
    ROUND
    for x, y in loader:
        opt.zero_grad()
        loss = scaled(criterion(net(x), y))
        loss.backward()
        opt.step()
"""


def script(tmp_path: Path, **parts: str) -> Path:
    """The script with a statement at a place: EARLY is before the data set, LATE before its loader, BEFORE before the
    optimizer, ROUND in each epoch."""
    text = START + "EARLY\n" + STEP
    for place in ("EARLY", "LATE", "BEFORE", "ROUND"):
        text = text.replace(place, parts.get(place, "pass"))
    written = tmp_path / "train.py"
    written.write_text(text)
    return written


@pytest.mark.parametrize("place", ["LATE", "ROUND"])
@pytest.mark.parametrize(
    "call",
    [
        *("data.first(100)", "data.add(1)", "data.mix()", "data.drop(9)", "data.outer(9)", "data.set_size(4)"),
        *("data.set_limit(5)", "Birds.set_limit(5)", "Birds.first(data, 9)", "getattr(data, 'first')(9)"),
        *("[data.add(i) for i in range(3)]", "list(map(data.add, range(3)))", "print(data.first(9))", "n = data.mix()"),
        *("data = data.first(9)", "order_.set_length(3)"),
    ],
)
def test_a_call_that_changes_a_data_set_is_listed(tmp_path: Path, call: str, place: str) -> None:
    assert has(listed(script(tmp_path, **{place: call})), call)


@pytest.mark.parametrize(
    "call", ["net.set_ratio(0.5)", "net.new_head(5)", "net = net.set_ratio(3)", "criterion.set_weight(3)"]
)
def test_so_is_one_that_changes_a_model_or_a_loss(tmp_path: Path, call: str) -> None:
    assert has(listed(script(tmp_path, BEFORE=call)), call)


@pytest.mark.parametrize(
    "made, changed",
    [
        ("data = Birds(ROWS, blur)", "data = Birds(ROWS, blur).first(9)"),
        ("DataLoader(data,", "DataLoader(data.first(9),"),
        ("net, criterion = Net(), Weighed()", "net, criterion = Net().set_ratio(3), Weighed()"),
        ("SGD(net.parameters()", "SGD(net.set_ratio(3).parameters()"),
    ],
)
def test_so_is_one_in_the_statement_that_makes_it(tmp_path: Path, made: str, changed: str) -> None:
    path = script(tmp_path)
    path.write_text(path.read_text().replace(made, changed))
    assert any(changed in line for line in listed(path))


@pytest.mark.parametrize(
    "statement, line",
    [
        ("blur.set_strength(3)", "self.strength = s [s is 3]"),
        ("data.blur.set_strength(3)", "self.strength = s [s is 3]"),
        ("blur.set_kind(3)", "Blur.kind = s [s is 3]"),
        ("blur.strength = 3", "blur.strength = 3"),
        ("setattr(blur, 'strength', 3)", "setattr(blur, 'strength', 3)"),
        ("Blur.kind = 3", "Blur.kind = 3"),
        ("for one in [blur]: one.strength = 3", "one.strength = 3"),
        ("SCALE = 3", "SCALE = 3"),
        ("set_scale(3)", "SCALE = n [n is 3, SCALE begins with 1]"),
    ],
)
def test_a_further_value_of_what_only_a_data_set_or_a_function_that_computes_reads_is_listed(
    tmp_path: Path, statement: str, line: str
) -> None:
    assert has(listed(script(tmp_path, BEFORE=statement)), line)
    assert not has(listed(script(tmp_path)), line)


@pytest.mark.parametrize(
    "call",
    ["clear(ROWS)", "keep(ROWS, 5)", "mix(ROWS)", "order(ROWS)", "nested(ROWS)", "doubled(ROWS)", "clear(rows=ROWS)"],
)
@pytest.mark.parametrize("form", ["n = {}", "a, b = 1, {}", "print({})", "if {}: print(3)", "assert {}"])
def test_a_function_that_changes_a_list_which_it_gets_is_listed_wherever_it_is_called(
    tmp_path: Path, call: str, form: str
) -> None:
    made = form.format(call)
    found = listed(script(tmp_path, EARLY=made))
    assert any(line.startswith((made.partition(":")[0], "rows.")) for line in found)


@pytest.mark.parametrize("statement", ["del ROWS[3:]", "ROWS[:] = ROWS[2:]", "n = ROWS.pop()"])
def test_so_is_a_statement_that_does(tmp_path: Path, statement: str) -> None:
    assert has(listed(script(tmp_path, EARLY=statement)), statement)


@pytest.mark.parametrize(
    "statement",
    [
        *("print(data.names())", "net.show()", "blur.show()", "print(len(data))", "n = count(ROWS)", "count(ROWS)"),
        *("blur.name = 3", "x0, y0 = data[0]"),
    ],
)
def test_what_only_reads_is_not(tmp_path: Path, statement: str) -> None:
    assert listed(script(tmp_path, BEFORE=statement)) == listed(script(tmp_path))


SACRED = """
import torch, torchvision
from sacred import Experiment
ex = Experiment("birds")

SETTINGS
def settings():
    rate = 0.1

@ex.automain
def main(rate, _config):
    net = torchvision.models.resnet18(num_classes=7)
    opt = torch.optim.SGD(net.parameters(), lr=rate)
    for x, y in load():
        opt.zero_grad()
        torch.nn.functional.cross_entropy(net(x), y).backward()
        opt.step()
"""


@pytest.mark.parametrize(
    "mark", ["@ex.config", "@ex.config()", "@ex.named_config", "@ex.config_hook", "@ex.pre_run_hook"]
)
def test_what_a_launcher_is_given_for_the_training_is_listed(tmp_path: Path, mark: str) -> None:
    (tmp_path / "train.py").write_text(SACRED.replace("SETTINGS", mark))
    assert has(listed(tmp_path / "train.py"), f"{mark} def settings(): [what runs the training may take")
    assert drafted(tmp_path / "train.py")["optimizer"]["args"]["lr"] == "???"


def test_so_is_the_file_of_its_settings_and_not_another_command(tmp_path: Path) -> None:
    (tmp_path / "train.py").write_text(SACRED.replace("SETTINGS", "ex.add_config('birds.yaml')\n\n@ex.command"))
    found = listed(tmp_path / "train.py")
    assert has(found, "ex.add_config('birds.yaml')") and not has(found, "@ex.command")


SCHEDULE = """
import torch, torchvision
from torch.optim.lr_scheduler import LambdaLR

def warmed(opt, warm):
    def factor(step):
        return min(1.0, step / warm)
    return LambdaLR(opt, factor)

net = torchvision.models.resnet18(num_classes=7)
opt = torch.optim.SGD(net.parameters(), lr=0.1)
loader = load()
schedule = warmed(opt, WARM)
for x, y in loader:
    opt.zero_grad()
    torch.nn.functional.cross_entropy(net(x), y).backward()
    opt.step()
    schedule.step()
"""


@pytest.mark.parametrize("warm", ["len(loader) * 0.1", "warm=int(len(loader) * 0.1)"])
def test_what_a_call_computes_for_a_function_inside_of_the_one_that_it_calls_is_listed(
    tmp_path: Path, warm: str
) -> None:
    (tmp_path / "train.py").write_text(SCHEDULE.replace("WARM", warm))
    assert has(listed(tmp_path / "train.py"), f"schedule = warmed(opt, {warm})")


KEPT = """
import random, torch, torchvision
from torch.utils.data import DataLoader, Dataset

class Birds(Dataset):
    def __init__(self, rows, table):
        self.rows, self.table = rows, table

    def __getitem__(self, i):
        return self.rows[i] * self.table["s"], 1

def main():
    rows, table, other = [], {"s": 1}, []
    EARLY
    data = Birds(MADE)
    LATE
    loader = DataLoader(data, batch_size=16, drop_last=True)
    net = torchvision.models.resnet18(num_classes=7)
    opt = torch.optim.SGD(net.parameters(), lr=0.2)
    for x, y in loader:
        opt.zero_grad()
        torch.nn.functional.cross_entropy(net(x), y).backward()
        opt.step()

main()
"""


def kept(tmp_path: Path, **parts: str) -> Path:
    """The script with a statement EARLY, before the data set is MADE, or LATE, behind that."""
    text = KEPT
    for place, other in (("EARLY", "pass"), ("MADE", "rows, table"), ("LATE", "pass")):
        text = text.replace(place, parts.get(place, other))
    written = tmp_path / "train.py"
    written.write_text(text)
    return written


@pytest.mark.parametrize("made", ["rows, table", "rows=rows, table=table"])
@pytest.mark.parametrize("place", ["EARLY", "LATE"])
@pytest.mark.parametrize(
    "statement",
    [
        *("rows.append(3)", "rows += [3]", "rows[0] = 3", "rows[:] = []", "rows.sort()", "random.shuffle(rows)"),
        *("del rows[3:]", "n = rows.pop()", "table['s'] = 4", "table.update(s=4)"),
    ],
)
def test_a_list_or_table_that_a_data_set_has_is_listed_where_it_is_changed(
    tmp_path: Path, statement: str, place: str, made: str
) -> None:
    assert has(listed(kept(tmp_path, MADE=made, **{place: statement})), statement)
    assert not has(listed(kept(tmp_path, MADE=made, **{place: statement.replace("rows", "other")})), "other")


SPECIAL = """
import contextlib, torch, torch.nn as nn
from torch.utils.data import DataLoader, Dataset

ROWS, TABLE = read("birds"), {"s": 1}

class Birds(Dataset):
    def __init__(self, rows):
        self.rows, self.size = rows, 3

    def __enter__(self):
        self.size = 1
        return self

    def __exit__(self, *of):
        pass

    def __call__(self, n):
        self.size = n
        return self

    def __lshift__(self, n):
        self.rows.append(n)
        return self

    def __iadd__(self, n):
        self.rows.append(n)
        return self

    def __matmul__(self, n):
        return self.size * n

    def __getitem__(self, i):
        return self.rows[i] * self.size, 1

class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.body, self.ratio = nn.Linear(4, 7), 0.1

    def __enter__(self):
        self.ratio = 0.5

    def __exit__(self, *of):
        pass

    def forward(self, x):
        return self.body(x) * self.ratio

def drop(rows):
    return rows.pop()

def cut(rows):
    return drop(rows)

def both(rows):
    return rows.pop(), 1

def empty():
    ROWS.clear()
    return 3

def take():
    return ROWS.pop()

def anew():
    global ROWS
    ROWS = []
    return 3

def put():
    ROWS[0] = 3
    return 3

def nested():
    return empty()

def count():
    return len(ROWS)

EARLY
data = Birds(ROWS)
LATE
loader = DataLoader(data, batch_size=16, drop_last=True)
net = Net()
BEFORE
opt = torch.optim.SGD(net.parameters(), lr=0.2)
for epoch in range(4):
    ROUND
    for x, y in loader:
        opt.zero_grad()
        loss = nn.functional.cross_entropy(net(x), y)
        loss.backward()
        opt.step()
"""


def special(tmp_path: Path, **parts: str) -> list[str]:
    """What the draft of the script lists with a statement at a place, and not without it."""
    found = []
    for given in ({}, parts):
        text = SPECIAL
        for place in ("EARLY", "LATE", "BEFORE", "ROUND"):
            text = text.replace(place, given.get(place, "pass"))
        (tmp_path / "train.py").write_text(text)
        found.append(listed(tmp_path / "train.py"))
    return [line for line in found[1] if line not in found[0]]


@pytest.mark.parametrize("place", ["LATE", "ROUND"])
@pytest.mark.parametrize(
    "statement",
    [
        *(
            "with data: pass",
            "with data as d, open('x') as f: print(d, f)",
            "data(4)",
            "data = data(4)",
            "other = data(4)",
        ),
        *(
            "print(data(4))",
            "data << 4",
            "data += 4",
            "data.__call__(4)",
            "data.__enter__()",
            "vars(data).update(size=4)",
        ),
        *("vars(data)['size'] = 4", "contextlib.ExitStack().enter_context(data)"),
    ],
)
def test_a_data_set_changes_by_its_special_methods(tmp_path: Path, statement: str, place: str) -> None:
    assert special(tmp_path, **{place: statement})


@pytest.mark.parametrize("statement", ["with net: pass", "net.__enter__()", "vars(net)['ratio'] = 2"])
def test_so_does_a_model(tmp_path: Path, statement: str) -> None:
    assert special(tmp_path, BEFORE=statement)


@pytest.mark.parametrize("place", ["EARLY", "LATE", "ROUND"])
@pytest.mark.parametrize(
    "call", ["drop(ROWS)", "cut(ROWS)", "both(ROWS)", "empty()", "take()", "anew()", "put()", "nested()"]
)
@pytest.mark.parametrize(
    "shape", ["{}", "print({})", "n = {}", "assert {} != 5", "if {}: print(3)", "print(len([{}]))"]
)
def test_a_call_that_changes_what_is_defined_outside_is_listed(
    tmp_path: Path, shape: str, call: str, place: str
) -> None:
    assert special(tmp_path, **{place: shape.format(call)})


@pytest.mark.parametrize(
    "statement", ["print(count())", "assert count() > 3", "n = len(data)", "print(data @ 2)", "print(data[0])"]
)
def test_a_call_that_only_reads_is_not(tmp_path: Path, statement: str) -> None:
    assert not special(tmp_path, LATE=statement)
