"""The run's log: events, one JSON object per line, written and read back; TensorBoard's copy of it."""

from __future__ import annotations

import json
import math
import os
import time
from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TypeGuard

from ...errors import BadDestination, BadInput
from ...input_files import open_regular
from .train_job import Job

METRICS = ("loss", "top1", "top5")


@dataclass(frozen=True)
class StepLine:
    """The log line of an optimizer step; numbers that were not logged are NaN."""

    epoch: int
    step: int
    loss: float
    lr: float
    images_per_second: float
    loss_scale: float


@dataclass(frozen=True)
class ValidationLine:
    """A validation: loss, top-1 and top-5 as shares of 1, and the same of the moving average, if there is one; NaN for
    what was not measured."""

    epoch: int
    step: int
    loss: float
    top1: float
    top5: float
    ema: dict[str, float] | None


@dataclass
class History:
    """A run so far.

    steps and validations are in order, without those that a resumed run repeated. kept: the step of the newest
    checkpoint. continued: for a run begun elsewhere, the step after which this one began. seconds: total of all the
    times it ran. stopped: the event that names the tensor that was not finite. end: the event of a run that is done.
    """

    plan: dict[str, Any] = field(default_factory=dict)
    gate: dict[str, Any] | None = None
    steps: list[StepLine] = field(default_factory=list)
    validations: list[ValidationLine] = field(default_factory=list)
    warnings: list[str] = field(default_factory=list)
    kept: int = 0
    seconds: float = 0.0
    starts: int = 0
    continued: int = 0
    stopped: dict[str, Any] | None = None
    end: dict[str, Any] | None = None
    error: str | None = None

    @property
    def best(self) -> tuple[ValidationLine, bool] | None:
        """The validation with the highest top-1, and whether that is the moving average's; for a net without classes,
        the one with the lowest loss."""
        key, sign = ("loss", -1.0) if self.plan.get("classes") == 0 else ("top1", 1.0)
        found = [(sign * getattr(v, key), v, False) for v in self.validations]
        found += [(sign * v.ema[key], v, True) for v in self.validations if v.ema]
        found = [one for one in found if math.isfinite(one[0])]
        return max(found, key=lambda one: one[0])[1:] if found else None

    @property
    def status(self) -> str:
        """done; stopped (a number was not finite); failed (an error); or interrupted."""
        if self.stopped is not None:
            return "stopped"
        if self.error is not None:
            return "failed"
        return "done" if self.end is not None else "interrupted"

    @property
    def last_step(self) -> int:
        """The last step in the log."""
        ended = self.end.get("steps") if self.end else None
        if whole(ended):
            return ended
        stopped = self.stopped.get("step") if self.stopped else None
        known = [self.kept, *(line.step for line in self.steps), *(line.step for line in self.validations)]
        return max([*known, stopped] if whole(stopped) else known)


def read(log: Path) -> History:
    """Read a run's log; lines that are no events, or lack a field of their kind of event, are passed over. Raises
    BadInput for a file that is not regular."""
    try:
        return history(Follower(log).events())
    except OSError as error:
        raise BadInput(f"the log {log} cannot be read: {error.strerror or error}") from None


def history(events: Iterable[dict[str, Any]]) -> History:
    """The history from a run's events, in the order in which they were logged."""
    found = History()
    began = last = None
    for event in events:
        now = number(event.get("time"))
        kind = event["event"]
        if kind == "plan":
            found.seconds += _between(began, last)
            began = last = None
            _begin(found, event)
        if math.isfinite(now) and found.starts:
            began, last = now if began is None else began, now
        if isinstance(event.get("gate"), dict):
            found.gate = event["gate"]
        if kind == "step" and whole(event.get("step")):
            found.steps.append(_step(event))
        elif kind == "validation" and whole(event.get("step")):
            found.validations.append(_validation(event))
        elif kind == "checkpoint" and whole(event.get("step")):
            found.kept = event["step"]
        elif kind == "warning":
            found.warnings.append(str(event.get("text", "")))
        elif kind == "stopped":
            found.stopped = event
        elif kind == "end":
            found.end = event
        elif kind == "error":
            found.error = str(event.get("text", ""))
    found.seconds += _between(began, last)
    return found


def _between(began: float | None, last: float | None) -> float:
    return 0.0 if began is None or last is None else max(last - began, 0.0)


def _begin(found: History, plan: dict[str, Any]) -> None:
    """A run starts, or continues from a checkpoint: what was logged after that checkpoint is done again."""
    first = plan.get("first_step")
    kept = first if whole(first) else 0
    if not found.starts:
        found.continued = kept
    found.plan, found.starts, found.kept = plan, found.starts + 1, kept
    found.steps = [line for line in found.steps if line.step <= kept]
    found.validations = [line for line in found.validations if line.step <= kept]
    found.stopped = found.end = found.error = None


def _step(event: dict[str, Any]) -> StepLine:
    loss, lr, speed, scale = (number(event.get(key)) for key in ("loss", "lr", "images_per_second", "loss_scale"))
    return StepLine(_epoch(event), event["step"], loss, lr, speed, scale)


def _validation(event: dict[str, Any]) -> ValidationLine:
    loss, top1, top5 = (number(event.get(key)) for key in METRICS)
    ema = event.get("ema")
    average = {key: number(ema.get(key)) for key in METRICS} if isinstance(ema, dict) else None
    return ValidationLine(_epoch(event), event["step"], loss, top1, top5, average)


def _epoch(event: dict[str, Any]) -> int:
    epoch = event.get("epoch")
    return epoch if whole(epoch) else 0


def whole(value: Any) -> TypeGuard[int]:
    """Whether a value from a log is a whole number."""
    return type(value) is int and value >= 0


