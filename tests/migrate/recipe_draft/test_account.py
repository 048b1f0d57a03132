"""Every statement of a script is in its draft: one that is taken out, has another number or stands before its loop
changes the draft. The scripts print and save nothing, so that no statement is without a meaning."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest
from drafts import drafted, listed
from msmigrate.migrate.analyze.script_analysis import analyze_script
from msmigrate.reports.script_analysis import recipe_text

HEAD = "import argparse, math, random, sys, torch, torch.nn as nn\nfrom elsewhere import make, read, score\n"
PARTS = """
net = nn.Linear(4, 7)
opt = torch.optim.SGD(net.parameters(), lr=0.2, momentum=0.6)
mse = nn.MSELoss(reduction="sum")
drawn = random.Random(5)
def pieces(of, size):
    start = 3
    while start < len(of):
        rows = of[start:start + size]
        start += size
        yield rows * 0.7
rows = read("a.csv")
for epoch in range(6):
    worst, kept = 0.9, []
    for x in pieces(rows, 8):
        seen = []
        for k in range(4):
            noise = drawn.random()
            seen.append(net(x + noise * 0.1))
        loss = mse(torch.stack(seen).mean(0), x)
        if loss > worst:
            worst = worst * 1.1
            continue
        opt.zero_grad()
        loss.backward()
        opt.step()
        kept.append(x)
    rows = torch.cat(kept)
"""
SETTINGS = """
parser = argparse.ArgumentParser()
parser.add_argument("--lr", type=float, default=0.3)
parser.add_argument("--warmup", type=int, default=9)
args = parser.parse_args()
args.size = 16
table = {"depth": 3}
table["width"] = 5
class Plan:
    steps = 40
    def __init__(self):
        self.power = 2
plan = Plan()
plan.floor = 0.01
net = make("net", table)
opt = make("opt", net, args)
moves = make("schedule", opt, plan)
count, best, left = 0, 50.0, 3
for epoch in range(12):
    for x, y in read(args):
        out = net(x)
        loss = nn.functional.smooth_l1_loss(out, y, beta=0.5)
        opt.zero_grad()
        loss.backward()
        opt.step()
        count = count + 1
        moves.step(count)
    found = score(net)
    if found < best - 0.001:
        best = found
        left = 3
    else:
        left = left - 1
    if left < 1:
        break
"""
TRAINER = """
class Trainer:
    def __init__(self, net, rate):
        self.net, self.count = net, 0
        self.opt = torch.optim.Adam(net.parameters(), lr=rate, betas=(0.8, 0.95))
        self.mean = {k: v.clone() for k, v in net.state_dict().items()}
    def rate(self):
        return 0.02 * math.exp(-self.count / 100)
    def step(self, x, y):
        self.count += 1
        for group in self.opt.param_groups:
            group["lr"] = self.rate()
        loss = nn.functional.mse_loss(self.net(x), y)
        loss = loss + 0.004 * sum(p.abs().sum() for p in self.net.parameters())
        self.opt.zero_grad()
        loss.backward()
        self.opt.step()
        for name, value in self.net.state_dict().items():
            self.mean[name].mul_(0.99).add_(value, alpha=0.01)
    def swap(self):
        self.net.load_state_dict(self.mean)
        self.count = 0
net = nn.Sequential(nn.Linear(4, 9), nn.ReLU(), nn.Linear(9, 2))
for p in net[0].parameters():
    p.requires_grad = False
trainer = Trainer(net, 0.02)
for epoch in range(5):
    data = read(epoch)
    random.shuffle(data)
    for x, y in data:
        trainer.step(x, y)
    trainer.swap()
