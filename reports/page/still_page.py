"""Pages without a script: one self-contained file, nothing loaded from anywhere, and what it is given stays text."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from ... import __version__
from .html import HERE, digest, pages


def still_page(template: str, **values: Any) -> str:
    """Render a template of this folder with the pages' style; its policy forbids scripts and everything else."""
    sheets = (
        "style.css",
        *(name for name in (Path(template).name.replace(".html.j2", ".css"),) if (HERE / name).is_file()),
    )
    style = "".join((HERE / sheet).read_text(encoding="utf-8") for sheet in sheets)
    policy = f"default-src 'none'; style-src '{digest(style)}'; base-uri 'none'"
    return pages().get_template(template).render(style=style, policy=policy, version=__version__, **values)
