"""MindSpore Lite: the call of its converter, and the converter itself where it is installed."""

from __future__ import annotations

import json
import shlex
import shutil
import subprocess
from pathlib import Path
from typing import Any

from .. import processes
from ..errors import BadInput, WorkerFailed

CONVERTER = "converter_lite"
SUCCESS = "CONVERT RESULT SUCCESS"
IDENTIFIER = b"MSL"  # of MindSpore Lite's flatbuffers, behind their first four bytes
MOST_SAID = 300
SECONDS = 3600.0  # in which the converter has to end


def files_of(out: Path, form: str) -> dict[str, Path]:
    """What an export to `NAME.ms` leaves: `net`, NAME.mindir or NAME.onnx, the `model` itself, and its `call`.

    Raises BadInput for another ending.
    """
    if out.suffix != ".ms":
        raise BadInput(f"-o {out}: a model of MindSpore Lite ends in .ms; the MindIR goes beside it")
    return {"net": out.with_suffix(f".{form}"), "model": out, "call": out.with_suffix(".lite.json")}


def command(net: Path, form: str, model: Path) -> list[str]:
    """The converter's call; it puts .ms behind the name of the output itself, and would turn images to NHWC."""
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


def description(call: list[str], version: str | None) -> str:
    """The text of the file that keeps the call; version: what the converter says it is, None where it was not run."""
    told: dict[str, Any] = {"command": call, "shell": shown(call), "run": version is not None}
    if version is not None:
        told["said"] = version
    return json.dumps(told, indent=1) + "\n"


def installed() -> str | None:
    """Where the converter is, if it is on PATH."""
    return shutil.which(CONVERTER)


def convert(net: Path, form: str, folder: Path) -> tuple[Path, str]:
    """Run the converter on a file, in a folder of the caller's; returns the model and what was said of success.

    Raises WorkerFailed where it ends otherwise than with 0, does not say that it succeeded, or leaves no model.
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
        raise WorkerFailed(f"{CONVERTER} failed, {code}: {last[:MOST_SAID] or 'it said nothing'}")
    try:
        head = model.read_bytes()[:8]
    except OSError:
        raise WorkerFailed(f"{CONVERTER} says that it succeeded, and left no model") from None
    if head[4:7] != IDENTIFIER:
        raise WorkerFailed(f"{CONVERTER} says that it succeeded, and what it left is no model of MindSpore Lite")
    return model, success
