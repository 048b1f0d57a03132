"""The processes that a command starts, and the signals that end it: nothing that it started is left when it has ended.

A worker runs in a session of its own. There the terminal's Ctrl-C does not reach it; this process gets it, and ends
its workers. If this process is killed, the kernel kills them.
"""

from __future__ import annotations

import ctypes
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from functools import partial
from pathlib import Path
from typing import Any, NoReturn

TOKEN = "MSMIGRATE_JOB"  # in the environment of all processes of a job, which they pass on to whatever they start
PROC = Path("/proc")
PR_SET_PDEATHSIG = 1
ENDING = (signal.SIGTERM, signal.SIGHUP)  # what schedulers and closing terminals send; Python itself handles SIGINT
INTERRUPTED = 128 + signal.SIGINT  # the exit code
TIDYING = 10.0  # seconds in which a second signal does not interrupt the tidying up after the first
# fields of /proc/PID/stat, counted from the one after the name, which may contain anything (proc(5))
STATE, PARENT, STARTED, EXIT_CODE = 0, 1, 19, 49
_LIBC = ctypes.CDLL(None)
_waiting: list[int] | None = None  # the signals that came while none may be raised


# Signals


class Ended(KeyboardInterrupt):
    """A signal ended this process; `number` is the signal's."""

    def __init__(self, number: int) -> None:
        super().__init__(signal.Signals(number).name)
        self.number = number


@contextmanager
def signals_raised() -> Iterator[None]:
    """While the block runs, SIGTERM and SIGHUP raise Ended and Ctrl-C KeyboardInterrupt, once, whatever it interrupts.

    Python drops an exception in some places, such as a finalizer; then the signal is sent again.
    """
    last = -TIDYING

    def end(number: int) -> None:
        nonlocal last
        if _waiting is not None:
            _waiting.append(number)
        elif time.monotonic() - last >= TIDYING:
            last = time.monotonic()
            interrupt(number)

    def dropped(error: sys.UnraisableHookArgs) -> None:
        nonlocal last
        if not isinstance(error.exc_value, KeyboardInterrupt):
            before(error)
            return
        last = -TIDYING
        number = exit_code(error.exc_value) - 128
        threading.Timer(0.05, os.kill, (os.getpid(), number)).start()

    before, sys.unraisablehook = sys.unraisablehook, dropped
    try:
        with signals_to(end, (signal.SIGINT, *ENDING)):
            yield
    finally:
        sys.unraisablehook = before


@contextmanager
def signals_to(act: Callable[[int], None], numbers: Sequence[int]) -> Iterator[None]:
    """While the block runs, these signals call `act` with their number, in the main thread.

    One that is ignored at the start stays ignored, as SIGHUP under nohup. In any other thread nothing changes: only the
    main thread may set what a signal does.
    """
    if threading.current_thread() is not threading.main_thread():
        yield
        return

    def caught(number: int, frame: object) -> None:
        if number == signal.SIGHUP:
            _leave_the_terminal()
        act(number)

    before = {number: signal.getsignal(number) for number in numbers}
    before = {number: handler for number, handler in before.items() if handler is not signal.SIG_IGN}
    try:
        for number in before:
            signal.signal(number, caught)
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler or signal.SIG_DFL)


@contextmanager
def _signals_delayed() -> Iterator[None]:
    """Delay what signals_raised() raises until the block ends: an exception within a fork leaves locks taken."""
    global _waiting
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    _waiting = []
    try:
        yield
    finally:
        waiting, _waiting = _waiting, None
        if waiting:
            interrupt(waiting[0])


def interrupt(number: int) -> NoReturn:
    """Raise what a signal of this number raises: KeyboardInterrupt for Ctrl-C's, else Ended."""
    raise KeyboardInterrupt if number == signal.SIGINT else Ended(number)


def exit_code(error: BaseException) -> int:
    """128 plus the number of the signal that raised this KeyboardInterrupt, or the one that caused this exception."""
    interruption = error if isinstance(error, KeyboardInterrupt) else error.__cause__
    return 128 + (interruption.number if isinstance(interruption, Ended) else signal.SIGINT)


