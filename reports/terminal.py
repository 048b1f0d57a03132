"""The terminal of all reports: texts are shown as they are, neither obeyed as control codes nor read as markup."""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any

import rich.console
import rich.progress
from rich.segment import Segment
from rich.table import Table
from rich.text import Text

from ..printable import MANNER, printable, printable_lines

if TYPE_CHECKING:
    from ..doctor.machine import Finding

WIDE = 10_000  # columns outside of a terminal: whoever reads the output breaks its lines
BLANKS = re.compile(r" +(?=(\x1b\[[\d;]*m)*$)", re.MULTILINE)


def one_line(text: str, style: str = "") -> Text:
    """A text that stays on one line of its own, whatever it contains."""
    return Text(printable(text), style)


class Console(rich.console.Console):
    """Rich's console without markup in texts ("[red]" may be a name), without colours that rich adds by itself, and
    with what cannot be printed escaped; it prints in the MANNER of this process.

    A pipe or a file gets whole lines, however long, without blanks at their ends; COLUMNS sets another width.
    """

    def __init__(self, **options: Any) -> None:
        settings: dict[str, Any] = {"markup": False, "emoji": False, "highlight": False}
        settings["quiet"] = MANNER.quiet and bool(options.get("stderr"))
        if MANNER.color == "never" or (MANNER.color == "auto" and os.environ.get("NO_COLOR")):
            settings["color_system"] = None
        elif MANNER.color == "always":
            settings["color_system"] = "256"
        super().__init__(**{**settings, **options})
        if options.get("width") is None and not self.is_terminal and not os.environ.get("COLUMNS"):
            self.width = WIDE

    def render(self, *args: Any, **options: Any) -> Iterable[Segment]:
        """Rich's own, which everything that is shown goes through; its control codes, as of a progress bar, stay."""
        for segment in super().render(*args, **options):
            yield segment if segment.control else segment._replace(text=printable_lines(segment.text))

    def _render_buffer(self, buffer: Iterable[Segment]) -> str:
        text = super()._render_buffer(buffer)
        return text if self.is_terminal else BLANKS.sub("", text)


class TextColumn(rich.progress.TextColumn):
    """A column of a progress bar whose text is not read as markup."""

    def __init__(self, text_format: str) -> None:
        super().__init__(text_format, markup=False)


def show_examination(findings: Sequence[Finding], console: Console) -> None:
    """Print a line for each finding of doctor's, what to change below it, and the verdict."""
    from ..doctor.machine import OK, PROBLEM, WARNING, verdict  # not above: every command has a terminal

    colours = {OK: "green", WARNING: "yellow", PROBLEM: "bold red"}
    grid = Table("check", "", "found", box=None, pad_edge=False, padding=(0, 2, 0, 0))
    grid.columns[0].no_wrap = True
    grid.columns[2].overflow = "fold"
    for finding in findings:
        grid.add_row(finding.check, Text(finding.state, colours[finding.state]), Text(finding.found))
        if finding.change:
            grid.add_row("", "", Text(finding.change, "bold"))
        if finding.command:
            grid.add_row("", "", Text(f"    {finding.command}", "cyan"))
    with console.capture() as captured:
        console.print(grid)
    console.file.write("\n".join(line.rstrip() for line in captured.get().splitlines()) + "\n\n")
    console.print(verdict(findings), soft_wrap=True)
