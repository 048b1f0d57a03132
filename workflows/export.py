"""export from start to end: the file exported, compared, and put in its place."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import click

from ..deploy import export as exporting
from ..deploy import lite
from ..deploy.export import Exported, Worker, module
from ..deploy.export import export as run_export
from ..deploy.job import ONNX, read_key
from ..deploy.options import FORMS, ExportOptions
from ..deploy.output_files import beside, check, place, total
from ..deploy.serving import servable
from ..errors import BadInput
from ..option_fields import STDOUT, as_path, values_of, with_model
from ..reports.export import as_json
from ..reports.export import lines as compared_lines
from ..reports.progress import images_counted
from ..temporary import temporary_folder
from .results import Result, only_json

MISMATCH = 1
Said = Callable[[str], None]


@dataclass(frozen=True, repr=False)
class ExportResult(Result):
    """An exported file, or why there is none; true where it runs and computes what the checkpoint's net computes."""

    exported: Exported | None  # None of an ONNX file that was there before
    more: dict[str, Any]
    lines: list[str]

    @property
    def ok(self) -> bool:
        """Whether the file was written."""
        return self.exported is None or self.exported.sound

    def text(self) -> str:
        """How the file was compared, and where it is."""
        return "\n".join(self.lines)

    def as_dict(self) -> dict[str, Any]:
        """The comparison and the files, as `export --json` prints them."""
        return {**(as_json(self.exported) if self.exported is not None else {}), **self.more}


def export(checkpoint: str | Path, out: str | Path, form: str = FORMS[0], **options: Any) -> ExportResult:
    """Export a checkpoint's net to a file that runs elsewhere, and compare what that file computes; `export`.

    checkpoint: of `train`, of MindSpore or of torch; or an ONNX file, for form "lite".
    out: the new file, or the folder of a servable.
    form: "mindir", "onnx", "air", "lite" or "serving".
    options: those of the command, with underscores: model, recipe, shapes, batch, dynamic, force and so on.

    Raises BadInput, BadDestination, BadCheckpoint, Unsupported and WorkerFailed, and leaves nothing then. A file that
    does not compute the same is not written, and the result is false.
    """
    values = values_of(ExportOptions, options, "export", ("checkpoint", "out", "form", "json_file"))
    values |= {"checkpoint": as_path(checkpoint, "checkpoint"), "out": as_path(out, "out"), "form": form}
    return _exported(ExportOptions(**with_model(values)))


def run(checkpoint: Path, out: Path, form: str = FORMS[0], worker: Worker = module, **options: Any) -> int:
    """Export a checkpoint; returns the exit code, 0 where the file runs and computes the same, 1 where it does not.

    options: those of ExportOptions. The file appears only then. Raises BadInput, BadDestination, Unsupported and
    others, in which case nothing is left.
    """
    chosen = ExportOptions(checkpoint=checkpoint, out=out, form=form, **options)
    found = _exported(chosen, worker, (lambda text: None) if chosen.json_file == STDOUT else click.echo)
    only_json(found.as_dict, chosen.json_file)
    return 0 if found else MISMATCH


def _exported(options: ExportOptions, worker: Worker = module, say: Said = lambda text: None) -> ExportResult:
    """The export that the options describe. say: called with each line of the result when it is known."""
    lines: list[str] = []

    def said(text: str) -> None:
        lines.append(text)
        say(text)

    if options.key_file is not None:
        read_key(options.key_file, options.encryption)
    checkpoint, out, form = options.checkpoint, options.out, options.form
    if form == "air":
        raise exporting.only_on_ascend(options)
    force, classes, net_form = options.force, options.classes, options.net_form
    with temporary_folder("export") as folder:
        if form == "lite":
            given = lite.lite_source(checkpoint)
            files = lite.targets(out, ONNX if given else net_form, checkpoint, force=force)
            if given:
                lite.check_onnx(checkpoint, folder, worker)
                return ExportResult(None, lite.write(checkpoint, ONNX, files, folder, said, force=force), lines)
        elif form == "serving":
            target = servable.check(out, force=force)
        else:
            target = _target(out, form, checkpoint, force)
        with images_counted() as on_message:
            exported = run_export(options, folder, on_message, worker)
        for line in compared_lines(exported, shown=str(checkpoint)):
            said(line)
        if not exported.sound:
            said(f"{out} was not written.")
            return ExportResult(exported, {"files": []}, lines)
        if form == "lite":
            more = lite.write(exported.file, net_form, files, folder, said, force=force)
        elif form == "serving":
            more = servable.place_servable(exported, target, classes, folder, said, worker, force=force)
        else:
            place(exported.file, target, force=force)
            said(f"Written to {out} ({total(exported.file) / 1e6:.1f} MB){_together(exported.file, target)}.")
            more = {"files": [str(out), *([str(beside(target))] if beside(exported.file).exists() else [])]}
        return ExportResult(exported, more, lines)


def _target(out: Path, form: str, checkpoint: Path, force: bool) -> Path:
    suffix = f".{form}"
    if out.suffix != suffix:
        raise BadInput(f"-o {out}: a file of --format {form} ends in {suffix}")
    return check(out, checkpoint, force=force)


def _together(file: Path, target: Path) -> str:
    """What has to be known of a large net, whose numbers lie beside its file."""
    return f", its numbers in {beside(target).name} beside it: keep the two together" if beside(file).exists() else ""
