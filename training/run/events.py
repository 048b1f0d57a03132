"""What a process that runs a framework tells the one that started it: one JSON object a line."""

from __future__ import annotations

import json
import time
from pathlib import Path
from typing import Any

from ...input_files import open_regular


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
    """Append an event that another process said, as it is, to the file of one that has ended."""
    with path.open("a", encoding="utf-8") as file:
        file.write(json.dumps(_finite(event), ensure_ascii=False) + "\n")


class Follower:
    """Reads the events that have been appended to a file since it was last asked."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._at = 0

    def events(self) -> list[dict[str, Any]]:
        """The whole lines that are new; none while the file is not there. What is no event is passed over."""
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
    """JSON has no nan and no infinity: they are written as the texts 'nan', 'inf' and '-inf'."""
    if isinstance(value, dict):
        return {key: _finite(item) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [_finite(item) for item in value]
    if isinstance(value, float) and (value != value or value in (float("inf"), float("-inf"))):
        return str(value)
    return value
