"""Say what an examination found: for a terminal and as JSON."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict
from typing import Any

from rich.table import Table
from rich.text import Text

from ..doctor.machine import OK, PROBLEM, WARNING, Finding, blocks
from ..printable import count_text
from .terminal import Console

COLOURS = {OK: "green", WARNING: "yellow", PROBLEM: "bold red"}


def show(findings: Sequence[Finding], console: Console) -> None:
    """Print a line for each finding, what to change below it, and the verdict."""
    grid = Table("check", "", "found", box=None, pad_edge=False, padding=(0, 2, 0, 0))
    grid.columns[0].no_wrap = True
    grid.columns[2].overflow = "fold"
    for finding in findings:
        grid.add_row(finding.check, Text(finding.state, COLOURS[finding.state]), Text(finding.found))
        if finding.change:
            grid.add_row("", "", Text(finding.change, "bold"))
        if finding.command:
            grid.add_row("", "", Text(f"    {finding.command}", "cyan"))
    with console.capture() as captured:
        console.print(grid)
    console.file.write("\n".join(line.rstrip() for line in captured.get().splitlines()) + "\n\n")
    console.print(verdict(findings), soft_wrap=True)


def verdict(findings: Sequence[Finding]) -> str:
    """One sentence: what has to be changed, and how many warnings there are."""
    problems = [finding.check for finding in findings if finding.state == PROBLEM]
    warnings = sum(finding.state == WARNING for finding in findings)
    also = f" {count_text(warnings, 'warning')}." if warnings else ""
    if not problems:
        return f"Nothing has to be changed.{also}"
    return f"To change: {', '.join(problems)}.{also}"


def as_json(findings: Sequence[Finding]) -> dict[str, Any]:
    """The same for programs; `sound` says that nothing has to be changed."""
    return {"sound": not blocks(findings), "checks": [asdict(finding) for finding in findings]}