"""
SCRIPTS = {"parts": PARTS, "settings": SETTINGS, "trainer": TRAINER}
DEFINES = (ast.Import, ast.ImportFrom, ast.FunctionDef, ast.ClassDef)
COMPUTES = ("pieces", "rate")  # functions that only compute: the line that calls them stands for them


def draft_of(folder: Path, text: str) -> str:
    script = folder / "train.py"
    script.write_text(text)
    return recipe_text(analyze_script(script))


def without_lines(text: str) -> str:
    return re.sub(r"(\.py:|line )\d+", r"\1N", text)


def changes(text: str) -> Iterator[tuple[ast.stmt, str, str]]:
    """The script with each change: the statement, what becomes of it, and the script."""
    lines, tree = text.splitlines(keepends=True), ast.parse(text)
    parents = {child: node for node in ast.walk(tree) for child in ast.iter_child_nodes(node)}
    computed = [one for one in ast.walk(tree) if getattr(one, "name", "") in COMPUTES]
    within = {part for one in computed for part in ast.walk(one)}

    def at(line: int, column: int) -> int:
        return sum(map(len, lines[: line - 1])) + column

    for node in (one for one in ast.walk(tree) if isinstance(one, ast.stmt) and one not in within):
        if isinstance(node, DEFINES):
            continue
        start, end = at(node.lineno, node.col_offset), at(node.end_lineno or 0, node.end_col_offset or 0)
        heads = [value for value in ast.iter_child_nodes(node) if isinstance(value, ast.expr)]
        for one in (part for head in heads for part in ast.walk(head)):
            if isinstance(one, ast.Constant) and type(one.value) in (int, float):
                first, last = at(one.lineno, one.col_offset), at(one.end_lineno or 0, one.end_col_offset or 0)
                yield node, text[first:last], text[:first] + repr(one.value + 2) + text[last:]
        if not hasattr(node, "body"):
            yield node, "taken out", text[:start] + "pass" + text[end:]
            loop = parents[node]
            if isinstance(loop, (ast.For, ast.While)) and not isinstance(node, (ast.Break, ast.Continue)):
                before, moved = at(loop.lineno, loop.col_offset), text[start:end] + "\n" + " " * loop.col_offset
                yield node, BEFORE, text[:before] + moved + text[before:start] + "pass" + text[end:]


BEFORE = "before its loop"


@pytest.mark.parametrize("name", SCRIPTS)
def test_each_change_of_a_statement_changes_the_draft(name: str, tmp_path: Path) -> None:
    """So no statement is lost, whichever rule says that it may be passed over; where it stands, its line says."""
    text = HEAD + SCRIPTS[name]
    draft = draft_of(tmp_path, text)
    unseen = []
    for node, what, new in changes(text):
        named = what == BEFORE and re.search(rf"(\.py:|line ){node.lineno}\b", draft)
        if not named and without_lines(draft_of(tmp_path, new)) == without_lines(draft):
            unseen.append((ast.unparse(node), what))
    assert unseen == []


PLAIN = """
net = nn.Linear(4, 7)
opt = torch.optim.SGD(net.parameters(), lr=0.2)
mse = nn.MSELoss()
BEFORE
def train():
    START
    for epoch in range(4):
        for x, y in read():
            INNER
            loss = mse(net(x), y)
            opt.zero_grad()
            loss.backward()
            opt.step()
        EPOCH
MAIN
"""


def plain(folder: Path, **parts: str) -> list[str]:
    """The listed lines of a script with these parts."""
    text = HEAD + PLAIN
    for name in ("before", "start", "inner", "epoch", "main"):
        text = text.replace(name.upper(), parts.get(name, "train()" if name == "main" else "pass"))
    (folder / "train.py").write_text(text)
    return listed(folder / "train.py")


@pytest.mark.parametrize(
    "parts",
    [
        {"before": "sys.exit(0)"},
        {"before": "exit('not finished')"},
        {"before": "def check():\n    sys.exit()\ncheck()"},
        {"before": "if score(net):\n    quit()"},
        {"before": "score(net) or sys.exit()"},
        {"before": "raise SystemExit"},
        {"start": "exit()"},
        {"start": "return"},
        {"start": "raise NotImplementedError"},
        {"inner": "sys.exit()"},
        {"epoch": "sys.exit()"},
    ],
)
def test_what_ends_the_run_before_its_steps_is_listed(parts: dict[str, str], tmp_path: Path) -> None:
    lines = plain(tmp_path, **parts)
    assert any("and never runs" in line or "the run ends here" in line for line in lines)


@pytest.mark.parametrize(
    "parts",
    [
        {"before": "if not score(net):\n    sys.exit('no data')"},
        {"before": "try:\n    read()\nexcept OSError:\n    sys.exit(1)"},
        {"before": "if not score(net):\n    raise ValueError"},
        {"main": "train()\nsys.exit()"},
    ],
)
def test_what_refuses_a_start_or_ends_a_whole_run_is_not(parts: dict[str, str], tmp_path: Path) -> None:
    assert not any("exit" in line or "raise" in line for line in plain(tmp_path, **parts))


def test_a_second_training_is_listed(tmp_path: Path) -> None:
    assert any(line.startswith("train() [steps run here too") for line in plain(tmp_path, main="train()\ntrain()"))


BATCHES = """
rows = read("a.csv")
GIVES
net = nn.Linear(4, 7)
opt = torch.optim.SGD(net.parameters(), lr=0.2)
for epoch in range(4):
    for x, y in OVER:
        loss = nn.functional.mse_loss(net(x), y)
        opt.zero_grad()
        loss.backward()
        opt.step()