def _leave_the_terminal() -> None:
    """Send output to the null device if the terminal is gone: writing to it fails, and would end the tidying up."""
    for output in (1, 2):
        try:
            os.write(output, b"")
        except OSError:
            nowhere = os.open(os.devnull, os.O_WRONLY)
            os.dup2(nowhere, output)
            os.close(nowhere)


# Starting and ending


def start(command: Sequence[str], **options: Any) -> subprocess.Popen[Any]:
    """Start a process in a session of its own, which ends when this one does; options: those of subprocess.Popen."""
    process = None
    try:
        with _signals_delayed():
            process = subprocess.Popen(
                command, start_new_session=True, preexec_fn=partial(end_with_parent, os.getpid()), **options
            )
    except KeyboardInterrupt:
        if process is not None:
            end(process)
        raise
    return process


def in_a_fork(work: Callable[[], NoReturn]) -> int:
    """Call `work` in a fork, which ends when this process does; returns its exit code, as Popen.returncode does."""
    parent = os.getpid()
    fork = os.fork()
    if fork == 0:
        end_with_parent(parent)
        work()
    return os.waitstatus_to_exitcode(os.waitpid(fork, 0)[1])


def end(process: subprocess.Popen[Any]) -> None:
    """Kill what start() started, and what that has started in its session."""
    with suppress(ProcessLookupError, PermissionError):
        os.killpg(process.pid, signal.SIGKILL)  # it leads its session, and so its group
    process.kill()
    process.wait()


def run(
    command: Sequence[str], seconds: float | None = None, given: str | None = None
) -> subprocess.CompletedProcess[str]:
    """Run a process to its end, for at most `seconds`, and return its output.

    given: what it reads from stdin. Raises what subprocess.run raises: OSError, TimeoutExpired.
    """
    pipes: dict[str, Any] = {
        "stdin": subprocess.DEVNULL if given is None else subprocess.PIPE,
        "stdout": subprocess.PIPE,
        "stderr": subprocess.PIPE,
    }
    process = start(command, **pipes, text=True, errors="replace")
    try:
        output, errors = process.communicate(given, timeout=seconds)
    finally:
        if process.returncode is None:
            end(process)
        for stream in (process.stdin, process.stdout, process.stderr):
            if stream is not None:
                stream.close()
    return subprocess.CompletedProcess(command, process.returncode, output, errors)


def end_with_parent(parent: int | None = None) -> None:
    """Have the kernel kill this process when the one that started it ends, however that ends.

    parent: its number; if it has already ended, this process ends now.
    """
    _LIBC.prctl(PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0)
    if parent is not None and os.getppid() != parent:
        os._exit(1)


def end_all(token: str, patience: float = 10.0) -> list[int]:
    """Kill every process that carries the token; returns those that are still there after `patience` seconds."""
    deadline = time.monotonic() + patience
    while True:
        there = [pid for pid, _ in all_processes() if pid != os.getpid() and environment(pid).get(TOKEN) == token]
        if not there or time.monotonic() > deadline:
            return there
        for pid in there:
            with suppress(OSError):
                os.kill(pid, signal.SIGKILL)
        time.sleep(0.05)


# Looking at them


def all_processes() -> Iterator[tuple[int, list[str]]]:
    """Every process of this machine: its number, and the fields of its stat."""
    for entry in PROC.iterdir():
        if entry.name.isdigit():
            fields = stat(int(entry.name))
            if fields is not None:
                yield int(entry.name), fields


def stat(pid: int) -> list[str] | None:
    """The fields of /proc/PID/stat behind the name; None for a process that is not there."""
    try:
        text = (PROC / str(pid) / "stat").read_text(encoding="utf-8", errors="replace")
    except OSError:
        return None
    return text.rpartition(")")[2].split()


def environment(pid: int) -> dict[str, str]:
    """The environment that a process was started with; empty for one that has ended or is another user's."""
    try:
        raw = (PROC / str(pid) / "environ").read_bytes()
    except OSError:
        return {}
    pairs = (item.partition(b"=") for item in raw.split(b"\0"))
    return {name.decode(errors="replace"): value.decode(errors="replace") for name, _, value in pairs if name}
