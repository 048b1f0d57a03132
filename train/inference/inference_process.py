"""Run an inference request in a MindSpore process of its own, and follow it."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from ... import errors, processes
from ...errors import MsmigrateError, WorkerFailed
from .inference_results import Results
from .request import Request, Told

WORKER = (sys.executable, "-m", "msmigrate.train.inference.mindspore_inference")
REQUEST, LOG = "request.json", "worker.log"
LONGEST_LINE = 500


def infer(request: Request, folder: Path, told: Told = lambda event: None, worker: Sequence[str] = WORKER) -> Results:
    """Have the request carried out; `folder` is the worker's own.

    told: called with what the worker does. worker: the command that carries requests out. Raises what the worker
    raised, or WorkerFailed with its last words when it stopped without saying why.
    """
    (folder / REQUEST).write_text(request.model_dump_json(), encoding="utf-8")
    follow([*worker, str(folder / REQUEST)], folder / LOG, told)
    return Results.read(folder)


def follow(command: Sequence[str], log: Path, told: Told = lambda event: None, name: str = "MindSpore") -> None:
    """Run a worker to its end and hand on what it tells; its stderr goes to `log`.

    name: of the process, for the error. Raises what the worker raised, or WorkerFailed with its last words.
    """
    failure: MsmigrateError | None = None
    with log.open("w", encoding="utf-8") as stderr:
        streams: dict[str, Any] = {"stdin": subprocess.DEVNULL, "stdout": subprocess.PIPE, "stderr": stderr}
        process = processes.start(command, **streams, text=True, errors="replace")
    try:
        assert process.stdout is not None
        for line in process.stdout:
            event = _event(line)
            if "error" in event:
                failure = _error(event)
            elif event:
                told(event)
        code = process.wait()
    finally:
        processes.end(process)
        if process.stdout is not None:
            process.stdout.close()
    if failure is not None:
        raise failure
    if code:
        how = f"killed by signal {-code} (out of memory?)" if code < 0 else f"exit code {code}"
        raise WorkerFailed(f"the {name} process stopped, {how}: {_last_words(log)}")


def _event(line: str) -> dict[str, Any]:
    """What a line says; nothing when it is none of the worker's own."""
    try:
        found = json.loads(line)
    except (ValueError, RecursionError):
        return {}
    return found if isinstance(found, dict) else {}


def _error(event: dict[str, Any]) -> MsmigrateError:
    """The worker's error as the class that it was there."""
    kind = getattr(errors, str(event.get("kind")), None)
    if isinstance(kind, type) and issubclass(kind, MsmigrateError):
        return kind(str(event["error"]))
    return WorkerFailed(str(event["error"]))


def _last_words(log: Path) -> str:
    lines = [line.strip() for line in log.read_text(encoding="utf-8", errors="replace").splitlines() if line.strip()]
    return lines[-1][:LONGEST_LINE] if lines else "it said nothing"
