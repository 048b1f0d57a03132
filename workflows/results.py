"""What the functions of the API return: each result renders itself as text, as a page and as JSON.

    result = msmigrate.parity_step(torch="net.py:build", mindspore="net_ms.py:build")
    if not result:                  # true where the command would end with exit code 0
        print(result)               # what the command prints
        result.to_json("parity.json")

In a notebook the last value of a cell is shown as a page.
"""

from __future__ import annotations

import io
import json
from abc import ABC, abstractmethod
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ..atomic_files import write_whole
from ..option_fields import STDOUT
from ..printable import echo, json_line, json_text, printable_lines

if TYPE_CHECKING:
    from ..reports.terminal import Console

WIDTH = 110  # characters of a line of text


class Result(ABC):
    """A result that renders itself; true where the command of the same name would end with exit code 0."""

    @property
    @abstractmethod
    def ok(self) -> bool:
        """Whether all is well: parity, everything converted, nothing missing."""

    @abstractmethod
    def text(self) -> str:
        """What the command prints, without colours."""

    @abstractmethod
    def as_dict(self) -> dict[str, Any]:
        """The result as plain values, as the command prints it with --json."""

    def page(self) -> str:
        """The result as HTML."""
        import html  # not above: few results are pages

        return f"<pre>{html.escape(self.text())}</pre>"

    def to_json(self, file: str | Path | None = None) -> str:
        """The result as JSON, written to a file too where one is given. Raises BadDestination."""
        text = json.dumps(self.as_dict(), indent=2, ensure_ascii=False, allow_nan=False)
        if file is not None:
            write_whole(text + "\n", Path(file))
        return text

    def __bool__(self) -> bool:
        return self.ok

    def __repr__(self) -> str:
        return printable_lines(self.text()).rstrip("\n")

    def _repr_html_(self) -> str:
        return self.page()


def only_json(content: Callable[[], Any], file: Path | None) -> bool:
    """Write the content as JSON where --json says; returns whether that is stdout, which then gets no text.

    file: - for stdout; any other file is written in addition to the text. Raises BadDestination.
    """
    if file == STDOUT:
        echo(json_line(content()))
    elif file is not None:
        write_whole(json_text(content()) + "\n", file)
    return file == STDOUT


def console_text(show: Callable[[Console], None], width: int = WIDTH) -> str:
    """What `show` prints on a console of that width, as plain text."""
    from ..reports.terminal import Console  # not above: convert-ckpt starts faster without importing rich

    written = io.StringIO()
    show(Console(file=written, width=width, no_color=True, highlight=False))
    return written.getvalue()
