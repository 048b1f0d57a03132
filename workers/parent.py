"""The parent's end: start workers side by side, read what they say, and end them with everything they started.

One whose packages are not installed is not started. Each runs in a session of its own. What a worker starts carries a
token in its environment, and is found by it.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import threading
import time
from collections import deque
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack, suppress
from dataclasses import dataclass, field
from importlib import metadata
from importlib.util import find_spec
from pathlib import Path
from typing import IO, Any

from .. import processes
from ..errors import MsmigrateError, NotInstalled, WorkerFailed
from .messages import DONE, START, Event, Failure, Message, OnMessage, Progress, Result, State, decode, ignore

LONGEST_LINE = 500
# sets of texts have one order in the processes of both frameworks, as a model's outputs may be in the order of one
SAME = {"PYTHONHASHSEED": "0"}
MOST_LOGGED = 10_000_000  # bytes of what is no message that are kept, of each stream
READ_AT_ONCE = 1 << 16
LARGEST = 1 << 28  # letters of a message
NO_MEMORY = ("MemoryError", "bad_alloc", "allocate memory", "out of memory", "Out of memory")
MOST_WAITING = 1000  # messages that wait to be read
TICK = 0.02  # seconds between two looks at what the workers say
LINGER = 5.0  # seconds in which what a worker said last has been read
# by what a worker's module is called, the longest first: the packages that it imports
PACKAGES = {
    "mindspore_server": ("mindspore", "starlette", "uvicorn"),
    "mindspore": ("mindspore",),
    "torch_probe": ("torch",),  # which says of torchvision whether it works
    "torch": ("torch", "torchvision"),
    "onnx_check": ("onnx", "onnxruntime"),
    "onnx": ("onnx",),
}
CUDA = "libtorch_cuda.so"  # of torch; torchvision's ordinary wheel for Linux is linked to it


def refuse_missing(command: Sequence[str]) -> None:
    """Raise NotInstalled where a worker would stop for want of a package.

    command: of a worker of msmigrate, as `python -m msmigrate.….torch_worker`; any other is let through.
    """
    words = list(command)
    module = words[words.index("-m") + 1] if "-m" in words[:-1] else ""
    name = module.rpartition(".")[2] if module.startswith("msmigrate.") else ""
    packages = next((packages for start, packages in PACKAGES.items() if name.startswith(f"{start}_")), ())
    require(*packages)
    if "torchvision" in packages:
        require_a_pair()


def require(*packages: str) -> None:
    """Raise NotInstalled, with the line that installs them, where one of these packages is not there."""
    found = {package: find_spec(package) for package in packages}
    # a folder of that name, where the command is run, is no package
    missing = [package for package, spec in found.items() if spec is None or spec.origin is None]
    if missing:
        are = "are" if len(missing) > 1 else "is"
        wanted = " ".join(f"'{text}'" for text in _requirements(missing))
        raise NotInstalled(f"{' and '.join(missing)} {are} not installed for this Python: pip install {wanted}")


def require_a_pair() -> None:
    """Raise NotInstalled where torchvision's compiled part wants CUDA libraries that torch, a CPU build, lacks: its
    import would end in "operator torchvision::nms does not exist"."""
    torch, torchvision = (Path(str(spec and spec.origin)).parent for spec in map(find_spec, ("torch", "torchvision")))
    if (torch / "lib" / CUDA).exists():
        return
    if not any(CUDA.encode() in part.read_bytes() for part in torchvision.glob("_C*.so")):
        return
    wanted = " ".join(f"'{text}'" for text in _requirements(["torch", "torchvision"]))
    raise NotInstalled(
        f"torchvision {metadata.version('torchvision')} wants {CUDA}, which torch {metadata.version('torch')} does not "
        f"bring: install a CPU build of torchvision too, or both with CUDA: pip install --force-reinstall {wanted}"
    )


def _requirements(packages: Iterable[str]) -> list[str]:
    """What msmigrate wants of each, whichever of its extras brings it, and NumPy as MindSpore needs it: without a word
    pip would take the newest for them."""
    from packaging.requirements import Requirement

    try:
        known = {
            one.name: one for one in map(Requirement, metadata.requires("msmigrate") or []) if one.name != "msmigrate"
        }
    except metadata.PackageNotFoundError:  # run from its folder
        known = {}
    named = [*packages, *(["numpy"] if "numpy" in known else [])]
    return [f"{name}{known[name].specifier}" if name in known else name for name in named]


class Silent(WorkerFailed):
    """A worker has said nothing for too long."""


class Stopped(WorkerFailed):
    """A worker has ended and not said why; how: its exit code, or the signal that killed it, and its last words."""

    def __init__(self, who: str, how: str) -> None:
        super().__init__(f"{who} stopped, {how}")
        self.how = how


@dataclass
class Worker:
    """One process: what it said last, and when (monotonic seconds) it was heard of.

    log: the file that its output goes to, None where only its last line is kept.
    """

    name: str
    process: subprocess.Popen[str]
    log: Path | None
    heard: float
    progress: Progress = field(default_factory=lambda: Progress("starting"))
    failure: Failure | None = None
    printed: str = ""  # the last line of stdout that is no message
    last: str = ""  # of stderr, where errors are
    readers: list[threading.Thread] = field(default_factory=list)

    def last_words(self) -> str:
        """The last line that says something, in at most LONGEST_LINE printable characters: of stderr, else of stdout,
        which may come late."""
        return self.last or self.printed or "it said nothing"

    def how_it_ended(self) -> str:
        """Its exit code, or the signal that killed it, and its last words."""
        code = self.process.wait()
        for reader in self.readers:
            reader.join(LINGER)
        how = f"killed by signal {-code}" if code < 0 else f"exit code {code}"
        no_memory = -code == signal.SIGKILL or any(sign in self.last_words() for sign in NO_MEMORY)
        return f"{how}{' (out of memory?)' * no_memory}: {self.last_words()}"


@dataclass
class Workers:
    """The workers of one job; leaving the block ends them, and whatever they started.

    timeout: after so many seconds in which no worker says anything, one that is not waiting for another has hung.
    several: whether an error has to say whose it is; what a single worker raises is raised here as it was there, and
    its name stands for itself.
    """

    timeout: float | None = None
    several: bool = True
    workers: list[Worker] = field(default_factory=list)
    _token: str = field(default_factory=lambda: os.urandom(16).hex())
    # no queue.Queue: a signal's exception can leave its lock taken, and then nothing ends any more
    _said: deque[tuple[Worker, Message | None]] = field(default_factory=deque)
    _over: bool = False

    def start(
        self,
        name: str,
        command: Sequence[str],
        log: Path | None = None,
        environment: Mapping[str, str] | None = None,
        *,
        takes_jobs: bool = False,
    ) -> Worker:
        """Start a worker; all of its output that is no message goes to `log`.

        environment: variables for it that are set where they are not yet. takes_jobs: it reads them from its stdin.
        Raises NotInstalled where it needs a package that is not there.
        """
        refuse_missing(command)
        if log is not None:
            log.touch()
        process = processes.start(
            command,
            stdin=subprocess.PIPE if takes_jobs else subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            errors="replace",
            env={**SAME, **(environment or {}), **os.environ, "PYTHONUNBUFFERED": "1", processes.TOKEN: self._token},
        )
        worker = Worker(name, process, log, time.monotonic())
        self.workers.append(worker)
        for read, stream in ((self._read, process.stdout), (_keep, process.stderr)):
            worker.readers.append(threading.Thread(target=read, args=(worker, stream), daemon=True))
            worker.readers[-1].start()
        return worker

    def messages(self) -> Iterator[tuple[Worker, Message]]:
        """What the workers say, until all have ended; of each that ends well a Progress whose state is ENDED.

        Raises for one that ends otherwise the class of errors.py that it has named, else WorkerFailed, and Silent for
        one that hangs.
        """
        running = len(self.workers)
        while running:
            if not self._said:
                time.sleep(TICK)
                self._check_silence()
                continue
            worker, message = self._said.popleft()
            worker.heard = time.monotonic()
            if message is None:
                running -= 1
                if worker.process.wait() or worker.failure is not None:
                    raise self._error(worker)
                message = Progress("ended", State.ENDED)
            if isinstance(message, Progress):
                worker.progress = message
            if isinstance(message, Failure):
                worker.failure = message
            else:
                yield worker, message

    def _error(self, worker: Worker) -> MsmigrateError:
        """Why a worker has ended, in one line: in its own words, or in those of the end of its output."""
        who, failure = self._name(worker), worker.failure
        if failure is None or not failure.text:
            return Stopped(who, worker.how_it_ended())
        text = " ".join(failure.text.split())[:LONGEST_LINE] + failure.where
        if self.several:
            return (failure.kind or WorkerFailed)(f"{who} stopped: {text}")
        return failure.kind(failure.text) if failure.kind else WorkerFailed(f"{who} failed: {failure.error}: {text}")

    def _name(self, worker: Worker) -> str:
        return f"the {worker.name} side" if self.several else worker.name

    def _check_silence(self) -> None:
        """Raise Silent when nobody has said anything for too long."""
        alive = [worker for worker in self.workers if worker.progress.state is not State.ENDED]
        now = time.monotonic()
        if self.timeout is None or not alive or any(now - worker.heard < self.timeout for worker in alive):
            return
        hung = [worker for worker in alive if worker.progress.state is not State.WAITING] or alive
        worker = min(hung, key=lambda worker: worker.heard)
        raise Silent(
            f"{self._name(worker)} has reported nothing for {self.timeout:g} s and was ended, while at "
            f"{worker.progress.what!r}: {worker.last_words()}; if it only needs longer, give a larger --timeout"
        )

    def __enter__(self) -> Workers:
        return self

    def __exit__(self, *reason: object) -> None:
        self._over = True
        for worker in self.workers:
            processes.end(worker.process)
        processes.end_all(self._token)  # what left its session
        deadline = time.monotonic() + LINGER
        while (
            any(each.is_alive() for worker in self.workers for each in worker.readers) and time.monotonic() < deadline
        ):
            time.sleep(TICK)

    def _read(self, worker: Worker, stream: IO[str]) -> None:
        """Hand on the messages on a worker's stdout, and at its end None; what is no message is kept as its output."""
        with stream, _Log(worker) as log:
            while line := _line(stream):
                message = decode(line)
                if message is None:
                    worker.printed = log.write(line) or worker.printed
                    continue
                while len(self._said) > MOST_WAITING and not self._over:
                    time.sleep(TICK)
                self._said.append((worker, message))
        self._said.append((worker, None))


