"""What a function changes of what it is given, whatever it gives back; and sums, which change nothing."""

from __future__ import annotations

from pathlib import Path

import pytest
from drafts import listed

SCRIPT = """
import torch
from torch import nn
from torch.utils.data import DataLoader
from torchvision import datasets, transforms
from elsewhere import read
{top}
net = nn.Linear(4, 2)
data = datasets.ImageFolder("a", transforms.ToTensor())
loader = DataLoader(data, batch_size=4, shuffle=True)
optimizer = torch.optim.SGD(net.parameters(), lr=0.3)
criterion = nn.CrossEntropyLoss()
def train(epoch):
    {begin}
    for x, y in loader:
        {first}
        loss = criterion(net(x), y)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        {step}
    {end}
for epoch in range(3):
    train(epoch)
"""
AT = {"begin": 4, "first": 8, "step": 8, "end": 4, "top": 0}


def lines_of(folder: Path, **parts: str) -> list[str]:
    text = SCRIPT
    for name, indent in AT.items():
        text = text.replace(f"{{{name}}}", parts.get(name, "pass").replace("\n", "\n" + " " * indent))
    (folder / "train.py").write_text(text)
    return listed(folder / "train.py")


CHANGES = [
    *("del rows[0]", "del rows[1:]", "rows[0] = 3", "rows[:] = []", "rows.pop()", "rows += [3]", "rows.size = 3"),
    *("rows[0], rows[1] = rows[1], rows[0]", 'rows[0], *rest = read("k")', "rows[0][1] = 3", "del rows.size"),
    *("part = rows\npart.pop()", "part = rows[0]\npart.pop()", 'setattr(rows, "size", 3)', "rows.clear()"),
    *("rows.sort()", "rows.reverse()", "rows.__setitem__(0, 3)", "rows.__delitem__(0)", "rows.fill_(3)"),
    *("rows.put(0, 3)", "[one.pop() for one in rows]", "list(map(rows.remove, [3]))", "rows[0] += 3"),
    *("import random\nrandom.shuffle(rows)", "import heapq\nheapq.heapify(rows)"),
    *("import functools\nfunctools.partial(rows.pop)()", "import operator\noperator.setitem(rows, 0, 3)"),
    *("for one in rows:\n    one[0] = 3", "while len(rows) > 3:\n    rows.pop()", "torch.add(rows, 3, out=rows)"),
]


@pytest.mark.parametrize("change", CHANGES)
@pytest.mark.parametrize("call", ["cut(rows)", "got = cut(rows)"])
def test_what_a_function_changes_of_its_argument_is_in_a_line_or_its_call_is(
    change: str, call: str, tmp_path: Path
) -> None:
    body = change.replace("\n", "\n    ")
    top = f'rows = read("a")\ndef cut(rows):\n    {body}\n    return 3'
    found = lines_of(tmp_path, top=top, end=call, first="y = y + rows[0]")
    last = change.splitlines()[-1].strip()
    assert any(line.startswith((last, call)) for line in found)


@pytest.mark.parametrize(
    "parts",
    [
        {"begin": "total = 0", "step": "total += loss.item()", "end": "print(total)"},
        {"begin": "n = 0", "step": "n += 1", "end": "print(n)"},
        {"begin": "n = 0", "step": "n += 1", "end": "return n"},
        {"begin": "n = 1", "step": "n *= 2", "end": "print(n)"},
        {"begin": "right = 0.0", "step": "right += (y > 3).sum().item()", "end": "print(right / 3)"},
    ],
)
def test_a_sum_that_only_a_log_reads_is_in_no_line(parts: dict[str, str], tmp_path: Path) -> None:
    """`train(epoch)` as a statement made every `+=` in it count as a change of something outside."""
    assert not any(line.startswith(parts["step"]) for line in lines_of(tmp_path, **parts))


@pytest.mark.parametrize(
    ("parts", "line"),
    [
        ({"begin": "n = 0", "step": "n += 1\nif n > 5:\n    break"}, "n += 1"),
        ({"begin": "n = 1", "step": "n += 1", "first": "y = y * n"}, "n += 1"),
        ({"top": "n = 1", "begin": "global n", "step": "n += 1", "first": "y = y * n"}, "n += 1"),
        ({"begin": "total = 0", "step": "net.kept = total\ntotal += loss"}, "net.kept = total"),
        ({"begin": "total = torch.zeros(1)", "step": "total += loss", "first": "y = y * total"}, "total += loss"),
        ({"begin": "w = net.weight", "step": "w += 0.1"}, "w += 0.1"),
        (
            {"top": "def check(net):\n    net.weight.data.mul_(0.5)\n    return 3", "end": "got = check(net)"},
            "net.weight",
        ),
    ],
)
def test_a_sum_that_training_reads_or_an_object_that_it_changes_is_listed(
    parts: dict[str, str], line: str, tmp_path: Path
) -> None:
    assert any(one.startswith(line) for one in lines_of(tmp_path, **parts))
