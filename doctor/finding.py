"""One line of an examination."""

from __future__ import annotations

from dataclasses import dataclass

OK, WARNING, PROBLEM = "ok", "warning", "problem"


@dataclass(frozen=True)
class Finding:
    """What was looked at, and how it is.

    state: OK; WARNING, where one option cannot be used or something is slower than it need be; PROBLEM, where commands
    fail until it is changed. found: one line. change: what to do, in words; command: the same for a shell. Both are
    empty where there is nothing to do.
    """

    check: str
    state: str
    found: str
    change: str = ""
    command: str = ""
