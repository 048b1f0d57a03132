"""Show on stderr how far an inference has come."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from rich.progress import BarColumn, MofNCompleteColumn, Progress, SpinnerColumn, TimeRemainingColumn

from ..train.inference.inference_process import WORKER, infer
from ..train.inference.inference_results import Results
from ..train.inference.request import Request
from ..train.run import targets
from .terminal import Console, TextColumn


def infer_with_progress(request: Request, folder: Path, worker: Sequence[str] = WORKER) -> Results:
    """Carry the request out with a progress bar on stderr, where that is a terminal.

    folder: the worker's own. Raises Unsupported for a target that this machine's MindSpore cannot use, before any
    work, and what the worker raises.
    """
    if request.target not in (None, "CPU"):
        targets.ask().check(str(request.target), request.recipe.train.device_id)
    console = Console(stderr=True)
    columns = (
        SpinnerColumn(),
        TextColumn("{task.description}"),
        BarColumn(),
        MofNCompleteColumn(),
        TimeRemainingColumn(),
    )
    with Progress(*columns, console=console, disable=not console.is_terminal, transient=True) as progress:
        task = progress.add_task("starting MindSpore", total=None)

        def told(event: dict[str, Any]) -> None:
            if "done" in event:
                progress.update(task, description="images", completed=event["done"], total=event["of"])
            elif "doing" in event:
                progress.update(task, description=str(event["doing"]))

        return infer(request, folder, told, worker)
