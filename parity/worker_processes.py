"""The recording processes: started in sessions of their own, listened to, and ended with everything they started.

What a worker starts carries the run's token in its environment, and is found by it.
"""

from __future__ import annotations

import os
import queue
import shutil
import signal
import subprocess
import threading
import time
import uuid
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO

from .. import processes
from ..errors import WorkerFailed
from .record.messages import parse_progress

LONGEST_LINE = 500
MOST_LOGGED = 10_000_000  # bytes of chatter on stdout that are kept
READ_AT_ONCE = 1 << 16
# What one pass frees the next one needs: glibc's malloc would give it back to the system and have it faulted in again,
# which was measured to cost a tenth of the run.
KEEP_MEMORY = {"MALLOC_MMAP_THRESHOLD_": "4000000000", "MALLOC_TRIM_THRESHOLD_": "4000000000"}
NO_MEMORY = ("MemoryError", "bad_alloc", "allocate memory", "out of memory", "Out of memory")
WAITING = "waiting for"  # what a worker says it does while the other one has to act
TICK = 0.02  # seconds between two looks at what the workers report
INDEXES = ("trace.json", "replay.json")  # written last


@dataclass
class Worker:
    """One process: what it said last, and when (monotonic seconds) it was heard of."""

    name: str
    process: subprocess.Popen[str]
    log: Path
    heard: float
    doing: str = "starting"
    error: str = ""
    logged: int = 0
    reader: threading.Thread | None = None


@dataclass
class Team:
    """The workers of one run; leaving the block ends them, and whatever they started.

    timeout: after so many seconds in which no worker reports progress, one that is not waiting for the other has hung.
    """

    timeout: float | None = None
    workers: list[Worker] = field(default_factory=list)
    _token: str = field(default_factory=lambda: uuid.uuid4().hex)
    _lines: queue.Queue[tuple[Worker, str | None]] = field(default_factory=lambda: queue.Queue(1000))

    def start(self, name: str, command: Sequence[str], log: Path) -> None:
        """Start a worker whose stderr, and what on stdout is no message, goes to `log`."""
        environment = {**KEEP_MEMORY, **os.environ, "PYTHONUNBUFFERED": "1", processes.TOKEN: self._token}
        with log.open("w") as stderr:
            process = processes.start(
                command,
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=stderr,
                text=True,
                errors="replace",
                env=environment,
            )
        worker = Worker(name, process, log, time.monotonic())
        self.workers.append(worker)
        assert process.stdout is not None
        worker.reader = threading.Thread(target=self._read, args=(worker, process.stdout), daemon=True)
        worker.reader.start()

    def messages(self) -> Iterator[tuple[Worker, dict[str, str] | None]]:
        """What the workers report, until all have ended; None for one that has ended well.

        Raises WorkerFailed for one that ends otherwise, and for one that hangs.
        """
        running = len(self.workers)
        while running:
            try:
                worker, line = self._lines.get_nowait()
            except queue.Empty:
                time.sleep(TICK)  # not a wait within get: Ctrl-C there can release its lock twice, a RuntimeError
                self._check_silence()
                continue
            if line is None:
                running -= 1
                code = worker.process.wait()
                if code:
                    raise WorkerFailed(explain(worker, code))
                worker.doing = "ended"
                yield worker, None
                continue
            said = parse_progress(line)
            if said is None:
                _log(worker, line)
                self._check_silence()
                continue
            worker.heard = time.monotonic()
            worker.error = said.get("error", worker.error)
            worker.doing = said.get("doing", worker.doing)
            yield worker, said

    def __enter__(self) -> Team:
        return self

    def __exit__(self, *reason: object) -> None:
        for worker in self.workers:
            processes.end(worker.process)
        processes.end_all(self._token)  # what left its session
        for worker in self.workers:
            deadline = time.monotonic() + 5.0
            while worker.reader is not None and worker.reader.is_alive() and time.monotonic() < deadline:
                try:
                    self._lines.get_nowait()  # so that no reader waits for room
                except queue.Empty:
                    time.sleep(TICK)

    def _read(self, worker: Worker, stream: IO[str]) -> None:
        with stream:
            while line := stream.readline(READ_AT_ONCE):
                self._lines.put((worker, line))
        self._lines.put((worker, None))

    def _check_silence(self) -> None:
        """Raise WorkerFailed when nobody has reported anything for too long."""
        alive = [worker for worker in self.workers if worker.doing != "ended"]
        now = time.monotonic()
        if self.timeout is None or not alive or any(now - worker.heard < self.timeout for worker in alive):
            return
        hung = [worker for worker in alive if WAITING not in worker.doing] or alive
        worker = min(hung, key=lambda worker: worker.heard)
        raise WorkerFailed(
            f"the {worker.name} side has reported nothing for {self.timeout:g} s and was ended, while at "
            f"{worker.doing!r}: {last_words(worker.log)}; if it only needs longer, give a larger --timeout"
        )


def explain(worker: Worker, code: int) -> str:
    """Why a worker ended with this exit code, in one line: its own words, or the end of its log."""
    if worker.error:
        return f"the {worker.name} side stopped: {' '.join(worker.error.split())[:LONGEST_LINE]}"
    how = f"killed by signal {-code}" if code < 0 else f"exit code {code}"
    words = last_words(worker.log)
    if -code == signal.SIGKILL or any(sign in words for sign in NO_MEMORY):
        how += " (out of memory?)"
    return f"the {worker.name} side stopped, {how}: {words}"


def last_words(log: Path) -> str:
    """The last line of a log that says something, at most LONGEST_LINE characters."""
    with log.open("rb") as file:
        file.seek(max(0, file.seek(0, os.SEEK_END) - READ_AT_ONCE))
        text = file.read().decode(errors="replace")
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    return "".join(c if c.isprintable() else "?" for c in lines[-1][:LONGEST_LINE]) if lines else "it said nothing"


def drop_half_traces(folder: Path) -> None:
    """Remove the folders in a run's folder whose index was not written: the recording was cut short."""
    for part in folder.iterdir() if folder.is_dir() else ():
        if part.is_dir() and not part.is_symlink() and not any((part / index).exists() for index in INDEXES):
            shutil.rmtree(part, ignore_errors=True)


def _log(worker: Worker, line: str) -> None:
    """Keep what is no message, up to a size: it may be all that explains what went wrong, or endless."""
    if worker.logged < MOST_LOGGED:
        worker.logged += len(line)
        with worker.log.open("a", errors="replace") as log:
            log.write(line)