def number(value: Any) -> float:
    """A number from a log, where 'nan' and 'inf' are texts; NaN for anything that is no number."""
    if isinstance(value, bool) or not isinstance(value, (int, float, str)):
        return math.nan
    try:
        return float(value)
    except (ValueError, OverflowError):
        return math.nan


def finite(value: Any) -> Any:
    """JSON has neither NaN nor infinity: they become null."""
    if isinstance(value, dict):
        return {key: finite(item) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [finite(item) for item in value]
    return None if isinstance(value, float) and not math.isfinite(value) else value


def json_text(content: Any) -> str:
    """Strict JSON for a file that people open too."""
    return json.dumps(finite(content), indent=1, ensure_ascii=False) + "\n"


class RunLog:
    """Appends every event to this rank's file and, for rank 0, to the run's own log.

    A line that a killed process left unfinished is ended first. Raises BadDestination if a file cannot be written.
    """

    def __init__(self, job: Job, rank: int) -> None:
        paths = [job.events(rank), job.log] if rank == 0 else [job.events(rank)]
        self._files: list[EventFile] = []
        try:
            for path in paths:
                _end_last_line(path)
                self._files.append(EventFile(path))
        except OSError as error:
            self.close()
            raise BadDestination(f"cannot write {error.filename}: {error.strerror}") from error

    def say(self, event: str, **facts: Any) -> None:
        """Append one event. Raises BadDestination, for instance if the disk is full."""
        try:
            for file in self._files:
                file.say(event, **facts)
        except OSError as error:
            raise BadDestination(f"cannot write the run's log: {error.strerror}") from error

    def warn(self, text: str) -> None:
        """Append a warning."""
        self.say("warning", text=text)

    def note(self, text: str) -> None:
        """Append a note."""
        self.say("note", text=text)

    def close(self) -> None:
        """Close the files."""
        for file in self._files:
            file.close()


def _end_last_line(path: Path) -> None:
    try:
        with path.open("rb+") as file:
            if file.seek(0, os.SEEK_END) and (file.seek(-1, os.SEEK_END), file.read(1))[1] != b"\n":
                file.write(b"\n")
    except FileNotFoundError:
        return


class Scalars:
    """An event file in `folder` that TensorBoard shows as curves over the steps.

    first_step: where this run begins or continues; TensorBoard drops what an interrupted run wrote from there on.
    Raises BadInput when the tensorboard package is not installed.
    """

    def __init__(self, folder: Path, first_step: int) -> None:
        try:
            from tensorboard.compat.proto import event_pb2, summary_pb2  # type: ignore[import-untyped]
            from tensorboard.summary.writer.event_file_writer import EventFileWriter  # type: ignore[import-untyped]
        except ImportError as error:
            raise BadInput(
                "train.tensorboard is true and the tensorboard package is not installed: "
                "pip install 'msmigrate[tensorboard]', or set it to false"
            ) from error
        self._events, self._summaries = event_pb2, summary_pb2
        self._writer = EventFileWriter(str(folder))
        start = event_pb2.SessionLog(status=event_pb2.SessionLog.START)
        self._add(step=first_step, session_log=start)

    def add(self, step: int, **numbers: float | None) -> None:
        """Write numbers by tag, such as loss, at a step; None is left out. Double underscores in a tag become '/'."""
        values = [
            self._summaries.Summary.Value(tag=tag.replace("__", "/"), simple_value=number)
            for tag, number in numbers.items()
            if number is not None
        ]
        if values:
            self._add(step=step, summary=self._summaries.Summary(value=values))

    def _add(self, **content: Any) -> None:
        self._writer.add_event(self._events.Event(wall_time=time.time(), **content))

    def close(self) -> None:
        """Write what is still in memory."""
        self._writer.close()


class EventFile:
    """A file to which one process appends its events, each line at once, so that another can follow it."""

    def __init__(self, path: Path) -> None:
        path.parent.mkdir(parents=True, exist_ok=True)
        self._file = path.open("a", buffering=1, encoding="utf-8")

    def say(self, event: str, **facts: Any) -> None:
        """Append one event with the time (seconds since 1970); numbers that are not finite become texts."""
        line = {"event": event, "time": round(time.time(), 3), **facts}
        self._file.write(json.dumps(_finite(line), ensure_ascii=False) + "\n")

    def close(self) -> None:
        """Close the file; a process that ends need not."""
        self._file.close()


def append(path: Path, event: dict[str, Any]) -> None:
    """Append another process's event, unchanged, to the file of a process that has ended."""
    with path.open("a", encoding="utf-8") as file:
        file.write(json.dumps(_finite(event), ensure_ascii=False) + "\n")


class Follower:
    """Reads the events that have been appended to a file since the last call."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._at = 0

    def events(self) -> list[dict[str, Any]]:
        """The events in new, complete lines; none while the file does not exist. Other lines are passed over."""
        try:
            with open_regular(self.path) as file:
                file.seek(self._at)
                new = file.read()
        except FileNotFoundError:
            return []
        whole = new[: new.rfind(b"\n") + 1]
        self._at += len(whole)
        return [event for event in map(_parsed, whole.splitlines()) if event is not None]


def _parsed(line: bytes) -> dict[str, Any] | None:
    try:
        found = json.loads(line)
    except (ValueError, RecursionError):
        return None
    return found if isinstance(found, dict) and isinstance(found.get("event"), str) else None


def _finite(value: Any) -> Any:
    """JSON has neither nan nor infinity: they are written as the texts 'nan', 'inf' and '-inf'."""
    if isinstance(value, dict):
        return {key: _finite(item) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [_finite(item) for item in value]
    if isinstance(value, float) and (value != value or value in (float("inf"), float("-inf"))):
        return str(value)
    return value