def _line(stream: IO[str]) -> str:
    """The next line if it may be a message, else READ_AT_ONCE letters of it at most; nothing at the end."""
    pieces = [stream.readline(READ_AT_ONCE)]
    size = len(pieces[0])
    while pieces[0].startswith(START) and pieces[-1] and not pieces[-1].endswith("\n") and size < LARGEST:
        pieces.append(stream.readline(READ_AT_ONCE))
        size += len(pieces[-1])
    return "".join(pieces)


def _keep(worker: Worker, stream: IO[str]) -> None:
    with stream, _Log(worker) as log:
        while line := stream.readline(READ_AT_ONCE):
            worker.last = log.write(line) or worker.last


class _Log:
    """Keeps what a worker prints, up to a size: it may be all that explains what went wrong, or endless."""

    def __init__(self, worker: Worker) -> None:
        self.logged = 0
        self.file: IO[str] | None = None
        with suppress(OSError):  # a command that is interrupted as this starts has removed the folder
            self.file = None if worker.log is None else worker.log.open("a", errors="replace")

    def __enter__(self) -> _Log:
        return self

    def __exit__(self, *reason: object) -> None:
        if self.file is not None:
            self.file.close()

    def write(self, line: str) -> str:
        """Add a line; gives it as a message may have it."""
        if self.file is not None and self.logged < MOST_LOGGED:
            self.logged += len(line)
            self.file.write(line)
            self.file.flush()
        return "".join(c if c.isprintable() else "?" for c in line.strip()[:LONGEST_LINE])


