"""export from start to end: the file exported, compared, and put in its place."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import click
from rich.text import Text

from ..deploy import export, lite
from ..deploy.export import Exported, Worker, module
from ..deploy.export import export as run_export
from ..deploy.job import ONNX, read_key
from ..deploy.options import FORMS, ExportOptions
from ..deploy.output_files import beside, check, place, total
from ..deploy.serving import servable
from ..errors import BadInput
from ..printable import echo, json_line
from ..reports.export import as_json, lines
from ..reports.terminal import Console
from ..temporary import temporary_folder
from ..workers.messages import Message, Progress

MISMATCH = 1
Said = Callable[[str], None]


def run(checkpoint: Path, out: Path, form: str = FORMS[0], worker: Worker = module, **options: Any) -> int:
    """Export a checkpoint; returns the exit code, 0 where the file runs and computes the same, 1 where it does not.

    options: those of ExportOptions. The file appears only then. Raises BadInput, BadDestination, Unsupported and
    others, in which case nothing is left.
    """
    asked = ExportOptions(checkpoint=checkpoint, out=out, form=form, **options)
    if asked.key_file is not None:
        read_key(asked.key_file, asked.encryption)
    if form == "air":
        raise export.only_on_ascend(asked)
    force, classes, net_form = asked.force, asked.classes, asked.net_form
    said: Said = (lambda text: None) if asked.as_json else click.echo
    with temporary_folder("export") as folder:
        if form == "lite":
            given = lite.lite_source(checkpoint)
            files = lite.targets(out, ONNX if given else net_form, checkpoint, force=force)
            if given:
                lite.check_onnx(checkpoint, folder, worker)
                more = lite.write(checkpoint, ONNX, files, folder, said, force=force)
                return _print(None, more, asked.as_json)
        elif form == "serving":
            target = servable.check(out, force=force)
        else:
            target = _target(out, form, checkpoint, force)
        exported = _with_progress(asked, folder, worker)
        for line in lines(exported, shown=str(checkpoint)):
            said(line)
        if not exported.sound:
            said(f"{out} was not written.")
            return _print(exported, {"files": []}, asked.as_json)
        if form == "lite":
            more = lite.write(exported.file, net_form, files, folder, said, force=force)
        elif form == "serving":
            more = servable.place_servable(exported, target, classes, folder, said, worker, force=force)
        else:
            place(exported.file, target, force=force)
            said(f"Written to {out} ({total(exported.file) / 1e6:.1f} MB){_together(exported.file, target)}.")
            more = {"files": [str(out), *([str(beside(target))] if beside(exported.file).exists() else [])]}
        return _print(exported, more, asked.as_json)


def _target(out: Path, form: str, checkpoint: Path, force: bool) -> Path:
    suffix = f".{form}"
    if out.suffix != suffix:
        raise BadInput(f"-o {out}: a file of --format {form} ends in {suffix}")
    return check(out, checkpoint, force=force)


def _together(file: Path, target: Path) -> str:
    """What has to be known of a large net, whose numbers lie beside its file."""
    return f", its numbers in {beside(target).name} beside it: keep the two together" if beside(file).exists() else ""


def _with_progress(asked: ExportOptions, folder: Path, worker: Worker) -> Exported:
    console = Console(stderr=True)
    if not console.is_terminal:
        return run_export(asked, folder, worker=worker)
    with console.status("starting MindSpore") as status:

        def show(worker: str, message: Message) -> None:
            if isinstance(message, Progress):
                status.update(Text(message.what))

        return run_export(asked, folder, show, worker)


def _print(exported: Exported | None, more: dict[str, Any], as_json_: bool) -> int:
    """Print JSON where that is asked for; returns the exit code."""
    if as_json_:
        echo(json_line({**(as_json(exported) if exported is not None else {}), **more}))
    return 0 if exported is None or exported.sound else MISMATCH
