"""HTML pages that need nothing else: Jinja, inlined style and script, Content-Security-Policy.

The templates are next to the code that fills them.
"""

from __future__ import annotations

import base64
import hashlib
import json
from pathlib import Path
from typing import Any

import jinja2

from ... import __version__
from ...printable import printable_lines, printable_values


def still_page(template: str, **values: Any) -> str:
    """Render a template of this folder with the pages' style; its policy forbids scripts and everything else."""
    sheets = (
        "style.css",
        *(name for name in (Path(template).name.replace(".html.j2", ".css"),) if (HERE / name).is_file()),
    )
    style = "".join((HERE / sheet).read_text(encoding="utf-8") for sheet in sheets)
    policy = f"default-src 'none'; style-src '{digest(style)}'; base-uri 'none'"
    return pages().get_template(template).render(style=style, policy=policy, version=__version__, **values)


HERE = Path(__file__).parent


def pages() -> jinja2.Environment:
    """The environment of all pages: values stay text, and what nobody would see in them is shown."""
    environment = jinja2.Environment(
        loader=jinja2.FileSystemLoader(HERE),
        autoescape=True,
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        finalize=_visible,
    )
    environment.policies["json.dumps_function"] = _dumped
    environment.policies["json.dumps_kwargs"] = {"separators": (",", ":"), "allow_nan": False}
    return environment


def _dumped(value: Any, **options: Any) -> str:
    return json.dumps(printable_values(value), **options)


def _visible(value: Any) -> Any:
    """A text with what cannot be seen escaped; the output of a template is already as it should be."""
    return printable_lines(value) if isinstance(value, str) and not hasattr(value, "__html__") else value


def policy_of(style: str, script: str) -> str:
    """The Content-Security-Policy: this style and this script, by their digests, and nothing else."""
    return f"default-src 'none'; style-src '{digest(style)}'; script-src '{digest(script)}'; base-uri 'none'"


def digest(text: str) -> str:
    """The digest by which a Content-Security-Policy allows a style or a script."""
    return "sha256-" + base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()
