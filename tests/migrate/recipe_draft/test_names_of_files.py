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


OTHER = "rows = load_birds(7001)\n"


@pytest.mark.parametrize(
    "imported, use, files",
    [
        ("from inner import *", "rows", {"inner.py": OTHER}),
        ("from inner import *\nmore = rows + other", "more", {"inner.py": OTHER}),
        ("from outer import *", "rows", {"outer.py": "from inner import rows\n", "inner.py": OTHER}),
        (
            "from outer import make",
            "make()",
            {"outer.py": "from inner import *\ndef make():\n    return rows\n", "inner.py": OTHER},
        ),
        ("from pack import rows", "rows", {"pack/__init__.py": "from .inner import *\n", "pack/inner.py": OTHER}),
        ("from pack import rows", "rows", {"pack/__init__.py": "from .inner import rows\n", "pack/inner.py": OTHER}),
        ("from pack import a", "a", {"pack/__init__.py": "from .inner import rows as a\n", "pack/inner.py": OTHER}),
        ("import pack", "pack.rows", {"pack/__init__.py": "from .inner import *\n", "pack/inner.py": OTHER}),
    ],
)
def test_what_another_file_binds_is_listed_however_it_is_imported(
    imported: str, use: str, files: dict[str, str], tmp_path: Path
) -> None:
    for name, text in files.items():
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text(text)
    (tmp_path / "train.py").write_text(SCRIPT.replace("DEFS", imported).replace("BIND", "pass").replace("ROWS", use))
    assert any("7001" in line for line in listed(tmp_path / "train.py"))
