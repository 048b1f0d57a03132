"""What `msmigrate parity-step` does around the comparison: the folder, the progress display, the exit code."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Sequence
from pathlib import Path

from rich.console import Console
from rich.progress import Progress, SpinnerColumn, TextColumn, TimeElapsedColumn

from ..errors import BadDestination
from ..parity.findings import Report
from ..parity.run import MINDSPORE_WORKER, parity_step
from ..parity.trace import SAMPLE
from ..parity.worker import INIT_SEEDS, Options
from ..train import recipe as recipes
from .parity_report import show, write_json

THOROUGH_SEEDS = 10


def run(
    recipe_file: Path | None,
    steps: int,
    init_seeds: int | None,
    thorough: bool,
    json_file: Path | None,
    keep: Path | None,
    worst: int,
    mindspore_worker: Sequence[str] = MINDSPORE_WORKER,
) -> int:
    """Run parity-step and print its verdict; returns the exit code, 0 for parity and 1 for a mismatch.

    mindspore_worker: the command that records MindSpore's side.
    """
    path = recipe_file or recipes.DEFAULT
    recipe = recipes.load(path)
    if json_file is not None:  # before minutes of work, not after
        _refuse_unwritable(json_file)
    seeds = init_seeds or (THOROUGH_SEEDS if thorough else INIT_SEEDS)
    with tempfile.TemporaryDirectory(prefix="msmigrate-parity-") as temporary:
        folder = keep or Path(temporary)
        options = Options(recipe, folder, steps, seeds, None if thorough else SAMPLE)
        report = _with_progress(path, options, mindspore_worker)
    show(report, Console(), worst)
    if json_file is not None:
        write_json(report, json_file)
    return 0 if report.parity else 1


def _refuse_unwritable(file: Path) -> None:
    if not file.parent.is_dir():
        raise BadDestination(f"{file} cannot be written: there is no folder {file.parent}")
    if file.is_dir():
        raise BadDestination(f"{file} cannot be written: it is a folder")
    if not os.access(file.parent, os.W_OK):
        raise BadDestination(f"{file} cannot be written: no permission for {file.parent}")


def _with_progress(path: Path, options: Options, mindspore_worker: Sequence[str]) -> Report:
    """Show on stderr what each framework is doing; on a terminal the lines stay in place."""
    console = Console(stderr=True)
    columns = (
        SpinnerColumn(),
        TextColumn("{task.fields[who]:9}"),
        TextColumn("{task.description}"),
        TimeElapsedColumn(),
    )
    with Progress(*columns, console=console, disable=not console.is_terminal) as progress:
        tasks = {who: progress.add_task("starting", who=who, total=None) for who in ("torch", "MindSpore")}

        def told(who: str, doing: str) -> None:
            text = doing.split(": ", 1)[-1] if doing.startswith(who) else doing
            for name in tasks if who == "both" else (who,):
                progress.update(tasks[name], description=text)

        return parity_step(path, options, told, mindspore_worker=mindspore_worker)
