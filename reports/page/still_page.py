"""Pages without a script: one self-contained file, nothing loaded from anywhere, and what it is given stays text."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import jinja2

from ... import __version__
from .html import CONTROL, HERE, digest


def still_page(template: str, **values: Any) -> str:
    """Render a template of this folder with the pages' style; its policy forbids scripts and everything else."""
    environment = jinja2.Environment(
        loader=jinja2.FileSystemLoader(HERE),
        autoescape=True,
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    sheets = (
        "style.css",
        *(name for name in (Path(template).name.replace(".html.j2", ".css"),) if (HERE / name).is_file()),
    )
    style = "".join((HERE / sheet).read_text(encoding="utf-8") for sheet in sheets)
    policy = f"default-src 'none'; style-src '{digest(style)}'; base-uri 'none'"
    text = environment.get_template(template).render(style=style, policy=policy, version=__version__, **values)
    return CONTROL.sub("\N{REPLACEMENT CHARACTER}", text)
