"""MindSpore Lite: its converter, and what is written where that is missing."""

from __future__ import annotations

import json
import shlex
import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

from .. import processes
from ..atomic_files import check_destination
from ..errors import BadInput, WorkerFailed
from ..input_files import unreadable
from ..workers.parent import call
from .export import Worker
from .output_files import check, place

CONVERTER = "converter_lite"
SUCCESS = "CONVERT RESULT SUCCESS"
IDENTIFIER = b"MSL"  # of MindSpore Lite's flatbuffers, behind their first four bytes
LONGEST = 300  # characters of the converter's last line in an error
SECONDS = 3600.0  # in which the converter has to end


def files_of(out: Path, form: str) -> dict[str, Path]:
    """What an export to `NAME.ms` leaves: `net`, NAME.mindir or NAME.onnx, the `model` itself, and its `call`.

    Raises BadInput for another ending.
    """
    if out.suffix != ".ms":
        raise BadInput(f"-o {out}: a model of MindSpore Lite ends in .ms; the MindIR goes beside it")
    return {"net": out.with_suffix(f".{form}"), "model": out, "call": out.with_suffix(".lite.json")}


def command(net: Path, form: str, model: Path) -> list[str]:
    """The converter's call; the converter adds .ms to the output's name itself, and by default turns images to NHWC."""
    return [
        CONVERTER,
        f"--fmk={form.upper()}",
        f"--modelFile={net}",
        f"--outputFile={model.with_suffix('')}",
        "--inputDataFormat=NCHW",
    ]


def shown(call: list[str]) -> str:
    """The call for a shell."""
    return shlex.join(call)


def description(call: list[str], success: str | None) -> str:
    """The text of the file that keeps the call; success: the converter's line of success, None where it was not run."""
    record: dict[str, Any] = {"command": call, "shell": shown(call), "run": success is not None}
    if success is not None:
        record["said"] = success
    return json.dumps(record, indent=1) + "\n"


def installed() -> str | None:
    """Where the converter is, if it is on PATH."""
    return shutil.which(CONVERTER)


def convert(net: Path, form: str, folder: Path) -> tuple[Path, str]:
    """Run the converter on a file, in the caller's folder; returns the model and the converter's line of success.

    Raises WorkerFailed where its exit code is not 0, it does not say that it succeeded, or it leaves no model.
    """
    model = folder / "converted.ms"
    words = [str(installed()), *command(net, form, model)[1:]]
    try:
        done = processes.run(words, SECONDS)
    except (OSError, subprocess.TimeoutExpired) as error:
        raise WorkerFailed(f"{CONVERTER} could not be run: {error}") from None
    lines = [line.strip() for line in (done.stdout + "\n" + done.stderr).splitlines() if line.strip()]
    success = next((line for line in lines if SUCCESS in line), None)
    if done.returncode or success is None:
        last = next((line for line in reversed(lines) if "ERROR" in line or "FAIL" in line), lines[-1] if lines else "")
        code = f"exit code {done.returncode}" if done.returncode else "it does not say that it succeeded"
        raise WorkerFailed(f"{CONVERTER} failed, {code}: {last[:LONGEST] or 'it said nothing'}")
    try:
        head = model.read_bytes()[:8]
    except OSError:
        raise WorkerFailed(f"{CONVERTER} says that it succeeded, and left no model") from None
    if head[4:7] != IDENTIFIER:
        raise WorkerFailed(f"{CONVERTER} says that it succeeded, and what it left is no model of MindSpore Lite")
    return model, success


AddLine = Callable[[str], None]


def targets(out: Path, form: str, source: Path, *, force: bool) -> dict[str, Path]:
    """Where each file goes. Raises BadInput and BadDestination."""
    files = files_of(out, form)
    if form == "onnx" and lite_source(source) and files["net"].resolve() == source.resolve():
        del files["net"]
    checks = {what: check if what == "net" else check_destination for what in files}
    return {what: checks[what](path, source, force=force) for what, path in files.items()}


def lite_source(checkpoint: Path) -> bool:
    """Whether what is to be converted is an ONNX file already."""
    return checkpoint.suffix.lower() == ".onnx"


def check_onnx(file: Path, folder: Path, worker: Worker) -> None:
    """Raise BadInput where an ONNX file is missing or not valid, and WorkerFailed where the check's process dies."""
    if (why := unreadable(file)) is not None:
        raise BadInput(why)
    call("the onnx process", [*worker("onnx_check_worker"), str(file)], folder / "check.log")


def write(
    net: Path, form: str, files: dict[str, Path], folder: Path, add_line: AddLine, *, force: bool
) -> dict[str, Any]:
    """Convert, and put everything in place when all went well; returns what the JSON reports about it.

    net: the verified file. Raises WorkerFailed where the converter fails, and then nothing is left.
    """
    call = command(files.get("net", net), form, files["model"])
    here = installed() is not None
    model, success = convert(net, form, folder) if here else (None, None)
    if "net" in files:
        place(net, files["net"], force=force)
    if model is not None:
        place(model, files["model"], force=force)
    text = folder / "call.json"
    text.write_text(description(call, success), encoding="utf-8")
    place(text, files["call"], force=force)
    if not here:
        add_line(f"{CONVERTER} is not on PATH; run this where it is: {shown(call)}")
    else:
        add_line(f"{shown(call)}: {success}")
    written = [path.name for what, path in files.items() if what != "model" or here]
    add_line(f"Written: {', '.join(written)}.")
    return {"converter": call, "converted": here, "files": [str(path) for path in files.values() if path.exists()]}
