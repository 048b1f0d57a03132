"""The worker's end: read the job, keep stdout for messages, report a failure as its class, and leave.

if __name__ == "__main__":
    run(main, Job.read)
"""

from __future__ import annotations

import json
import os
import sys
import time
import traceback
from collections.abc import Callable, Generator
from contextlib import closing
from functools import partial
from pathlib import Path
from typing import Any, NoReturn, TypeVar

from ..errors import MsmigrateError, WorkerFailed
from ..processes import in_a_fork
from . import deferred_compiler
from .messages import DONE, Event, Failure, Message, Progress, Ready, Result, State, encode

LOOK = 0.02  # seconds between two looks for a file
IDLE = object()  # where nothing is left to do
Job = TypeVar("Job")
_messages: int | None = None  # the descriptor that the parent reads; None where a worker's code runs anywhere else


def run(main: Callable[[Job], Any], read: Callable[[Path], Job]) -> NoReturn:
    """Be a worker: call main with the job that `read` makes of the file on the command line, and end the process.

    What main returns, if not None, is sent as the result. The exit code is 0, or 2 where it raised.
    """
    answer(lambda: main(read(Path(sys.argv[1]))))


def answer(work: Callable[[], Any], where: Callable[[Exception], str] = lambda error: "") -> NoReturn:
    """Do the work as a worker, whose job is not in a file: what it returns, if not None, is sent as the result.

    where: what says in which line of the user's own code an error was raised.
    """
    listen()
    code = 0
    try:
        result = work()
        if result is not None:
            send(Result(result))
    except MsmigrateError as error:
        fail(error)
        code = 2
    except Exception as error:  # a framework, or the user's own code, may fail in any way
        traceback.print_exc()
        fail(error, where(error))
        code = 2
    leave(code)


def answer_each(work: Callable[[list[str]], NoReturn]) -> NoReturn:
    """Be the worker of parent.Host: do the job of every line of stdin, its words as JSON, in a fork of this process.

    What this process has imported no job imports again, and what one does to it no other one sees. The first job that
    fails ends this process as it has ended itself.
    """
    listen()
    for line in sys.stdin:
        status = in_a_fork(partial(_job, work, json.loads(line)))
        if status < 0:
            os.kill(os.getpid(), -status)
        if status:
            leave(status)
        send(Event(DONE))
    leave()


def _job(work: Callable[[list[str]], NoReturn], words: list[str]) -> NoReturn:
    """Do a job whose stdin is nowhere: the host's has the other jobs."""
    sys.stdin = Path(os.devnull).open()  # noqa: SIM115  (for as long as the process runs)
    os.dup2(sys.stdin.fileno(), 0)
    work(words)


def listen() -> None:
    """Keep stdout for messages: whatever a framework or a user's model prints goes to stderr from here on."""
    global _messages
    if _messages is None:
        sys.stdout.flush()
        _messages = os.dup(1)
        os.dup2(2, 1)
    if "torch" in sys.modules:
        deferred_compiler.defer()


def send(message: Message) -> None:
    """Tell the process that started this one; nothing happens where none did."""
    if _messages is not None:
        left = encode(message).encode()
        while left:
            left = left[os.write(_messages, left) :]


def progress(what: str, state: State = State.WORKING, done: int | None = None, total: int | None = None) -> None:
    """Say what begins now, or how far it is."""
    send(Progress(what, state, done, total))


def ready(file: Path) -> None:
    """Say that a file is in place."""
    send(Ready(file.name))


def fail(error: Exception, where: str = "") -> None:
    """Say why this worker stops."""
    send(Failure(type(error).__name__, str(error), where))


def leave(status: int = 0) -> NoReturn:
    """End this process at once with `status`, after its output is flushed.

    MindSpore's own shutdown prints hundreds of harmless errors and can end with a signal although all went well.
    """
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(status)


def _nothing() -> Generator[object, None, None]:
    yield from ()


def wait_for(path: Path, meanwhile: Generator[object, None, None] | None = None) -> Path:
    """Wait until another process has put `path` in place; raises WorkerFailed when the parent is gone.

    meanwhile: does a little each time that it is asked for its next, and is closed then.
    There is no deadline: the parent ends its workers when one of them fails, and a worker run by hand may wait for a
    trace that comes from another machine.
    """
    parent = os.getppid()
    with closing(meanwhile or _nothing()) as work:
        while not path.exists():
            if os.getppid() != parent:
                raise WorkerFailed(f"the process that waited for {path} is gone")
            if next(work, IDLE) is IDLE:
                time.sleep(LOOK)
    return path
