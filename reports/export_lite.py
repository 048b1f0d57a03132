"""What `msmigrate export --format lite` leaves: the net, the model where the converter is installed, and its call."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

from ..errors import BadInput
from ..export import lite
from ..export.run import Worker
from ..input_files import unreadable
from ..migrate.formats.atomic_file import check_destination
from ..train.inference.inference_process import follow
from .placing import check, place

Said = Callable[[str], None]


def targets(out: Path, form: str, source: Path, *, force: bool) -> dict[str, Path]:
    """Where each file goes. Raises BadInput and BadDestination."""
    found = lite.files_of(out, form)
    if form == "onnx" and lite_source(source) and found["net"].resolve() == source.resolve():
        del found["net"]
    looks = {what: check if what == "net" else check_destination for what in found}
    return {what: looks[what](path, source, force=force) for what, path in found.items()}


def lite_source(checkpoint: Path) -> bool:
    """Whether what is to be converted is an ONNX file already."""
    return checkpoint.suffix.lower() == ".onnx"


def check_onnx(file: Path, folder: Path, worker: Worker) -> None:
    """Raise BadInput where an ONNX file is missing, or not valid, and WorkerFailed where the check dies of it."""
    if (why := unreadable(file)) is not None:
        raise BadInput(why)
    follow([*worker("onnx_given"), str(file)], folder / "check.log", name="onnx")


def write(net: Path, form: str, files: dict[str, Path], folder: Path, said: Said, *, force: bool) -> dict[str, Any]:
    """Convert, and put everything in place when all went well; returns what is told of it.

    net: the verified file. Raises WorkerFailed where the converter fails, and then nothing is left.
    """
    call = lite.command(files.get("net", net), form, files["model"])
    here = lite.installed() is not None
    model, success = lite.convert(net, form, folder) if here else (None, None)
    if "net" in files:
        place(net, files["net"], force=force)
    if model is not None:
        place(model, files["model"], force=force)
    text = folder / "call.json"
    text.write_text(lite.description(call, success), encoding="utf-8")
    place(text, files["call"], force=force)
    if not here:
        said(f"{lite.CONVERTER} is not on PATH; where it is: {lite.shown(call)}")
    else:
        said(f"{lite.shown(call)}: {success}")
    written = [path.name for what, path in files.items() if what != "model" or here]
    said(f"Written: {', '.join(written)}.")
    return {"converter": call, "converted": here, "files": [str(path) for path in files.values() if path.exists()]}
