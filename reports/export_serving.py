"""What `msmigrate export --format serving` leaves: a servable, whose own configuration was run on images."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

from ..errors import Unsupported
from ..export import serving
from ..export.beside import beside
from ..export.run import Exported, Worker
from ..train.inference.inference_process import follow
from ..train.inference.request import own_mode, preparation
from .predict_command import names_in


def write(
    exported: Exported,
    target: Path,
    classes: Path | None,
    folder: Path,
    said: Callable[[str], None],
    worker: Worker,
    *,
    force: bool,
) -> dict[str, Any]:
    """Write the servable, run it, and put it in place; returns what is told of it.

    Raises BadInput for a net that is no classifier, Unsupported for one too large, and WorkerFailed where the servable
    does not do what the net does.
    """
    if beside(exported.file).exists():
        raise Unsupported(
            "a MindIR of more than 1 GB has its numbers in a folder beside it, for which MindSpore Serving's "
            "documentation knows no place: --format mindir writes it, and `msmigrate serve` serves it"
        )
    subject = exported.net.subject
    names = subject.names(None if classes is None else names_in(classes, subject))
    parts, mode = preparation(subject.recipe), own_mode(subject.recipe)
    with serving.new_folder(target, force=force) as new:
        serving.write(new, target.name, exported.file, parts, mode, names, exported.facts)
        follow([*worker("mindspore_servable"), str(folder), str(new)], folder / "servable.log")
    said(f"Its {serving.CONFIG} was run without MindSpore Serving, which is not here: its methods agree with the net.")
    if subject.classes is None and classes is None:
        said("Note: the checkpoint names no classes, so they are called class 0, 1, …; --classes FILE names them.")
    said(f"Written to {target.name}/: {', '.join(serving.FILES)}.")
    return {"files": [str(target / name) for name in serving.FILES]}
