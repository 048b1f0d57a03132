"""Names that a function gives its file: `global rows`, `globals()["rows"]`, and what else binds them."""

from __future__ import annotations

from pathlib import Path

import pytest
from drafts import listed

SCRIPT = """
import builtins, sys, torch, torch.nn as nn
import settings
DEFS

def main():
    BIND
    net = nn.Linear(4, 7)
    opt = torch.optim.SGD(net.parameters(), lr=0.2)
    for epoch in range(4):
        train(net, opt)

def train(net, opt):
    for x, y in ROWS:
        opt.zero_grad()
        nn.functional.cross_entropy(net(x), y).backward()
        opt.step()

main()
"""


@pytest.mark.parametrize("defs", ["", "rows = None"])
@pytest.mark.parametrize(
    "bind",
    [
        "global rows\n    rows = load_birds(7001)",
        "global rows, other\n    rows, other = load_birds(7001)",
        "global rows\n    rows: list = load_birds(7001)",
        "global rows\n    with load_birds(7001) as rows:\n        pass",
        "global rows\n    for rows in load_birds(7001):\n        pass",
        "global rows\n    if (rows := load_birds(7001)):\n        pass",
        "global rows\n    rows = []\n    rows.append(load_birds(7001))",
        "def inner():\n        global rows\n        rows = load_birds(7001)\n    inner()",
        "globals()['rows'] = load_birds(7001)",
        "globals().update(rows=load_birds(7001))",
        "globals().setdefault('rows', load_birds(7001))",
        "builtins.rows = load_birds(7001)",
        "sys.modules[__name__].rows = load_birds(7001)",
    ],
)
def test_what_a_function_gives_its_file_is_listed(bind: str, defs: str, tmp_path: Path) -> None:
    text = SCRIPT.replace("DEFS", defs).replace("BIND", bind).replace("ROWS", "rows")
    (tmp_path / "train.py").write_text(text)
    assert any("7001" in line for line in listed(tmp_path / "train.py"))


@pytest.mark.parametrize("bind", ["settings.rows = load_birds(7001)", "vars(settings)['rows'] = load_birds(7001)"])
def test_so_is_what_it_gives_another_file(bind: str, tmp_path: Path) -> None:
    (tmp_path / "settings.py").write_text("size = 3\n")
    text = SCRIPT.replace("DEFS", "").replace("BIND", bind).replace("ROWS", "settings.rows")
    (tmp_path / "train.py").write_text(text)
    assert any("7001" in line for line in listed(tmp_path / "train.py"))


def test_where_settings_come_from_is_said(tmp_path: Path) -> None:
    """The call that reads them stands in the function that declares their name."""
    text = SCRIPT.replace("DEFS", "").replace("BIND", "global cfg\n    cfg = load('birds.yaml')")
    (tmp_path / "train.py").write_text(text.replace("ROWS", "read(cfg['data'])").replace("lr=0.2", "lr=cfg['rate']"))
    lines = listed(tmp_path / "train.py")
    assert any(line.startswith("cfg = load('birds.yaml')") for line in lines)


@pytest.mark.parametrize("bind", ["globals().update(load_birds(7001))", "vars(elsewhere()).update(load_birds(7001))"])
def test_names_that_reading_cannot_tell_are_listed(bind: str, tmp_path: Path) -> None:
    text = SCRIPT.replace("DEFS", "").replace("BIND", bind).replace("ROWS", "rows")
    (tmp_path / "train.py").write_text(text)
    assert any("7001" in line for line in listed(tmp_path / "train.py"))
