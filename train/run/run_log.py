"""What one process of a training run says, to the process that started it and, for rank 0, into the run's log."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

from ...errors import BadDestination
from .events import EventFile
from .job import Job


class RunLog:
    """Appends every event to this rank's file and, for rank 0, to the run's own log.

    A line that a killed process left unfinished is ended first. Raises BadDestination where a file cannot be written.
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
        """Append one event. Raises BadDestination, as on a full disk."""
        try:
            for file in self._files:
                file.say(event, **facts)
        except OSError as error:
            raise BadDestination(f"cannot write the run's log: {error.strerror}") from error

    def warn(self, text: str) -> None:
        """Append a warning."""
        self.say("warning", text=text)

    def note(self, text: str) -> None:
        """Append something worth knowing."""
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
