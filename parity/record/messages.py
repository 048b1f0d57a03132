"""The lines with which a worker says what it does, that something is ready, or why it stops."""

from __future__ import annotations

import json
import sys

PROGRESS = "@msmigrate "


def progress(what: str) -> None:
    """Tell the parent process, over stdout, what begins now."""
    print(PROGRESS + json.dumps({"doing": what}), flush=True)


def announce(event: str) -> None:
    """Tell the parent process that something is ready for it."""
    print(PROGRESS + json.dumps({"event": event}), flush=True)


def parse_progress(line: str) -> dict[str, str] | None:
    """What a worker's stdout line says, or None for any other output."""
    if not line.startswith(PROGRESS):
        return None
    try:
        found = json.loads(line[len(PROGRESS) :])
    except (ValueError, RecursionError):
        return None
    return {str(key): str(value) for key, value in found.items()} if isinstance(found, dict) else None


def fail(error: Exception) -> None:
    """Give the parent process the one line that explains why this worker stopped."""
    print(PROGRESS + json.dumps({"error": str(error), "kind": type(error).__name__}), flush=True)
    sys.stdout.flush()