"""


@pytest.mark.parametrize(
    "gives, over",
    [
        ("def batches():\n    for row in rows:\n        yield row[:4], row[4:]", "batches()"),
        ("def batches():\n    yield from zip(rows, rows)", "batches()"),
        ("def inner():\n    yield rows, rows\ndef batches():\n    yield from inner()", "batches()"),
        ("class Batches:\n    def all(self):\n        yield rows, rows\nmade = Batches()", "made.all()"),
        ("def batches():\n    got = yield rows, rows", "list(batches())"),
    ],
)
def test_what_a_generator_gives_reaches_training(gives: str, over: str, tmp_path: Path) -> None:
    (tmp_path / "train.py").write_text(HEAD + BATCHES.replace("GIVES", gives).replace("OVER", over))
    assert 'rows = read("a.csv")' in listed(tmp_path / "train.py")


def test_what_a_generator_makes_of_a_loaders_batches_is_listed(tmp_path: Path) -> None:
    gives = "def scaled(of):\n    for x, y in of:\n        yield x * 0.5, y\n"
    gives += "loader = torch.utils.data.DataLoader(rows, batch_size=8)"
    (tmp_path / "train.py").write_text(HEAD + BATCHES.replace("GIVES", gives).replace("OVER", "scaled(loader)"))
    assert any(line.startswith("yield x * 0.5, y") for line in listed(tmp_path / "train.py"))


@pytest.mark.parametrize(
    "begins, use",
    [
        ("rows = []", "rows.append(net(x))"),
        ("rows = []", "rows.insert(0, net(x))"),
        ("rows = {}", "rows[k] = net(x)"),
        ("rows = {'a': []}", "rows['a'].append(net(x))"),
        ("rows, other = [], []", "rows.append(net(x))"),
        ("rows = float('inf')", "rows = min(rows, net(x).sum())"),
        ("rows = None", "rows = net(x) if rows is None else rows + net(x)"),
    ],
)
def test_what_begins_anew_in_a_round_is_listed(begins: str, use: str, tmp_path: Path) -> None:
    inner = f"{begins}\n            for k in range(3):\n                {use}\n            y = made(rows)"
    assert any(line.startswith(begins) for line in plain(tmp_path, inner=inner))
    assert not any(line.startswith("x = x.to") for line in plain(tmp_path, inner="x = x.to('cuda')"))


OPTIONS = """
parser = argparse.ArgumentParser()
parser.add_argument("--lr", type=float, default=0.3)
parser.add_argument("--print-every", type=int, default=9)
args = parser.parse_args()
"""
OBJECT = "class Plan:\n    def __init__(self):\n        self.lr = 0.3\nplan = Plan()\n"


@pytest.mark.parametrize(
    "settings, hands, said",
    [
        (OPTIONS, "opt = make(net, args)", "args.lr is 0.3, args.print_every is 9"),
        (OPTIONS, "opt = make(net, **read(cfg=args))", "args.lr is 0.3"),
        (OPTIONS, "opt = make(net, vars(args))", "args.lr is 0.3"),
        (OPTIONS, "opt = make(net, args.__dict__)", "args.lr is 0.3"),
        (OPTIONS, "table = vars(args)\nopt = make(net, table)", "table.lr is 0.3"),
        (OBJECT, "opt = make(net, plan)", "plan.lr is 0.3"),
        (OBJECT, "opt = make(net, **vars(plan))", "plan.lr is 0.3"),
        ("class Plan:\n    lr = 0.3\n", "opt = make(net, Plan)", "Plan.lr is 0.3"),
        ("table = {'opt': {'lr': 0.3}}\n", "opt = make(net, table['opt'])", "{'lr': 0.3}"),
        ("table = {}\ntable['lr'] = 0.3\n", "opt = make(net, table)", "table['lr'] = 0.3"),
        (OPTIONS + "args.lr = 0.4\n", "opt = make(net, args)", "args.lr = 0.4"),
        (OBJECT + "plan.lr = 0.4\n", "opt = make(net, plan)", "plan.lr = 0.4"),
    ],
)
def test_settings_that_go_whole_to_what_was_not_read_are_said(
    settings: str, hands: str, said: str, tmp_path: Path
) -> None:
    text = HEAD + settings + BATCHES.replace("opt = torch.optim.SGD(net.parameters(), lr=0.2)", hands)
    (tmp_path / "train.py").write_text(text.replace("GIVES\n", "").replace("OVER", "rows"))
    lines = "\n".join(listed(tmp_path / "train.py"))
    assert said in lines and lines.count(" is 0.3") <= 1


METER = """
class Meter:
    def __init__(self):
        self.total = 0
    def update(self, value):
        self.total += value
