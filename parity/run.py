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

from ..errors import BadDestination, BadInput, BadTrace, MsmigrateError, WorkerFailed
from ..migrate.convert import convert
from .compare import Traces, compare
from .findings import Report
from .hints import hints
from .record import parse_progress
from .start import CHECKPOINT, MINDSPORE, TORCH32_OTHER, WEIGHTS, matched
from .worker import Options

TORCH_WORKER = (sys.executable, "-m", "msmigrate.parity.torch_worker")
MINDSPORE_WORKER = (sys.executable, "-m", "msmigrate.parity.mindspore_worker")
LAST_TRACE = {"torch": matched(TORCH32_OTHER), "MindSpore": MINDSPORE}  # what a side has left when it ends
LONGEST_LINE = 500
# What one pass frees the next one needs: glibc's malloc would give it back to the system and have it faulted in again,
# which was measured to cost a tenth of the run.
KEEP_MEMORY = {"MALLOC_MMAP_THRESHOLD_": "4000000000", "MALLOC_TRIM_THRESHOLD_": "4000000000"}
Told = Callable[[str, str], None]  # (framework, what it is doing now)


@dataclass
class _Worker:
    name: str
    process: subprocess.Popen[str]
    log: Path
    error: str = ""
    reader: threading.Thread | None = None


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
    _claim(folder)
    arguments = options.arguments(recipe_file)
    lines: queue.Queue[tuple[_Worker, str | None]] = queue.Queue()
    workers: list[_Worker] = []
    try:
        for name, command in (("torch", torch_worker), ("MindSpore", mindspore_worker)):
            workers.append(_start(name, [*command, *arguments], folder, lines))
        _attend(workers, lines, folder, told)
    finally:
        for worker in workers:
            worker.process.kill()
            worker.process.wait()
            if worker.reader is not None:
                worker.reader.join(timeout=5.0)
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


def _claim(folder: Path) -> None:
    """Make the folder, which must hold nothing yet. Raises BadInput."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
        in_use = any(folder.iterdir())
        if not in_use:
            for name in LAST_TRACE:
                _log(folder, name).touch()
    except OSError as error:
        raise BadDestination(f"{folder}: traces cannot be kept here: {error.strerror or error}") from error
    if in_use:
        raise BadInput(f"{folder} is not empty; traces of two runs would mix: name another folder")


def _log(folder: Path, name: str) -> Path:
    return folder / f"{name.lower()}.log"


def _start(name: str, command: list[str], folder: Path, lines: queue.Queue[tuple[_Worker, str | None]]) -> _Worker:
    log = _log(folder, name)
    environment = {**KEEP_MEMORY, **os.environ, "PYTHONUNBUFFERED": "1"}
    with log.open("w") as stderr:
        process = subprocess.Popen(
            command, stdout=subprocess.PIPE, stderr=stderr, text=True, errors="replace", env=environment
        )
    worker = _Worker(name, process, log)
    assert process.stdout is not None
    worker.reader = threading.Thread(target=_read, args=(worker, process.stdout, lines), daemon=True)
    worker.reader.start()
    return worker


def _read(worker: _Worker, stream: IO[str], lines: queue.Queue[tuple[_Worker, str | None]]) -> None:
    with stream:
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
            if not (folder / LAST_TRACE[worker.name] / "trace.json").exists():  # the other one would wait for ever
                raise WorkerFailed(f"the {worker.name} side ended without its trace: {_last_words(worker)}")
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
    return f"the {worker.name} side stopped, {how}: {_last_words(worker)}"


def _last_words(worker: _Worker) -> str:
    lines = [line.strip() for line in worker.log.read_text(errors="replace").splitlines() if line.strip()]
    return lines[-1][:LONGEST_LINE] if lines else "it said nothing"


def _notes(traces: Traces) -> list[str]:
    """What a reader has to know about how the reference was taken."""
    about = traces.matched[0].about.get("kinks")
    kinks: dict[str, list[int]] = about if isinstance(about, dict) else {}
    counts = [kinks.get(kind) for kind in ("matched", "differing")]
    if not all(isinstance(count, list) and all(type(n) is int for n in count) for count in counts):
        raise BadTrace(f"{traces.matched[0].folder / 'trace.json'}: does not say which kinks were matched")
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
