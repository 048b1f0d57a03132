"""Run both recorders side by side, each framework in a process of its own, and compare what they leave.

Importing both frameworks into one process costs their memory twice over, they want different settings, and MindSpore's
errors arrive late and blame another line; so this process imports neither.
"""

from __future__ import annotations

import os
import queue
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import IO

from ..errors import BadInput, MsmigrateError, WorkerFailed
from ..migrate.convert import convert
from .compare import Traces, compare
from .findings import Report
from .hints import hints
from .record import parse_progress
from .start import CHECKPOINT, WEIGHTS
from .worker import Options

TORCH_WORKER = (sys.executable, "-m", "msmigrate.parity.torch_worker")
MINDSPORE_WORKER = (sys.executable, "-m", "msmigrate.parity.mindspore_worker")
Told = Callable[[str, str], None]  # (framework, what it is doing now)


@dataclass
class _Worker:
    name: str
    process: subprocess.Popen[str]
    log: Path
    error: str = ""


def parity_step(
    recipe_file: Path,
    options: Options,
    told: Told = lambda framework, doing: None,
    torch_worker: Sequence[str] = TORCH_WORKER,
    mindspore_worker: Sequence[str] = MINDSPORE_WORKER,
) -> Report:
    """Record and compare one recipe; the traces stay in options.folder, which has to be empty or new.

    told: called with (framework, what it is doing) as the work goes on. Raises BadInput for a folder in use,
    WorkerFailed when a framework's process stops early, and what convert-ckpt raises for the starting weights.
    """
    began = time.monotonic()
    folder = options.folder
    folder.mkdir(parents=True, exist_ok=True)
    if any(folder.iterdir()):
        raise BadInput(f"{folder} is not empty; traces of two runs would mix: name another folder")
    arguments = options.arguments(recipe_file)
    lines: queue.Queue[tuple[_Worker, str | None]] = queue.Queue()
    workers = [
        _start("torch", [*torch_worker, *arguments], folder, lines),
        _start("MindSpore", [*mindspore_worker, *arguments], folder, lines),
    ]
    try:
        _attend(workers, lines, folder, told)
    finally:
        for worker in workers:
            worker.process.kill()
            worker.process.wait()
    told("both", "comparing")
    return report(recipe_file, options, time.monotonic() - began)


def report(recipe_file: Path, options: Options, seconds: float | None = None) -> Report:
    """Compare the traces that lie in options.folder."""
    traces = Traces.load(options.folder)
    versions: dict[str, str] = {**traces.alone[0].about["versions"], **traces.mindspore.about["versions"]}
    findings = compare(traces)
    found = Report(str(recipe_file), options.recipe.digest, versions, findings, notes=_notes(traces), seconds=seconds)
    found.hints.extend(hints(found.first_divergence, options.recipe))
    return found


def _start(name: str, command: list[str], folder: Path, lines: queue.Queue[tuple[_Worker, str | None]]) -> _Worker:
    log = folder / f"{name.lower()}.log"
    environment = {**os.environ, "PYTHONUNBUFFERED": "1"}
    with log.open("w") as stderr:
        process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=stderr, text=True, env=environment)
    worker = _Worker(name, process, log)
    assert process.stdout is not None
    threading.Thread(target=_read, args=(worker, process.stdout, lines), daemon=True).start()
    return worker


def _read(worker: _Worker, stream: IO[str], lines: queue.Queue[tuple[_Worker, str | None]]) -> None:
    for line in stream:
        lines.put((worker, line))
    lines.put((worker, None))


def _attend(workers: list[_Worker], lines: queue.Queue[tuple[_Worker, str | None]], folder: Path, told: Told) -> None:
    """Pass on what the workers say and convert the starting weights when they are there, until both have ended."""
    running = len(workers)
    while running:
        worker, line = lines.get()
        if line is None:
            running -= 1
            code = worker.process.wait()
            if code:
                raise WorkerFailed(_explain(worker, code))
            continue
        said = parse_progress(line)
        if said is None:
            with worker.log.open("a") as log:
                log.write(line)
            continue
        worker.error = said.get("error", worker.error)
        if "doing" in said:
            told(worker.name, said["doing"])
        if said.get("event") == "start":
            try:
                convert(folder / WEIGHTS, folder / CHECKPOINT)
            except MsmigrateError as error:
                raise type(error)(f"the starting weights do not convert: {error}") from error


def _explain(worker: _Worker, code: int) -> str:
    if worker.error:
        return f"the {worker.name} side stopped: {' '.join(worker.error.split())}"
    how = f"killed by signal {-code} (out of memory?)" if code < 0 else f"exit code {code}"
    tail = [line.strip() for line in worker.log.read_text(errors="replace").splitlines() if line.strip()][-1:]
    return f"the {worker.name} side stopped, {how}: {' '.join(tail) or 'it said nothing'}"


def _notes(traces: Traces) -> list[str]:
    """What a reader has to know about how the reference was taken."""
    kinks = traces.matched[0].about["kinks"]
    notes = []
    if sum(kinks["matched"]):
        per_step = ", ".join(map(str, kinks["matched"]))
        notes.append(
            f"at {per_step} elements (steps 1 to {len(kinks['matched'])}) rounding alone decides a ReLU or max-pool; "
            "the reference took MindSpore's side there"
        )
    if sum(kinks["differing"]):
        per_step = ", ".join(map(str, kinks["differing"]))
        notes.append(f"at {per_step} elements a ReLU or max-pool differs by more than rounding")
    return notes