meter = Meter()
"""


def test_a_meter_is_no_settings_and_what_is_read_alone_is_said_there(tmp_path: Path) -> None:
    text = (
        HEAD
        + OPTIONS
        + METER
        + BATCHES.replace("lr=0.2", "lr=args.lr").replace(
            "mse_loss(net(x), y)", "mse_loss(made(net(x), args, meter), y)"
        )
    )
    (tmp_path / "train.py").write_text(text.replace("GIVES\n", "").replace("OVER", "rows"))
    lines = "\n".join(listed(tmp_path / "train.py"))
    assert "args.print_every is 9" in lines and "args.lr" not in lines and "meter.total is" not in lines


RUNS = """
from torch.utils.data import DataLoader
def loader_of(path, shuffle):
    return DataLoader(read(path), batch_size=8, shuffle=shuffle)
net = nn.Linear(4, 7)
opt = torch.optim.SGD(net.parameters(), lr=0.2)
def run(loader, train):
    for x, y in loader:
        loss = nn.functional.mse_loss(net(x), y)
        if train:
            opt.zero_grad()
            loss.backward()
            opt.step()
first, second = loader_of("a", True), loader_of("b", False)
for epoch in range(4):
    run(first, True)
    run(second, False)
"""


def test_a_validation_that_the_same_call_makes_is_asked_for(tmp_path: Path) -> None:
    (tmp_path / "train.py").write_text(HEAD + RUNS)
    assert drafted(tmp_path / "train.py")["data"]["validation"] == "???"


def test_clearing_before_each_micro_batch_is_no_adding_up(tmp_path: Path) -> None:
    text = HEAD + BATCHES.replace("GIVES\n", "").replace("OVER", "rows")
    text = text.replace("    for x, y in rows:", "    for x, y in read():").replace(
        "        opt.step()", "    opt.step()"
    )
    (tmp_path / "train.py").write_text(text)
    lines = listed(tmp_path / "train.py")
    assert "opt.zero_grad() [at every micro-batch: an update only takes the gradients of the last one]" in lines


ROUNDS = """
net = nn.Linear(4, 7)
opt = torch.optim.SGD(net.parameters(), lr=0.2)
BEGINS
while TEST:
    for x, y in read():
        loss = nn.functional.mse_loss(net(x), y)
        opt.zero_grad()
        loss.backward()
        opt.step()
    CHANGE
