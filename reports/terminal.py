"""The terminal of all reports: what it is given is shown as it is, neither obeyed nor taken for markup."""

from __future__ import annotations

import os
import re
from collections.abc import Iterable
from typing import Any

import rich.console
import rich.progress
from rich.segment import Segment
from rich.text import Text

from ..printable import MANNER, printable, printable_lines

WIDE = 10_000  # columns of what is no terminal: whoever reads it breaks its lines
BLANKS = re.compile(r" +(?=(\x1b\[[\d;]*m)*$)", re.MULTILINE)


def one_line(text: str, style: str = "") -> Text:
    """A text that stays on one line of its own, whatever stands in it."""
    return Text(printable(text), style)


class Console(rich.console.Console):
    """Rich's console without markup in texts ("[red]" may be a name), without colours that rich thinks up, and with
    what cannot be printed escaped; it talks in the MANNER of this process.

    A pipe or a file gets whole lines, however long, without blanks at their ends; COLUMNS says another width.
    """

    def __init__(self, **options: Any) -> None:
        given: dict[str, Any] = {"markup": False, "emoji": False, "highlight": False}
        given["quiet"] = MANNER.quiet and bool(options.get("stderr"))
        if MANNER.color == "never" or (MANNER.color == "auto" and os.environ.get("NO_COLOR")):
            given["color_system"] = None
        elif MANNER.color == "always":
            given["color_system"] = "256"
        super().__init__(**{**given, **options})
        if options.get("width") is None and not self.is_terminal and not os.environ.get("COLUMNS"):
            self.width = WIDE

    def render(self, *given: Any, **options: Any) -> Iterable[Segment]:
        """Rich's own, which everything that is shown goes through; its controls, as of a progress bar, stay."""
        for segment in super().render(*given, **options):
            yield segment if segment.control else segment._replace(text=printable_lines(segment.text))

    def _render_buffer(self, buffer: Iterable[Segment]) -> str:
        text = super()._render_buffer(buffer)
        return text if self.is_terminal else BLANKS.sub("", text)


class TextColumn(rich.progress.TextColumn):
    """A column of a progress bar whose text is no markup."""

    def __init__(self, text_format: str) -> None:
        super().__init__(text_format, markup=False)
