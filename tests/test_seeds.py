"""docs/seeds.md: its steps are numbered, its commands parse, and the tests and files that it names exist."""

from __future__ import annotations

import ast
import re
import shlex
from functools import cache
from pathlib import Path

import click
import pytest
from msmigrate.cli.group import cli

ROOT = Path(__file__).parents[1]
PAGE = ROOT / "docs" / "seeds.md"
ROW = re.compile(r"^\| (\d+) \| ([^|]+) \| ([^|]+) \| (?:`([^|`]+)` )?\s*\|$")
PLAIN = ("Not done", "Not shown")  # of a step without a test


@cache
def names_in(file: Path) -> frozenset[str]:
    """The names of a file's tests, read and not imported."""
    tree = ast.parse(file.read_text(encoding="utf-8"))
    return frozenset(node.name for node in tree.body if isinstance(node, ast.FunctionDef))


def wrong(page: str) -> list[str]:
    """What is not as the page says."""
    found = []
    for section in page.split("\n## ")[1:]:
        lines = [line for line in section.splitlines() if re.match(r"\| \d", line)]
        rows = [ROW.match(line) for line in lines]
        found += [f"no row: {line}" for line, row in zip(lines, rows, strict=True) if row is None]
        numbers = [int(row[1]) for row in rows if row is not None]
        found += [f"{section.splitlines()[0]}: not numbered"] * (numbers != list(range(1, len(lines) + 1)) or not lines)
        for row in (row for row in rows if row is not None):
            found += [problem for code in re.findall(r"`(msmigrate [^`]+)`", row[3]) if (problem := of_command(code))]
            file, _, name = (row[4] or "").partition("::")
            there = bool(file) and (ROOT / file).is_file() and name in names_in(ROOT / file)
            plain = not file and any(word in row[3] for word in PLAIN)
            found += [] if there or plain else [f"no test {row[4]} in step {row[1]}"]
    for link in re.findall(r"\]\(([^)#]+)", page):
        found += [] if (PAGE.parent / link).exists() else [f"no file {link}"]
    return found


def of_command(line: str) -> str | None:
    """Why a line of the page is no command; its places are names, and are not looked at."""
    name, *words = shlex.split(line)[1:]
    command: click.Command | None = cli
    context = cli.make_context("msmigrate", ["-"], resilient_parsing=True)  # with the settings that all share
    while isinstance(command, click.Group):
        command = command.get_command(context, name)
        if isinstance(command, click.Group):
            name, *words = words
    if command is None:
        return f"no command: {line}"
    if words == ["-h"]:
        return None
    try:
        command.make_parser(click.Context(command, parent=context)).parse_args(words)
    except click.UsageError as error:
        return f"{line}: {error.message}"
    return None


def test_the_page_is_as_the_project_is() -> None:
    assert wrong(PAGE.read_text(encoding="utf-8")) == []


@pytest.mark.parametrize(
    ("was", "becomes", "says"),
    [
        ("\n| 2 | ", "\n| 9 | ", "not numbered"),
        ("`msmigrate doctor`", "`msmigrate heal`", "no command: msmigrate heal"),
        ("--nproc 4", "--processes 4", "No such option"),
        ("Not done: the run feeds", "Done: the run feeds", "no test None in step 32"),
        ("test_own_step.py::test_correct", "test_own_step.py::test_wrong", "no test tests/parity/align/test_own_step"),
        ("(your_own_pair.md)", "(your_own_pear.md)", "no file your_own_pear.md"),
    ],
)
def test_what_is_wrong_in_it_is_seen(was: str, becomes: str, says: str) -> None:
    page = PAGE.read_text(encoding="utf-8")
    assert was in page
    assert any(says in problem for problem in wrong(page.replace(was, becomes)))