"""


@pytest.mark.parametrize(
    "begins, test, change",
    [
        ("k = 3", "k < 30", "k = k + 2"),
        ("k = 3", "k < 30", "k, other = made(k)"),
        ("k = 3", "k < 30", "k = random.random() * 7"),
        ("done = False", "not done", "done = score(net)"),
        ("left = [1]", "left", "left.pop()"),
        ("left = [1]", "len(left) < 7", "left.append(2)"),
        ("at = {'k': 1}", "at['k'] < 9", "at['k'] += 2"),
        ("best = 9.0", "best > 0.3", "best = min(best, loss.item())"),
        ("low, high = 0, 7", "low < high", "low, high = high, low"),
        ("state = made(net)", "state.open", "state = state.next(5)"),
    ],
)
def test_what_a_round_sets_for_the_condition_of_its_loop_is_listed(
    begins: str, test: str, change: str, tmp_path: Path
) -> None:
    text = HEAD + ROUNDS.replace("BEGINS", begins).replace("TEST", test).replace("CHANGE", change)
    (tmp_path / "train.py").write_text(text)
    lines = [line for line in listed(tmp_path / "train.py") if line.startswith(change)]
    assert lines and (begins != "done = False" or "done begins with False" in lines[0])


def test_two_trainings_have_no_one_number_of_epochs(tmp_path: Path) -> None:
    loop = BATCHES.replace("GIVES\n", "").replace("OVER", "rows")
    again = loop[loop.index("for epoch") :].replace("range(4)", "range(40)")
    for text, epochs in ((loop, 4), (loop + again, "???")):
        (tmp_path / "train.py").write_text(HEAD + text)
        assert drafted(tmp_path / "train.py")["train"]["epochs"] == epochs


def test_a_start_that_trains_nothing_by_default_says_so(tmp_path: Path) -> None:
    loop = BATCHES.replace("GIVES\n", "").replace("OVER", "rows").replace("\n", "\n    ")
    text = f'{HEAD}def train(table):{loop}\nparser = argparse.ArgumentParser()\nparser.add_argument("--table")\n'
    (tmp_path / "train.py").write_text(text + "args = parser.parse_args()\nif args.table:\n    train(args.table)\n")
    lines = listed(tmp_path / "train.py")
    assert any(
        line.startswith("train(args.table) [with the defaults of the arguments nothing trains") for line in lines
    )


def test_numbers_of_the_file_that_a_function_computes_with_are_said_where_it_is_called(tmp_path: Path) -> None:
    gives = (
        "size, width = 16, 4\ndef batch():\n    at = random.randrange(width)\n    return rows[at:at + size], rows[at]\n"
    )
    text = HEAD + BATCHES.replace("GIVES", gives).replace(
        "for x, y in OVER:", "for _ in range(9):\n        x, y = batch()"
    )
    (tmp_path / "train.py").write_text(text)
    said = next(line for line in listed(tmp_path / "train.py") if line.startswith("x, y = batch()"))
    assert "size is 16" in said and "width is 4" in said


def test_the_one_value_of_a_loops_variable_is_said(tmp_path: Path) -> None:
    loop = BATCHES.replace("GIVES\n", "").replace("OVER", "made(rows, width)").replace("\n", "\n    ")
    (tmp_path / "train.py").write_text(f"{HEAD}for width in [20]:{loop}\n")
    assert any("width is 20" in line for line in listed(tmp_path / "train.py"))


def test_gradients_that_are_taken_away_one_by_one_are_cleared_at_every_step(tmp_path: Path) -> None:
    text = HEAD + BATCHES.replace("GIVES\n", "").replace("OVER", "rows")
    text = text.replace("opt.zero_grad()", "for one in net.parameters():\n            one.grad = None")
    (tmp_path / "train.py").write_text(text)
    assert not any("add up" in line for line in listed(tmp_path / "train.py"))


IDLE = """
import argparse
import torch
from torch import nn
from torch.utils.data import DataLoader
from elsewhere import Data, Model
def train(args, net):
    loader = DataLoader(Data("a"), batch_size=4, shuffle=True)
    optimizer = torch.optim.SGD(net.parameters(), lr=args.lr)
    criterion = nn.CrossEntropyLoss()
    for epoch in range(3):
        for x, y in loader:
            optimizer.zero_grad()
            loss = criterion(net(x), y)
            {backward}
            optimizer.step()
    return 3, 4
{runner}def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--do_train", action="store_true")
    parser.add_argument("--fp16", action="store_true")
    parser.add_argument("--lr", type=float, default=0.3)
    args = parser.parse_args()
    net = {net}
    {call}
if __name__ == "__main__":
    main()
"""
RUNNER = "class Runner:\n    def run(self, args, net):\n        if args.do_train:\n            train(args, net)\n"
CHOSEN = "if args.do_train:\n        "
APEX = """if args.fp16:
                with amp.scale_loss(loss, optimizer) as scaled:
                    scaled.backward()
            else:
                loss.backward()"""


@pytest.mark.parametrize("net", ["nn.Linear(4, 2)", "Model()", 'Model.from_pretrained("a")'])
@pytest.mark.parametrize("backward", ["loss.backward()", APEX])
@pytest.mark.parametrize(
    "call",
    [
        CHOSEN + "train(args, net)",
        CHOSEN + "step, loss = train(args, net)",
        CHOSEN + "step, loss = train(args, net)\n        print(loss)",
        "if not args.do_train:\n        return\n    train(args, net)",
        "Runner().run(args, net)",
    ],
)
def test_where_nothing_trains_with_the_defaults_the_call_that_does_is_a_line_in_any_function(
    call: str, backward: str, net: str, tmp_path: Path
) -> None:
    """It was one at the top of a file only, and nothing said that `--do_train` is needed."""
    text = IDLE.replace("{runner}", RUNNER if "Runner" in call else "").replace("{call}", call)
    text = text.replace("{net}", net).replace("{backward}", backward)
    (tmp_path / "train.py").write_text(text)
    lines = listed(tmp_path / "train.py")
    said = [line for line in lines if "train(args, net) [with the defaults of the arguments nothing trains" in line]
    assert len(said) == 1
    assert ("do_train" in said[0]) == ("return" not in call)  # which stands in front of it
