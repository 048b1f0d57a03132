"""What holds only at the start: a state that a loop, a function or an unknown place of a list changes, and the result
of a function that may return before."""

from __future__ import annotations

from pathlib import Path

import pytest
from drafts import drafted, listed

HEAD = """
import random, torch, torch.nn as nn

class Part:
    def __init__(self):
        self.n, self.rows = 0, [0, 0]

class Game:
    def __init__(self):
        self.board, self.tab, self.rows = [[0, 0], [0, 0]], {"a": 0, "b": {"n": 0}}, []
        self.parts, self.part, self.n = [Part(), Part()], Part(), 0

    def write(self, i):
        self.board[i][0] = 1

    def other(self, of):
        of.n = 1

def step(game):
    game.n += 1

def deeper(one):
    step(one)

def put(tab):
    tab["a"] = 1

def change(of):
    of.n = 1

def make(game, i):
    game.board[i][0] = 1

def mark(row):
    row[0] = 1

def won(game):
    for row in game.board:
        if row[0] == 1:
            return True
    return False

net = nn.Linear(4, 7)
opt = torch.optim.SGD(net.parameters(), lr=0.2)
game, k = Game(), int(input())
"""
CORNER = "game.board[0][0] == 0"


def script(folder: Path, text: str) -> Path:
    """The script of this text."""
    written = folder / "train.py"
    written.write_text(text)
    return written


@pytest.mark.parametrize(
    "change, test",
    [
        ("game.board[k][0] = 1", CORNER),
        ("del game.board[k][0]", "len(game.board[0]) == 2"),
        ("game.board[k].clear()", "len(game.board[0]) == 2"),
        ("make(game, k)", CORNER),
        ("make(game, k)", "not won(game)"),
        ("mark(game.board[k])", CORNER),
        ("mark(max(game.board))", CORNER),
        ("random.choice(game.board)[0] = 1", CORNER),
        ("first = sorted(game.board)[0]\nfirst[0] = 1", CORNER),
        ("list(game.tab.values())[k]['n'] = 1", "game.tab['b']['n'] == 0"),
        ("change(game.parts[k])", "game.parts[0].n == 0"),
        ("change(next(iter(game.parts)))", "game.parts[0].n == 0"),
        ("one = game.part if k else game.parts[0]\nchange(one)", "game.part.n == 0"),
        ("mark(game.parts[k].rows)", "game.parts[0].rows[0] == 0"),
    ],
)
def test_a_write_to_one_of_several_objects_leaves_no_branch_out(change: str, test: str, tmp_path: Path) -> None:
    text = HEAD + change + f"\nif {test}:\n    rate = 0.301\nelse:\n    rate = 0.302\n"
    text += "for epoch in range(4):\n    for x, y in read():\n        opt.zero_grad()\n"
    text += (
        "        loss = nn.functional.cross_entropy(net(x), y) * rate\n        loss.backward()\n        opt.step()\n"
    )
    lines = "\n".join(listed(script(tmp_path, text)))
    assert "rate = 0.301" in lines and "rate = 0.302" in lines
    assert "rate is 0.30" not in lines


LOOP = """
def train(net, opt, game):
    for epoch in range(4):
        for x, y in read():
            if TEST:
                rate = 0.301
            else:
                rate = 0.302
            opt.zero_grad()
            loss = nn.functional.cross_entropy(net(x), y) * rate
            loss.backward()
            opt.step()
            CHANGE

train(net, opt, Game())
"""


@pytest.mark.parametrize(
    "change, test",
    [
        ("step(game)", "game.n == 0"),
        ("deeper(game)", "game.n == 0"),
        ("done = step(game) or loss", "game.n == 0"),
        ("change(of=game.part)", "game.part.n == 0"),
        ("game.other(game.part)", "game.part.n == 0"),
        ("one = game.part\n            one.n = 1", "game.part.n == 0"),
        ("for one in game.parts:\n                change(one)", "game.parts[0].n == 0"),
        ("put(game.tab)", "game.tab['a'] == 0"),
        ("game.tab.update(a=1)", "game.tab['a'] == 0"),
        ("game.rows.append(1)", "not game.rows"),
        ("game.rows.append(1)", "len(game.rows) == 0"),
        ("game.write(int(x[0]))", CORNER),
        ("make(game, int(x[0]))", "not won(game)"),
        ("row = game.board[int(x[0])]\n            row[0] = 1", CORNER),
        ("setattr(game, str(x), 1)", "game.n == 0"),
        ("does = step\n            does(game)", "game.n == 0"),
    ],
)
def test_what_a_round_changes_is_not_said_of_the_first(change: str, test: str, tmp_path: Path) -> None:
    text = HEAD + LOOP.replace("CHANGE", change).replace("TEST", test)
    lines = "\n".join(listed(script(tmp_path, text)))
    assert "rate = 0.301" in lines and "rate = 0.302" in lines
    assert "rate is 0.30" not in lines


PLAIN = """
import torch, torch.nn as nn
BEFORE
net = nn.Linear(4, 7)
opt = torch.optim.SGD(net.parameters(), lr=pick(int(input())))
for epoch in range(4):
    for x, y in read():
        opt.zero_grad()
        nn.functional.cross_entropy(net(x), y).backward()
        opt.step()
"""


@pytest.mark.parametrize(
    "body, rate",
    [
        ("    for r in [1, 2]:\n        if r > k:\n            return 0.3\n    return 0.5", "???"),
        ("    for r in range(k):\n        if r > 7:\n            return 0.3\n    return 0.5", "???"),
        (
            "    for r in [1, 2]:\n        while r:\n            if r > k: return 0.3\n    return 0.5",
            "???",
        ),
        ("    match k:\n        case 1:\n            return 0.3\n    return 0.5", "???"),
        ("    for r in [1, 2]:\n        if r == k: break\n    else:\n        return 0.3\n    return 0.5", "???"),
        ("    for r in [1, 2]:\n        if r > k:\n            return 0.5\n    return 0.5", 0.5),
        ("    try:\n        return 0.3\n    except ValueError:\n        return 0.5", 0.3),
        ("    for r in [1, 2]:\n        if r > 7:\n            return 0.3\n    return 0.5", 0.5),
    ],
)
def test_a_function_that_may_return_before_gives_no_value(body: str, rate: object, tmp_path: Path) -> None:
    draft = drafted(script(tmp_path, PLAIN.replace("BEFORE", f"def pick(k):\n{body}")))
    assert draft["optimizer"]["args"]["lr"] == rate
