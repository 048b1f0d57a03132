"""Every id that diagnosis can give a cause has its page: the ids are read from the sources, nothing is run."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import msmigrate
import pytest
from msmigrate.mappings import row_reader, table

PARITY = Path(msmigrate.__file__).parent / "parity"
FILES = [
    *sorted((PARITY / "diagnosis").rglob("*.py")),
    PARITY / "align" / "mismatched_tensors.py",
]  # where causes are made
OF_AN_ID = re.compile(r"[a-z0-9]+(-[a-z0-9]+)+")
NO_IDS = {"utf-8", "nearest-exact"}  # an encoding, and a rule of resizing
# where the fault's id stands among the arguments
MAKERS = {"cause": 2, "Cause": 2, "Hypothesis": 0, "ImageDifference": 0}


def ids(source: str) -> set[str]:
    """What is written as an id, and what is handed over as one, which may be a single word."""
    tree = ast.parse(source)
    written = {text for node in ast.walk(tree) for text in texts(node) if OF_AN_ID.fullmatch(text)}
    for node in ast.walk(tree):
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id in MAKERS:
            at = MAKERS[node.func.id]
            given = [*node.args[at : at + 1], *(word.value for word in node.keywords if word.arg == "fault")]
            written |= {text for value in given for text in texts(value)}
    return written - NO_IDS


def texts(node: ast.AST) -> Iterator[str]:
    """The string that a literal is, or the two that `a if b else c` may be."""
    if isinstance(node, ast.IfExp):
        yield from (*texts(node.body), *texts(node.orelse))
    elif isinstance(node, ast.Constant) and isinstance(node.value, str):
        yield node.value


@pytest.mark.parametrize("file", [file.relative_to(PARITY).as_posix() for file in FILES])
def test_every_id_of_a_cause_has_a_page(file: str) -> None:
    assert ids((PARITY / file).read_text(encoding="utf-8")) <= set(table.faults())


def test_every_general_fault_is_one_that_diagnosis_names() -> None:
    found = {name for file in FILES for name in ids(file.read_text(encoding="utf-8"))}
    general = row_reader.read_faults(table.FAULTS)["tried_on_every_recipe"]
    assert {fault.id for fault in general} <= found
    assert not any(fault.hypothesis for fault in general)  # they stand in the code


@pytest.mark.parametrize(
    "source",
    [
        'cause("loss", "loss", "no-such-fault", "text")',
        'cause("loss", "loss", "nosuch" if how == "value" else None, "text")',
        'Cause("loss", "loss", fault="nosuch", text="text")',
        'yield Hypothesis("nosuch", "text", loss)',
        'yield otherwise(op, "text", do, "no-such-fault")',
        'tries = {"no-such-fault": ("text", 1.0)}',
    ],
)
def test_an_id_without_a_page_is_found(source: str) -> None:
    assert ids(source) - set(table.faults()) in ({"nosuch"}, {"no-such-fault"})


def test_what_is_no_id_is_left_alone() -> None:
    assert ids('path.read_text(encoding="utf-8"); text = f"{a}-{b}"; kind = "bicubic"') == set()
