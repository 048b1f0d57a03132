"""Messages from a worker to the process that started it: one JSON object per line, of one of five kinds.

A worker with large results leaves files; messages are small.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import asdict, dataclass, field
from enum import Enum
from typing import Any

from .. import errors
from ..errors import MsmigrateError


class State(str, Enum):
    """What a worker is doing; waiting: for the other worker, which has to act first."""

    WORKING = "working"
    WAITING = "waiting"
    ENDED = "ended"


@dataclass(frozen=True)
class Progress:
    """The work that begins now, in words; done, total: the progress, where that can be counted."""

    what: str
    state: State = State.WORKING
    done: int | None = None
    total: int | None = None


@dataclass(frozen=True)
class Ready:
    """A file that the parent waits for is ready; artifact: its name in the folder of the job."""

    artifact: str


@dataclass(frozen=True)
class Result:
    """The worker's result: any JSON value."""

    value: Any


@dataclass(frozen=True)
class Failure:
    """Why the worker stops. error: the name of the exception's class; where: the place in the user's own code."""

    error: str
    text: str
    where: str = ""

    @property
    def kind(self) -> type[MsmigrateError] | None:
        """The class of errors.py that was raised in the worker, None for any other exception."""
        kind = getattr(errors, self.error, None)
        return kind if isinstance(kind, type) and issubclass(kind, MsmigrateError) else None


@dataclass(frozen=True)
class Event:
    """Any other event, such as a server that now listens; facts: details of it."""

    name: str
    facts: dict[str, Any] = field(default_factory=dict)


# events: a process is started; facts["tensors"] weight tensors are compared; a failure at facts["at"] is known; one of
# a host's jobs is done
BEGUN, COUNTED, DIVERGED, DONE = "begun", "counted", "diverged", "done"
Message = Progress | Ready | Result | Failure | Event
OnMessage = Callable[[str, Message], None]  # called with (the worker's name, its message)


def ignore(worker: str, message: Message) -> None:
    """An OnMessage that does nothing."""


_KINDS: dict[str, type[Message]] = {kind.__name__.lower(): kind for kind in (Progress, Ready, Result, Failure, Event)}


START = '{"kind": '  # the beginning of every line that is a message


def encode(message: Message) -> str:
    """The message as a line, with its newline, that decode() reads back."""
    return json.dumps({"kind": type(message).__name__.lower(), **asdict(message)}) + "\n"


def decode(line: str) -> Message | None:
    """The message in a line; None for any other output, such as what a framework prints."""
    try:
        found = json.loads(line)
        message: Message | None = _KINDS[found.pop("kind")](**found)
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError):
        return None
    if isinstance(message, Progress):
        message = _progress(message)
    texts = {Ready: ("artifact",), Failure: ("error", "text", "where"), Event: ("name",)}.get(type(message), ())
    sound = all(isinstance(getattr(message, name), str) for name in texts)
    return message if sound and isinstance(getattr(message, "facts", {}), dict) else None


def _progress(read: Progress) -> Progress | None:
    counts = (read.done, read.total)
    if not isinstance(read.what, str) or not all(count is None or type(count) is int for count in counts):
        return None
    try:
        return Progress(read.what, State(read.state), *counts)
    except ValueError:
        return None
