"""Files that data are read from: a line says which file it is, wherever it is opened."""

from __future__ import annotations

from pathlib import Path

import pytest
from drafts import listed
from msmigrate.migrate.analyze.script_analysis import analyze_script
from msmigrate.reports.script_analysis import recipe_text

SCRIPT = """
import argparse, csv, gzip, json, os, pickle, zipfile
import torch
from torch import nn
from pathlib import Path
from torch.utils.data import DataLoader, TensorDataset
parser = argparse.ArgumentParser()
parser.add_argument("--data", default="words.txt")
parser.add_argument("--folder", default="texts")
args = parser.parse_args()
{read}
rows = torch.tensor(rows)
loader = DataLoader(TensorDataset(rows, rows), batch_size=4, shuffle=True)
net = nn.Linear(4, 2)
optimizer = torch.optim.SGD(net.parameters(), lr=0.3)
criterion = nn.CrossEntropyLoss()
for epoch in range(3):
    for x, y in loader:
        optimizer.zero_grad()
        loss = criterion(net(x), y)
        loss.backward()
        optimizer.step()
    {end}
"""
EACH = ":\n    for line in f:\n        rows.append(int(line))"


def script(folder: Path, read: str, end: str = "pass") -> Path:
    """A script that reads its data like this."""
    (folder / "train.py").write_text(SCRIPT.replace("{read}", read).replace("{end}", end))
    return folder / "train.py"


@pytest.mark.parametrize(
    "read",
    [
        'rows = []\nwith open("words.txt") as f' + EACH,
        'rows = []\nwith open("words.txt") as f' + EACH.replace("in f:", "in f.readlines():"),
        'rows = []\nwith open("words.txt") as f' + EACH.replace("line in f:", "index, line in enumerate(f):"),
        'rows = []\nwith open("words.txt") as f' + EACH.replace(":\n    for", ":\n    next(f)\n    for", 1),
        'rows = []\nwith open("words.txt") as f:\n    while line := f.readline():\n        rows.append(int(line))',
        'with open("words.txt") as f:\n    rows = [int(one) for one in f.read()]',
        'with open("words.txt") as f:\n    rows = [int(one) for one in f]',
        'with open("words.txt") as f:\n    g = f.readlines()\nrows = []\nfor a in g:\n    rows.append(int(a))',
        'f = open("words.txt")\nrows = [int(one) for one in f.read()]',
        'f = open("words.txt")\nrows = []\nfor line in f:\n    rows.append(int(line))',
        'rows = []\nfor line in open("words.txt"):\n    rows.append(int(line))',
        'with open("words.txt") as f:\n    rows = json.load(f)',
        'with open("words.txt", "rb") as f:\n    rows = pickle.load(f)',
        'with open("words.txt", mode="r+") as f:\n    rows = json.load(f)',
        'rows = []\nwith open("words.txt") as f:\n    for row in csv.reader(f):\n        rows.append(int(row[0]))',
        'rows = []\nwith open("words.txt") as f:\n    g = csv.reader(f)\n    for a in g:\n        rows += [int(a[0])]',
        'rows = []\nwith gzip.open("words.txt") as f' + EACH,
        'rows = []\nwith Path("words.txt").open() as f' + EACH,
        'rows = [int(one) for one in Path("words.txt").read_text()]',
        'rows = list(Path("words.txt").read_bytes())',
        "rows = []\nwith open(args.data) as f" + EACH,
        'path = os.path.join(args.folder, "words.txt")\nrows = []\nwith open(path) as f' + EACH,
        'rows = []\nwith open(os.path.join(args.folder, "words.txt")) as f' + EACH,
        'rows = []\nwith open(f"{args.folder}/words.txt") as f' + EACH,
        'PATH = "words.txt"\nrows = []\nwith open(PATH) as f' + EACH,
        'rows = []\nfor index in range(3):\n    with open(f"words.txt{index}") as f' + EACH.replace("\n", "\n    "),
        'rows = []\nwith open("more.txt") as g, open("words.txt") as f' + EACH,
    ],
)
def test_a_line_says_which_file_the_data_are_read_from(read: str, tmp_path: Path) -> None:
    """What was read of it was in a line, and where it was opened in none."""
    assert "words.txt" in recipe_text(analyze_script(script(tmp_path, read)))


@pytest.mark.parametrize(
    "end",
    [
        'with open("log.txt", "w") as f:\n        f.write(str(epoch))',
        'with open("log.txt", mode="a") as f:\n        json.dump(epoch, f)',
        'f = open("log.txt", "w")\n    f.write(str(epoch))',
        'with open("log.txt") as f:\n        print(f.read())',
        'print(Path("log.txt").read_text())',
    ],
)
def test_files_that_reach_no_training_are_no_lines(end: str, tmp_path: Path) -> None:
    assert not any("log.txt" in line for line in listed(script(tmp_path, "rows = [1, 2]", end)))
