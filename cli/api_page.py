"""The page docs/api.md, made from the public functions' signatures and docstrings.

python -m msmigrate.cli.api_page docs/api.md
"""

from __future__ import annotations

import inspect
import sys
from importlib import import_module
from pathlib import Path
from typing import Any

from ..atomic_files import write_whole

HEAD = """# The library

`import msmigrate` brings neither framework along. Each function does what the command of that name does, in processes
of its own. It returns a result, which is true where the command would end with exit code 0, prints as the command does,
shows itself as a page in a notebook, and has `as_dict()` and `to_json(file)`. What goes wrong raises one of
`msmigrate.errors`, with the sentence that the command would print.

This page is made from the docstrings: `python -m msmigrate.cli.api_page docs/api.md`.
"""


def page() -> str:
    """The whole page, as Markdown."""
    public = import_module("..", __package__)
    return "\n".join([HEAD, *(section(name, getattr(public, name)) for name in public.__all__ if name[0] != "_")])


def section(name: str, function: Any) -> str:
    """One function: its signature, and its docstring with an argument a line."""
    sentence, _, rest = (inspect.getdoc(function) or "").partition("\n\n")
    return f"## {name}\n\n```python\n{signature(name, function)}\n```\n\n{one_line(sentence)}\n\n{arguments(rest)}"


def signature(name: str, function: Any) -> str:
    """The call with every argument, one a line where it is long."""
    found = inspect.signature(function)
    parts = []
    for parameter in found.parameters.values():
        if parameter.kind is parameter.KEYWORD_ONLY and "*" not in parts:
            parts.append("*")
        stars = "**" if parameter.kind is parameter.VAR_KEYWORD else ""
        default = (
            ""
            if parameter.default is parameter.empty
            else f" = {parameter.default!r}".replace(sys.executable, "python")
        )
        parts.append(f"{stars}{parameter.name}: {parameter.annotation}{default}")
    line = f"{name}({', '.join(parts)}) -> {found.return_annotation}"
    if len(line) <= 100:
        return line
    return "\n".join([f"{name}(", *(f"    {part}," for part in parts), f") -> {found.return_annotation}"])


def arguments(text: str) -> str:
    """Docstring paragraphs; lines of the form `name: what it is` become a list."""
    paragraphs = []
    for paragraph in text.split("\n\n"):
        items: list[str] = []
        for line in paragraph.split("\n"):
            head, colon, _ = line.partition(": ")
            if colon and all(part.isidentifier() for part in head.split(", ")):
                items.append(f"- `{head}`{line[len(head) :]}")
            elif items:
                items[-1] += f" {line.strip()}"
            else:
                items.append(line.strip())
        paragraphs.append("\n".join(items) if any(item.startswith("- ") for item in items) else " ".join(items))
    return "\n\n".join(part for part in paragraphs if part) + "\n"


def one_line(text: str) -> str:
    """A sentence that the docstring broke over lines."""
    return " ".join(text.split())


if __name__ == "__main__":
    write_whole(page(), Path(sys.argv[1]))