def call(
    name: str,
    command: Sequence[str],
    log: Path | None = None,
    on_message: OnMessage = ignore,
    *,
    timeout: float | None = None,
) -> Any:
    """Start one worker, hand on what it says, and return its result, None where it sent none.

    name: what an error calls it, such as "the MindSpore process". timeout: seconds without a word after which it has
    hung. Raises what the worker raised, Stopped where it ended and gave no reason, and Silent.
    """
    answer = None
    with Workers(timeout, several=False) as workers:
        workers.start(name, command, log)
        for worker, message in workers.messages():
            if isinstance(message, Result):
                answer = message.value
            elif worker.progress.state is not State.ENDED:
                on_message(name, message)
    return answer


class Host:
    """A process that imports a framework once and does one job after another, each in a fork of its own; its end is
    worker.answer_each(). One whose job has failed has ended, as `call` raises; leaving the block ends it too.

    command: of a worker that reads its jobs.
    """

    def __init__(self, command: Sequence[str]) -> None:
        self._workers = Workers(several=False)
        with ExitStack() as failing:
            failing.enter_context(self._workers)
            self._worker = self._workers.start("", command, takes_jobs=True)
            failing.pop_all()
        self._said = self._workers.messages()

    def __enter__(self) -> Host:
        return self

    def __exit__(self, *reason: object) -> None:
        with suppress(OSError):
            assert self._worker.process.stdin is not None
            self._worker.process.stdin.close()
        self._workers.__exit__(*reason)

    def call(self, name: str, words: Sequence[str]) -> Any:
        """Have a job done, and return its result. name: what an error calls it. Raises what `call` does."""
        self._worker.name = name
        self._worker.last = self._worker.printed = ""  # of another job
        with suppress(BrokenPipeError):  # it has ended, and its messages say why
            stdin = self._worker.process.stdin
            assert stdin is not None
            stdin.write(json.dumps([*words]) + "\n")
            stdin.flush()
        answer = None
        for _, message in self._said:
            if isinstance(message, Result):
                answer = message.value
            elif isinstance(message, Event) and message.name == DONE:
                break
        return answer
