"""The terminal of all reports: what it is given is shown as it is, neither obeyed nor taken for markup."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import rich.console
import rich.progress
from rich.segment import Segment
from rich.text import Text

from ..printable import printable, printable_lines


def one_line(text: str, style: str = "") -> Text:
    """A text that stays on one line of its own, whatever stands in it."""
    return Text(printable(text), style)


class Console(rich.console.Console):
    """Rich's console without markup in texts ("[red]" may be a name), and with what cannot be printed escaped."""

    def __init__(self, **options: Any) -> None:
        super().__init__(**{"markup": False, "emoji": False, **options})

    def render(self, *given: Any, **options: Any) -> Iterable[Segment]:
        """Rich's own, which everything that is shown goes through; its controls, as of a progress bar, stay."""
        for segment in super().render(*given, **options):
            yield segment if segment.control else segment._replace(text=printable_lines(segment.text))


class TextColumn(rich.progress.TextColumn):
    """A column of a progress bar whose text is no markup."""

    def __init__(self, text_format: str) -> None:
        super().__init__(text_format, markup=False)
