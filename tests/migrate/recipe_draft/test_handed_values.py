"""Values that a call hands to a function inside of the one that it calls, those of loops and of lambdas, and those that
another start of the same function would have."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from drafts import listed
from msmigrate.migrate.analyze.script_analysis import analyze_script
from msmigrate.reports.script_analysis import recipe_text

HEAD = """
import argparse, functools, torch, torch.nn as nn
from torch.optim.lr_scheduler import LambdaLR
from torch.utils.data import DataLoader, Dataset

class Birds(Dataset):
    def __init__(self, rows, change=None):
        self.rows, self.change = rows, change

    def __getitem__(self, i):
        return self.change(self.rows[i]), 1

class Net(nn.Module):
    def __init__(self, n=4, act=None):
        super().__init__()
        self.body, self.act = nn.Linear(n, 7), act

    def forward(self, x):
        return self.act(self.body(x))
"""
REST = """
loader = LOADER
net = NET
opt = torch.optim.SGD(net.parameters(), lr=0.2)
MORE
for epoch in range(4):
    for x, y in loader:
        opt.zero_grad()
        loss = LOSS
        loss.backward()
        opt.step()
"""
PLAIN = {
    "LOADER": "DataLoader(Birds(read('x')), batch_size=16)",
    "NET": "Net()",
    "MORE": "pass",
    "LOSS": "nn.functional.cross_entropy(net(x), y)",
}
RAMP = "def warmed(opt, n):\n    def ramp(i):\n        return min(1.0, i / n)\n    return LambdaLR(opt, ramp)\n"


def draft(tmp_path: Path, before: str = "", **parts: str) -> str:
    """The text of the draft of a script with other parts."""
    text = HEAD + before + "\n" + REST
    for name, value in {**PLAIN, **parts}.items():
        text = text.replace(name, value)
    written = tmp_path / "train.py"
    written.write_text(text)
    return recipe_text(analyze_script(written))


@pytest.mark.parametrize(
    "before, part, value",
    [
        (RAMP, "MORE", "moves = warmed(opt, 7001)"),
        (RAMP, "MORE", "moves = warmed(opt, n=7001)"),
        (RAMP.replace("opt, n)", "opt, n=7001)"), "MORE", "moves = warmed(opt)"),
        ("def warmed(opt, n):\n    return LambdaLR(opt, lambda i: i / n)", "MORE", "moves = warmed(opt, 7001)"),
        (
            "def warmed(opt, c):\n    return LambdaLR(opt, lambda i: i / c['n'])",
            "MORE",
            "moves = warmed(opt, {'n': 7001})",
        ),
        (
            "def value(i, n):\n    return i / n\n"
            "def warmed(opt, n):\n    return LambdaLR(opt, functools.partial(value, n=n))",
            "MORE",
            "moves = warmed(opt, 7001)",
        ),
        (
            "class Moves:\n    def __init__(self, opt, n):\n        self.n = n\n"
            "        self.moves = LambdaLR(opt, self.at)\n    def at(self, i):\n        return i / self.n",
            "MORE",
            "moves = Moves(opt, 7001).moves",
        ),
        (
            "def make(n):\n    def cut(x):\n        return x[:n]\n    return Birds(read('x'), cut)",
            "LOADER",
            "DataLoader(make(7001), 16)",
        ),
        (
            "def make(n):\n    def join(rows):\n        return torch.stack(rows)[:n]\n"
            "    return DataLoader(Birds(read('x')), batch_size=16, collate_fn=join)",
            "LOADER",
            "make(7001)",
        ),
        ("def make(n):\n    def act(x):\n        return x * n\n    return Net(4, act)", "NET", "make(7001)"),
        (
            "def clip(net, n):\n    def cut(g):\n        return g.clamp(-n, n)\n"
            "    for p in net.parameters():\n        p.register_hook(cut)",
            "MORE",
            "clip(net, 7001)",
        ),
    ],
)
def test_a_number_for_an_inner_function_is_in_the_draft(tmp_path: Path, before: str, part: str, value: str) -> None:
    assert "7001" in draft(tmp_path, before, **{part: value})


@pytest.mark.parametrize(
    "before, part, value",
    [
        ("make = lambda n=7001: Net(n)", "NET", "make()"),
        ("make = lambda rows, n=7001: DataLoader(rows, batch_size=n)", "LOADER", "make(Birds(read('x')))"),
        ("crit = lambda a, b, n=7001: n * nn.functional.cross_entropy(a, b)", "LOSS", "crit(net(x), y)"),
        ("crit = lambda a, b: 7001 * nn.functional.cross_entropy(a, b)", "LOSS", "crit(net(x), y)"),
    ],
)
def test_a_lambda_with_defaults_or_more_than_a_call_is_listed(
    tmp_path: Path, before: str, part: str, value: str
) -> None:
    text = draft(tmp_path, before, **{part: value})
    assert before in text and "7001" in text


def test_a_lambda_that_only_calls_is_not(tmp_path: Path) -> None:
    draft(tmp_path, "crit = lambda a, b: nn.functional.cross_entropy(a, b)", LOSS="crit(net(x), y)")
    assert not any(line.startswith("crit") for line in listed(tmp_path / "train.py"))


def test_a_listed_line_says_the_list_that_its_loop_goes_over(tmp_path: Path) -> None:
    at = "MORE\nSTEPS = [120, 160]\ndef set_rate(opt, epoch):\n    rate = 0.2\n    for at in STEPS:\n"
    at += (
        "        rate *= 0.1 if epoch >= at else 1.0\n    for group in opt.param_groups:\n        group['lr'] = rate\n"
    )
    text = draft(
        tmp_path, MORE=at.removeprefix("MORE\n"), LOSS="set_rate(opt, epoch) or nn.functional.cross_entropy(net(x), y)"
    )
    assert re.search(r"rate \*= 0.1 .*STEPS is \[120, 160\]", text)


def test_a_start_that_an_option_chooses_changes_no_value(tmp_path: Path) -> None:
    script = (
        HEAD
        + """
parser = argparse.ArgumentParser()
parser.add_argument("--spawn", action="store_true")
parser.add_argument("--kind", default="deep")
parser.add_argument("--steps", default=[120, 160], type=int, nargs="*")

def work(rank, args):
    net = pick(args.kind)
    opt = torch.optim.SGD(net.parameters(), lr=0.2)
    for epoch in range(4):
        for at in args.steps:
            opt.param_groups[0]["lr"] *= 0.1 if epoch == at else 1
        for x, y in DataLoader(Birds(read("x")), batch_size=16):
            opt.zero_grad()
            nn.functional.cross_entropy(net(x), y).backward()
            opt.step()

def main():
    args = parser.parse_args()
    if args.spawn:
        torch.multiprocessing.spawn(work, nprocs=4, args=(args,))
    else:
        work(0, args)

main()
"""
    )
    (tmp_path / "train.py").write_text(script)
    text = "\n".join(listed(tmp_path / "train.py"))
    assert "args.kind is 'deep'" in text and "args.steps is [120, 160]" in text
