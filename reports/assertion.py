"""parity-step inside somebody's own test suite: an AssertionError whose message is the report's first screen."""

from __future__ import annotations

import io
from pathlib import Path
from typing import Any

from ..errors import BadInput
from ..parity.run import parity_step
from ..temporary import temporary_folder
from ..train import recipe as recipes
from .parity_command import Asked
from .parity_report import show
from .terminal import Console

WIDTH = 110


def assert_parity(torch: str, mindspore: str, recipe: str | Path | None = None, **options: Any) -> None:
    """Assert that a training step of two models agrees, tensor by tensor; each framework runs in a process of its own.

    torch, mindspore: the models by name, as on the command line: FILE.py:FUNCTION, MODULE:FUNCTION, torchvision:NAME.
    recipe: a YAML file with data, loss, optimizer and so on; the default recipe without one. options: parity-step's,
    with underscores: steps, batch, ckpt, batch_file, map_file, no_replay, no_diagnosis, thorough, keep.

    Raises AssertionError with the report where a tensor differs, and MsmigrateError (BadInput and others) where the
    comparison could not be made.
    """
    known = {name: kind for name, kind in Asked.__dataclass_fields__.items() if name not in ("torch", "mindspore")}
    unknown = [name for name in options if name not in known]
    if unknown:
        raise BadInput(f"assert_parity has no option {unknown[0]!r}; it has {', '.join(known)}")
    paths = ("ckpt", "batch_file", "map_file", "keep")
    options = {n: Path(v) if n in paths and v is not None else v for n, v in options.items()}
    asked = Asked(torch=torch, mindspore=mindspore, **options)
    path = Path(recipe) if recipe is not None else recipes.DEFAULT
    with temporary_folder("assert") as temporary:
        folder = asked.keep or temporary / "run"
        report = parity_step(
            path, asked.options(recipes.load(path), folder), explain=not asked.no_diagnosis, timeout=asked.timeout
        )
    if not report.parity:
        text = io.StringIO()
        show(report, Console(file=text, width=WIDTH, no_color=True), asked.worst)
        raise AssertionError(f"no parity of {torch} and {mindspore}\n{text.getvalue()}")
